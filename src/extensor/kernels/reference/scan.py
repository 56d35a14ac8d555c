"""Running products, extremes and sums along an axis."""

from __future__ import annotations

import numpy as np

from ..dispatch import kernel
from ..namespace import as_whole, namespace_of, xp
from .reduction import accumulator, narrowed, wide

__all__ = ["cummax", "cummin", "cumprod", "cumulative_arg", "diff", "logcumsumexp", "logcumsumexp_backward"]


def accumulated(name, x, axis):
    """``x`` with each element joined to those before it."""
    return getattr(namespace_of(x), name).accumulate(x, axis)


@kernel
def cumprod(x, axis):
    total = x.cumprod(axis, dtype=accumulator(x))
    return total.astype(x.dtype) if x.dtype.kind in "fc" else total


@kernel(exact=True)
def cummax(x, axis):
    return accumulated("maximum", x, axis)


@kernel(exact=True)
def cummin(x, axis):
    return accumulated("minimum", x, axis)


@kernel(exact=True)
def cumulative_arg(x, running, axis):
    """Where each running extreme stands: the last place that attained it; a nan stays where it was first met."""
    places = np.arange(x.shape[axis]).reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    missing = x != x
    first = xp.where(missing, places, x.shape[axis])
    first = accumulated("minimum", first, axis)
    seen = accumulated("maximum", xp.where((x == running) & ~missing, places, 0), axis)
    return as_whole(xp.where(first < x.shape[axis], first, seen))


@kernel
def logcumsumexp(x, axis):
    return narrowed(accumulated("logaddexp", wide(x), axis), x)


@kernel
def logcumsumexp_backward(g, x, axis):
    # dx_k = sum_(j >= k) g_j exp(x_k - y_j), by logarithms of the positive and of the negative part of g
    x, wide_g = wide(x), wide(g)
    y = accumulated("logaddexp", x, axis)
    total = xp.zeros_like(x)
    for sign in (1.0, -1.0):
        part = xp.log(xp.maximum(sign * wide_g, 0.0)) - xp.where(xp.isneginf(y), 0.0, y)
        part = xp.flip(accumulated("logaddexp", xp.flip(part, axis), axis), axis)
        total = total + sign * xp.exp(part + x)
    return narrowed(xp.where(xp.isnan(wide_g) | xp.isnan(y), np.nan, total), g)


@kernel
def diff(x, n, axis):
    return xp.diff(x, n, axis)
