"""Elementwise arithmetic, comparison and logic; every binary operator broadcasts as NumPy does."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

import extensor as et

from ...dtypes import FLOATING
from ..proto import array_of, as_value
from ..table import opaque, operator

__all__: list[str] = []


def aligned(a: Any, b: Any, axis: int | None, broadcast: int | None) -> Any:
    """The second operand before operator set 7: its axes stand at ``axis`` of the first, not at the end."""
    if not broadcast or axis is None or b.ndim == 0:
        return b
    return b.reshape((*b.shape, *(1,) * (a.ndim - axis % a.ndim - b.ndim)))


@operator("Add")
def add(a: Any, b: Any, *, axis: Any = None, broadcast: Any = None, consumed_inputs: Any = None) -> Any:
    """a + b"""
    return et.add(a, aligned(a, b, axis, broadcast))


@operator("Sub")
def sub(a: Any, b: Any, *, axis: Any = None, broadcast: Any = None, consumed_inputs: Any = None) -> Any:
    """a - b"""
    return et.subtract(a, aligned(a, b, axis, broadcast))


@operator("Mul")
def mul(a: Any, b: Any, *, axis: Any = None, broadcast: Any = None, consumed_inputs: Any = None) -> Any:
    """a * b"""
    return et.multiply(a, aligned(a, b, axis, broadcast))


@operator("Div")
def div(a: Any, b: Any, *, axis: Any = None, broadcast: Any = None, consumed_inputs: Any = None) -> Any:
    """a / b; whole numbers are rounded towards 0."""
    b = aligned(a, b, axis, broadcast)
    return et.divide(a, b) if a.dtype in FLOATING else whole_quotient(a, b)


@opaque
def whole_quotient(a: Any, b: Any) -> Any:
    """The quotient of whole numbers, rounded towards 0."""
    x, y = np.broadcast_arrays(array_of(a), array_of(b))
    if not y.all():
        raise ValueError("[Div] divides a whole number by 0")
    down = x // y
    return as_value((down + ((down < 0) & (down * y != x))).astype(x.dtype))


@operator("Pow")
def power(a: Any, b: Any, *, axis: Any = None, broadcast: Any = None) -> Any:
    """a ** b, in the dtype of a."""
    b = aligned(a, b, axis, broadcast)
    if a.dtype in FLOATING:
        return et.power(a, et.astype(b, a.dtype))
    return whole_power(a, b)


@opaque
def whole_power(a: Any, b: Any) -> Any:
    """Whole numbers to a power, in their own dtype."""
    x, y = array_of(a), array_of(b)
    return as_value(np.power(x, y.astype(np.float64) if y.dtype.kind == "f" else y).astype(x.dtype))


@operator("Mod")
def mod(a: Any, b: Any, *, fmod: int = 0) -> Any:
    """The rest of a division: with the sign of b, or with ``fmod`` that of a."""
    return c_remainder(a, b) if fmod else et.modulo(a, b)


@opaque
def c_remainder(a: Any, b: Any) -> Any:
    """The rest with the sign of a."""
    x = array_of(a)
    with np.errstate(all="ignore"):
        if x.dtype.itemsize == 2 and x.dtype.kind not in "iu":  # bfloat16 has no fmod of its own
            return as_value(np.fmod(x.astype(np.float32), array_of(b).astype(np.float32)).astype(x.dtype))
        return as_value(np.fmod(x, array_of(b)))


@operator("Neg")
def neg(x: Any, *, consumed_inputs: Any = None) -> Any:
    """-x"""
    return et.negate(x)


@operator("Abs")
def absolute(x: Any, *, consumed_inputs: Any = None) -> Any:
    """|x|"""
    return et.abs(x)


@operator("Sign")
def sign(x: Any) -> Any:
    """-1, 0 or 1"""
    return et.sign(x)


@operator("Reciprocal")
def reciprocal(x: Any, *, consumed_inputs: Any = None) -> Any:
    """1 / x"""
    return et.reciprocal(x)


@operator("Sqrt")
def sqrt(x: Any, *, consumed_inputs: Any = None) -> Any:
    """The square root."""
    return et.sqrt(x)


@operator("Exp")
def exp(x: Any, *, consumed_inputs: Any = None) -> Any:
    """e ** x"""
    return et.exp(x)


@operator("Log")
def log(x: Any, *, consumed_inputs: Any = None) -> Any:
    """The natural logarithm."""
    return et.log(x)


@operator("Erf")
def erf(x: Any) -> Any:
    """The error function."""
    return et.erf(x)


@operator("Sin")
def sin(x: Any) -> Any:
    """sin x"""
    return et.sin(x)


@operator("Cos")
def cos(x: Any) -> Any:
    """cos x"""
    return et.cos(x)


@operator("Tan")
def tan(x: Any) -> Any:
    """tan x"""
    return et.tan(x)


@operator("Asin")
def asin(x: Any) -> Any:
    """arcsin x"""
    return et.asin(x)


@operator("Acos")
def acos(x: Any) -> Any:
    """arccos x"""
    return et.acos(x)


@operator("Atan")
def atan(x: Any) -> Any:
    """arctan x"""
    return et.atan(x)


@operator("Sinh")
def sinh(x: Any) -> Any:
    """sinh x"""
    return et.sinh(x)


@operator("Cosh")
def cosh(x: Any) -> Any:
    """cosh x"""
    return et.cosh(x)


@operator("Tanh")
def tanh(x: Any, *, consumed_inputs: Any = None) -> Any:
    """tanh x"""
    return et.tanh(x)


@operator("Asinh")
def asinh(x: Any) -> Any:
    """sign(x) log(|x| + sqrt(x^2 + 1)), without cancellation near 0."""
    size = et.abs(x)
    squared = size * size
    return et.sign(x) * et.log1p(size + squared / (1 + et.sqrt(squared + 1)))


@operator("Acosh")
def acosh(x: Any) -> Any:
    """log(x + sqrt(x^2 - 1))"""
    above = x - 1
    return et.log1p(above + et.sqrt(above * (x + 1)))


@operator("Atanh")
def atanh(x: Any) -> Any:
    """log((1 + x) / (1 - x)) / 2"""
    return 0.5 * (et.log1p(x) - et.log1p(-x))


@operator("Ceil")
def ceil(x: Any, *, consumed_inputs: Any = None) -> Any:
    """The next whole number above."""
    return et.ceil(x)


@operator("Floor")
def floor(x: Any, *, consumed_inputs: Any = None) -> Any:
    """The next whole number below."""
    return et.floor(x)


@operator("Round")
def round_to_even(x: Any) -> Any:
    """The nearest whole number, halves to the even one."""
    return et.round(x)


@operator("Clip", fixed=("low", "high"))
def clip(
    x: Any,
    low: Any = None,
    high: Any = None,
    *,
    min: Any = None,
    max: Any = None,
    consumed_inputs: Any = None,
) -> Any:
    """min(max(x, low), high)"""
    low, high = low if low is not None else min, high if high is not None else max
    if x.dtype in FLOATING:
        return et.clip(x, None if low is None else float(low), None if high is None else float(high))
    if low is not None:
        x = et.maximum(x, et.astype(low, x.dtype))
    return x if high is None else et.minimum(x, et.astype(high, x.dtype))


@operator("Max")
def maximum(*tensors: Any, consumed_inputs: Any = None) -> Any:
    """The greatest of several tensors."""
    return reduce(et.maximum, tensors)


@operator("Min")
def minimum(*tensors: Any, consumed_inputs: Any = None) -> Any:
    """The least of several tensors."""
    return reduce(et.minimum, tensors)


@operator("Sum")
def total(*tensors: Any, consumed_inputs: Any = None) -> Any:
    """The sum of several tensors."""
    return reduce(et.add, tensors)


@operator("Mean")
def average(*tensors: Any, consumed_inputs: Any = None) -> Any:
    """The mean of several tensors."""
    return reduce(et.add, tensors) / len(tensors)


# Comparison and logic


def _texts(a: Any) -> bool:
    return isinstance(a, np.ndarray)


@operator("Equal")
def equal(a: Any, b: Any, *, axis: Any = None, broadcast: Any = None) -> Any:
    """a == b"""
    if _texts(a):
        return as_value(np.asarray(array_of(a) == array_of(b), bool))
    return et.equal(a, aligned(a, b, axis, broadcast))


@operator("Greater")
def greater(a: Any, b: Any, *, axis: Any = None, broadcast: Any = None) -> Any:
    """a > b"""
    return et.greater(a, aligned(a, b, axis, broadcast))


@operator("GreaterOrEqual")
def greater_or_equal(a: Any, b: Any) -> Any:
    """a >= b"""
    return et.greater_equal(a, b)


@operator("Less")
def less(a: Any, b: Any, *, axis: Any = None, broadcast: Any = None) -> Any:
    """a < b"""
    return et.less(a, aligned(a, b, axis, broadcast))


@operator("LessOrEqual")
def less_or_equal(a: Any, b: Any) -> Any:
    """a <= b"""
    return et.less_equal(a, b)


@operator("And")
def logical_and(a: Any, b: Any, *, axis: Any = None, broadcast: Any = None) -> Any:
    """Both."""
    return et.logical_and(a, aligned(a, b, axis, broadcast))


@operator("Or")
def logical_or(a: Any, b: Any, *, axis: Any = None, broadcast: Any = None) -> Any:
    """One or both."""
    return et.logical_or(a, aligned(a, b, axis, broadcast))


@operator("Xor")
def logical_xor(a: Any, b: Any, *, axis: Any = None, broadcast: Any = None) -> Any:
    """One of them alone."""
    return et.logical_xor(a, aligned(a, b, axis, broadcast))


@operator("Not")
def logical_not(x: Any) -> Any:
    """The opposite."""
    return et.logical_not(x)


@operator("Where")
def where(condition: Any, x: Any, y: Any) -> Any:
    """x where the condition holds, else y."""
    if _texts(x):
        return np.where(array_of(condition), x, y)
    return et.where(condition, x, y)


@operator("IsNaN")
def is_nan(x: Any) -> Any:
    """Whether an element is nan."""
    return as_value(np.isnan(x)) if _texts(x) else et.isnan(x)


@operator("IsInf")
def is_inf(x: Any, *, detect_negative: int = 1, detect_positive: int = 1) -> Any:
    """Whether an element is infinite, of the signs asked for."""
    if _texts(x):
        x = as_value(x.astype(np.float32))
    found = et.isinf(x)
    if not detect_negative:
        found = et.logical_and(found, et.greater(x, 0))
    return found if detect_positive else et.logical_and(found, et.less(x, 0))


# Bits


@operator("BitwiseAnd")
@opaque
def bitwise_and(a: Any, b: Any) -> Any:
    """The bits both have."""
    return as_value(array_of(a) & array_of(b))


@operator("BitwiseOr")
@opaque
def bitwise_or(a: Any, b: Any) -> Any:
    """The bits one of them has."""
    return as_value(array_of(a) | array_of(b))


@operator("BitwiseXor")
@opaque
def bitwise_xor(a: Any, b: Any) -> Any:
    """The bits one of them has alone."""
    return as_value(array_of(a) ^ array_of(b))


@operator("BitwiseNot")
@opaque
def bitwise_not(x: Any) -> Any:
    """Every bit turned over."""
    return as_value(~array_of(x))


@operator("BitShift")
@opaque
def bit_shift(x: Any, by: Any, *, direction: str) -> Any:
    """The bits moved to the LEFT or to the RIGHT; by more places than there are, or fewer than 0, the sign is left."""
    a, b = np.broadcast_arrays(array_of(x), array_of(by))
    bits = a.dtype.itemsize * 8
    inside = (b >= 0) & (b < bits)
    near = np.where(inside, b, 0).astype(a.dtype)
    if direction == "LEFT":
        return as_value(np.where(inside, np.left_shift(a, near), 0).astype(a.dtype))
    if direction != "RIGHT":
        raise ValueError(f"[BitShift] direction must be LEFT or RIGHT, got {direction!r}")
    beyond = np.where(a < 0, -1, 0) if a.dtype.kind == "i" else np.zeros((), a.dtype)
    return as_value(np.where(inside, np.right_shift(a, near), beyond).astype(a.dtype))


# Sums and products so far


@operator("CumSum", fixed=("axis",))
def cum_sum(x: Any, axis: Any, *, exclusive: int = 0, reverse: int = 0) -> Any:
    """The sum of all elements up to each; without it if ``exclusive``, from the end if ``reverse``."""
    along = int(array_of(axis).reshape(-1)[0]) % x.ndim
    if reverse:
        x = et.flip(x, along)
    found = et.cumsum(x, along)
    if found.dtype != x.dtype:
        found = et.astype(found, x.dtype)
    if exclusive:
        found = _moved_on(found, along, 0)
    return et.flip(found, along) if reverse else found


@operator("CumProd", fixed=("axis",))
def cum_prod(x: Any, axis: Any, *, exclusive: int = 0, reverse: int = 0) -> Any:
    """The product of all elements up to each; without it if ``exclusive``, from the end if ``reverse``."""
    along = int(array_of(axis).reshape(-1)[0]) % x.ndim
    if reverse:
        x = et.flip(x, along)
    parts, so_far = [], None
    for part in et.split(x, x.shape[along], along) if x.shape[along] else []:
        so_far = part if so_far is None else so_far * part
        parts.append(so_far)
    found = et.concatenate(parts, along) if parts else x
    if exclusive:
        found = _moved_on(found, along, 1)
    return et.flip(found, along) if reverse else found


def _moved_on(x: Any, axis: int, first: int) -> Any:
    """Elements one place later; the last is gone, the first is ``first``."""
    if not x.shape[axis]:
        return x
    before = et.full(tuple(1 if i == axis else n for i, n in enumerate(x.shape)), first, x.dtype)
    kept = et.index(x, tuple(slice(0, -1) if i == axis else slice(None) for i in range(x.ndim)))
    return et.concatenate([before, kept], axis)
