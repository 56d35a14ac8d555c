"""Reductions. ``axes`` is a sorted tuple of axes, ``keepdims`` keeps them with length 1.

A backward takes the options of its forward; ``g`` has the same elements with and without ``keepdims``.

float32 adds up and multiplies in float64 and is rounded once, at the end.
"""

from __future__ import annotations

import math

import numpy as np

from ...tensor import ExTensor
from ..dispatch import formula, kernel
from ..namespace import NARROW, constant, lift, primitive, wide, wide_dtype, xp
from .holomorphic import holomorphic

__all__ = [
    "sum", "sum_backward", "mean", "mean_backward",
    "max_reduce", "max_reduce_backward", "min_reduce", "min_reduce_backward",
    "variance", "variance_backward", "std", "std_backward", "prod", "prod_backward",
    "logsumexp", "logsumexp_backward", "cumsum", "cumsum_backward",
]  # fmt: skip


def accumulator(x):
    """The dtype to accumulate ``x`` in; None is the library's own choice."""
    return wide_dtype(x) if x.dtype in NARROW else None


def narrowed(result, x):
    """A result of wide numbers in the dtype of ``x``; integers have wide statistics."""
    if isinstance(result, ExTensor):
        return result
    dtype = x.dtype if x.dtype.kind in "fc" else wide_dtype(x)
    found = xp.asarray(result)
    return (found if dtype.kind == "c" or found.dtype.kind != "c" else found.real).astype(dtype)


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


@formula(exact=True)
def sum_backward(g, shape, axes, keepdims):
    return xp.broadcast_to(spread(g, shape, axes), shape)


@kernel
def mean(x, axes, keepdims):
    total = x.sum(axes, dtype=wide_dtype(x), keepdims=keepdims)
    return narrowed(xp.true_divide(total, count(x.shape, axes)), x)


@formula
def mean_backward(g, shape, axes, keepdims):
    return xp.broadcast_to(spread(g / float(count(shape, axes)), shape, axes), shape)


@kernel
def max_reduce(x, axes, keepdims):
    return x.max(axes, keepdims=keepdims)


@kernel
def min_reduce(x, axes, keepdims):
    return x.min(axes, keepdims=keepdims)


def extremum_backward(g, x, find, axes):
    """The extreme elements of a slice share the gradient equally; a nan makes all of its slice nan."""
    if not x.size:
        return x * 0.0
    elements = constant(x)
    extremum = find(elements, axes, keepdims=True)
    chosen = (elements == extremum) | xp.isnan(extremum)
    sharing = xp.where(xp.isnan(extremum), math.nan, chosen.sum(axes, keepdims=True)).astype(g.dtype)
    return xp.where(lift(chosen, g), spread(g, x.shape, axes) / lift(sharing, g), 0.0)


@formula
def max_reduce_backward(g, x, axes, keepdims):
    return extremum_backward(g, x, xp.max, axes)


@formula
def min_reduce_backward(g, x, axes, keepdims):
    return extremum_backward(g, x, xp.min, axes)


@primitive
def centered(x, axes):
    """``x``, wide, minus its mean over ``axes``."""
    x = wide(x)
    return x - x.sum(axes, keepdims=True) / count(x.shape, axes)


def freedom(x, axes, ddof):
    """The divisor of a variance, never below zero, and its inverse."""
    divisor = max(float(count(x.shape, axes) - ddof), 0.0)
    return divisor, 1.0 / divisor if divisor else math.inf


@kernel
def variance(x, axes, keepdims, ddof):
    squares = xp.square(centered(x, axes)).sum(axes, keepdims=keepdims)
    return narrowed(xp.asarray(squares) / freedom(x, axes, ddof)[0], x)


@formula
def variance_backward(g, x, axes, keepdims, ddof):
    _, inverse = freedom(x, axes, ddof)
    return narrowed(spread(wide(g), x.shape, axes) * centered(x, axes) * (2.0 * inverse), x)


@kernel
def std(x, axes, keepdims, ddof):
    squares = xp.square(centered(x, axes)).sum(axes, keepdims=keepdims)
    return narrowed(xp.sqrt(xp.asarray(squares) / freedom(x, axes, ddof)[0]), x)


@formula
def std_backward(g, x, axes, keepdims, ddof):
    away = centered(x, axes)
    divisor, inverse = freedom(x, axes, ddof)
    squares = xp.square(away).sum(axes, keepdims=True)
    flat = squares == 0
    deviation = xp.sqrt(xp.where(flat, 1.0, squares) / divisor)
    return narrowed(xp.where(flat, 0.0, spread(wide(g), x.shape, axes) / deviation) * away * inverse, x)


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
    ones = xp.ones((*flat.shape[:-1], 1))
    before = xp.concatenate([ones, flat], -1).cumprod(-1)[..., :-1]
    after = xp.concatenate([ones, flat[..., ::-1]], -1).cumprod(-1)[..., :-1][..., ::-1]
    others = xp.where(xp.isnan(flat).any(-1, keepdims=True), np.nan, before * after)
    others = others.reshape(moved.shape).transpose(xp.argsort(order))
    return narrowed(spread(wide(g), x.shape, axes) * others, x)


def shifted(x, axes):
    """``x``, wide, minus its largest element, and that element; an infinite one counts as the largest finite number."""
    top = wide(constant(x)).max(axes, keepdims=True, initial=-math.inf)
    most = float(np.finfo(x.dtype if x.dtype.kind == "f" else np.float64).max)
    shift = lift(narrowed(xp.clip(top, -most, most), x), x)
    return wide(x) - shift, shift


@kernel
def logsumexp(x, axes, keepdims):
    below, shift = shifted(x, axes)
    result = xp.log(xp.exp(below).sum(axes, keepdims=True)) + shift
    return narrowed(result if keepdims else result.squeeze(axes), x)


@formula
def logsumexp_backward(g, x, axes, keepdims):
    powers = xp.exp(shifted(x, axes)[0])
    return narrowed(spread(wide(g), x.shape, axes) * (powers / powers.sum(axes, keepdims=True)), x)


@primitive
def running_sum(x, axis):
    """The sums up to each element; float32 adds up in float64 and is rounded once."""
    total = x.cumsum(axis, dtype=accumulator(x))
    return total.astype(x.dtype) if x.dtype in NARROW else total


@kernel
def cumsum(x, axis):
    return running_sum(x, axis)


@formula
def cumsum_backward(g, shape, axis):
    axis = 0 if axis is None else axis
    return xp.flip(running_sum(xp.flip(g, axis), axis), axis).reshape(shape)
