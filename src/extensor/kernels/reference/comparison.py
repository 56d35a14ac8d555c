"""Comparisons, logic and tests; all exact, all boolean."""

from __future__ import annotations

import numpy as np

from ..dispatch import kernel

__all__ = [
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal",
    "logical_and", "logical_or", "logical_not", "logical_xor", "isnan", "isinf", "isfinite",
]  # fmt: skip


@kernel(exact=True)
def equal(a, b):
    return np.equal(a, b)


@kernel(exact=True)
def not_equal(a, b):
    return np.not_equal(a, b)


@kernel(exact=True)
def less(a, b):
    return np.less(a, b)


@kernel(exact=True)
def less_equal(a, b):
    return np.less_equal(a, b)


@kernel(exact=True)
def greater(a, b):
    return np.greater(a, b)


@kernel(exact=True)
def greater_equal(a, b):
    return np.greater_equal(a, b)


@kernel(exact=True)
def logical_and(a, b):
    return np.logical_and(a, b)


@kernel(exact=True)
def logical_or(a, b):
    return np.logical_or(a, b)


@kernel(exact=True)
def logical_not(x):
    return np.logical_not(x)


@kernel(exact=True)
def logical_xor(a, b):
    return np.logical_xor(a, b)


@kernel(exact=True)
def isnan(x):
    return np.isnan(x)


@kernel(exact=True)
def isinf(x):
    return np.isinf(x)


@kernel(exact=True)
def isfinite(x):
    return np.isfinite(x)
