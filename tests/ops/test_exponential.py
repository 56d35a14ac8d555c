"""Exponentials, logarithms and roots against NumPy and HIPS autograd, and at their edges."""

from __future__ import annotations

import math

import autograd.numpy as anp
import numpy as np
import pytest
from unary_checks import CHECKS, Function, gradient_at

import extensor as et

INF, NAN = float("inf"), float("nan")

FUNCTIONS = [
    Function("exp", anp.exp),
    Function("expm1", anp.expm1),
    Function("log", anp.log, 0.2, 4.0),
    Function("log1p", anp.log1p, -0.8, 3.0),
    Function("log2", anp.log2, 0.2, 4.0),
    Function("log10", anp.log10, 0.2, 4.0),
    Function("sqrt", anp.sqrt, 0.2, 4.0),
    Function("rsqrt", lambda x: 1 / anp.sqrt(x), 0.2, 4.0),
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
@pytest.mark.parametrize("function", FUNCTIONS, ids=str)
def test_function(function, check):
    check(function)


@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [
        ("exp", [-INF, INF], [0.0, INF]),
        ("expm1", [-INF, INF, -50.0], [0.0, INF, math.exp(-50.0)]),
        ("log", [0.0, -0.0, 1e-12, -1e-12, -2.0, INF], [1e10, -1e10, 1e10, -1e10, -0.5, 0.0]),
        ("log2", [0.0, -0.0], [1e10 / math.log(2), -1e10 / math.log(2)]),
        ("log10", [0.0, -0.0], [1e10 / math.log(10), -1e10 / math.log(10)]),
        ("log1p", [-1.0, INF], [INF, 0.0]),
        ("sqrt", [0.0, -0.0, 1e-24, -1.0, INF], [5e9, -5e9, 5e9, NAN, 0.0]),
        ("rsqrt", [0.0, -0.0, 1e-24, -1.0, INF], [-5e29, 5e29, -5e29, NAN, 0.0]),
    ],
)
def test_gradient_at_edges(name, x, expected):
    np.testing.assert_allclose(gradient_at(name, x), expected, rtol=1e-12)


# name, what the backward takes at 0, the gradient there with the default guard and with eps=0
GUARDED = [
    ("log", 0.0, 1e10, INF),
    ("log2", 0.0, 1e10 / math.log(2), INF),
    ("log10", 0.0, 1e10 / math.log(10), INF),
    ("sqrt", 0.0, 5e9, INF),
    ("rsqrt", INF, -5e29, -INF),
]


@pytest.mark.parametrize("dtype", [et.float32, et.float64, et.bfloat16])
@pytest.mark.parametrize(("name", "saved", "guarded", "ieee"), GUARDED)
def test_guard_keeps_the_gradient_at_zero_finite(name, saved, guarded, ieee, dtype):
    backward = getattr(et, f"{name}_backward")
    g, saved = et.ones(1, dtype=dtype), et.tensor([saved], dtype=dtype)
    rel = 1e-2 if dtype == et.bfloat16 else 1e-6
    assert backward(g, saved).astype(et.float64).item() == pytest.approx(guarded, rel=rel)
    assert backward(g, saved, eps=0).item() == ieee


@pytest.mark.parametrize(
    ("name", "saved", "eps", "expected"),
    [
        ("log", [0.01, 0.5, -0.01], 0.25, [4.0, 2.0, -4.0]),
        ("sqrt", [0.01, 0.5], 0.25, [2.0, 1.0]),
        ("rsqrt", [2.0, 100.0, -100.0], 0.25, [-4.0, -32.0, 32.0]),
    ],
)
def test_guard_is_exact_outside_eps(name, saved, eps, expected):
    backward = getattr(et, f"{name}_backward")
    saved = et.tensor(saved)
    assert backward(et.ones(len(expected)), saved, eps=eps).tolist() == expected
    recorded = backward(et.ones(len(expected)), et.tensor(saved.tolist(), requires_grad=True), eps=eps)
    assert recorded.tolist() == expected


def test_float16_guard_is_wider():
    zero, one = et.tensor([0.0], dtype=et.float16), et.ones(1, dtype=et.float16)
    assert et.log_backward(one, zero).item() == 1e4
    assert et.sqrt_backward(one, zero).item() == 5e3


@pytest.mark.parametrize("name", ["exp", "expm1", "log", "log1p", "log2", "log10", "sqrt"])
@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint16, np.int32, np.uint64])
def test_integers_become_float32(name, dtype):
    x = np.array([1, 1, 0], dtype)
    with np.errstate(divide="ignore"):
        expected = getattr(np, name)(x.astype(np.float64))
    y = getattr(et, name)(et.tensor(x))
    assert y.dtype == np.float32
    np.testing.assert_allclose(y.numpy(), expected, rtol=3e-7)


@pytest.mark.parametrize("name", ["log", "log2", "log10", "sqrt", "rsqrt"])
@pytest.mark.parametrize("eps", [-1e-3, INF, NAN, "small"])
def test_bad_eps(name, eps):
    with pytest.raises((ValueError, TypeError), match=rf"^\[{name}_backward\] eps must be"):
        getattr(et, f"{name}_backward")(et.ones(2), et.ones(2), eps=eps)
