"""Activations. A nan in x is a nan in the gradient; at a kink the gradient is that of the flat or negative side."""

from __future__ import annotations

import math

import numpy as np

from ..dispatch import kernel
from .broadcasting import summed_to
from .elementwise import passed
from .error_function import normal_cdf, normal_pdf

__all__ = [
    "relu", "relu_backward", "leaky_relu", "leaky_relu_backward", "prelu", "prelu_backward",
    "sigmoid", "sigmoid_backward", "gelu", "gelu_backward", "silu", "silu_backward", "mish", "mish_backward",
    "elu", "elu_backward", "selu", "selu_backward", "softplus", "softplus_backward", "relu6", "relu6_backward",
    "hard_sigmoid", "hard_sigmoid_backward", "hard_swish", "hard_swish_backward", "hard_tanh", "hard_tanh_backward",
]  # fmt: skip

SELU_ALPHA = 1.6732632423543772848170429916717
SELU_SCALE = 1.0507009873554804934193349852946


@kernel
def relu(x):
    return np.maximum(x, 0)


@kernel
def relu_backward(g, x):
    return passed(g, x, x > 0)


@kernel
def leaky_relu(x, alpha):
    return np.where(x > 0, x, x * alpha)


@kernel
def leaky_relu_backward(g, x, alpha):
    return np.where(x > 0, g, passed(g * alpha, x, x <= 0))


@kernel
def prelu(x, alpha):
    """``alpha`` broadcasts to x: 0-d, (1, C, 1, ...) or full."""
    return np.where(x > 0, x, x * alpha)


@kernel
def prelu_backward(g, x, alpha, needs):
    """(grad_x, grad_alpha), None where not needed; grad_alpha has the (broadcastable) shape of ``alpha``."""
    return (
        np.where(x > 0, g, passed(g * alpha, x, x <= 0)) if needs[0] else None,
        summed_to(np.where(x > 0, np.zeros((), x.dtype), g * x), alpha.shape) if needs[1] else None,
    )


def logistic(x):
    """1 / (1 + exp(-x)) by the branch that cannot overflow."""
    z = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + z), z / (1 + z))


@kernel
def sigmoid(x):
    return logistic(x)


@kernel
def sigmoid_backward(g, y):
    return g * (y * (1 - y))


GELU_SCALE = math.sqrt(8 / math.pi)
GELU_CUBIC = 0.044715


def gelu_gate(x):
    """The gate of the tanh form, 1 minus it, and the slope of its argument u.

    (1 + tanh(u / 2)) / 2 == logistic(u), which does not cancel. Beyond 30 the gate is 0 or 1; its cubic must not overflow.
    """
    near = np.clip(x, -30, 30)
    square = near * near
    u = GELU_SCALE * near * (1 + GELU_CUBIC * square)
    return logistic(u), logistic(-u), GELU_SCALE * (1 + 3 * GELU_CUBIC * square)


@kernel
def gelu(x, approximate):
    if approximate:
        return x * gelu_gate(x)[0]
    wide = x.astype(np.float64)
    return (wide * normal_cdf(wide)).astype(x.dtype)


@kernel
def gelu_backward(g, x, approximate):
    if approximate:
        gate, rest, slope = gelu_gate(x)
        return g * (gate + x * (gate * rest * slope))
    wide = x.astype(np.float64)
    return (g * (normal_cdf(wide) + wide * normal_pdf(wide))).astype(np.result_type(g, x))


@kernel
def silu(x):
    return x * logistic(x)


@kernel
def silu_backward(g, x):
    return g * (logistic(x) * (1 + x * logistic(-x)))


def tanh_softplus(x):
    """tanh(log(1 + exp(x))) and its complement 1 - tanh(...)**2, as ratios of polynomials in z = exp(-|x|)."""
    z = np.exp(-np.abs(x))
    positive = x > 0
    square = np.square(1 + z)  # (1 + exp(x))**2, times z**2 where x > 0
    unit = np.where(positive, np.square(z), 1)
    top = np.where(positive, 1 + 2 * z, z * (2 + z))  # (1 + exp(x))**2 - 1
    bottom = square + unit
    return top / bottom, 4 * (unit / bottom) * (square / bottom)


@kernel
def mish(x):
    return x * tanh_softplus(x)[0]


@kernel
def mish_backward(g, x):
    t, complement = tanh_softplus(x)
    return g * (t + x * complement * logistic(x))


@kernel
def elu(x, alpha):
    return np.where(x > 0, x, np.expm1(x) * alpha)


@kernel
def elu_backward(g, x, alpha):
    return np.where(x > 0, g, g * np.exp(x) * alpha)


@kernel
def selu(x):
    return np.where(x > 0, x, np.expm1(x) * SELU_ALPHA) * SELU_SCALE


@kernel
def selu_backward(g, x):
    return np.where(x > 0, g, g * np.exp(x) * SELU_ALPHA) * SELU_SCALE


@kernel
def softplus(x, beta, threshold):
    u = x * beta
    return np.where(u > threshold, x, (np.maximum(u, 0) + np.log1p(np.exp(-np.abs(u)))) / beta)


@kernel
def softplus_backward(g, x, beta, threshold):
    u = x * beta
    return np.where(u > threshold, g, g * logistic(u))


@kernel
def relu6(x):
    return np.clip(x, 0, 6)


@kernel
def relu6_backward(g, x):
    return passed(g, x, (x > 0) & (x < 6))


@kernel
def hard_sigmoid(x):
    return np.clip(x + 3, 0, 6) / 6


@kernel
def hard_sigmoid_backward(g, x):
    return passed(g / 6, x, (x > -3) & (x < 3))


@kernel
def hard_swish(x):
    return x * (np.clip(x + 3, 0, 6) / 6)


@kernel
def hard_swish_backward(g, x):
    return np.where(x >= 3, g, passed(g * (x / 3 + 0.5), x, x > -3))


@kernel
def hard_tanh(x, min_val, max_val):
    return np.clip(x, min_val, max_val)


@kernel
def hard_tanh_backward(g, x, min_val, max_val):
    return passed(g, x, (x > min_val) & (x < max_val))
