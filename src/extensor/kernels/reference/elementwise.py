"""Absolute value, sign, rounding, squares, reciprocals and clipping."""

from __future__ import annotations

from ..dispatch import formula, kernel
from ..namespace import constant, lift, primitive, xp
from .arithmetic import guarded
from .holomorphic import holomorphic

__all__ = [
    "abs", "abs_backward", "sign", "ceil", "floor", "round", "trunc",
    "square", "square_backward", "reciprocal", "reciprocal_backward", "clip", "clip_backward",
]  # fmt: skip


@primitive
def passed(g, x, keep):
    """``g`` where ``keep`` holds, 0 elsewhere, and nan where x is nan: the backward of everything with flat pieces."""
    return xp.where(keep, g, xp.where(xp.isnan(x), x, 0.0))


@kernel
def abs(x):
    return xp.abs(x)


@formula
def abs_backward(g, x):
    if x.dtype.kind == "c":
        size = xp.abs(x)
        zero = size == 0
        return xp.where(zero, 0.0, g * x / xp.where(zero, 1.0, size))
    return g * lift(xp.sign(constant(x)), g)


@kernel
def sign(x):
    return xp.sign(x)


@kernel
def ceil(x):
    return xp.ceil(x)


@kernel
def floor(x):
    return xp.floor(x)


@kernel
def round(x):
    return xp.round(x)  # halves go to the even neighbour


@kernel
def trunc(x):
    return xp.trunc(x)


@kernel
def square(x):
    return xp.square(x)


@formula
@holomorphic
def square_backward(g, x):
    return g * x * 2


@kernel
def reciprocal(x):
    return xp.true_divide(1, x)


@formula
@holomorphic
def reciprocal_backward(g, x, eps):
    d = guarded(x, eps)
    return -g / d / d


@kernel
def clip(x, low, high):
    """``low`` and ``high`` are numbers; infinities (None for integers) stand for no bound. ``high`` wins over ``low``."""
    return xp.clip(x, low, high)


@formula
def clip_backward(g, x, low, high):
    return passed(g, x, (x >= low) & (x <= high))
