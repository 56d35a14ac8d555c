"""Running products, extremes and sums along an axis."""

from __future__ import annotations

import numpy as np

from ..dispatch import kernel
from .reduction import accumulator, narrowed, wide

__all__ = ["cummax", "cummin", "cumprod", "cumulative_arg", "diff", "logcumsumexp", "logcumsumexp_backward"]


@kernel
def cumprod(x, axis):
    total = x.cumprod(axis, dtype=accumulator(x))
    return total.astype(x.dtype) if x.dtype.kind in "fc" else total


@kernel(exact=True)
def cummax(x, axis):
    return np.maximum.accumulate(x, axis)


@kernel(exact=True)
def cummin(x, axis):
    return np.minimum.accumulate(x, axis)


@kernel(exact=True)
def cumulative_arg(x, running, axis):
    """Where each running extreme stands: the last place that attained it; a nan stays where it was first met."""
    places = np.arange(x.shape[axis]).reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    missing = x != x
    first = np.where(missing, places, x.shape[axis])
    first = np.minimum.accumulate(first, axis)
    seen = np.maximum.accumulate(np.where((x == running) & ~missing, places, 0), axis)
    return np.where(first < x.shape[axis], first, seen).astype(np.int64)


@kernel
def logcumsumexp(x, axis):
    return narrowed(np.logaddexp.accumulate(wide(x), axis), x)


@kernel
def logcumsumexp_backward(g, x, axis):
    # dx_k = sum_(j >= k) g_j exp(x_k - y_j), by logarithms of the positive and of the negative part of g
    x, wide_g = wide(x), wide(g)
    y = np.logaddexp.accumulate(x, axis)
    total = np.zeros_like(x)
    for sign in (1.0, -1.0):
        part = np.log(np.maximum(sign * wide_g, 0.0)) - np.where(np.isneginf(y), 0.0, y)
        part = np.flip(np.logaddexp.accumulate(np.flip(part, axis), axis), axis)
        total = total + sign * np.exp(part + x)
    return narrowed(np.where(np.isnan(wide_g) | np.isnan(y), np.nan, total), g)


@kernel
def diff(x, n, axis):
    return np.diff(x, n, axis)
