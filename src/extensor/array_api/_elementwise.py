"""Elementwise functions of the standard."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import ops
from ..dtypes import promote
from ..tensor import ExTensor
from ._shapes_of_calls import binary, checked, unary

__all__ = [
    "abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and", "bitwise_invert",
    "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "ceil", "clip", "conj", "copysign", "cos", "cosh",
    "divide", "equal", "exp", "expm1", "floor", "floor_divide", "greater", "greater_equal", "hypot", "imag", "isfinite", "isinf",
    "isnan", "less", "less_equal", "log", "log10", "log1p", "log2", "logaddexp", "logical_and", "logical_not", "logical_or",
    "logical_xor", "maximum", "minimum", "multiply", "negative", "nextafter", "not_equal", "positive", "pow", "real",
    "reciprocal", "remainder", "round", "sign", "signbit", "sin", "sinh", "sqrt", "square", "subtract", "tan", "tanh", "trunc",
]  # fmt: skip

abs, acos, acosh, asin, asinh, atan, atanh, ceil, conj, cos, cosh, exp, expm1, floor, imag, isfinite, isinf, isnan = map(
    unary,
    (ops.abs, ops.acos, ops.acosh, ops.asin, ops.asinh, ops.atan, ops.atanh, ops.ceil, ops.conj, ops.cos, ops.cosh, ops.exp,
     ops.expm1, ops.floor, ops.imag, ops.isfinite, ops.isinf, ops.isnan),
)  # fmt: skip
log, log10, log1p, log2, logical_not, real, reciprocal, round, sign, sin, sinh, sqrt, square, tan, tanh, trunc = map(
    unary,
    (ops.log, ops.log10, ops.log1p, ops.log2, ops.logical_not, ops.real, ops.reciprocal, ops.round, ops.sign, ops.sin, ops.sinh,
     ops.sqrt, ops.square, ops.tan, ops.tanh, ops.trunc),
)  # fmt: skip
bitwise_invert = unary(ops.bitwise_invert)
negative = unary(ops.negate, "negative")

add, atan2, bitwise_and, bitwise_or, bitwise_xor, bitwise_left_shift, bitwise_right_shift, copysign, divide, equal = map(
    binary,
    (ops.add, ops.atan2, ops.bitwise_and, ops.bitwise_or, ops.bitwise_xor, ops.bitwise_left_shift, ops.bitwise_right_shift,
     ops.copysign, ops.divide, ops.equal),
)  # fmt: skip
greater, greater_equal, hypot, less, less_equal, logaddexp, logical_and, logical_or, logical_xor = map(
    binary,
    (ops.greater, ops.greater_equal, ops.hypot, ops.less, ops.less_equal, ops.logaddexp, ops.logical_and, ops.logical_or,
     ops.logical_xor),
)  # fmt: skip
maximum, minimum, multiply, nextafter, not_equal, subtract = map(
    binary, (ops.maximum, ops.minimum, ops.multiply, ops.nextafter, ops.not_equal, ops.subtract)
)
pow = binary(ops.power, "pow")
remainder = binary(ops.modulo, "remainder")


def floor_divide(x1: Any, x2: Any, /) -> ExTensor:
    """The quotient rounded down, ``floor(x1 / x2)``, where an operand is infinite too; its gradient is 0.

    Example:
        >>> import extensor.array_api as xp
        >>> xp.floor_divide(xp.asarray([7.0, xp.inf, -1.0]), xp.asarray([2.0, 2.0, xp.inf])).tolist()
        [3.0, inf, -0.0]
    """
    return rounded_down(ops.floor_divide(x1, x2), x1, x2)


def rounded_down(quotient: ExTensor, x1: Any, x2: Any) -> ExTensor:
    """``x1 // x2`` of tensors, which is Python's (``inf // 2`` is nan), with the standard's values where one is infinite."""
    if quotient.dtype.kind in "iub":
        return quotient
    top, bottom = (ops.astype(operand, quotient.dtype) for operand in (_constant(x1), _constant(x2)))
    infinite = ops.logical_or(ops.isinf(top), ops.isinf(bottom))
    return ops.where(infinite, ops.floor(ops.divide(top, bottom)), quotient)


def _constant(operand: Any) -> ExTensor:
    """An operand without its history: a rounded quotient has no gradient to hand on."""
    return operand.detach() if isinstance(operand, ExTensor) else ExTensor(np.asarray(operand))


def positive(x: ExTensor, /) -> ExTensor:
    """The array itself."""
    return checked("positive", x)


def signbit(x: ExTensor, /) -> ExTensor:
    """Whether the sign of a floating number is set: that of -0 and of some nan too."""
    return ExTensor(np.asarray(np.signbit(checked("signbit", x).numpy())))


def clip(x: ExTensor, /, min: Any = None, max: Any = None) -> ExTensor:
    """The elements held between two bounds, numbers or arrays that broadcast; the dtype stays."""
    found = checked("clip", x)
    for bound, hold in ((min, ops.maximum), (max, ops.minimum)):
        if bound is not None:
            limit = bound if isinstance(bound, ExTensor) else _limit(bound, x.dtype)
            if isinstance(limit, ExTensor) and limit.dtype != x.dtype:
                wide = promote(limit.dtype, x.dtype)
                found = hold(found.astype(wide), limit.astype(wide)).astype(x.dtype)
            else:
                found = hold(found, limit)
    return found if found is not x else ops.copy(x)


def _limit(bound: Any, dtype: Any) -> ExTensor:
    """A Python number in the dtype of the array; one beyond an integer dtype is its end."""
    if dtype.kind in "iu":
        ends = np.iinfo(dtype)
        bound = int(ends.min) if bound < ends.min else int(ends.max) if bound > ends.max else bound
    return ExTensor(np.asarray(bound, dtype))
