"""Gamma, Bessel and inverse functions, computed in float64."""

from __future__ import annotations

import math

import numpy as np

from ..dispatch import kernel
from ..namespace import common_dtype, namespace_of, xp
from . import error_function

__all__ = [
    "acosh", "asinh", "atan2", "atanh", "copysign", "erfc", "erfinv", "heaviside", "hypot", "i0", "i1", "lgamma", "logaddexp",
    "nextafter", "polygamma", "sinc",
]  # fmt: skip


def in_float64(function):
    """Computed in float64, rounded once; integers count as float64."""

    def wrapped(x, *attributes):
        dtype = common_dtype(x, np.float16)
        return xp.asarray(function(x.astype(np.float64), *attributes)).astype(dtype)

    wrapped.__name__ = function.__name__
    return wrapped


@kernel
def asinh(x):
    return xp.arcsinh(x)


@kernel
def acosh(x):
    return xp.arccosh(x)


@kernel
def atanh(x):
    return xp.arctanh(x)


@kernel
def atan2(a, b):
    return xp.arctan2(a, b)


@kernel
def hypot(a, b):
    return xp.hypot(a, b)


@kernel
def logaddexp(a, b):
    return xp.logaddexp(a, b)


@kernel
def copysign(a, b):
    return xp.copysign(a, b)


@kernel
def heaviside(a, b):
    return xp.heaviside(a, b)


@kernel(exact=True)
def nextafter(a, b):
    return xp.nextafter(a, b)


@kernel
@in_float64
def sinc(x):
    return xp.sinc(x)


@kernel
@in_float64
def erfc(x):
    size = xp.abs(x)
    tail = error_function.gaussian(size, 1.0) * error_function.erfcx(size)
    return xp.where(x < -1, 2.0 - tail, xp.where(x < 1, 1.0 - error_function.erf(x), tail))


@kernel
@in_float64
def erfinv(x):
    # A start by Giles' formula, coarse far out, then Newton's method on erf; the tails by erfc, which does not cancel.
    size = xp.abs(x)
    rest = 1.0 - size
    w = -xp.log(rest * (1.0 + size))
    near, far = w - 2.5, xp.sqrt(w) - 3.0
    start = xp.where(
        w < 5.0,
        error_function.horner(NEAR, near),
        error_function.horner(FAR, far),
    ) * size  # fmt: skip
    y = start
    for _ in range(6):
        tail = error_function.gaussian(y, 1.0) * error_function.erfcx(y)
        miss = xp.where(size < 0.5, error_function.erf(y) - size, rest - tail)
        slope = 2.0 / math.sqrt(math.pi) * error_function.gaussian(y, 1.0)
        step = miss / slope
        y = y - step / (1.0 + y * step)  # the curvature of erf is -2 y slope
    y = xp.where(size == 1.0, np.inf, xp.where(size > 1.0, np.nan, xp.where(size == 0.0, 0.0, y)))
    return xp.copysign(y, x)


NEAR = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503, -0.00417768164,
    0.246640727, 1.50140941,
)  # fmt: skip
FAR = (
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047, 1.00167406,
    2.83297682,
)  # fmt: skip

# Bernoulli numbers B_2k
BERNOULLI = (
    1 / 6,
    -1 / 30,
    1 / 42,
    -1 / 30,
    5 / 66,
    -691 / 2730,
    7 / 6,
    -3617 / 510,
    43867 / 798,
    -174611 / 330,
)
SHIFT = 15  # from here on the asymptotic series are exact


@kernel
@in_float64
def lgamma(x):
    return xp.where(x > 0, _lgamma_positive(xp.where(x > 0, x, 1.0)), _lgamma_reflected(x))


def _lgamma_positive(x):
    # near the zeros at 1 and 2 the shifted series would cancel: a series of its own
    shifted = xp.maximum(x, 0.0)
    product = xp.ones_like(x)
    z = shifted
    for _ in range(SHIFT):
        low = z < SHIFT
        product = xp.where(low, product * z, product)
        z = xp.where(low, z + 1, z)
    inverse = 1 / z
    square = inverse * inverse
    series = xp.zeros_like(z)
    for k in range(len(BERNOULLI), 0, -1):
        series = series * square + BERNOULLI[k - 1] / (2 * k * (2 * k - 1))
    big = (z - 0.5) * xp.log(z) - z + 0.5 * math.log(2 * math.pi) + series * inverse
    found = xp.where(xp.isinf(x), np.inf, big - xp.log(product))
    for zero in (1.0, 2.0):
        t = x - zero
        found = xp.where(xp.abs(t) < 0.25, _lgamma_near(t, zero), found)
    return found


ZETA = (
    1.6449340668482264, 1.2020569031595942, 1.0823232337111382, 1.03692775514337, 1.0173430619844491, 1.008349277381923,
    1.0040773561979443, 1.0020083928260822, 1.000994575127818, 1.0004941886041194, 1.000246086553308, 1.0001227133475785,
    1.000061248135058, 1.0000305882363070, 1.0000152822594086, 1.0000076371976379, 1.0000038172932650, 1.0000019082127166,
    1.0000009539620339, 1.0000004769329868, 1.0000002384505027, 1.0000001192199260, 1.0000000596081891, 1.0000000298035035,
)  # fmt: skip


def _lgamma_near(t, zero):
    """log gamma(1 + t) = -euler t + sum_k zeta(k) (-t)**k / k; gamma(2 + t) = (1 + t) gamma(1 + t)."""
    t = xp.where(xp.abs(t) < 0.25, t, 0.0)
    total = xp.zeros_like(t)
    for k in range(len(ZETA) + 1, 1, -1):
        total = total * -t + ZETA[k - 2] / k
    total = t * (t * total - np.euler_gamma)
    return total if zero == 1.0 else total + xp.log1p(t)


def _lgamma_reflected(x):
    whole = xp.floor(x) == x
    size = xp.abs(xp.sin(np.pi * (x - xp.round(x))))
    y = (
        math.log(math.pi)
        - xp.log(xp.where(whole, 1.0, size))
        - _lgamma_positive(xp.where(x > 0, 1.0, 1.0 - x))
    )
    return xp.where(xp.isnan(x), np.nan, xp.where(whole, np.inf, y))


@kernel
def polygamma(x, n):
    dtype = common_dtype(x, np.float16)
    x = x.astype(np.float64)
    found = _polygamma_positive(xp.where(x > 0, x, 1.0), n)
    if namespace_of(x) is not np or (x <= 0).any():
        found = xp.where(x > 0, found, _polygamma_reflected(xp.where(x > 0, -0.5, x), n))
    return xp.where(xp.isnan(x), np.nan, found).astype(dtype)


def _polygamma_positive(x, n):
    # psi_n(x) = psi_n(x + 1) - (-1)**n n! / x**(n + 1), then the asymptotic series
    sign = -1.0 if n % 2 else 1.0
    factorial = math.factorial(n)
    total = xp.zeros_like(x)
    z = x
    for _ in range(SHIFT + n):
        low = z < SHIFT + n
        total = xp.where(low, total - sign * factorial / z ** (n + 1), total)
        z = xp.where(low, z + 1, z)
    inverse = 1 / z
    if n == 0:
        series = sum(b * inverse ** (2 * k) / (2 * k) for k, b in enumerate(BERNOULLI, 1))
        return xp.where(xp.isinf(x), np.inf, xp.log(z) - 0.5 * inverse - series + total)
    series = math.factorial(n - 1) * inverse**n + factorial * inverse ** (n + 1) / 2
    for k, b in enumerate(BERNOULLI, 1):
        series = series + b * math.factorial(2 * k + n - 1) / math.factorial(2 * k) * inverse ** (2 * k + n)
    return xp.where(xp.isinf(x), 0.0, total - sign * series)


def _polygamma_reflected(x, n):
    # psi_n(1 - x) - (-1)**n psi_n(x) = (-1)**n pi d^n/dx^n cot(pi x); the derivatives of cot are polynomials in cot
    t = x - xp.round(x)
    whole = t == 0
    cot = xp.where(xp.abs(t) == 0.5, 0.0, 1 / xp.tan(np.pi * xp.where(whole, 0.25, t)))
    polynomial = np.array([0.0, 1.0])  # coefficients of powers of cot, lowest first
    for _ in range(n):
        slope = polynomial[1:] * np.arange(1, len(polynomial))
        polynomial = -np.pi * (xp.concatenate([slope, [0, 0]]) + xp.concatenate([[0, 0], slope]))
    derivative = sum(c * cot**i for i, c in enumerate(polynomial.tolist()))
    sign = -1.0 if n % 2 else 1.0
    found = sign * _polygamma_positive(1.0 - x, n) - np.pi * derivative
    pole = np.nan if n % 2 == 0 else np.inf
    return xp.where(whole, pole, found)


TERMS, LARGE = 60, 25.0


def _bessel(x, order):
    """The modified Bessel function of the first kind: all terms of its series are positive; far out an asymptotic one."""
    size = xp.abs(x)
    small = xp.minimum(size, LARGE) / 2
    term = xp.ones_like(small) if order == 0 else small
    total = term
    for k in range(1, TERMS):
        term = term * (small * small) / (k * (k + order))
        total = total + term
    z = 1 / xp.maximum(size, LARGE)
    part = series = xp.ones_like(z)
    for k in range(1, 20):
        part = part * -((4 * order - (2 * k - 1) ** 2) / (8 * k)) * z
        series = series + part
    far = xp.exp(xp.minimum(size, 800.0)) * xp.sqrt(z / (2 * math.pi)) * series
    found = xp.where(size < LARGE, total, xp.where(xp.isinf(size), np.inf, far))
    return xp.where(xp.isnan(x), np.nan, xp.copysign(found, x) if order else found)


@kernel
@in_float64
def i0(x):
    return _bessel(x, 0)


@kernel
@in_float64
def i1(x):
    return _bessel(x, 1)
