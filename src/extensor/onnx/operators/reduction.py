"""Reductions over axes, and where extremes are."""

from __future__ import annotations

from typing import Any

import numpy as np

import extensor as et

from ...dtypes import FLOATING
from ..proto import array_of, as_value, ints_of
from ..table import opaque, operator

__all__: list[str] = []


def _reduced(function: Any, x: Any, given: Any, axes: Any, keepdims: int, noop: int) -> Any:
    """``function(x, axes, keepdims)``; axes are an input in newer operator sets and an attribute in older ones."""
    found = ints_of(given) if given is not None else axes
    if not found:
        if noop:
            return None
        found = None
    return function(x, None if found is None else tuple(found), bool(keepdims))


def _narrow(result: Any, x: Any) -> Any:
    """Sums of small whole numbers stay in their dtype."""
    return result if result.dtype == x.dtype else et.astype(result, x.dtype)


@operator("ReduceSum", fixed=("given",))
def reduce_sum(
    x: Any, given: Any = None, *, axes: Any = None, keepdims: int = 1, noop_with_empty_axes: int = 0
) -> Any:
    """The sum over axes."""
    found = _reduced(et.sum, x, given, axes, keepdims, noop_with_empty_axes)
    return x if found is None else _narrow(found, x)


@operator("ReduceMean", fixed=("given",))
def reduce_mean(
    x: Any, given: Any = None, *, axes: Any = None, keepdims: int = 1, noop_with_empty_axes: int = 0
) -> Any:
    """The mean over axes."""
    found = _reduced(et.mean, x, given, axes, keepdims, noop_with_empty_axes)
    return x if found is None else _narrow(found, x)


@operator("ReduceProd", fixed=("given",))
def reduce_prod(
    x: Any, given: Any = None, *, axes: Any = None, keepdims: int = 1, noop_with_empty_axes: int = 0
) -> Any:
    """The product over axes."""
    found = _reduced(et.prod, x, given, axes, keepdims, noop_with_empty_axes)
    return x if found is None else _narrow(found, x)


def _extreme(function: Any, empty: Any) -> Any:
    def of(x: Any, axes: Any, keepdims: bool) -> Any:
        if not x.size:  # the greatest of nothing is the least number there is
            shape = np.zeros(x.shape, np.int8).sum(axes, keepdims=keepdims).shape
            return et.full(shape, empty(x.dtype), x.dtype)
        if x.dtype == np.bool_:
            return et.astype(function(et.astype(x, "uint8"), axes, keepdims), np.bool_)
        return function(x, axes, keepdims)

    return of


def _least(dtype: Any) -> Any:
    return False if dtype == np.bool_ else -np.inf if dtype in FLOATING else np.iinfo(dtype).min


def _most(dtype: Any) -> Any:
    return True if dtype == np.bool_ else np.inf if dtype in FLOATING else np.iinfo(dtype).max


@operator("ReduceMax", fixed=("given",))
def reduce_max(
    x: Any, given: Any = None, *, axes: Any = None, keepdims: int = 1, noop_with_empty_axes: int = 0
) -> Any:
    """The greatest element along axes."""
    found = _reduced(_extreme(et.max, _least), x, given, axes, keepdims, noop_with_empty_axes)
    return x if found is None else found


@operator("ReduceMin", fixed=("given",))
def reduce_min(
    x: Any, given: Any = None, *, axes: Any = None, keepdims: int = 1, noop_with_empty_axes: int = 0
) -> Any:
    """The least element along axes."""
    found = _reduced(_extreme(et.min, _most), x, given, axes, keepdims, noop_with_empty_axes)
    return x if found is None else found


@operator("ReduceL1", fixed=("given",))
def reduce_l1(
    x: Any, given: Any = None, *, axes: Any = None, keepdims: int = 1, noop_with_empty_axes: int = 0
) -> Any:
    """The sum of absolute values."""
    return reduce_sum(
        et.abs(x), given, axes=axes, keepdims=keepdims, noop_with_empty_axes=noop_with_empty_axes
    )


@operator("ReduceL2", fixed=("given",))
def reduce_l2(
    x: Any, given: Any = None, *, axes: Any = None, keepdims: int = 1, noop_with_empty_axes: int = 0
) -> Any:
    """The square root of the sum of squares."""
    squares = reduce_sum(
        x * x, given, axes=axes, keepdims=keepdims, noop_with_empty_axes=noop_with_empty_axes
    )
    if x.dtype not in FLOATING:
        return et.astype(et.sqrt(et.astype(squares, "float64")), x.dtype)
    return et.sqrt(squares)


@operator("ReduceSumSquare", fixed=("given",))
def reduce_sum_square(
    x: Any, given: Any = None, *, axes: Any = None, keepdims: int = 1, noop_with_empty_axes: int = 0
) -> Any:
    """The sum of squares."""
    return reduce_sum(x * x, given, axes=axes, keepdims=keepdims, noop_with_empty_axes=noop_with_empty_axes)


@operator("ReduceLogSum", fixed=("given",))
def reduce_log_sum(
    x: Any, given: Any = None, *, axes: Any = None, keepdims: int = 1, noop_with_empty_axes: int = 0
) -> Any:
    """The logarithm of the sum."""
    return et.log(
        reduce_sum(x, given, axes=axes, keepdims=keepdims, noop_with_empty_axes=noop_with_empty_axes)
    )


@operator("ReduceLogSumExp", fixed=("given",))
def reduce_log_sum_exp(
    x: Any, given: Any = None, *, axes: Any = None, keepdims: int = 1, noop_with_empty_axes: int = 0
) -> Any:
    """The logarithm of the sum of exponentials."""

    def of(x: Any, axes: Any, keepdims: bool) -> Any:
        if not x.size:
            return et.log(et.sum(et.exp(x), axes, keepdims))
        return et.logsumexp(x, axes, keepdims)

    found = _reduced(of, x, given, axes, keepdims, noop_with_empty_axes)
    return et.log(et.exp(x)) if found is None else found


# Where extremes are


def _position(function: Any, x: Any, axis: int, keepdims: int, select_last_index: int) -> Any:
    if not select_last_index:
        return et.astype(function(x, axis, bool(keepdims)), "int64")
    found = function(et.flip(x, axis), axis, bool(keepdims))
    return et.astype(x.shape[axis] - 1 - found, "int64")


@operator("ArgMax")
def arg_max(x: Any, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Any:
    """Where the greatest element is: the first of a tie, or the last."""
    return _position(et.argmax, x, axis, keepdims, select_last_index)


@operator("ArgMin")
def arg_min(x: Any, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Any:
    """Where the least element is: the first of a tie, or the last."""
    return _position(et.argmin, x, axis, keepdims, select_last_index)


@operator("TopK", since=10, fixed=("k",))
def top_k(x: Any, k: Any, *, axis: int = -1, largest: int = 1, sorted: int = 1) -> Any:
    """The k greatest elements (or least), in order, and where they are; ties by position."""
    places = top_places(x, int(array_of(k).reshape(-1)[0]), axis, bool(largest))
    return et.take_along_axis(x, places, axis), places


@operator("TopK", since=1)
def top_k_first(x: Any, *, k: int, axis: int = -1) -> Any:
    """The k greatest elements, in order, and where they are."""
    places = top_places(x, k, axis, True)
    return et.take_along_axis(x, places, axis), places


@opaque
def top_places(x: Any, k: int, axis: int, largest: bool) -> Any:
    """Where the k greatest or least elements are, in order."""
    array = array_of(x)
    if not 0 <= k <= array.shape[axis]:
        raise ValueError(f"[TopK] k is {k}, but axis {axis} has length {array.shape[axis]}")
    if largest:  # backwards, so that a tie keeps its order after the turn
        order = (
            array.shape[axis] - 1 - np.flip(np.argsort(np.flip(array, axis), axis=axis, kind="stable"), axis)
        )
    else:
        order = np.argsort(array, axis=axis, kind="stable")
    return as_value(np.take(order, range(k), axis=axis).astype(np.int64))
