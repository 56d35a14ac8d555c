"""Comparisons, logic, and tests for nan and inf: boolean results, no gradients.

A comparison with nan is False, except ``not_equal``.
"""

from __future__ import annotations

from typing import Any

from .. import kernels
from ..checks import as_tensor, takes_complex
from ..graph import undifferentiated
from ..tensor import ExTensor
from ._binary import binary

__all__ = [
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal",
    "logical_and", "logical_or", "logical_not", "logical_xor", "isnan", "isinf", "isfinite",
]  # fmt: skip


@undifferentiated(numbers=("a", "b"))
@takes_complex
def equal(a: Any, b: Any) -> ExTensor:
    """Where a equals b, with broadcasting.   y = a == b

    Example:
        >>> import extensor as et
        >>> et.equal(et.tensor([1.0, 2.0]), 2).tolist()
        [False, True]
    """
    return binary("equal", kernels.equal, a, b)


@undifferentiated(numbers=("a", "b"))
@takes_complex
def not_equal(a: Any, b: Any) -> ExTensor:
    """Where a differs from b, with broadcasting.   y = a != b

    Example:
        >>> import extensor as et
        >>> et.not_equal(et.tensor([1.0, 2.0]), 2).tolist()
        [True, False]
    """
    return binary("not_equal", kernels.not_equal, a, b)


@undifferentiated(numbers=("a", "b"))
def less(a: Any, b: Any) -> ExTensor:
    """Where a is less than b, with broadcasting.   y = a < b

    Example:
        >>> import extensor as et
        >>> et.less(et.tensor([1.0, 2.0]), 2).tolist()
        [True, False]
    """
    return binary("less", kernels.less, a, b)


@undifferentiated(numbers=("a", "b"))
def less_equal(a: Any, b: Any) -> ExTensor:
    """Where a is at most b, with broadcasting.   y = a <= b

    Example:
        >>> import extensor as et
        >>> et.less_equal(et.tensor([1.0, 2.0]), 2).tolist()
        [True, True]
    """
    return binary("less_equal", kernels.less_equal, a, b)


@undifferentiated(numbers=("a", "b"))
def greater(a: Any, b: Any) -> ExTensor:
    """Where a is greater than b, with broadcasting.   y = a > b

    Example:
        >>> import extensor as et
        >>> et.greater(et.tensor([1.0, 2.0]), 1).tolist()
        [False, True]
    """
    return binary("greater", kernels.greater, a, b)


@undifferentiated(numbers=("a", "b"))
def greater_equal(a: Any, b: Any) -> ExTensor:
    """Where a is at least b, with broadcasting.   y = a >= b

    Example:
        >>> import extensor as et
        >>> et.greater_equal(et.tensor([1.0, 2.0]), 2).tolist()
        [False, True]
    """
    return binary("greater_equal", kernels.greater_equal, a, b)


@undifferentiated(numbers=("a", "b"))
@takes_complex
def logical_and(a: Any, b: Any) -> ExTensor:
    """Where both are true (not zero), with broadcasting.   y = a and b

    Example:
        >>> import extensor as et
        >>> et.logical_and(et.tensor([True, False]), True).tolist()
        [True, False]
    """
    return binary("logical_and", kernels.logical_and, a, b)


@undifferentiated(numbers=("a", "b"))
@takes_complex
def logical_or(a: Any, b: Any) -> ExTensor:
    """Where either is true (not zero), with broadcasting.   y = a or b

    Example:
        >>> import extensor as et
        >>> et.logical_or(et.tensor([True, False]), False).tolist()
        [True, False]
    """
    return binary("logical_or", kernels.logical_or, a, b)


@undifferentiated(numbers=("a", "b"))
@takes_complex
def logical_xor(a: Any, b: Any) -> ExTensor:
    """Where exactly one is true (not zero), with broadcasting.   y = a xor b

    Example:
        >>> import extensor as et
        >>> et.logical_xor(et.tensor([True, False]), True).tolist()
        [False, True]
    """
    return binary("logical_xor", kernels.logical_xor, a, b)


@undifferentiated
@takes_complex
def logical_not(x: ExTensor) -> ExTensor:
    """Where x is false (zero).   y = not x

    Example:
        >>> import extensor as et
        >>> et.logical_not(et.tensor([True, False])).tolist()
        [False, True]
    """
    return kernels.logical_not(as_tensor("logical_not", "x", x))


@undifferentiated
@takes_complex
def isnan(x: ExTensor) -> ExTensor:
    """Where x is not a number.

    Example:
        >>> import extensor as et
        >>> et.isnan(et.tensor([1.0, float('nan')])).tolist()
        [False, True]
    """
    return kernels.isnan(as_tensor("isnan", "x", x))


@undifferentiated
@takes_complex
def isinf(x: ExTensor) -> ExTensor:
    """Where x is infinite.

    Example:
        >>> import extensor as et
        >>> et.isinf(et.tensor([1.0, float('inf')])).tolist()
        [False, True]
    """
    return kernels.isinf(as_tensor("isinf", "x", x))


@undifferentiated
@takes_complex
def isfinite(x: ExTensor) -> ExTensor:
    """Where x is neither nan nor infinite.

    Example:
        >>> import extensor as et
        >>> et.isfinite(et.tensor([1.0, float('inf')])).tolist()
        [True, False]
    """
    return kernels.isfinite(as_tensor("isfinite", "x", x))
