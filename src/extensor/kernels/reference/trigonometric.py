"""Circular and hyperbolic functions and their inverses; the error function."""

from __future__ import annotations

import math

import numpy as np

from ..dispatch import formula, kernel
from ..namespace import narrow, wide, xp
from . import error_function
from .complex_numbers import paired
from .holomorphic import holomorphic

__all__ = [
    "sin", "sin_backward", "cos", "cos_backward", "tan", "tan_backward",
    "asin", "asin_backward", "acos", "acos_backward", "atan", "atan_backward",
    "sinh", "sinh_backward", "cosh", "cosh_backward", "tanh", "tanh_backward", "erf", "erf_backward",
]  # fmt: skip


@kernel
def sin(x):
    return xp.sin(x)


@formula
@holomorphic
def sin_backward(g, x):
    return g * xp.cos(x)


@kernel
def cos(x):
    return xp.cos(x)


@formula
@holomorphic
def cos_backward(g, x):
    return -g * xp.sin(x)


@kernel
def tan(x):
    return xp.tan(x)


@formula
@holomorphic
def tan_backward(g, x):
    return g * (1 + xp.square(xp.tan(x)))


@kernel
def asin(x):
    return xp.arcsin(x)


@formula
@holomorphic
def asin_backward(g, x):
    return g / xp.sqrt((1 - x) * (1 + x))


@kernel
def acos(x):
    return xp.arccos(x)


@formula
@holomorphic
def acos_backward(g, x):
    return -g / xp.sqrt((1 - x) * (1 + x))


@kernel
def atan(x):
    return xp.arctan(x)


@formula
@holomorphic
def atan_backward(g, x):
    return g / (1 + xp.square(x))


@kernel
def sinh(x):
    return xp.sinh(x)


@formula
@holomorphic
def sinh_backward(g, x):
    return g * xp.cosh(x)


@kernel
def cosh(x):
    return xp.cosh(x)


@formula
@holomorphic
def cosh_backward(g, x):
    return g * xp.sinh(x)


@kernel
def tanh(x):
    y = xp.tanh(x)
    if x.dtype.kind != "c":
        return y
    # at infinite real parts the array API standard asks for 1 + 0j, where C's library goes by the sign of sin(2 imag)
    end = paired(xp.real(y), xp.copysign(xp.zeros_like(x.imag), x.imag))
    return xp.where(xp.isinf(x.real) & xp.isfinite(x.imag), end, y).astype(x.dtype)


@formula
@holomorphic
def tanh_backward(g, y):
    return g * ((1 - y) * (1 + y))


@kernel
def erf(x):
    return narrow(
        error_function.erf(wide(x)), x, np.float16
    )  # integers become what they do in exp and its kind


@formula
def erf_backward(g, x):
    return narrow(g * error_function.gaussian(wide(x), 1.0) * (2 / math.sqrt(math.pi)), g, x)
