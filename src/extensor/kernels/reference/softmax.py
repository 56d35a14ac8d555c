"""Softmax and its logarithm along one axis. A 0-d tensor counts as a row of one element (axis 0).

The rows of float32 are summed in float64.
"""

from __future__ import annotations

import numpy as np

from ..dispatch import kernel

__all__ = ["log_softmax", "log_softmax_backward", "softmax", "softmax_backward"]


def row_max(x, axis):
    return x.max(axis if x.ndim else None, keepdims=True, initial=-np.inf)


def row_sum(x, axis):
    return x.sum(axis if x.ndim else None, keepdims=True, dtype=np.float64).astype(x.dtype)


@kernel
def softmax(x, axis):
    e = np.exp(x - row_max(x, axis))
    return e / row_sum(e, axis)


@kernel
def softmax_backward(g, y, axis):
    return y * (g - row_sum(g * y, axis))


@kernel
def log_softmax(x, axis):
    shifted = x - row_max(x, axis)
    return shifted - np.log(row_sum(np.exp(shifted), axis))


@kernel
def log_softmax_backward(g, y, axis):
    return g - np.exp(y) * row_sum(g, axis)
