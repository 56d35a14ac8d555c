"""Reductions. ``axes`` is a sorted tuple of axes, ``keepdims`` keeps them with length 1.

A backward takes the options of its forward; ``g`` has the same elements with and without ``keepdims``.

float32 adds up and multiplies in float64 and is rounded once, at the end.
"""

from __future__ import annotations

import math

import numpy as np

from ..dispatch import kernel
from .holomorphic import holomorphic

__all__ = [
    "sum", "sum_backward", "mean", "mean_backward",
    "max_reduce", "max_reduce_backward", "min_reduce", "min_reduce_backward",
    "variance", "variance_backward", "std", "std_backward", "prod", "prod_backward",
    "logsumexp", "logsumexp_backward", "cumsum", "cumsum_backward",
]  # fmt: skip


# where the narrow dtypes are accumulated
WIDE = {
    np.dtype(np.float32): np.float64,
    np.dtype(np.complex64): np.complex128,
    np.dtype(np.complex128): np.complex128,
}


def wide(x):
    """``x`` in float64, complex numbers in complex128; those as they are."""
    return x.astype(WIDE.get(x.dtype, np.float64), copy=False)


NARROW = (np.float32, np.complex64)


def accumulator(x):
    """The dtype to accumulate ``x`` in; None is NumPy's own choice."""
    return WIDE[x.dtype] if x.dtype in NARROW else None


def narrowed(result, x):
    """A float64 result in the dtype of ``x``; integers have float64 statistics."""
    return np.asarray(result).astype(x.dtype if x.dtype.kind in "fc" else np.float64, copy=False)


def count(shape, axes):
    """How many elements each reduction runs over."""
    return math.prod(shape[i] for i in axes)


def spread(g, shape, axes):
    """``g``, reduced over ``axes`` with or without keepdims, reshaped to broadcast against ``shape``."""
    return g.reshape([1 if i in axes else n for i, n in enumerate(shape)])


@kernel
def sum(x, axes, keepdims):
    total = x.sum(axes, dtype=accumulator(x), keepdims=keepdims)
    return total.astype(x.dtype) if x.dtype in NARROW else total


@kernel(exact=True)
def sum_backward(g, shape, axes, keepdims):
    return np.broadcast_to(spread(g, shape, axes), shape)


@kernel
def mean(x, axes, keepdims):
    total = x.sum(axes, dtype=WIDE.get(x.dtype, np.float64), keepdims=keepdims)
    return narrowed(np.true_divide(total, count(x.shape, axes)), x)


@kernel
def mean_backward(g, shape, axes, keepdims):
    return np.broadcast_to(spread(g / g.dtype.type(count(shape, axes)), shape, axes), shape)


@kernel
def max_reduce(x, axes, keepdims):
    return x.max(axes, keepdims=keepdims)


@kernel
def min_reduce(x, axes, keepdims):
    return x.min(axes, keepdims=keepdims)


def extremum_backward(g, x, extremum, axes):
    """The extreme elements of a slice share the gradient equally; a nan makes all of its slice nan."""
    chosen = (x == extremum) | np.isnan(extremum)
    shared = spread(g, x.shape, axes) / chosen.sum(axes, keepdims=True).astype(g.dtype)
    shared = np.where(np.isnan(extremum), np.full((), np.nan, g.dtype), shared)
    return np.where(chosen, shared, np.zeros((), g.dtype))


@kernel
def max_reduce_backward(g, x, axes, keepdims):
    return extremum_backward(g, x, x.max(axes, keepdims=True), axes) if x.size else np.zeros_like(x)


@kernel
def min_reduce_backward(g, x, axes, keepdims):
    return extremum_backward(g, x, x.min(axes, keepdims=True), axes) if x.size else np.zeros_like(x)


def centered(x, axes):
    """``x`` in float64, minus its mean over ``axes``."""
    x = wide(x)
    return x - x.sum(axes, keepdims=True) / count(x.shape, axes)


def freedom(x, axes, ddof):
    """The divisor of a variance, never below zero."""
    return np.maximum(np.float64(count(x.shape, axes) - ddof), 0.0)


@kernel
def variance(x, axes, keepdims, ddof):
    squares = np.square(centered(x, axes)).sum(axes, keepdims=keepdims)
    return narrowed(squares / freedom(x, axes, ddof), x)


@kernel
def variance_backward(g, x, axes, keepdims, ddof):
    return narrowed(spread(wide(g), x.shape, axes) * (2.0 / freedom(x, axes, ddof)) * centered(x, axes), x)


@kernel
def std(x, axes, keepdims, ddof):
    squares = np.square(centered(x, axes)).sum(axes, keepdims=keepdims)
    return narrowed(np.sqrt(squares / freedom(x, axes, ddof)), x)


@kernel
def std_backward(g, x, axes, keepdims, ddof):
    away = centered(x, axes)
    divisor = freedom(x, axes, ddof)
    deviation = np.sqrt(np.square(away).sum(axes, keepdims=True) / divisor)
    scale = np.where(deviation == 0, 0.0, spread(wide(g), x.shape, axes) / deviation)
    return narrowed(scale * (1.0 / divisor) * away, x)


@kernel
def prod(x, axes, keepdims):
    product = x.prod(axes, dtype=accumulator(x), keepdims=keepdims)
    return product.astype(x.dtype) if x.dtype in NARROW else product


@kernel
@holomorphic
def prod_backward(g, x, axes, keepdims):
    # Everything before an element times everything after it: no division, so zeros need no care.
    kept = [i for i in range(x.ndim) if i not in axes]
    order = [*kept, *axes]
    moved = wide(x).transpose(order)
    flat = moved.reshape(*(x.shape[i] for i in kept), count(x.shape, axes))
    ones = np.ones((*flat.shape[:-1], 1))
    before = np.concatenate([ones, flat], -1).cumprod(-1)[..., :-1]
    after = np.concatenate([ones, flat[..., ::-1]], -1).cumprod(-1)[..., :-1][..., ::-1]
    others = np.where(np.isnan(flat).any(-1, keepdims=True), np.nan, before * after)
    others = others.reshape(moved.shape).transpose(np.argsort(order))
    return narrowed(spread(wide(g), x.shape, axes) * others, x)


def shifted(x, axes):
    """``x`` in float64 minus its largest element, and that element; an infinite one counts as the largest finite number."""
    x = wide(x)
    most = np.finfo(np.float64).max
    shift = np.clip(x.max(axes, keepdims=True, initial=-np.inf), -most, most)
    return x - shift, shift


@kernel
def logsumexp(x, axes, keepdims):
    below, shift = shifted(x, axes)
    result = np.log(np.exp(below).sum(axes, keepdims=True)) + shift
    return narrowed(result if keepdims else result.squeeze(axes), x)


@kernel
def logsumexp_backward(g, x, axes, keepdims):
    powers = np.exp(shifted(x, axes)[0])
    return narrowed(spread(wide(g), x.shape, axes) * (powers / powers.sum(axes, keepdims=True)), x)


@kernel
def cumsum(x, axis):
    total = x.cumsum(axis, dtype=accumulator(x))
    return total.astype(x.dtype) if x.dtype in NARROW else total


@kernel
def cumsum_backward(g, shape, axis):
    axis = 0 if axis is None else axis
    total = np.flip(np.flip(g, axis).cumsum(axis, dtype=accumulator(g)), axis)
    return total.astype(g.dtype).reshape(shape)
