"""Comparisons, logic and tests; all exact, all boolean."""

from __future__ import annotations

from ..dispatch import kernel
from ..namespace import xp

__all__ = [
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal",
    "logical_and", "logical_or", "logical_not", "logical_xor", "isnan", "isinf", "isfinite",
]  # fmt: skip


@kernel(exact=True)
def equal(a, b):
    return xp.equal(a, b)


@kernel(exact=True)
def not_equal(a, b):
    return xp.not_equal(a, b)


@kernel(exact=True)
def less(a, b):
    return xp.less(a, b)


@kernel(exact=True)
def less_equal(a, b):
    return xp.less_equal(a, b)


@kernel(exact=True)
def greater(a, b):
    return xp.greater(a, b)


@kernel(exact=True)
def greater_equal(a, b):
    return xp.greater_equal(a, b)


@kernel(exact=True)
def logical_and(a, b):
    return xp.logical_and(a, b)


@kernel(exact=True)
def logical_or(a, b):
    return xp.logical_or(a, b)


@kernel(exact=True)
def logical_not(x):
    return xp.logical_not(x)


@kernel(exact=True)
def logical_xor(a, b):
    return xp.logical_xor(a, b)


@kernel(exact=True)
def isnan(x):
    return xp.isnan(x)


@kernel(exact=True)
def isinf(x):
    return xp.isinf(x)


@kernel(exact=True)
def isfinite(x):
    return xp.isfinite(x)
