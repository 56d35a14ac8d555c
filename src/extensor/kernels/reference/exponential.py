"""Exponentials, logarithms and roots."""

from __future__ import annotations

import math

import numpy as np

from ..dispatch import kernel
from .arithmetic import guarded, rounded_once

__all__ = [
    "exp", "exp_backward", "expm1", "expm1_backward", "log", "log_backward", "log1p", "log1p_backward",
    "log2", "log2_backward", "log10", "log10_backward", "sqrt", "sqrt_backward", "rsqrt", "rsqrt_backward",
]  # fmt: skip


@kernel
def exp(x):
    return np.exp(x)


@kernel
def exp_backward(g, y):
    return g * y


@kernel
def expm1(x):
    return np.expm1(x)


@kernel
def expm1_backward(g, x):
    return g * np.exp(x)


@kernel
def log(x):
    return np.log(x)


@kernel
def log_backward(g, x, eps):
    return g / guarded(x, eps)


@kernel
def log1p(x):
    return np.log1p(x)


@kernel
def log1p_backward(g, x):
    return g / (1 + x)


@kernel
def log2(x):
    return np.log2(x)


@kernel
def log2_backward(g, x, eps):
    return g / (guarded(x, eps) * math.log(2))


@kernel
def log10(x):
    return rounded_once(np.log10, x)


@kernel
def log10_backward(g, x, eps):
    return g / (guarded(x, eps) * math.log(10))


@kernel
def sqrt(x):
    return np.sqrt(x)


@kernel
def sqrt_backward(g, y, eps):
    return g / (2 * guarded(y, eps))


@kernel
def rsqrt(x):
    return 1 / np.sqrt(x)


@kernel
def rsqrt_backward(g, y, eps):
    if eps:
        y = np.clip(y, -1 / eps, 1 / eps)
    return g * (y * y * y) * -0.5
