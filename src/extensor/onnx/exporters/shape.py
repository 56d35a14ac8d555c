"""Functions that move elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dims import Dim
from ..emit import Emitter, Value, exports

__all__: list[str] = []


@exports("reshape", "flatten", "ravel", "squeeze", "unsqueeze", "expand_dims")
def reshape(e: Emitter, x: Value, *options: Any) -> str:
    """Reshape to the shape that came out."""
    return e.reshaped(x, e.out.shape)


def _permuted(e: Emitter, x: Value, axes: Any) -> str:
    if not x.ndim:
        return e.use(x)
    return str(e.node("Transpose", e.use(x), perm=[int(a) % x.ndim for a in axes]))


@exports("transpose", "permute")
def transpose(e: Emitter, x: Value, axes: Any = None) -> str:
    """Transpose."""
    return _permuted(e, x, range(x.ndim)[::-1] if axes is None else axes)


@exports("swapaxes")
def swapaxes(e: Emitter, x: Value, axis1: int, axis2: int) -> str:
    """Transpose."""
    order = list(range(x.ndim))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return _permuted(e, x, order)


@exports("moveaxis")
def moveaxis(e: Emitter, x: Value, source: Any, destination: Any) -> str:
    """Transpose."""
    return _permuted(e, x, _moved(x.ndim, source, destination))


def _moved(ndim: int, source: Any, destination: Any) -> list[int]:
    sources = [a % ndim for a in (source if isinstance(source, (list, tuple)) else [source])]
    targets = [a % ndim for a in (destination if isinstance(destination, (list, tuple)) else [destination])]
    order = [a for a in range(ndim) if a not in sources]
    for target, origin in sorted(zip(targets, sources)):
        order.insert(target, origin)
    return order


@exports("concatenate")
def concatenate(e: Emitter, tensors: Any, axis: int | None = 0) -> str:
    """Concat."""
    names = [e.use(t, e.out.dtype) for t in tensors]
    if axis is None:
        names, axis = [e.reshape(n, (-1,)) for n in names], 0
    if len(names) == 1:
        return names[0]
    return str(e.node("Concat", *names, axis=axis))


@exports("stack")
def stack(e: Emitter, tensors: Any, axis: int = 0) -> str:
    """Unsqueeze and Concat."""
    if len(tensors) == 1 and isinstance(tensors[0], Value) and tensors[0].dtype == e.out.dtype:
        return e.reshaped(tensors[0], e.out.shape)
    along = e.constant([axis % e.out.ndim], np.int64)
    names = [e.node("Unsqueeze", e.use(t, e.out.dtype), along) for t in tensors]
    return str(e.node("Concat", *names, axis=axis % e.out.ndim))


@exports("split")
def split(e: Emitter, x: Value, indices_or_sections: Any, axis: int = 0) -> Any:
    """Split, with the lengths that came out."""
    along = axis % x.ndim
    sizes = e.ints([o.shape[along] for o in e.outputs])
    if len(e.outputs) == 1:
        return (e.node("Identity", e.use(x)),)
    return e.node("Split", e.use(x), sizes, results=len(e.outputs), axis=along)


@exports("broadcast_to")
def broadcast_to(e: Emitter, x: Value, shape: Any) -> str:
    """Expand."""
    return str(e.node("Expand", e.use(x), e.ints(e.out.shape)))


@exports("tile")
def tile(e: Emitter, x: Value, reps: Any) -> str:
    """Tile."""
    times = list(reps) if isinstance(reps, (list, tuple)) else [reps]
    name = e.use(x)
    if len(times) > x.ndim:
        name = e.reshape(name, (*(1,) * (len(times) - x.ndim), *x.shape))
    return str(e.node("Tile", name, e.ints([1] * (x.ndim - len(times)) + times)))


@exports("repeat")
def repeat(e: Emitter, x: Value, repeats: Any, axis: int | None = None) -> str:
    """Gather with every index as often as it is repeated."""
    name, length = e.use(x), int(np.prod(x.shape)) if axis is None else x.shape[axis]
    if axis is None:
        name = e.reshape(name, (-1,))
    if isinstance(length, Dim):
        raise ValueError("[export] repeat along a free axis; pass dynamic_axes=False")
    counts = repeats if isinstance(repeats, int) else np.asarray(repeats)
    places = np.repeat(np.arange(length), counts)
    return str(e.node("Gather", name, e.constant(places, np.int64), axis=axis or 0))


@exports("flip")
def flip(e: Emitter, x: Value, axis: Any = None) -> str:
    """Slice with steps of -1."""
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, (list, tuple)) else [axis]
    along = [a % x.ndim for a in axes]
    if not along:
        return e.use(x)
    last = np.iinfo(np.int64)
    return str(
        e.node(
            "Slice", e.use(x), e.constant([-1] * len(along), np.int64), e.constant([last.min + 1] * len(along), np.int64),
            e.constant(along, np.int64), e.constant([-1] * len(along), np.int64),
        )
    )  # fmt: skip


@exports("pad")
def pad(e: Emitter, x: Value, pad_width: Any, mode: str = "constant", constant_values: Any = 0) -> str:
    """Pad for constants, axis by axis where they differ; for the other modes a Gather of the places they repeat."""
    pairs = np.broadcast_to(np.asarray(pad_width), (x.ndim, 2)).tolist()
    name = e.use(x)
    if mode == "constant" and not np.ndim(constant_values):
        return _padded(e, name, x, pairs, constant_values)
    if mode == "constant":
        for axis, values in enumerate(np.broadcast_to(np.asarray(constant_values), (x.ndim, 2)).tolist()):
            for side, value in enumerate(values):
                amounts = [
                    [pairs[axis][s] if (i, s) == (axis, side) else 0 for s in (0, 1)] for i in range(x.ndim)
                ]
                name = _padded(e, name, x, amounts, value)
        return name
    for axis, (before, after) in enumerate(pairs):
        if before or after:
            if isinstance(x.shape[axis], Dim):
                raise ValueError(
                    f"[export] pad with mode {mode!r} along a free axis; pass dynamic_axes=False"
                )
            places = np.pad(np.arange(x.shape[axis]), (before, after), mode)  # type: ignore[call-overload]
            name = e.node("Gather", name, e.constant(places, np.int64), axis=axis)
    return name


def _padded(e: Emitter, name: str, x: Value, pairs: list[list[int]], value: Any) -> str:
    if not any(n for pair in pairs for n in pair):
        return name
    amounts = e.constant([*(p[0] for p in pairs), *(p[1] for p in pairs)], np.int64)
    return str(e.node("Pad", name, amounts, e.constant(value, x.dtype)))


@exports("embedding")
def embedding(e: Emitter, indices: Any, weight: Value, padding_idx: int | None = None) -> str:
    """Gather."""
    return str(e.node("Gather", e.use(weight), e.use(indices), axis=0))
