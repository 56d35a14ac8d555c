"""Tensors from nothing, and the contiguous copy."""

from __future__ import annotations

import numpy as np

from ..dispatch import kernel
from ..namespace import copied

__all__ = ["arange", "copy", "empty", "eye", "full", "linspace", "zeros"]


@kernel(exact=True)
def empty(shape, dtype):
    return np.empty(shape, dtype)


@kernel(exact=True)
def zeros(shape, dtype):
    return np.zeros(shape, dtype)


@kernel(exact=True)
def full(shape, value, dtype):
    return np.full(shape, value, dtype)


@kernel(exact=True)
def arange(start, stop, step, dtype):
    """Whole numbers are counted exactly; fractions in float64, rounded once."""
    return np.arange(start, stop, step).astype(dtype, copy=False)


@kernel(exact=True)
def linspace(start, stop, num, endpoint, dtype):
    return np.linspace(start, stop, num, endpoint).astype(dtype, copy=False)


@kernel(exact=True)
def eye(rows, columns, diagonal, dtype):
    return np.eye(rows, columns, diagonal, dtype)


@kernel(exact=True)
def copy(x):
    return copied(x)
