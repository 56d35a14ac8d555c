"""Arithmetic with broadcasting. The backward kernels return (grad_a, grad_b), None where not needed."""

from __future__ import annotations

import math

import numpy as np

from ..dispatch import formula, kernel
from ..namespace import constant, lift, namespace_of, xp
from .broadcasting import summed_to
from .holomorphic import holomorphic

__all__ = [
    "add", "add_backward", "subtract", "subtract_backward", "multiply", "multiply_backward", "divide", "divide_backward", "floor_divide",
    "modulo", "modulo_backward", "power", "power_backward", "negate",
    "maximum", "maximum_backward", "minimum", "minimum_backward",
]  # fmt: skip


def is_number(value):
    """Whether an operand is a Python number, which has no dtype of its own."""
    return isinstance(value, (int, float))


def in_dtype_of(g, value):
    """Integers in the dtype of the gradient; a number is what it is there."""
    if is_number(value):
        if g.dtype.kind == "c":
            return value
        with np.errstate(over="ignore"):  # beyond the dtype is inf, as in any cast
            return float(np.asarray(value, g.dtype))
    return value if value.dtype.kind in "fc" else value.astype(g.dtype)


def guarded(d, eps):
    """``d``, but never nearer to zero than ``eps``: the guard of every backward that divides."""
    if not eps:
        return d
    if is_number(d):
        return math.copysign(eps, d) if abs(d) < eps else d
    if d.dtype.kind == "c":  # a complex zero has no side to be guarded on
        return d
    fixed = constant(d)
    return xp.where(lift(xp.abs(fixed) < eps, d), lift(xp.copysign(eps, fixed), d), d)


def rounded_once(name, *args):
    """The function of float32 as of float64: with AVX-512, NumPy's own loses the last digit (log10(1000) is not 3)."""
    function = getattr(xp, name)
    dtype = xp.result_type(*args)
    if dtype != np.float32 or namespace_of(*args) is not np:
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
    return xp.add(a, b)


@formula
def add_backward(g, shape_a, shape_b, needs):
    return (summed_to(g, shape_a) if needs[0] else None, summed_to(g, shape_b) if needs[1] else None)


@kernel
def subtract(a, b):
    return xp.subtract(a, b)


@formula
def subtract_backward(g, shape_a, shape_b, needs):
    return (summed_to(g, shape_a) if needs[0] else None, -summed_to(g, shape_b) if needs[1] else None)


@kernel
def multiply(a, b):
    return xp.multiply(a, b)


@formula
@holomorphic
def multiply_backward(g, a, b, needs):
    return both(needs, a, b, lambda: g * b, lambda: g * a)


@kernel
def divide(a, b):
    return xp.true_divide(a, b)


@formula
@holomorphic
def divide_backward(g, a, b, eps, needs):
    d = guarded(in_dtype_of(g, b), eps)
    return both(needs, a, b, lambda: g / d, lambda: -g * (a / d) / d)


@kernel
def floor_divide(a, b):
    return xp.floor_divide(a, b)


@kernel
def modulo(a, b):
    return xp.mod(a, b)


@formula
def modulo_backward(g, a, b, needs):
    return both(needs, a, b, lambda: g, lambda: -g * xp.floor_divide(a, b))


@kernel
def power(a, b):
    return rounded_once("power", a, b)


@formula
@holomorphic
def power_backward(g, a, b, eps, needs):
    if any(getattr(value, "dtype", g.dtype).kind == "c" for value in (g, a, b)):
        grad_a, grad_b = complex_power_backward_a, complex_power_backward_b
    else:
        grad_a, grad_b = power_backward_a, power_backward_b
    return both(needs, a, b, lambda: grad_a(g, a, b, eps), lambda: grad_b(g, a, b, eps))


def complex_power_backward_a(g, a, b, eps):
    return xp.where(lift(constant(b) == 0, g), 0.0, g * (b * xp.power(a, b - 1)))


def complex_power_backward_b(g, a, b, eps):
    flat = (constant(a) == 0) & (constant(b).real >= 0)
    return xp.where(lift(flat, g), 0.0, g * (xp.power(a, b) * xp.log(a)))


def power_edge(base, exponent, eps):
    """What stands in for a base of (nearly) zero; -0 to a fractional power counts as +0, as in pow()."""
    fractional = (xp.trunc(exponent) != exponent) | xp.isinf(exponent)
    return xp.copysign(eps, xp.where(fractional & (base == 0), 0.0, base))


def tamed(grad, g, here):
    """``grad``, held among the finite numbers where the guard made it, if the gradient that arrived was finite."""
    limit = float(np.finfo(g.dtype).max)
    return xp.where(lift(here & xp.isfinite(constant(g)), g), xp.clip(grad, -limit, limit), grad)


def power_backward_a(g, a, b, eps):
    a, b = in_dtype_of(g, a), in_dtype_of(g, b)
    if is_number(b) and b >= 1:  # there is nothing to guard: no power is negative
        return g * (b * xp.power(a, b - 1))
    base, exponent = constant(a), constant(b)
    near = (xp.abs(base) < eps) & (exponent < 1)
    edge = power_edge(base, exponent, eps).astype(g.dtype)
    d = xp.where(lift(near, g), lift(edge, g), a)
    return xp.where(lift(exponent == 0, g), 0.0, tamed(g * (b * xp.power(d, b - 1)), g, near))


def power_backward_b(g, a, b, eps):
    a, b = in_dtype_of(g, a), in_dtype_of(g, b)
    base, exponent = constant(a), constant(b)
    zero = base == 0
    flat = zero & (exponent >= 0)
    edge = power_edge(base, exponent, eps).astype(g.dtype)
    at_zero = xp.where(flat, 1.0, edge).astype(g.dtype)
    d = xp.where(lift(zero, g), lift(at_zero, g), a)
    size = xp.where(lift(zero, g), lift(xp.abs(at_zero), g), a)
    near = zero & (eps > 0) & (exponent < 1)
    return xp.where(lift(flat, g), 0.0, tamed(g * (xp.power(d, b) * xp.log(size)), g, near))


@kernel
def negate(x):
    return xp.negative(x)


@kernel
def maximum(a, b):
    return xp.maximum(a, b)


@kernel
def minimum(a, b):
    return xp.minimum(a, b)


def extremum_backward(g, a, b, wins, needs):
    """The winner takes the gradient, a tie is shared, a nan on either side gives both nan."""
    a, b = constant(a), constant(b)
    share = xp.where(xp.equal(a, b), 0.5, xp.where(wins(a, b), 1.0, 0.0))
    share = xp.where(xp.isnan(a) | xp.isnan(b), math.nan, share).astype(g.dtype)
    share = lift(share, g)
    return both(needs, a, b, lambda: g * share, lambda: g * (1 - share))


@formula
def maximum_backward(g, a, b, needs):
    return extremum_backward(g, a, b, xp.greater, needs)


@formula
def minimum_backward(g, a, b, needs):
    return extremum_backward(g, a, b, xp.less, needs)
