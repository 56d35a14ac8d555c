"""Moving, searching, sorting and reducing, as the standard has it."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import linalg, ops
from ..checks import broadcast_shape
from ..dtypes import as_dtype, bool_
from ..errors import OutOfBoundsError
from ..tensor import ExTensor
from ._shapes_of_calls import checked, unary

__all__ = [
    "all", "any", "argmax", "argmin", "argsort", "broadcast_arrays", "broadcast_shapes", "broadcast_to", "concat", "count_nonzero",
    "cumulative_prod", "cumulative_sum", "diff", "expand_dims", "flip", "isin", "matmul", "matrix_transpose", "max", "mean", "min",
    "moveaxis", "nonzero", "permute_dims", "prod", "repeat", "reshape", "roll", "searchsorted", "sort", "squeeze", "stack", "std",
    "sum", "take", "take_along_axis", "tensordot", "tile", "unique_all", "unique_counts", "unique_inverse", "unique_values",
    "unstack", "var", "vecdot", "where",
]  # fmt: skip

Axes = int | tuple[int, ...] | None
nonzero, unique_all, unique_counts, unique_inverse, unique_values = map(
    unary, (ops.nonzero, ops.unique_all, ops.unique_counts, ops.unique_inverse, ops.unique_values)
)
matrix_transpose = unary(linalg.matrix_transpose)


# Moving


def broadcast_arrays(*arrays: ExTensor) -> tuple[ExTensor, ...]:
    """All arrays in the shape they broadcast to."""
    return tuple(ops.broadcast_arrays(*arrays))


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that shapes broadcast to."""
    return ops.broadcast_shapes(*shapes)


def broadcast_to(x: ExTensor, /, shape: tuple[int, ...]) -> ExTensor:
    """The array in a larger shape."""
    return ops.broadcast_to(x, shape)


def concat(arrays: Any, /, *, axis: int | None = 0) -> ExTensor:
    """Arrays joined along an axis; None flattens them first."""
    if axis is None:
        return ops.concatenate([x.reshape((x.size,)) for x in arrays], 0)
    return ops.concatenate(list(arrays), axis)


def expand_dims(x: ExTensor, /, axis: Axes) -> ExTensor:
    """The array with new axes of length 1."""
    try:
        return ops.expand_dims(x, axis)
    except ValueError as error:
        raise OutOfBoundsError(str(error)) from None


def flip(x: ExTensor, /, *, axis: Axes = None) -> ExTensor:
    """The elements in reverse order along axes; None is all of them."""
    return ops.flip(x, axis)


def moveaxis(x: ExTensor, source: Any, destination: Any, /) -> ExTensor:
    """The array with axes moved."""
    return ops.moveaxis(x, source, destination)


def permute_dims(x: ExTensor, /, axes: tuple[int, ...]) -> ExTensor:
    """The array with its axes in another order."""
    return ops.permute(x, axes)


def repeat(x: ExTensor, repeats: Any, /, *, axis: int | None = None) -> ExTensor:
    """Every element several times."""
    if isinstance(repeats, ExTensor) and repeats.ndim == 0:
        repeats = int(repeats)
    if isinstance(repeats, ExTensor):
        flat = x.reshape((x.size,)) if axis is None else x
        along = 0 if axis is None else axis
        length = flat.shape[along]
        counts = np.broadcast_to(repeats.numpy(), (length,))
        return ops.take(flat, ExTensor(np.repeat(np.arange(length), counts)), along)
    return ops.repeat(x, repeats, axis)


def reshape(x: ExTensor, /, shape: tuple[int, ...], *, copy: bool | None = None) -> ExTensor:
    """The elements in another shape."""
    found = ops.reshape(x, shape)
    if copy is False and x.size and not np.shares_memory(found.numpy(), x.numpy()):
        raise ValueError(f"[reshape] {x.shape} to {shape} needs a copy, and copy=False forbids it")
    return ops.copy(found) if copy else found


def roll(x: ExTensor, /, shift: Any, *, axis: Axes = None) -> ExTensor:
    """The elements moved round along axes."""
    return ops.roll(x, shift, axis)


def squeeze(x: ExTensor, /, axis: Axes) -> ExTensor:
    """The array without axes of length 1."""
    return ops.squeeze(x, axis)


def stack(arrays: Any, /, *, axis: int = 0) -> ExTensor:
    """Arrays joined along a new axis."""
    return ops.stack(list(arrays), axis)


def tile(x: ExTensor, repetitions: tuple[int, ...], /) -> ExTensor:
    """The array several times, side by side."""
    return ops.tile(x, repetitions)


def unstack(x: ExTensor, /, *, axis: int = 0) -> tuple[ExTensor, ...]:
    """The slices along an axis."""
    return tuple(ops.unstack(x, axis))


def take(x: ExTensor, indices: ExTensor, /, *, axis: int | None = None) -> ExTensor:
    """Elements chosen along an axis."""
    return ops.take(x, indices, 0 if axis is None and x.ndim == 1 else axis)


def take_along_axis(x: ExTensor, indices: ExTensor, /, *, axis: int = -1) -> ExTensor:
    """Elements chosen along an axis, at each place their own."""
    along = axis % x.ndim if -x.ndim <= axis < x.ndim else axis
    shape = [
        n
        for i, n in enumerate(
            broadcast_shape(
                *(tuple(1 if i == along else m for i, m in enumerate(t.shape)) for t in (x, indices))
            )
        )
    ]
    wide = [tuple(t.shape[along] if i == along else n for i, n in enumerate(shape)) for t in (x, indices)]
    return ops.take_along_axis(ops.broadcast_to(x, wide[0]), ops.broadcast_to(indices, wide[1]), axis)


def where(condition: ExTensor, x1: Any, x2: Any, /) -> ExTensor:
    """Elements of one array where a condition holds, of the other elsewhere."""
    return ops.where(condition, x1, x2)


# Searching and sorting


def argmax(x: ExTensor, /, *, axis: int | None = None, keepdims: bool = False) -> ExTensor:
    """Where the largest element stands."""
    return ops.argmax(x, axis, keepdims)


def argmin(x: ExTensor, /, *, axis: int | None = None, keepdims: bool = False) -> ExTensor:
    """Where the smallest element stands."""
    return ops.argmin(x, axis, keepdims)


def count_nonzero(x: ExTensor, /, *, axis: Axes = None, keepdims: bool = False) -> ExTensor:
    """How many elements are not zero."""
    return ops.count_nonzero(x, axis, keepdims)


def searchsorted(x1: ExTensor, x2: Any, /, *, side: str = "left", sorter: ExTensor | None = None) -> ExTensor:
    """Where values would have to be inserted into a sorted vector."""
    return ops.searchsorted(x1, x2, side, sorter)


def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> ExTensor:
    """Whether each element is among the others."""
    return ops.isin(x1, x2, invert)


def argsort(x: ExTensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> ExTensor:
    """The order that sorts the elements along an axis; equal ones keep theirs."""
    if not descending:
        return ops.argsort(x, axis)
    length = checked("argsort", x).shape[axis]
    return ops.flip((length - 1) - ops.argsort(ops.flip(x, axis), axis), axis)


def sort(x: ExTensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> ExTensor:
    """The elements in order along an axis."""
    found = ops.sort(x, axis)
    return ops.flip(found, axis) if descending else found


# Reducing


def _cast(function: str, x: ExTensor, dtype: Any) -> ExTensor:
    return checked(function, x) if dtype is None else ops.astype(x, as_dtype(function, dtype))


def sum(x: ExTensor, /, *, axis: Axes = None, dtype: Any = None, keepdims: bool = False) -> ExTensor:
    """The sum over axes."""
    found = ops.sum(_cast("sum", x, dtype), axis, keepdims)
    return found if dtype is None else ops.astype(found, as_dtype("sum", dtype))


def prod(x: ExTensor, /, *, axis: Axes = None, dtype: Any = None, keepdims: bool = False) -> ExTensor:
    """The product over axes."""
    found = ops.prod(_cast("prod", x, dtype), axis, keepdims)
    return found if dtype is None else ops.astype(found, as_dtype("prod", dtype))


def mean(x: ExTensor, /, *, axis: Axes = None, keepdims: bool = False) -> ExTensor:
    """The mean over axes."""
    return ops.mean(x, axis, keepdims)


def max(x: ExTensor, /, *, axis: Axes = None, keepdims: bool = False) -> ExTensor:
    """The largest element over axes."""
    return ops.max_reduce(x, axis, keepdims)


def min(x: ExTensor, /, *, axis: Axes = None, keepdims: bool = False) -> ExTensor:
    """The smallest element over axes."""
    return ops.min_reduce(x, axis, keepdims)


def var(x: ExTensor, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False) -> ExTensor:
    """The variance over axes."""
    return ops.variance(x, axis, keepdims, correction)


def std(x: ExTensor, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False) -> ExTensor:
    """The standard deviation over axes."""
    return ops.std(x, axis, keepdims, correction)


def all(x: ExTensor, /, *, axis: Axes = None, keepdims: bool = False) -> ExTensor:
    """Whether all elements are true."""
    return ops.all(x, axis, keepdims)


def any(x: ExTensor, /, *, axis: Axes = None, keepdims: bool = False) -> ExTensor:
    """Whether an element is true."""
    return ops.any(x, axis, keepdims)


def _running(
    function: str, ours: Any, x: ExTensor, axis: int | None, dtype: Any, first: int | None
) -> ExTensor:
    if axis is None:
        if checked(function, x).ndim != 1:
            raise ValueError(f"[{function}] axis must be given for an array with {x.ndim} axes")
        axis = 0
    found = ours(_cast(function, x, dtype), axis)
    if dtype is not None:
        found = ops.astype(found, as_dtype(function, dtype))
    if first is None:
        return found
    shape = list(found.shape)
    shape[axis] = 1
    return ops.concatenate([ops.full(tuple(shape), first, found.dtype), found], axis)


def cumulative_sum(
    x: ExTensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> ExTensor:
    """The sums of all elements up to each."""
    return _running("cumulative_sum", ops.cumsum, x, axis, dtype, 0 if include_initial else None)


def cumulative_prod(
    x: ExTensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> ExTensor:
    """The products of all elements up to each."""
    return _running("cumulative_prod", ops.cumprod, x, axis, dtype, 1 if include_initial else None)


def diff(
    x: ExTensor,
    /,
    *,
    axis: int = -1,
    n: int = 1,
    prepend: ExTensor | None = None,
    append: ExTensor | None = None,
) -> ExTensor:
    """The differences of neighbours; ``prepend`` and ``append`` are put before and after."""
    parts = [part for part in (prepend, x, append) if part is not None]
    joined = ops.concatenate(parts, axis) if len(parts) > 1 else x
    length = joined.shape[axis]
    return (
        ops.diff(joined, length if n > length else n, axis)
        if joined.dtype != bool_
        else joined[..., 1:] ^ joined[..., :-1]
    )


# Products


def matmul(x1: ExTensor, x2: ExTensor, /) -> ExTensor:
    """The matrix product."""
    return ops.matmul(x1, x2)


def tensordot(x1: ExTensor, x2: ExTensor, /, *, axes: Any = 2) -> ExTensor:
    """The sum of products over chosen axes."""
    return ops.tensordot(x1, x2, axes)


def vecdot(x1: ExTensor, x2: ExTensor, /, *, axis: int = -1) -> ExTensor:
    """The scalar product of vectors."""
    return linalg.vecdot(x1, x2, axis)
