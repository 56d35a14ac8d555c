"""Slices, and elements by index."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...tensor import ExTensor
from ..dims import Dim
from ..emit import Emitter, Value, exports

__all__: list[str] = []

_END = np.iinfo(np.int64)


@exports("take")
def take(e: Emitter, x: Value, indices: Any, axis: int | None = None) -> str:
    """Gather."""
    name = e.use(x) if axis is not None else e.reshape(e.use(x), (-1,))
    return str(e.node("Gather", name, e.use(indices, np.int64), axis=axis or 0))


@exports("take_along_axis")
def take_along_axis(e: Emitter, x: Value, indices: Any, axis: int | None = -1) -> str:
    """GatherElements; the other axes broadcast first."""
    name, places = e.use(x), e.use(indices, np.int64)
    if axis is None:
        return str(e.node("GatherElements", e.reshape(name, (-1,)), e.reshape(places, (-1,)), axis=0))
    along = axis % x.ndim
    whole = [x.shape[i] if i == along else n for i, n in enumerate(e.out.shape)]
    if tuple(whole) != tuple(x.shape):
        name = e.node("Expand", name, e.ints(whole))
    return str(e.node("GatherElements", name, e.node("Expand", places, e.ints(e.out.shape)), axis=along))


def _whole_key(key: Any, ndim: int) -> list[Any]:
    """A key with one entry for each axis, and None for new ones."""
    parts = list(key) if isinstance(key, tuple) else [key]
    used = sum(p is not None and p is not Ellipsis and not isinstance(p, (bool, np.bool_)) for p in parts)
    full = [slice(None)] * (ndim - used)
    if any(p is Ellipsis for p in parts):
        at = next(i for i, p in enumerate(parts) if p is Ellipsis)
        return [*parts[:at], *full, *parts[at + 1 :]]
    return [*parts, *full]


@exports("index")
def index(e: Emitter, x: Value, key: Any) -> str:
    """Slice for slices and numbers, Gather for one tensor of indices, else a Gather of flat positions."""
    parts = _whole_key(key, x.ndim)
    if x.last_only:
        return _last_state(e, x, parts)
    if any(isinstance(p, (bool, np.bool_)) for p in parts):
        return _by_position(e, x, key)
    tensors = [p for p in parts if isinstance(p, (Value, np.ndarray, ExTensor, list))]
    if len(tensors) > 1 or (tensors and _is_mask(tensors[0])):
        return _by_position(e, x, key)
    if not tensors and all(
        p is None or p == slice(None) or (_is_number(p) and _is_single(n)) for p, n in _with_lengths(parts, x)
    ):
        return e.reshaped(x, e.out.shape)
    name = _sliced(e, e.use(x), [p for p in parts if p is not None], x)
    if tensors:
        kept = [p for p in parts if p is not None]
        axis = next(i for i, p in enumerate(kept) if p is tensors[0])
        name = e.node("Gather", name, e.use(_plain(tensors[0]), np.int64), axis=axis)
    return e.reshape(name, e.out.shape) if any(_is_number(p) or p is None for p in parts) else name


def _with_lengths(parts: list[Any], x: Value) -> list[tuple[Any, int]]:
    lengths = iter(x.shape)
    return [(p, 1 if p is None else next(lengths)) for p in parts]


def _is_single(length: int) -> bool:
    return length == 1 and not isinstance(length, Dim)


def _is_number(part: Any) -> bool:
    return isinstance(part, (int, np.integer)) and not isinstance(part, bool)


def _is_mask(part: Any) -> bool:
    return (
        bool(np.asarray(part).dtype == np.bool_)
        if not isinstance(part, Value)
        else bool(part.dtype == np.bool_)
    )


def _plain(part: Any) -> Any:
    return (
        part.numpy() if isinstance(part, ExTensor) else np.asarray(part) if isinstance(part, list) else part
    )


def _last_state(e: Emitter, x: Value, parts: list[Any]) -> str:
    """The one state of an LSTM's cells that there is."""
    reverse = x.name.endswith(":reverse")
    name, first = x.name.removesuffix(":reverse"), parts[0]
    wanted = slice(0, 1) if reverse else slice(-1, None)
    if all(p == slice(None) for p in parts[1:]):
        if _is_number(first) and int(first) == (0 if reverse else -1):
            return e.reshape(name, e.out.shape)
        if isinstance(first, slice) and first == wanted:
            return name
    raise NotImplementedError("[export] of lstm_sequence ONNX gives only the last cell state; use cells[-1:]")


def _sliced(e: Emitter, name: str, parts: list[Any], x: Value) -> str:
    """What slices and numbers choose; a number leaves an axis of length 1."""
    starts: list[int] = []
    ends: list[int] = []
    axes: list[int] = []
    steps: list[int] = []
    for axis, part in enumerate(parts):
        if _is_number(part):
            bounds = (part, part + 1 if int(part) != -1 else _END.max, 1)
        elif isinstance(part, slice) and part != slice(None):
            step = 1 if part.step is None else part.step
            first = (0 if step > 0 else _END.max) if part.start is None else part.start
            last = (_END.max if step > 0 else _END.min + 1) if part.stop is None else part.stop
            bounds = (first, last, step)
        else:
            continue
        axes.append(axis)
        for values, bound in zip((starts, ends, steps), bounds):
            values.append(bound)
    if not axes:
        return name
    return str(
        e.node(
            "Slice",
            name,
            e.ints(starts),
            e.ints(ends),
            e.constant(axes, np.int64),
            e.constant(steps, np.int64),
        )
    )


def _positions(x: Value, key: Any) -> np.ndarray:
    """The flat positions that a key chooses; only where neither depends on the run."""
    if any(isinstance(n, Dim) for n in x.shape) or any(isinstance(p, Value) for p in _whole_key(key, x.ndim)):
        raise ValueError(
            "[export] this kind of indexing needs fixed shapes and constant indices; pass dynamic_axes=False"
        )
    plain = tuple(map(_plain, key)) if isinstance(key, tuple) else _plain(key)
    return np.arange(int(np.prod(x.shape))).reshape(x.shape)[plain]


def _by_position(e: Emitter, x: Value, key: Any) -> str:
    return str(e.node("Gather", e.reshape(e.use(x), (-1,)), e.constant(_positions(x, key), np.int64), axis=0))


@exports("index_set")
def index_set(e: Emitter, x: Value, key: Any, values: Any, reduction: str | None = None) -> str:
    """ScatterElements on the flat tensor."""
    places = _positions(x, key)
    new = e.use(values, x.dtype)
    if places.size == 0:
        return str(e.node("Identity", e.use(x)))
    spread = e.reshape(e.node("Expand", new, e.constant(places.shape, np.int64)), (-1,))
    flat = e.node(
        "ScatterElements", e.reshape(e.use(x), (-1,)), e.constant(places.reshape(-1), np.int64), spread, axis=0,
        reduction=reduction,
    )  # fmt: skip
    return e.reshape(flat, x.shape)


@exports("index_add")
def index_add(e: Emitter, x: Value, key: Any, values: Any) -> str:
    """ScatterElements that adds."""
    return index_set(e, x, key, values, "add")
