"""Incomplete gamma and beta functions: a power series where it is quick, a continued fraction (Lentz) elsewhere.

Both are evaluated in float64 for all elements at once until none changes any more. A device has loops of its own for them
(:mod:`extensor.kernels.xla`).
"""

from __future__ import annotations

import numpy as np

from ...checks import broadcast_shape
from ..dispatch import kernel
from ..namespace import xp
from .special import lgamma

__all__ = ["betainc", "betainc_slope", "gammainc", "gammainc_slope", "gammaincc"]

_TINY = 1e-300
_MOST = 20_000
_EPS = np.finfo(np.float64).eps


def _log_gamma(x):
    return lgamma.reference(x)


def _rounded(found, *like):
    return found.astype(np.result_type(*(a.dtype for a in like)))


def _together(*arrays):
    """In float64 and of one shape. NumPy's own broadcast_arrays knows 32 axes at most."""
    shape = broadcast_shape(*(a.shape for a in arrays))
    return [xp.broadcast_to(a.astype(np.float64), shape) for a in arrays]


def _series(a, x):
    """P(a, x) for x < a + 1.   x^a e^-x / Gamma(a + 1) * (1 + x/(a+1) + x^2/((a+1)(a+2)) + ...)"""
    term = total = np.ones(broadcast_shape(a.shape, x.shape))
    n = a + 0.0
    for _ in range(_MOST):
        n = n + 1
        term = term * x / n
        total = total + term
        if not (np.abs(term) > np.abs(total) * _EPS / 4).any():
            break
    return total * np.exp(a * np.log(np.where(x > 0, x, 1.0)) - x - _log_gamma(a + 1))


def _fraction(a, x):
    """Q(a, x) for x >= a + 1, by its continued fraction."""
    b = x + 1 - a
    c = np.full(broadcast_shape(a.shape, x.shape), 1 / _TINY)
    d = 1 / b
    h = d
    for i in range(1, _MOST):
        step = -i * (i - a)
        b = b + 2
        d = step * d + b
        d = np.where(np.abs(d) < _TINY, _TINY, d)
        c = b + step / c
        c = np.where(np.abs(c) < _TINY, _TINY, c)
        d = 1 / d
        change = d * c
        h = h * change
        if not (np.abs(change - 1) > _EPS).any():
            break
    return h * np.exp(a * np.log(x) - x - _log_gamma(a))


def _both(a, x):
    """(P, Q), each by the branch that does not cancel."""
    a, x = _together(a, x)
    wrong = (
        (a < 0) | (x < 0) | np.isnan(a) | np.isnan(x) | ((a == 0) & (x == 0)) | (np.isinf(a) & np.isinf(x))
    )
    low = ~wrong & (x < a + 1) & (a > 0) & (x > 0) & np.isfinite(a)
    high = ~wrong & (x >= a + 1) & (a > 0) & np.isfinite(x)
    p = np.where(wrong, np.nan, np.where((a == 0) | (np.isinf(x) & ~np.isinf(a)), 1.0, 0.0))
    q = 1 - p
    s = _series(np.where(low, a, 1.0), np.where(low, x, 0.5))
    f = _fraction(np.where(high, a, 1.0), np.where(high, x, 3.0))
    p = np.where(low, s, np.where(high, 1 - f, p))
    q = np.where(low, 1 - s, np.where(high, f, q))
    return p, q


@kernel
def gammainc(a, x):
    return _rounded(_both(a, x)[0], a, x)


@kernel
def gammaincc(a, x):
    return _rounded(_both(a, x)[1], a, x)


@kernel
def gammainc_slope(a, x):
    """The density dP/dx = x^(a-1) e^-x / Gamma(a)."""
    wide_a, wide_x = _together(a, x)
    inside = (wide_x > 0) & (wide_a > 0)
    safe = xp.where(inside, wide_x, 1.0)
    found = xp.exp((wide_a - 1) * xp.log(safe) - safe - _log_gamma(xp.where(inside, wide_a, 1.0)))
    at_zero = xp.where(wide_a > 1, 0.0, xp.where(wide_a == 1, 1.0, np.inf))
    at_zero = xp.where((wide_x < 0) | (wide_a <= 0) | xp.isnan(wide_x) | xp.isnan(wide_a), np.nan, at_zero)
    return _rounded(xp.where(inside, xp.where(xp.isinf(wide_x), 0.0, found), at_zero), a, x)


def _beta_fraction(a, b, x):
    """The continued fraction of the incomplete beta function, for x < (a + 1) / (a + b + 2)."""
    c = np.ones(x.shape)
    d = 1 - (a + b) * x / (a + 1)
    d = 1 / np.where(np.abs(d) < _TINY, _TINY, d)
    h = d
    for m in range(1, _MOST):
        for step in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 + step * d
            c = 1 + step / c
            d = 1 / np.where(np.abs(d) < _TINY, _TINY, d)
            c = np.where(np.abs(c) < _TINY, _TINY, c)
            change = d * c
            h = h * change
        if not (np.abs(change - 1) > _EPS).any():
            break
    return h


def _log_beta(a, b):
    return _log_gamma(a) + _log_gamma(b) - _log_gamma(a + b)


@kernel
def betainc(a, b, x):
    wide_a, wide_b, wide_x = _together(a, b, x)
    wrong = (wide_x < 0) | (wide_x > 1) | ~(wide_a > 0) | ~(wide_b > 0) | np.isnan(wide_x)
    inside = ~wrong & (wide_x > 0) & (wide_x < 1) & np.isfinite(wide_a) & np.isfinite(wide_b)
    p, q, z = (np.where(inside, v, other) for v, other in ((wide_a, 1.0), (wide_b, 1.0), (wide_x, 0.5)))
    turned = z > (p + 1) / (p + q + 2)
    p, q, z, rest = (
        np.where(turned, q, p),
        np.where(turned, p, q),
        np.where(turned, 1 - z, z),
        np.where(turned, z, 1 - z),
    )
    front = np.exp(p * np.log(z) + q * np.log(rest) - _log_beta(p, q)) / p
    found = front * _beta_fraction(p, q, z)
    found = np.where(turned, 1 - found, found)
    return _rounded(
        np.where(inside, found, np.where(wrong, np.nan, np.where(wide_x >= 1, 1.0, 0.0))), a, b, x
    )


@kernel
def betainc_slope(a, b, x):
    """The density dI/dx = x^(a-1) (1-x)^(b-1) / B(a, b)."""
    wide_a, wide_b, wide_x = _together(a, b, x)
    inside = (wide_x > 0) & (wide_x < 1) & (wide_a > 0) & (wide_b > 0)
    p, q, z = (xp.where(inside, v, other) for v, other in ((wide_a, 1.0), (wide_b, 1.0), (wide_x, 0.5)))
    found = xp.exp((p - 1) * xp.log(z) + (q - 1) * xp.log1p(-z) - _log_beta(p, q))
    at_zero = xp.where(wide_a > 1, 0.0, xp.where(wide_a == 1, wide_b, np.inf))
    at_one = xp.where(wide_b > 1, 0.0, xp.where(wide_b == 1, wide_a, np.inf))
    ends = xp.where(wide_x == 0, at_zero, xp.where(wide_x == 1, at_one, np.nan))
    ends = xp.where((wide_a > 0) & (wide_b > 0), ends, np.nan)
    return _rounded(xp.where(inside, found, ends), a, b, x)
