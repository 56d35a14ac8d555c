"""Activations. A nan in x is a nan in the gradient; at a kink the gradient is that of the flat or negative side."""

from __future__ import annotations

import math

from ..dispatch import formula, kernel
from ..namespace import narrow, primitive, wide, xp
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
    return xp.maximum(x, 0)


@formula
def relu_backward(g, x):
    return passed(g, x, x > 0)


@primitive
def below(x):
    """``x`` where it is not positive, else 0: the argument of a branch that is taken there only."""
    return xp.minimum(x, 0)


@kernel
def leaky_relu(x, alpha):
    return xp.where(x > 0, x, x * alpha)


@formula
def leaky_relu_backward(g, x, alpha):
    return xp.where(x > 0, g, passed(g * alpha, x, x <= 0))


@kernel
def prelu(x, alpha):
    """``alpha`` broadcasts to x: 0-d, (1, C, 1, ...) or full."""
    return xp.where(x > 0, x, x * alpha)


@formula
def prelu_backward(g, x, alpha, needs):
    """(grad_x, grad_alpha), None where not needed; grad_alpha has the (broadcastable) shape of ``alpha``."""
    return (
        xp.where(x > 0, g, passed(g * alpha, x, x <= 0)) if needs[0] else None,
        summed_to(xp.where(x > 0, 0.0, g * below(x)), alpha.shape) if needs[1] else None,
    )


@primitive
def logistic(x):
    """1 / (1 + exp(-x)) by the branch that cannot overflow."""
    z = xp.exp(-xp.abs(x))
    return xp.where(x >= 0, 1 / (1 + z), z / (1 + z))


def logistic_pair(x):
    """The logistic function of x and of -x, which is 1 minus it without the cancellation."""
    return logistic(x), logistic(-x)


@kernel
def sigmoid(x):
    return logistic(x)


@formula
def sigmoid_backward(g, y):
    return g * (y * (1 - y))


GELU_SCALE = math.sqrt(8 / math.pi)
GELU_CUBIC = 0.044715


def gelu_gate(x):
    """The gate of the tanh form, 1 minus it, and the slope of its argument u.

    (1 + tanh(u / 2)) / 2 == logistic(u), which does not cancel. Beyond 30 the gate is 0 or 1; its cubic must not overflow.
    """
    near = xp.clip(x, -30, 30)
    square = near * near
    u = GELU_SCALE * near * (1 + GELU_CUBIC * square)
    return *logistic_pair(u), GELU_SCALE * (1 + 3 * GELU_CUBIC * square)


@kernel
def gelu(x, approximate):
    if approximate:
        return x * gelu_gate(x)[0]
    z = wide(x)
    return narrow(z * normal_cdf(z), x)


@formula
def gelu_backward(g, x, approximate):
    if approximate:
        gate, rest, slope = gelu_gate(x)
        return g * (gate + x * (gate * rest * slope))
    z = wide(x)
    return narrow(g * (normal_cdf(z) + z * normal_pdf(z)), g, x)


@kernel
def silu(x):
    return x * logistic(x)


@formula
def silu_backward(g, x):
    s, rest = logistic_pair(x)
    return g * (s * (1 + x * rest))


@primitive
def tanh_softplus(x):
    """tanh(log(1 + exp(x))) and its complement 1 - tanh(...)**2, as ratios of polynomials in z = exp(-|x|)."""
    z = xp.exp(-xp.abs(x))
    positive = x > 0
    square = xp.square(1 + z)  # (1 + exp(x))**2, times z**2 where x > 0
    unit = xp.where(positive, xp.square(z), 1)
    top = xp.where(positive, 1 + 2 * z, z * (2 + z))  # (1 + exp(x))**2 - 1
    bottom = square + unit
    return top / bottom, 4 * (unit / bottom) * (square / bottom)


@kernel
def mish(x):
    return x * tanh_softplus(x)[0]


@formula
def mish_backward(g, x):
    t, complement = tanh_softplus(x)
    return g * (t + x * complement * logistic(x))


@kernel
def elu(x, alpha):
    return xp.where(x > 0, x, xp.expm1(x) * alpha)


@formula
def elu_backward(g, x, alpha):
    return xp.where(x > 0, g, g * xp.exp(below(x)) * alpha)


@kernel
def selu(x):
    return xp.where(x > 0, x, xp.expm1(x) * SELU_ALPHA) * SELU_SCALE


@formula
def selu_backward(g, x):
    return xp.where(x > 0, g, g * xp.exp(below(x)) * SELU_ALPHA) * SELU_SCALE


@kernel
def softplus(x, beta, threshold):
    u = x * beta
    return xp.where(u > threshold, x, (xp.maximum(u, 0) + xp.log1p(xp.exp(-xp.abs(u)))) / beta)


@formula
def softplus_backward(g, x, beta, threshold):
    u = x * beta
    return xp.where(u > threshold, g, g * logistic(u))


@kernel
def relu6(x):
    return xp.clip(x, 0, 6)


@formula
def relu6_backward(g, x):
    return passed(g, x, (x > 0) & (x < 6))


@kernel
def hard_sigmoid(x):
    return xp.clip(x + 3, 0, 6) / 6


@formula
def hard_sigmoid_backward(g, x):
    return passed(g / 6, x, (x > -3) & (x < 3))


@kernel
def hard_swish(x):
    return x * (xp.clip(x + 3, 0, 6) / 6)


@formula
def hard_swish_backward(g, x):
    bent = (x > -3) & (x < 3)
    return xp.where(x >= 3, g, passed(g * ((xp.clip(x, -3, 3) + 1.5) / 3), x, bent))


@kernel
def hard_tanh(x, min_val, max_val):
    return xp.clip(x, min_val, max_val)


@formula
def hard_tanh_backward(g, x, min_val, max_val):
    return passed(g, x, (x > min_val) & (x < max_val))
