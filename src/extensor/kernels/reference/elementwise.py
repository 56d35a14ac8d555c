"""Absolute value, sign, rounding, squares, reciprocals and clipping."""

from __future__ import annotations

import numpy as np

from ..dispatch import kernel
from .arithmetic import guarded
from .holomorphic import holomorphic

__all__ = [
    "abs", "abs_backward", "sign", "ceil", "floor", "round", "trunc",
    "square", "square_backward", "reciprocal", "reciprocal_backward", "clip", "clip_backward",
]  # fmt: skip


def passed(g, x, keep):
    """``g`` where ``keep`` holds, 0 elsewhere, and nan where x is nan: the backward of everything with flat pieces."""
    return np.where(keep, g, np.where(np.isnan(x), x, np.zeros((), x.dtype)))


@kernel
def abs(x):
    return np.abs(x)


@kernel
def abs_backward(g, x):
    if x.dtype.kind == "c":
        size = np.abs(x)
        return np.where(size == 0, 0, g * x / np.where(size == 0, 1, size))
    return g * np.sign(x)


@kernel
def sign(x):
    return np.sign(x)


@kernel
def ceil(x):
    return np.ceil(x)


@kernel
def floor(x):
    return np.floor(x)


@kernel
def round(x):
    return np.round(x)  # halves go to the even neighbour


@kernel
def trunc(x):
    return np.trunc(x)


@kernel
def square(x):
    return np.square(x)


@kernel
@holomorphic
def square_backward(g, x):
    return g * x * 2


@kernel
def reciprocal(x):
    return np.true_divide(1, x)


@kernel
@holomorphic
def reciprocal_backward(g, x, eps):
    d = guarded(x, eps)
    return -g / d / d


@kernel
def clip(x, low, high):
    """``low`` and ``high`` are numbers; infinities (None for integers) stand for no bound. ``high`` wins over ``low``."""
    return np.clip(x, low, high)


@kernel
def clip_backward(g, x, low, high):
    return passed(g, x, (x >= low) & (x <= high))
