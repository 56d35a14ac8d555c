"""Softmax and its logarithm along one axis. A 0-d tensor counts as a row of one element (axis 0).

The rows of float32 are summed in float64.
"""

from __future__ import annotations

import math

from ..dispatch import formula, kernel
from ..namespace import primitive, wide_dtype, xp

__all__ = ["log_softmax", "log_softmax_backward", "softmax", "softmax_backward"]


def row_max(x, axis):
    return x.max(axis if x.ndim else None, keepdims=True, initial=-math.inf)


@primitive
def row_sum(x, axis):
    return x.sum(axis if x.ndim else None, keepdims=True, dtype=wide_dtype(x)).astype(x.dtype)


@primitive
def probabilities(x, axis):
    """Softmax."""
    e = xp.exp(x - row_max(x, axis))
    return e / row_sum(e, axis)


@kernel
def softmax(x, axis):
    return probabilities(x, axis)


@formula
def softmax_backward(g, y, axis):
    return y * (g - row_sum(g * y, axis))


@kernel
def log_softmax(x, axis):
    shifted = x - row_max(x, axis)
    return shifted - xp.log(row_sum(xp.exp(shifted), axis))


@formula
def log_softmax_backward(g, y, axis):
    return g - xp.exp(y) * row_sum(g, axis)
