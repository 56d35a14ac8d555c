"""Positions, sets, counts and comparisons with a tolerance; they have no gradient."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..checks import as_bool, as_int, as_integers, as_number, as_tensor, takes_complex
from ..dtypes import promote
from ..errors import describe
from ..graph import undifferentiated
from ..kernels.reference import searching as kernels
from ..tensor import ExTensor
from .creation import allocate

__all__ = [
    "HistogramResult", "UniqueAllResult", "UniqueCountsResult", "UniqueInverseResult", "allclose", "bincount", "histogram",
    "isclose", "isin", "nonzero", "searchsorted", "unique_all", "unique_counts", "unique_inverse", "unique_values",
]  # fmt: skip


@undifferentiated
@takes_complex
def nonzero(x: ExTensor) -> tuple[ExTensor, ...]:
    """Where the elements are not zero: for each axis the positions along it, int64.

    Example:
        >>> import extensor as et
        >>> [t.tolist() for t in et.nonzero(et.tensor([0.0, 3.0, 4.0]))]
        [[1, 2]]
    """
    x = as_tensor("nonzero", "x", x)
    if not x.ndim:
        raise ValueError("[nonzero] x must have at least one axis, got a 0-d tensor")
    found: tuple[ExTensor, ...] = kernels.nonzero(x)
    return found


class UniqueAllResult(NamedTuple):
    """Distinct values in order, where each was first, which of them stands at each place, and how often."""

    values: ExTensor
    indices: ExTensor
    inverse_indices: ExTensor
    counts: ExTensor


class UniqueCountsResult(NamedTuple):
    """Distinct values in order, and how often each occurs."""

    values: ExTensor
    counts: ExTensor


class UniqueInverseResult(NamedTuple):
    """Distinct values in order, and which of them stands at each place."""

    values: ExTensor
    inverse_indices: ExTensor


@undifferentiated
@takes_complex
def unique_all(x: ExTensor) -> UniqueAllResult:
    """The distinct elements of a tensor with all that is known of them; each nan counts as a value of its own.

    Example:
        >>> import extensor as et
        >>> et.unique_all(et.tensor([2, 1, 2])).inverse_indices.tolist()
        [1, 0, 1]
    """
    return UniqueAllResult(*kernels.unique(as_tensor("unique_all", "x", x)))


@undifferentiated
@takes_complex
def unique_counts(x: ExTensor) -> UniqueCountsResult:
    """The distinct elements of a tensor, and how often each occurs.

    Example:
        >>> import extensor as et
        >>> et.unique_counts(et.tensor([2, 1, 2])).counts.tolist()
        [1, 2]
    """
    values, _, _, counts = kernels.unique(as_tensor("unique_counts", "x", x))
    return UniqueCountsResult(values, counts)


@undifferentiated
@takes_complex
def unique_inverse(x: ExTensor) -> UniqueInverseResult:
    """The distinct elements of a tensor, and which of them stands at each place.

    Example:
        >>> import extensor as et
        >>> values, inverse = et.unique_inverse(et.tensor([2, 1, 2]))
        >>> values[inverse].tolist()
        [2, 1, 2]
    """
    values, _, inverse, _ = kernels.unique(as_tensor("unique_inverse", "x", x))
    return UniqueInverseResult(values, inverse)


@undifferentiated
@takes_complex
def unique_values(x: ExTensor) -> ExTensor:
    """The distinct elements of a tensor, in order.

    Example:
        >>> import extensor as et
        >>> et.unique_values(et.tensor([2, 1, 2])).tolist()
        [1, 2]
    """
    found: ExTensor = kernels.unique(as_tensor("unique_values", "x", x))[0]
    return found


@undifferentiated
def searchsorted(a: ExTensor, values: Any, side: str = "left", sorter: Any = None) -> ExTensor:
    """Where values would have to be inserted into a sorted vector to keep it sorted, int64.

    Args:
        a: a sorted vector, or any vector with ``sorter``.
        values: what to insert.
        side: "left": before equal elements, "right": after them.
        sorter: the order that sorts ``a``, as argsort gives it.

    Example:
        >>> import extensor as et
        >>> et.searchsorted(et.tensor([1.0, 2.0, 3.0]), et.tensor([2.0, 2.5])).tolist()
        [1, 2]
    """
    a, values = as_tensor("searchsorted", "a", a), as_tensor("searchsorted", "values", values)
    if a.ndim != 1:
        raise ValueError(f"[searchsorted] a must be a vector, got shape {a.shape}")
    if not isinstance(side, str) or side not in ("left", "right"):
        raise ValueError(f'[searchsorted] side must be "left" or "right", got {describe(side)}')
    if sorter is not None:
        order = as_integers("searchsorted", "sorter", sorter)
        if order.shape != a.shape:
            raise ValueError(f"[searchsorted] sorter must have the shape {a.shape} of a, got {order.shape}")
        a = a[order]
    return kernels.searchsorted(a, values, side == "right")


@undifferentiated
@takes_complex
def isin(x: ExTensor, values: Any, invert: bool = False) -> ExTensor:
    """Whether each element is among the values.

    Args:
        x: any tensor.
        values: the values to look among.
        invert: whether it is not among them, instead.

    Example:
        >>> import extensor as et
        >>> et.isin(et.tensor([1, 2, 3]), [1, 3]).tolist()
        [True, False, True]
    """
    x, among = as_tensor("isin", "x", x), as_tensor("isin", "values", values)
    try:
        dtype = promote(x.dtype, among.dtype)
    except TypeError:
        raise TypeError(f"[isin] {x.dtype} and {among.dtype} have no common dtype") from None
    return kernels.isin(
        x.detach().astype(dtype), among.detach().astype(dtype), as_bool("isin", "invert", invert)
    )


@undifferentiated
@takes_complex
def isclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> ExTensor:
    """Whether elements are equal within a tolerance.   |a - b| <= atol + rtol |b|

    Args:
        a, b: tensors that broadcast.
        rtol: the tolerance relative to ``b``.
        atol: the absolute tolerance.
        equal_nan: whether nan equals nan.

    Example:
        >>> import extensor as et
        >>> et.isclose(et.tensor([1.0, 2.0]), et.tensor([1.0, 2.1])).tolist()
        [True, False]
    """
    return _isclose("isclose", a, b, rtol, atol, equal_nan)


def _isclose(function: str, a: Any, b: Any, rtol: Any, atol: Any, equal_nan: Any) -> ExTensor:
    a, b = as_tensor(function, "a", a), as_tensor(function, "b", b)
    relative, absolute = as_number(function, "rtol", rtol), as_number(function, "atol", atol)
    for name, value in (("rtol", relative), ("atol", absolute)):
        if not value >= 0:
            raise ValueError(f"[{function}] {name} must not be negative, got {value}")
    try:
        return kernels.isclose(a, b, relative, absolute, as_bool(function, "equal_nan", equal_nan))
    except ValueError:
        raise ValueError(f"[{function}] a and b do not broadcast (a: {a.shape}, b: {b.shape})") from None


@undifferentiated
@takes_complex
def allclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> bool:
    """Whether all elements are equal within a tolerance; see :func:`isclose`.

    Example:
        >>> import extensor as et
        >>> et.allclose(et.tensor([1.0]), et.tensor([1.0 + 1e-7]))
        True
    """
    return bool(_isclose("allclose", a, b, rtol, atol, equal_nan).numpy().all())


@undifferentiated
def bincount(x: ExTensor, weights: Any = None, minlength: int = 0) -> ExTensor:
    """How often each of 0, 1, 2, ... occurs, or the sum of the weights of each.

    Args:
        x: a vector of integers that are not negative.
        weights: for each element how much it counts.
        minlength: the length of the result is at least this.

    Example:
        >>> import extensor as et
        >>> et.bincount(et.tensor([0, 2, 2])).tolist()
        [1, 0, 2]
    """
    x, least = as_integers("bincount", "x", x), as_int("bincount", "minlength", minlength)
    if x.ndim != 1:
        raise ValueError(f"[bincount] x must be a vector, got shape {x.shape}")
    if x.size and int(x.numpy().min()) < 0:
        raise ValueError(f"[bincount] x must not be negative, got {int(x.numpy().min())}")
    if not 0 <= least < 2**40 or (x.size and int(x.numpy().max()) >= 2**40):
        raise ValueError(f"[bincount] the counts would not fit this machine (minlength {least})")
    if weights is not None:
        weights = as_tensor("bincount", "weights", weights)
        if weights.shape != x.shape:
            raise ValueError(f"[bincount] weights must have the shape {x.shape} of x, got {weights.shape}")
    return allocate("bincount", kernels.bincount, x.astype(np.int64), weights, least)


class HistogramResult(NamedTuple):
    """How many elements fall into each bin, and the edges of the bins."""

    counts: ExTensor
    edges: ExTensor


@undifferentiated
def histogram(x: ExTensor, bins: int = 10, range: Any = None) -> HistogramResult:
    """How many elements fall into each of several bins of equal width.

    Args:
        x: any tensor of real numbers.
        bins: how many.
        range: the lowest and the highest edge; by default the smallest and the largest element.

    Example:
        >>> import extensor as et
        >>> et.histogram(et.tensor([0.0, 0.1, 0.9, 1.0]), bins=2).counts.tolist()
        [2, 2]
    """
    x, count = as_tensor("histogram", "x", x), as_int("histogram", "bins", bins)
    if x.dtype.kind == "b":
        raise TypeError("[histogram] x is boolean; use x.astype(extensor.int8)")
    if not 1 <= count < 2**32:
        raise ValueError(f"[histogram] bins must be at least 1 (and fit this machine), got {count}")
    if range is None:
        with np.errstate(all="ignore"):  # a nan is refused below
            low, high = (float(x.numpy().min()), float(x.numpy().max())) if x.size else (0.0, 1.0)
    elif isinstance(range, (tuple, list)) and len(range) == 2:
        low, high = (as_number("histogram", "range", v) for v in range)
    else:
        raise TypeError(f"[histogram] range must be a pair of numbers, got {describe(range)}")
    if not (np.isfinite(low) and np.isfinite(high) and low <= high):
        raise ValueError(f"[histogram] range must be finite and in order, got {low} and {high}")
    try:
        return HistogramResult(*allocate("histogram", kernels.histogram, x, count, low, high))
    except ValueError as error:
        raise ValueError(f"[histogram] bins={count} cannot be made: {error}") from None
