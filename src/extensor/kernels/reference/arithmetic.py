"""Arithmetic with broadcasting. The backward kernels return (grad_a, grad_b), None where not needed."""

from __future__ import annotations

import numpy as np

from ..dispatch import kernel
from .broadcasting import summed_to
from .holomorphic import holomorphic

__all__ = [
    "add", "add_backward", "subtract", "subtract_backward", "multiply", "multiply_backward", "divide", "divide_backward", "floor_divide",
    "modulo", "modulo_backward", "power", "power_backward", "negate",
    "maximum", "maximum_backward", "minimum", "minimum_backward",
]  # fmt: skip


def guarded(d, eps):
    """``d``, but never nearer to zero than ``eps``: the guard of every backward that divides."""
    if not eps or d.dtype.kind == "c":  # a complex zero has no side to be guarded on
        return d
    return np.where(np.abs(d) < eps, np.copysign(np.asarray(eps, d.dtype), d), d)


def rounded_once(function, *args):
    """``function`` of float32 as of float64: with AVX-512, NumPy's own loses the last digit (log10(1000) is not 3)."""
    dtype = np.result_type(*args)
    if dtype != np.float32:
        return function(*args)
    return function(*(np.asarray(a, np.float64) for a in args)).astype(dtype)


def both(needs, a, b, grad_a, grad_b):
    """The gradients that are needed, each summed down to the shape of its operand."""
    return (
        summed_to(grad_a(), np.shape(a)) if needs[0] else None,
        summed_to(grad_b(), np.shape(b)) if needs[1] else None,
    )


@kernel
def add(a, b):
    return np.add(a, b)


@kernel
def add_backward(g, shape_a, shape_b, needs):
    return (summed_to(g, shape_a) if needs[0] else None, summed_to(g, shape_b) if needs[1] else None)


@kernel
def subtract(a, b):
    return np.subtract(a, b)


@kernel
def subtract_backward(g, shape_a, shape_b, needs):
    return (summed_to(g, shape_a) if needs[0] else None, -summed_to(g, shape_b) if needs[1] else None)


@kernel
def multiply(a, b):
    return np.multiply(a, b)


@kernel
@holomorphic
def multiply_backward(g, a, b, needs):
    return both(needs, a, b, lambda: g * b, lambda: g * a)


@kernel
def divide(a, b):
    return np.true_divide(a, b)


@kernel
@holomorphic
def divide_backward(g, a, b, eps, needs):
    d = guarded(np.asarray(b, np.result_type(g, b)), eps)
    return both(needs, a, b, lambda: g / d, lambda: -g * (a / d) / d)


@kernel
def floor_divide(a, b):
    return np.floor_divide(a, b)


@kernel
def modulo(a, b):
    return np.mod(a, b)


@kernel
def modulo_backward(g, a, b, needs):
    return both(needs, a, b, lambda: g, lambda: -g * np.floor_divide(a, b))


@kernel
def power(a, b):
    return rounded_once(np.power, a, b)


@kernel
@holomorphic
def power_backward(g, a, b, eps, needs):
    dtype = np.result_type(g, a, b)
    a, b = np.asarray(a, dtype), np.asarray(b, dtype)
    if dtype.kind == "c":
        zero = np.zeros((), dtype)
        return both(
            needs, a, b,
            lambda: np.where(b == 0, zero, g * (b * np.power(a, b - 1))),
            lambda: np.where((a == 0) & (b.real >= 0), zero, g * (np.power(a, b) * np.log(a))),
        )  # fmt: skip
    # The guard is for negative powers of (nearly) zero; -0 to a fractional power counts as +0, as in pow().
    near = (np.abs(a) < eps) & (b < 1)
    d = np.where(near, np.copysign(np.asarray(eps, a.dtype), np.where((b % 1 != 0) & (a == 0), 0.0, a)), a)

    def tamed(grad):
        limit = np.finfo(grad.dtype).max
        return np.where(near & np.isfinite(g), np.clip(grad, -limit, limit), grad)

    def grad_a():
        return np.where(b == 0, np.zeros_like(g), tamed(g * (b * np.power(d, b - 1))))

    def grad_b():
        at_zero = tamed(g * (np.power(d, b) * np.log(np.abs(d))))
        away = g * (np.power(a, b) * np.log(a))
        return np.where(a == 0, np.where(b >= 0, np.zeros_like(g), at_zero), away)

    return both(needs, a, b, grad_a, grad_b)


@kernel
def negate(x):
    return np.negative(x)


@kernel
def maximum(a, b):
    return np.maximum(a, b)


@kernel
def minimum(a, b):
    return np.minimum(a, b)


def extremum_backward(g, a, b, wins, needs):
    """The winner takes the gradient, a tie is shared, a nan on either side gives both nan."""
    a, b = np.asarray(a), np.asarray(b)
    share = np.where(a == b, 0.5, np.where(wins(a, b), 1.0, 0.0)).astype(g.dtype)
    share = np.where(np.isnan(a) | np.isnan(b), np.nan, share).astype(g.dtype)
    return both(needs, a, b, lambda: g * share, lambda: g * (1 - share))


@kernel
def maximum_backward(g, a, b, needs):
    return extremum_backward(g, a, b, np.greater, needs)


@kernel
def minimum_backward(g, a, b, needs):
    return extremum_backward(g, a, b, np.less, needs)
