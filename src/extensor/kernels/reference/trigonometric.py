"""Circular and hyperbolic functions and their inverses; the error function."""

from __future__ import annotations

import numpy as np

from ..dispatch import kernel
from . import error_function
from .holomorphic import holomorphic

__all__ = [
    "sin", "sin_backward", "cos", "cos_backward", "tan", "tan_backward",
    "asin", "asin_backward", "acos", "acos_backward", "atan", "atan_backward",
    "sinh", "sinh_backward", "cosh", "cosh_backward", "tanh", "tanh_backward", "erf", "erf_backward",
]  # fmt: skip


@kernel
def sin(x):
    return np.sin(x)


@kernel
@holomorphic
def sin_backward(g, x):
    return g * np.cos(x)


@kernel
def cos(x):
    return np.cos(x)


@kernel
@holomorphic
def cos_backward(g, x):
    return -g * np.sin(x)


@kernel
def tan(x):
    return np.tan(x)


@kernel
@holomorphic
def tan_backward(g, x):
    return g * (1 + np.square(np.tan(x)))


@kernel
def asin(x):
    return np.arcsin(x)


@kernel
@holomorphic
def asin_backward(g, x):
    return g / np.sqrt((1 - x) * (1 + x))


@kernel
def acos(x):
    return np.arccos(x)


@kernel
@holomorphic
def acos_backward(g, x):
    return -g / np.sqrt((1 - x) * (1 + x))


@kernel
def atan(x):
    return np.arctan(x)


@kernel
@holomorphic
def atan_backward(g, x):
    return g / (1 + np.square(x))


@kernel
def sinh(x):
    return np.sinh(x)


@kernel
@holomorphic
def sinh_backward(g, x):
    return g * np.cosh(x)


@kernel
def cosh(x):
    return np.cosh(x)


@kernel
@holomorphic
def cosh_backward(g, x):
    return g * np.sinh(x)


@kernel
def tanh(x):
    return np.tanh(x)


@kernel
@holomorphic
def tanh_backward(g, y):
    return g * ((1 - y) * (1 + y))


@kernel
def erf(x):
    dtype = np.result_type(x, np.float16)  # what NumPy makes of integers in exp and its kind
    return error_function.erf(x.astype(np.float64)).astype(dtype)


@kernel
def erf_backward(g, x):
    dtype = np.result_type(g, x)
    return (g * error_function.gaussian(x.astype(np.float64), 1.0) * (2 / np.sqrt(np.pi))).astype(dtype)
