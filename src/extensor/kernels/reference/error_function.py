"""The error function and the normal distribution in float64, to about 1e-15 relative, far tails included.

Both polynomials are Chebyshev expansions computed in 60 digits, cut where a term no longer reaches a float64:

* ``erf(x) / x`` in ``x**2``, for ``|x| <= 1``;
* ``(t + 3) * erfcx(t)`` in ``z = 1 - 6 / (t + 3)``, which maps ``0 <= t <= inf`` to ``-1 <= z <= 1``;
  ``erfcx(t) = exp(t**2) * erfc(t)`` falls like ``1 / t``, so nothing cancels and nothing underflows.
"""

from __future__ import annotations

import math

import numpy as np

from ..namespace import primitive, wide_dtype, xp

ERF_OVER_X = (
    5.958930743134941e-11, -1.1373902296430911e-09, 1.4660051998394848e-08, -1.6350354461959655e-07,
    1.6461004480962034e-06, -1.4925595519506043e-05, 0.00012055331122299266, -0.0008548326981129666,
    0.005223977624823223, -0.026866170645077334, 0.11283791670954882, -0.3761263890318375, 1.1283791670955126,
)  # fmt: skip
SCALED_ERFCX = (
    8.110702546134275e-10, 6.955906189755573e-12, -8.693782500177508e-09, -3.5681707161948244e-09,
    5.1182441193731655e-08, 4.995793294635948e-08, -2.3385370555231722e-07, -4.116852952311768e-07,
    9.988170353508586e-07, 2.767748903161214e-06, -4.749028287395598e-06, -1.7471572228437204e-05,
    3.0398051589671313e-05, 0.00010756177091219703, -0.0002767778140230201, -0.0005483097427488427,
    0.003034061996058257, -0.001212416621829446, -0.026827234624051424, 0.11952776128699893,
    -0.3104672619005832, 0.5902283571041079, -0.8833944531698834, 1.0740069070883398,
)  # fmt: skip
FAR = 40.0  # exp(-FAR**2 / 2) is 0 in float64


def horner(coefficients, z):
    """The polynomial with the given coefficients, highest power first."""
    total = xp.full_like(z, coefficients[0])
    for c in coefficients[1:]:
        total *= z
        total += c
    return total


def erfcx(t):
    """``exp(t**2) * erfc(t)`` for t >= 0."""
    shifted = t + 3.0
    return horner(SCALED_ERFCX, 1.0 - 6.0 / shifted) / shifted


@primitive
def gaussian(t, half):
    """``exp(-half * t**2)`` without the rounding error of the square: t is split into two short numbers."""
    t = xp.minimum(xp.abs(t), FAR)
    top = t.astype(np.float32).astype(wide_dtype(t))
    return xp.exp(-half * top * top) * xp.exp(-half * (t - top) * (t + top))


def erf(x):
    """The error function of float64 values."""
    t = xp.abs(x)
    near = x * horner(ERF_OVER_X, xp.square(xp.minimum(t, 1.0)))
    return xp.where(t < 1.0, near, xp.copysign(1.0 - gaussian(t, 1.0) * erfcx(t), x))


@primitive
def normal_cdf(x):
    """The standard normal distribution function of float64 values, accurate in both tails."""
    tail = 0.5 * gaussian(x, 0.5) * erfcx(xp.abs(x) * math.sqrt(0.5))
    return xp.where(x < 0.0, tail, 1.0 - tail)


def normal_pdf(x):
    """The standard normal density of float64 values."""
    return gaussian(x, 0.5) / math.sqrt(2.0 * math.pi)
