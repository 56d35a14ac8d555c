"""Positions, sets and counts."""

from __future__ import annotations

import numpy as np

from ..dispatch import kernel
from ..namespace import as_whole, xp

__all__ = ["bincount", "histogram", "isclose", "isin", "nonzero", "searchsorted", "unique"]


@kernel(exact=True)
def nonzero(x):
    return tuple(map(as_whole, xp.nonzero(x)))


@kernel(exact=True)
def unique(x):
    """Sorted values, where each was first, which value stands at each place, and how often."""
    values, indices, inverse, counts = xp.unique(x, True, True, True, equal_nan=False)
    whole = map(as_whole, (indices, inverse.reshape(x.shape), counts))
    return (values, *whole)


@kernel(exact=True)
def searchsorted(a, values, right):
    return as_whole(xp.searchsorted(a, values, "right" if right else "left"))


@kernel(exact=True)
def isin(x, values, invert):
    return xp.isin(x, values, invert=invert)


@kernel
def isclose(a, b, rtol, atol, equal_nan):
    return xp.asarray(xp.isclose(a, b, rtol, atol, equal_nan))


@kernel
def bincount(x, weights, minlength):
    return xp.bincount(x.astype(np.intp, copy=False), weights, minlength).astype(
        np.int64 if weights is None else weights.dtype
    )


@kernel
def histogram(x, bins, low, high):
    counts, edges = xp.histogram(x, bins, (low, high))
    return counts.astype(np.int64), edges.astype(x.dtype if x.dtype.kind == "f" else np.float32)
