"""The activations that load when they are first used. A nan in x is a nan in the gradient; at a kink the gradient is that of
the flat or negative side."""

from __future__ import annotations

from ..dispatch import formula, kernel
from ..namespace import xp
from .activation import below, logistic
from .elementwise import passed

__all__ = [
    "celu", "celu_backward", "hard_shrink", "hard_shrink_backward", "log_sigmoid", "log_sigmoid_backward", "soft_shrink",
    "soft_shrink_backward", "softsign", "softsign_backward", "tanh_shrink", "tanh_shrink_backward", "threshold",
    "threshold_backward",
]  # fmt: skip


@kernel
def celu(x, alpha):
    return xp.where(x > 0, x, xp.expm1(x / alpha) * alpha)


@formula
def celu_backward(g, x, alpha):
    return xp.where(x > 0, g, g * xp.exp(below(x) / alpha))


@kernel
def hard_shrink(x, lambd):
    return xp.where(xp.abs(x) <= lambd, xp.zeros_like(x), x)


@formula
def hard_shrink_backward(g, x, lambd):
    return passed(g, x, xp.abs(x) > lambd)


@kernel
def soft_shrink(x, lambd):
    return xp.where(xp.abs(x) <= lambd, xp.zeros_like(x), x - xp.sign(x) * lambd)


@formula
def soft_shrink_backward(g, x, lambd):
    return passed(g, x, xp.abs(x) > lambd)


@kernel
def log_sigmoid(x):
    return xp.minimum(x, 0) - xp.log1p(xp.exp(-xp.abs(x)))


@formula
def log_sigmoid_backward(g, x):
    return g * logistic(-x)


@kernel
def softsign(x):
    """At the infinities the limit, not their ratio."""
    return xp.where(xp.isinf(x), xp.sign(x), x / (1 + xp.abs(x)))


@formula
def softsign_backward(g, x):
    return g / xp.square(1 + xp.abs(x))


@kernel
def tanh_shrink(x):
    return x - xp.tanh(x)


@formula
def tanh_shrink_backward(g, x):
    """tanh(x)**2, as 1 - 4 s (1 - s) cancels at 0: ((1 - z) / (1 + z))**2 with z = exp(-2|x|)."""
    z = xp.exp(-2 * xp.abs(x))
    return g * xp.square((1 - z) / (1 + z))


@kernel
def threshold(x, limit, value):
    return xp.where(x <= limit, xp.zeros_like(x) + value, x)


@formula
def threshold_backward(g, x, limit):
    return passed(g, x, x > limit)
