"""The error function of the reference kernels, to the last few bits, tails included."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
import scipy.special

from extensor.kernels.reference import error_function


def test_erfcx():
    t = np.concatenate([np.linspace(0.0, 30.0, 3001), np.geomspace(1e-10, 1e10, 200)])
    np.testing.assert_allclose(error_function.erfcx(t), scipy.special.erfcx(t), rtol=1.5e-15, atol=0)


@pytest.mark.parametrize("half", [1.0, 0.5])
def test_gaussian_does_not_lose_the_bits_of_the_square(half):
    t = np.random.default_rng(0).uniform(-26.0, 26.0, 300)
    with localcontext() as context:
        context.prec = 40
        exact = [float((-Decimal(half) * Decimal(v) * Decimal(v)).exp()) for v in t.tolist()]
    np.testing.assert_allclose(error_function.gaussian(t, half), exact, rtol=7e-16, atol=0)


def test_erf():
    x = np.random.default_rng(1).uniform(-6.5, 6.5, 3000)
    np.testing.assert_allclose(error_function.erf(x), [math.erf(v) for v in x], rtol=4e-16, atol=0)


def test_normal_distribution():
    x = np.random.default_rng(2).uniform(-6.0, 6.0, 3000)
    exact = [0.5 * math.erfc(-v / math.sqrt(2)) for v in x]  # x / sqrt(2) rounds twice: up to 8e-15
    np.testing.assert_allclose(error_function.normal_cdf(x), exact, rtol=1e-14, atol=0)
    assert error_function.normal_cdf(np.array([-np.inf, 0.0, np.inf])).tolist() == [0.0, 0.5, 1.0]
    np.testing.assert_allclose(
        error_function.normal_pdf(x), np.exp(-x * x / 2) / math.sqrt(2 * math.pi), rtol=5e-15
    )
