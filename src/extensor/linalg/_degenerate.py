"""Quotients by the differences of eigenvalues and singular values, which may be zero."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from ..ops.arithmetic import divide
from ..ops.selection import where
from ..tensor import ExTensor

__all__ = ["quotient", "size_of"]

_limits: Any = ml_dtypes  # has no types, but the limits of bfloat16 too


def size_of(*grads: ExTensor | None) -> float:
    """The largest number among the gradients."""
    return max((float(np.abs(g.numpy()).max(initial=0.0)) for g in grads if g is not None), default=0.0)


def quotient(
    numerator: ExTensor, divisor: ExTensor, scale: np.ndarray, involved: np.ndarray, weight: float
) -> ExTensor:
    """``numerator / divisor``; where the divisor is zero to working precision: 0 if no gradient is involved, else nan.

    The vectors of equal values are arbitrary up to a rotation among themselves. A loss that uses them has no gradient
    that could be told from theirs, not even a loss that is smooth there; a nan says so, where the quotient would be
    rounding noise.

    Args:
        numerator, divisor: the parts, which broadcast.
        scale: the size of what the divisor was subtracted from; broadcasts.
        involved: the size of the gradients that each quotient is about.
        weight: the size of all gradients, to tell what is zero among them.
    """
    eps = float(_limits.finfo(divisor.dtype).eps)
    length = numerator.shape[-1]
    equal = np.abs(divisor.numpy()) <= 4 * length * eps * scale
    if not equal.any():
        return divide(numerator, divisor)
    undefined = np.where(involved <= 64 * length * eps * weight, 0.0, np.nan).astype(
        divisor.numpy().real.dtype
    )
    return where(equal, ExTensor(undefined), divide(numerator, where(equal, 1.0, divisor)))
