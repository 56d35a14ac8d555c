"""Positions, sets and counts."""

from __future__ import annotations

import numpy as np

from ..dispatch import kernel

__all__ = ["bincount", "histogram", "isclose", "isin", "nonzero", "searchsorted", "unique"]


@kernel(exact=True)
def nonzero(x):
    return tuple(np.asarray(places, np.int64) for places in np.nonzero(x))


@kernel(exact=True)
def unique(x):
    """Sorted values, where each was first, which value stands at each place, and how often."""
    values, indices, inverse, counts = np.unique(x, True, True, True, equal_nan=False)
    whole = (np.asarray(a, np.int64) for a in (indices, inverse.reshape(x.shape), counts))
    return (values, *whole)


@kernel(exact=True)
def searchsorted(a, values, right):
    return np.asarray(np.searchsorted(a, values, "right" if right else "left"), np.int64)


@kernel(exact=True)
def isin(x, values, invert):
    return np.isin(x, values, invert=invert)


@kernel
def isclose(a, b, rtol, atol, equal_nan):
    return np.asarray(np.isclose(a, b, rtol, atol, equal_nan))


@kernel
def bincount(x, weights, minlength):
    return np.bincount(x.astype(np.intp, copy=False), weights, minlength).astype(
        np.int64 if weights is None else weights.dtype
    )


@kernel
def histogram(x, bins, low, high):
    counts, edges = np.histogram(x, bins, (low, high))
    return counts.astype(np.int64), edges.astype(x.dtype if x.dtype.kind == "f" else np.float32)
