"""Batching rules of functions that move, join and repeat elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...checks import as_axes, as_axis, as_ints, broadcast_shape, shape_of
from ...ops.broadcasting import broadcast_to, sum_to_shape
from ...ops.joining import concatenate
from ...ops.matrix import transpose
from ...ops.shape import reshape
from ...tensor import ExTensor
from .batched import Level
from .elementwise import aligned
from .reductions import axis_after, flat
from .registry import batches, each_example

__all__: list[str] = []


@batches("reshape")
def _reshape(level: Level, op: Any, x: Any, shape: Any) -> Any:
    lengths = as_ints("reshape", "shape", shape)
    if lengths.count(-1) == 1:
        known = math.prod(n for n in lengths if n != -1)
        if known and x.size % known == 0:
            lengths = tuple(x.size // known if n == -1 else n for n in lengths)
    if -1 in lengths or math.prod(lengths) != x.size:
        return each_example(level, op, x, shape)  # which says what is wrong
    return op(level.full(x), (level.size, *lengths))


@batches("squeeze")
def _squeeze(level: Level, op: Any, x: Any, axis: Any = None) -> Any:
    axes = [i for i, n in enumerate(x.shape) if n == 1] if axis is None else as_axes("squeeze", axis, x.ndim)
    return op(level.full(x), tuple(i + 1 for i in axes))


@batches("unsqueeze", "expand_dims")
def _unsqueeze(level: Level, op: Any, x: Any, axis: Any) -> Any:
    places = as_ints(op.__name__, "axis", axis)
    axes = as_axes(op.__name__, places, x.ndim + len(places))
    return op(level.full(x), tuple(i + 1 for i in axes))


@batches("flatten")
def _flatten(level: Level, op: Any, x: Any, start_axis: int = 0, end_axis: int = -1) -> Any:
    if not x.ndim:
        return reshape(level.full(x), (level.size, *op(ExTensor(np.zeros(())), start_axis, end_axis).shape))
    return op(level.full(x), axis_after(op, start_axis, x.ndim), axis_after(op, end_axis, x.ndim))


@batches("ravel")
def _ravel(level: Level, op: Any, x: Any) -> Any:
    return flat(level, x)


@batches("transpose", "permute")
def _transpose(level: Level, op: Any, x: Any, axes: Any = None) -> Any:
    order = range(x.ndim)[::-1] if axes is None else [as_axis(op.__name__, i, x.ndim) for i in axes]
    if len(set(order)) != x.ndim or len(order) != x.ndim:
        return each_example(level, op, x, axes)  # which says what is wrong
    return transpose(level.full(x), (0, *(i + 1 for i in order)))


@batches("moveaxis")
def _moveaxis(level: Level, op: Any, x: Any, source: Any, destination: Any) -> Any:
    def after(axes: Any) -> tuple[int, ...]:
        return tuple(as_axis("moveaxis", i, x.ndim) + 1 for i in as_ints("moveaxis", "axes", axes))

    return op(level.full(x), after(source), after(destination))


@batches("swapaxes")
def _swapaxes(level: Level, op: Any, x: Any, axis1: int, axis2: int) -> Any:
    return op(level.full(x), axis_after(op, axis1, x.ndim), axis_after(op, axis2, x.ndim))


@batches("flip")
def _flip(level: Level, op: Any, x: Any, axis: Any = None) -> Any:
    return op(level.full(x), tuple(i + 1 for i in as_axes("flip", axis, x.ndim)))


@batches("roll")
def _roll(level: Level, op: Any, x: Any, shift: Any, axis: Any = None) -> Any:
    if not level.has(x) or level.has(shift):
        return each_example(level, op, x, shift, axis)
    if axis is None:
        return reshape(op(flat(level, x), shift, 1), level.full(x).shape)
    places = tuple(axis_after(op, i, x.ndim) for i in as_ints("roll", "axis", axis))
    return op(level.full(x), shift, places if isinstance(axis, Sequence) else places[0])


@batches("broadcast_to")
def _broadcast_to(level: Level, op: Any, x: Any, shape: Any) -> Any:
    lengths = as_ints("broadcast_to", "shape", shape)
    if len(lengths) < x.ndim:
        return each_example(level, op, x, shape)  # which says what is wrong
    return op(aligned(level, x, len(lengths)), (level.size, *lengths))


@batches("sum_to_shape")
def _sum_to_shape(level: Level, op: Any, grad: Any, shape: Any) -> Any:
    lengths = shape_of("sum_to_shape", "shape", shape)
    found = sum_to_shape(level.full(grad), (level.size, *(1,) * (grad.ndim - len(lengths)), *lengths))
    return reshape(found, (level.size, *lengths))


@batches("concatenate")
def _concatenate(level: Level, op: Any, tensors: Any, axis: int | None = 0) -> Any:
    if axis is None:
        return op([flat(level, _tensor(t)) for t in tensors], 1)
    return op([level.full(_tensor(t)) for t in tensors], axis_after(op, axis, max(t.ndim for t in tensors)))


@batches("stack")
def _stack(level: Level, op: Any, tensors: Any, axis: int = 0) -> Any:
    return op([level.full(_tensor(t)) for t in tensors], axis_after(op, axis, tensors[0].ndim + 1))


def _tensor(value: Any) -> ExTensor:
    return value if isinstance(value, ExTensor) else ExTensor(np.asarray(value))


@batches("hstack")
def _hstack(level: Level, op: Any, tensors: Any) -> Any:
    full = [level.full(t) if t.ndim else reshape(level.full(t), (level.size, 1)) for t in tensors]
    return concatenate(full, 1 if all(t.ndim <= 1 for t in tensors) else 2)


@batches("vstack", "dstack", "column_stack")
def _stacks(level: Level, op: Any, tensors: Any) -> Any:
    return each_example(level, op, tensors)


@batches("unstack")
def _unstack(level: Level, op: Any, x: Any, axis: int = 0) -> Any:
    return op(level.full(x), axis_after(op, axis, x.ndim))


@batches("split")
def _split(level: Level, op: Any, x: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    return op(level.full(x), indices_or_sections, axis_after(op, axis, x.ndim))


@batches("broadcast_arrays")
def _broadcast_arrays(level: Level, op: Any, *tensors: Any) -> Any:
    shape = broadcast_shape(*(t.shape for t in tensors))
    return [
        broadcast_to(aligned(level, t, len(shape)) if level.has(t) else t, (level.size, *shape))
        for t in tensors
    ]


@batches("tile")
def _tile(level: Level, op: Any, x: Any, reps: Any) -> Any:
    times = as_ints("tile", "reps", reps)
    return op(aligned(level, x, len(times)), (*(1,) * (1 + max(x.ndim - len(times), 0)), *times))


@batches("repeat")
def _repeat(level: Level, op: Any, x: Any, repeats: Any, axis: int | None = None) -> Any:
    if not level.has(x) or level.has(repeats):
        return each_example(level, op, x, repeats, axis)
    return (
        op(flat(level, x), repeats, 1)
        if axis is None
        else op(level.full(x), repeats, axis_after(op, axis, x.ndim))
    )


@batches("pad")
def _pad(
    level: Level, op: Any, x: Any, pad_width: Any, mode: str = "constant", constant_values: Any = 0
) -> Any:
    if not level.has(x) or not isinstance(constant_values, (int, float)):
        return each_example(level, op, x, pad_width, mode, constant_values)
    widths = [(int(a), int(b)) for a, b in np.broadcast_to(pad_width, (x.ndim, 2))]
    return op(level.full(x), [(0, 0), *widths], mode, constant_values)


@batches("tril", "triu", "diag_embed", "matrix_transpose")
def _last_axes(level: Level, op: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    return op(level.full(x), *args, **kwargs)


@batches("diagonal")
def _diagonal(level: Level, op: Any, x: Any, offset: int = 0, axis1: int = -2, axis2: int = -1) -> Any:
    return op(level.full(x), offset, axis_after(op, axis1, x.ndim), axis_after(op, axis2, x.ndim))
