"""Moving elements about: reshape, transpose, join, cut, pad."""

from __future__ import annotations

from typing import Any

import numpy as np

import extensor as et

from ...tensor import ExTensor
from ..proto import array_of, as_value, check_bytes, ints_of
from ..table import operator

__all__: list[str] = []


def _is_array(x: Any) -> bool:
    """Strings and small number types are NumPy arrays."""
    return not isinstance(x, ExTensor)


@operator("Reshape", since=5, fixed=("shape",))
def reshape(x: Any, shape: Any, *, allowzero: int = 0) -> Any:
    """The same elements in another shape: 0 keeps a length, -1 is what is left."""
    return reshape_first(x, shape=ints_of(shape), allowzero=allowzero)


@operator("Reshape")
def reshape_first(x: Any, *, shape: list[int], allowzero: int = 0, consumed_inputs: Any = None) -> Any:
    """The same elements in another shape, given as an attribute."""
    if not allowzero:
        if any(n == 0 and i >= x.ndim for i, n in enumerate(shape)):
            raise ValueError(
                f"[Reshape] shape {shape} keeps a length that x of shape {x.shape} does not have"
            )
        shape = [x.shape[i] if n == 0 else n for i, n in enumerate(shape)]
    return x.reshape(shape) if _is_array(x) else et.reshape(x, tuple(shape))


@operator("Flatten")
def flatten(x: Any, *, axis: int = 1) -> Any:
    """A matrix: the axes before ``axis`` are its rows."""
    front = int(np.prod(x.shape[: axis if axis >= 0 else axis + x.ndim], dtype=np.int64))
    rest = x.size // front if front else int(np.prod(x.shape[axis:], dtype=np.int64))
    return x.reshape((front, rest))


@operator("Transpose")
def transpose(x: Any, *, perm: list[int] | None = None) -> Any:
    """The axes in another order."""
    if _is_array(x):
        return np.transpose(x, perm)
    return et.transpose(x) if perm is None else et.transpose(x, tuple(perm))


@operator("Squeeze", fixed=("given",))
def squeeze(x: Any, given: Any = None, *, axes: list[int] | None = None) -> Any:
    """Without axes of length 1."""
    found = ints_of(given) if given is not None else axes
    if _is_array(x):
        return np.squeeze(x, None if found is None else tuple(found))
    return et.squeeze(x) if found is None else et.squeeze(x, tuple(found))


@operator("Unsqueeze", fixed=("given",))
def unsqueeze(x: Any, given: Any = None, *, axes: list[int] | None = None) -> Any:
    """With new axes of length 1."""
    found = tuple(ints_of(given) if given is not None else axes or ())
    return np.expand_dims(x, found) if _is_array(x) else et.expand_dims(x, found)


@operator("Concat")
def concat(*tensors: Any, axis: int = 1) -> Any:
    """Tensors one after another."""
    if any(map(_is_array, tensors)):
        return np.concatenate(tensors, axis)
    return et.concatenate(list(tensors), axis)


@operator("Split", since=13, fixed=("given",))
def split(x: Any, given: Any = None, *, axis: int = 0, num_outputs: int | None = None, outputs: int) -> Any:
    """Parts along an axis: of the given lengths, or as equal as possible."""
    if num_outputs not in (None, outputs):
        raise ValueError(f"[Split] num_outputs is {num_outputs}, but the node has {outputs} outputs")
    return split_first(x, axis=axis, split=None if given is None else ints_of(given), outputs=outputs)


@operator("Split")
def split_first(x: Any, *, axis: int = 0, split: list[int] | None = None, outputs: int) -> Any:
    """Parts along an axis."""
    length = x.shape[axis]
    if split is None:
        size = -(-length // outputs)
        split = [max(0, min(size, length - i * size)) for i in range(outputs)]
    if sum(split) != length or min(split, default=0) < 0:
        raise ValueError(f"[Split] the parts {split} do not make up the length {length}")
    return tuple(et.split(x, tuple(np.cumsum(split)[:-1].tolist()), axis))


@operator("Slice", since=10, fixed=("starts", "ends", "axes", "steps"))
def slice_of(x: Any, starts: Any, ends: Any, axes: Any = None, steps: Any = None) -> Any:
    """Elements from start to end along axes."""
    return slice_first(
        x, starts=ints_of(starts), ends=ints_of(ends), axes=None if axes is None else ints_of(axes),
        steps=None if steps is None else ints_of(steps),
    )  # fmt: skip


@operator("Slice")
def slice_first(
    x: Any,
    *,
    starts: list[int],
    ends: list[int],
    axes: list[int] | None = None,
    steps: list[int] | None = None,
) -> Any:
    """Elements from start to end along axes."""
    axes = list(range(len(starts))) if axes is None else axes
    steps = [1] * len(starts) if steps is None else steps
    key = [slice(None)] * x.ndim
    for axis, start, end, step in zip(axes, starts, ends, steps):
        length = x.shape[axis]
        if step == 0:
            raise ValueError("[Slice] a step is 0")
        key[axis] = _python_slice(start, end, step, length)
    return x[tuple(key)] if _is_array(x) else et.index(x, tuple(key))


_FAR = 2**31 - 1  # writers say "to the end" with the largest number they know


def _python_slice(start: int, end: int, step: int, length: int) -> slice:
    """A slice of the standard as one of Python; they differ where a step back begins before the first element."""
    if step > 0:
        return slice(
            None if start <= -_FAR else start, None if end >= _FAR else end, None if step == 1 else step
        )
    if start < -length:
        start = 0
    return slice(None if start >= _FAR else start, None if end <= -min(_FAR, length + 1) else end, step)


@operator("Expand", fixed=("shape",))
def expand(x: Any, shape: Any) -> Any:
    """Broadcast; a length of 1 in ``shape`` keeps that of x."""
    wanted = et.broadcast_shapes(x.shape, tuple(ints_of(shape)))
    check_bytes("Expand", wanted, x.dtype.itemsize)
    return np.broadcast_to(x, wanted) if _is_array(x) else et.broadcast_to(x, wanted)


@operator("Tile", since=6, fixed=("repeats",))
def tile(x: Any, repeats: Any) -> Any:
    """Copies side by side."""
    times = ints_of(repeats)
    check_bytes("Tile", [n * t for n, t in zip(x.shape, times)], x.dtype.itemsize)
    return np.tile(x, times) if _is_array(x) else et.tile(x, tuple(times))


@operator("Pad", since=11, fixed=("pads", "value", "axes"))
def pad(x: Any, pads: Any, value: Any = None, axes: Any = None, *, mode: str = "constant") -> Any:
    """More elements around: a number, the edge, a mirror image, or from the other side; less where a pad is negative."""
    fill = 0 if value is None else array_of(value).reshape(-1)[0].item()
    along = list(range(x.ndim)) if axes is None else [a % x.ndim for a in ints_of(axes)]
    amounts = ints_of(pads)
    if len(amounts) != 2 * len(along):
        raise ValueError(f"[Pad] has {len(amounts)} numbers for {len(along)} axes")
    widths = [(0, 0)] * x.ndim
    for i, axis in enumerate(along):
        widths[axis] = (amounts[i], amounts[i + len(along)])
    return padded(x, widths, mode, fill)


@operator("Pad", since=2)
def pad_second(x: Any, *, pads: list[int], mode: str = "constant", value: float = 0.0) -> Any:
    """More elements around, given as attributes."""
    return padded(x, list(zip(pads[: x.ndim], pads[x.ndim :])), mode, value)


@operator("Pad", since=1)
def pad_first(x: Any, *, paddings: list[int], mode: str = "constant", value: float = 0.0) -> Any:
    """More elements around, given as attributes."""
    return padded(x, list(zip(paddings[: x.ndim], paddings[x.ndim :])), mode, value)


def padded(x: Any, widths: list[tuple[int, int]], mode: str = "constant", fill: Any = 0) -> Any:
    """Elements around x, or taken away where a width is negative."""
    check_bytes("Pad", [max(n + a + b, 0) for n, (a, b) in zip(x.shape, widths)], x.dtype.itemsize)
    if any(a < 0 or b < 0 for a, b in widths):
        key = tuple(slice(max(-a, 0), n - max(-b, 0)) for n, (a, b) in zip(x.shape, widths))
        x = et.index(x, key)
        widths = [(max(a, 0), max(b, 0)) for a, b in widths]
    if not any(a or b for a, b in widths):
        return x
    if mode == "constant":
        return et.pad(x, tuple(widths), "constant", fill)
    for axis, (before, after) in enumerate(widths):
        if before or after:
            places = np.pad(np.arange(x.shape[axis]), (before, after), mode if mode != "wrap" else "wrap")  # type: ignore[call-overload]
            x = et.take(x, places, axis)
    return x


@operator("CenterCropPad", since=18, fixed=("shape",))
def center_crop_pad(x: Any, shape: Any, *, axes: list[int] | None = None) -> Any:
    """The middle of x, or x in the middle of zeros."""
    along = list(range(x.ndim)) if axes is None else [a % x.ndim for a in axes]
    key = [slice(None)] * x.ndim
    widths = [(0, 0)] * x.ndim
    for axis, wanted in zip(along, ints_of(shape)):
        length = x.shape[axis]
        if wanted <= length:
            start = (length - wanted) // 2
            key[axis] = slice(start, start + wanted)
        else:
            before = (wanted - length) // 2
            widths[axis] = (before, wanted - length - before)
    return padded(et.index(x, tuple(key)), widths)


@operator("DepthToSpace")
def depth_to_space(x: Any, *, blocksize: int, mode: str = "DCR") -> Any:
    """Channels become pixels: blocks of ``blocksize`` by ``blocksize``."""
    n, c, h, w = x.shape
    b, depth = blocksize, c // blocksize**2
    if mode == "DCR":
        return (
            x.reshape((n, b, b, depth, h, w)).transpose((0, 3, 4, 1, 5, 2)).reshape((n, depth, h * b, w * b))
        )
    return x.reshape((n, depth, b, b, h, w)).transpose((0, 1, 4, 2, 5, 3)).reshape((n, depth, h * b, w * b))


@operator("SpaceToDepth")
def space_to_depth(x: Any, *, blocksize: int, mode: str = "DCR") -> Any:
    """Pixels become channels: blocks of ``blocksize`` by ``blocksize``."""
    n, c, h, w = x.shape
    b = blocksize
    parts = x.reshape((n, c, h // b, b, w // b, b))
    order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    return parts.transpose(order).reshape((n, c * b * b, h // b, w // b))


@operator("ReverseSequence", fixed=("lengths",))
def reverse_sequence(x: Any, lengths: Any, *, batch_axis: int = 1, time_axis: int = 0) -> Any:
    """The first elements of each sequence in reverse order."""
    batch, time = batch_axis % x.ndim, time_axis % x.ndim
    steps = np.arange(x.shape[time])[:, None]
    count = array_of(lengths)[None, :]
    places = np.where(steps < count, count - 1 - steps, steps)  # (time, batch)
    rows = np.moveaxis(places.reshape((*places.shape, *(1,) * (x.ndim - 2))), (0, 1), (time, batch))
    return et.take_along_axis(x, as_value(np.broadcast_to(rows, x.shape).astype(np.int64)), time)


@operator("Trilu", fixed=("k",))
def trilu(x: Any, k: Any = None, *, upper: int = 1) -> Any:
    """The upper or the lower triangle of each matrix; the rest is 0."""
    shift = 0 if k is None else int(array_of(k).reshape(-1)[0])
    ones = np.ones(x.shape[-2:], bool)
    inside = np.triu(ones, shift) if upper else np.tril(ones, shift)
    return et.where(inside, x, et.zeros_like(x))
