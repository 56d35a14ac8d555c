"""Exponentials, logarithms and roots."""

from __future__ import annotations

import math

import numpy as np

from ..dispatch import formula, kernel
from ..namespace import xp
from .arithmetic import guarded, rounded_once
from .complex_numbers import paired
from .holomorphic import holomorphic

__all__ = [
    "exp", "exp_backward", "expm1", "expm1_backward", "log", "log_backward", "log1p", "log1p_backward",
    "log2", "log2_backward", "log10", "log10_backward", "sqrt", "sqrt_backward", "rsqrt", "rsqrt_backward",
]  # fmt: skip


@kernel
def exp(x):
    return xp.exp(x)


@formula
@holomorphic
def exp_backward(g, y):
    return g * y


@kernel
def expm1(x):
    if x.dtype.kind != "c":
        return xp.expm1(x)
    # what the array API standard asks for at the infinities, where cos and sin have no answer
    y, lost = xp.asarray(xp.expm1(x)), ~xp.isfinite(x.imag)
    y = xp.where(x.imag == 0, paired(xp.expm1(x.real) + 0.0, x.imag), y)
    y = xp.where(
        lost & (x.real == -np.inf), -1, xp.where(lost & (x.real == np.inf), complex(np.inf, np.nan), y)
    )
    return y.astype(x.dtype)


@formula
@holomorphic
def expm1_backward(g, x):
    return g * xp.exp(x)


@kernel
def log(x):
    return xp.log(x)


@formula
@holomorphic
def log_backward(g, x, eps):
    return g / guarded(x, eps)


@kernel
def log1p(x):
    return xp.log1p(x)


@formula
@holomorphic
def log1p_backward(g, x):
    return g / (1 + x)


@kernel
def log2(x):
    return xp.log2(x)


@formula
@holomorphic
def log2_backward(g, x, eps):
    return g / (guarded(x, eps) * math.log(2))


@kernel
def log10(x):
    return rounded_once("log10", x)


@formula
@holomorphic
def log10_backward(g, x, eps):
    return g / (guarded(x, eps) * math.log(10))


@kernel
def sqrt(x):
    return xp.sqrt(x)


@formula
@holomorphic
def sqrt_backward(g, y, eps):
    return g / (2 * guarded(y, eps))


@kernel
def rsqrt(x):
    return 1 / xp.sqrt(x)


@formula
def rsqrt_backward(g, y, eps):
    if eps:
        y = xp.clip(y, -1 / eps, 1 / eps)
    return g * (y * y * y) * -0.5
