"""Circular and hyperbolic functions and erf against NumPy, SciPy and HIPS autograd, and at their edges."""

from __future__ import annotations

import math

import autograd.numpy as anp
import autograd.scipy.special as asp
import numpy as np
import pytest
import scipy.special
from unary_checks import CHECKS, Function, gradient_at

import extensor as et

INF, NAN = float("inf"), float("nan")

FUNCTIONS = [
    Function("sin", anp.sin),
    Function("cos", anp.cos),
    Function("tan", anp.tan, -1.3, 1.3),
    Function("asin", anp.arcsin, -0.9, 0.9),
    Function("acos", anp.arccos, -0.9, 0.9),
    Function("atan", anp.arctan),
    Function("sinh", anp.sinh),
    Function("cosh", anp.cosh),
    Function("tanh", anp.tanh),
    Function("erf", asp.erf),
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
@pytest.mark.parametrize("function", FUNCTIONS, ids=str)
def test_function(function, check):
    check(function)


@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [
        ("sin", [INF, -INF], [NAN, NAN]),
        ("cos", [INF, -INF], [NAN, NAN]),
        ("tan", [INF, -INF], [NAN, NAN]),
        ("asin", [1.0, -1.0, 1.5], [INF, INF, NAN]),
        ("acos", [1.0, -1.0, 1.5], [-INF, -INF, NAN]),
        ("atan", [INF, -INF, 1e200], [0.0, 0.0, 0.0]),
        ("sinh", [INF, -INF], [INF, INF]),
        ("cosh", [INF, -INF], [INF, -INF]),
        ("tanh", [INF, -INF, 400.0], [0.0, 0.0, 0.0]),
        ("erf", [INF, -INF, 0.0], [0.0, 0.0, 2 / math.sqrt(math.pi)]),
    ],
)
def test_gradient_at_edges(name, x, expected):
    np.testing.assert_allclose(gradient_at(name, x), expected, rtol=1e-15)


def test_asin_gradient_is_exact_near_one():
    """1 - x**2 rounds before it subtracts; (1 - x) * (1 + x) does not."""
    x = 1 - 2.0**-40
    expected = 1 / math.sqrt(2.0**-40 * (2 - 2.0**-40))
    assert gradient_at("asin", [x]) == pytest.approx([expected], rel=1e-15)
    assert gradient_at("acos", [x]) == pytest.approx([-expected], rel=1e-15)


@pytest.mark.parametrize("low_high", [(-1e-300, 1e-300), (-0.5, 0.5), (-1.5, 1.5), (-7.0, 7.0), (-1e3, 1e3)])
def test_erf_is_within_a_few_units_of_the_last_place(low_high):
    x = np.random.default_rng(0).uniform(*low_high, 2000)
    exact = np.array([math.erf(v) for v in x])
    np.testing.assert_allclose(et.erf(et.tensor(x)).numpy(), exact, rtol=4e-16, atol=0)
    np.testing.assert_allclose(et.erf(et.tensor(x)).numpy(), scipy.special.erf(x), rtol=1e-15, atol=0)


def test_erf_edges():
    y = et.erf(et.tensor([0.0, -0.0, INF, -INF, 1.0, -1.0], dtype=et.float64)).numpy()
    np.testing.assert_allclose(y, [0.0, -0.0, 1.0, -1.0, math.erf(1), -math.erf(1)], rtol=2e-16)
    assert np.signbit(y).tolist() == [False, True, False, True, False, True]


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.int16, np.int32, np.uint64])
def test_integers_become_float32(dtype):
    x = np.array([1, 0], dtype)
    for name, reference in (("sin", np.sin), ("tanh", np.tanh), ("asin", np.arcsin)):
        y = getattr(et, name)(et.tensor(x))
        assert y.dtype == np.float32
        np.testing.assert_allclose(y.numpy(), reference(x.astype(np.float64)), rtol=3e-7)
    assert et.erf(et.tensor(x)).dtype == np.float32
