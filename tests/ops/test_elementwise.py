"""abs, sign, rounding, square, reciprocal and clip against NumPy and HIPS autograd, and at their edges."""

from __future__ import annotations

import autograd.numpy as anp
import numpy as np
import pytest
from unary_checks import CHECKS, Function, check_nan_at_every_position, check_second_derivative, gradient_at

import extensor as et

INF, NAN = float("inf"), float("nan")

SMOOTH = [
    Function("abs", anp.abs, kinks=(0.0,)),
    Function("square", anp.square),
    Function("reciprocal", anp.reciprocal, 0.3, 3.0),
    Function("reciprocal", anp.reciprocal, -3.0, -0.3),
    Function("clip", lambda x: anp.clip(x, -1.0, 2.0), kinks=(-1.0, 2.0), options={"min": -1.0, "max": 2.0}),
    Function("clip", lambda x: anp.clip(x, -1.0, np.inf), kinks=(-1.0,), options={"min": -1.0}),
    Function("clip", lambda x: anp.clip(x, -np.inf, 2.0), kinks=(2.0,), options={"max": 2.0}),
    Function("clip", lambda x: x, options={}),
]
INTEGERS = tuple(float(n) for n in range(-4, 5))
SLOPED = (check_nan_at_every_position, check_second_derivative)  # a staircase's gradient depends on nothing
STAIRCASES = [
    Function("sign", anp.sign, kinks=(0.0,)),
    Function("ceil", anp.ceil, kinks=INTEGERS),
    Function("floor", anp.floor, kinks=INTEGERS),
    Function("round", anp.round, kinks=tuple(n + 0.5 for n in INTEGERS)),
    Function("trunc", anp.trunc, kinks=INTEGERS),
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
@pytest.mark.parametrize("function", SMOOTH, ids=str)
def test_function(function, check):
    check(function)


@pytest.mark.parametrize("check", [c for c in CHECKS if c not in SLOPED], ids=lambda c: c.__name__)
@pytest.mark.parametrize("function", STAIRCASES, ids=str)
def test_staircase(function, check):
    check(function)


@pytest.mark.parametrize("function", STAIRCASES, ids=str)
def test_staircase_nan_has_the_gradient_zero(function):
    check_nan_at_every_position(function, gradient_is_nan=False)


@pytest.mark.parametrize("function", STAIRCASES, ids=str)
def test_staircase_gradient_is_zero_with_tensor_shape_or_nothing(function):
    x = et.tensor(function.draw((2, 3)), dtype=et.float64)
    for saved in ((x,), ((2, 3),), ()):
        found = function.raw_backward(et.ones((2, 3), dtype=et.float64), *saved)
        assert found.dtype == np.float64
        assert found.tolist() == [[0.0] * 3] * 2
    leaf = et.tensor([1.3], requires_grad=True)
    (function.forward(leaf) * leaf).sum().backward()
    assert leaf.grad.tolist() == function.forward(leaf).tolist()


@pytest.mark.parametrize(
    ("name", "options", "x", "expected"),
    [
        ("abs", {}, [0.0, -0.0, INF, -INF], [0.0, 0.0, 1.0, -1.0]),
        ("clip", {"min": -1, "max": 2}, [-1.0, 2.0, -1.5, 2.5, INF, -INF], [1.0, 1.0, 0.0, 0.0, 0.0, 0.0]),
        ("clip", {"min": 0}, [0.0, -0.0, -1.0, INF], [1.0, 1.0, 0.0, 1.0]),
        ("clip", {"min": 2, "max": 1}, [0.0, 1.0, 1.5, 2.0, 3.0], [0.0] * 5),
        ("reciprocal", {}, [0.0, -0.0, 1e-12, -1e-12, INF], [-1e20, -1e20, -1e20, -1e20, -0.0]),
    ],
)
def test_gradient_at_edges(name, options, x, expected):
    np.testing.assert_allclose(gradient_at(name, x, **options), expected, rtol=1e-12)


def test_flat_pieces_swallow_an_infinite_gradient():
    assert gradient_at("clip", [-5.0, 5.0], grad=INF, min=-1, max=1) == [0.0, 0.0]


def test_reciprocal_guard_is_finite_in_float32_and_ieee_with_eps_zero():
    zeros = et.tensor([0.0, -0.0])
    assert et.reciprocal_backward(et.ones(2), zeros).tolist() == pytest.approx([-1e20, -1e20], rel=1e-6)
    assert et.reciprocal_backward(et.ones(2), zeros, eps=0).tolist() == [-INF, -INF]
    assert et.reciprocal_backward(et.ones(2), et.tensor([0.25, 2.0]), eps=0.5).tolist() == [-4.0, -0.25]


def test_halves_round_to_even():
    assert et.round(et.tensor([-1.5, -0.5, 0.5, 1.5, 2.5])).tolist() == [-2.0, -0.0, 0.0, 2.0, 2.0]


@pytest.mark.parametrize("name", ["ceil", "floor", "round", "trunc"])
def test_integers_are_whole(name):
    x = et.tensor([1, -2], dtype=et.int32)
    assert getattr(et, name)(x).dtype == np.int32
    assert getattr(et, name)(x).tolist() == [1, -2]


@pytest.mark.parametrize(
    ("x", "low", "high", "dtype", "expected"),
    [
        (np.array([-5, 0, 5], np.int32), -1, 2, np.int32, [-1, 0, 2]),
        (np.array([-5, 0, 5], np.int32), np.int64(-1), None, np.int32, [-1, 0, 5]),
        (np.array([-5, 0, 5], np.int32), -0.5, None, np.float32, [-0.5, 0.0, 5.0]),
        (np.array([1, 200], np.uint8), None, 100, np.uint8, [1, 100]),
        (np.array([1, 200], np.uint8), None, None, np.uint8, [1, 200]),
        (np.array([-5.0, NAN], np.float32), None, None, np.float32, [-5.0, NAN]),
        (np.array([-5.0, 3.0], np.float32), 2, 1, np.float32, [1.0, 1.0]),
    ],
)
def test_clip_dtypes(x, low, high, dtype, expected):
    y = et.clip(et.tensor(x), low, high)
    assert y.dtype == dtype
    np.testing.assert_array_equal(y.numpy(), expected)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("square", np.int32), ("abs", np.int32), ("sign", np.int32), ("reciprocal", np.float32)],
)
def test_integers_stay_or_become_float32(name, dtype):
    y = getattr(et, name)(et.tensor([2, -4], dtype=et.int32))
    assert y.dtype == dtype
    np.testing.assert_array_equal(y.numpy(), getattr(np, name)(np.array([2, -4], dtype)))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: et.clip(x, min="0"), TypeError, r"\[clip\] min must be a number"),
        (lambda x: et.clip(x, max=True), TypeError, r"\[clip\] max must be a number"),
        (lambda x: et.clip(x, min=NAN), ValueError, r"\[clip\] min must be a number or None"),
        (lambda x: et.clip_backward(x, x, max=NAN), ValueError, r"\[clip_backward\] max must be"),
        (
            lambda x: et.clip(et.tensor([1], dtype=et.uint8), min=300),
            ValueError,
            r"\[clip\] min and max must fit",
        ),
        (lambda x: et.sign(et.tensor([True])), TypeError, r"\[sign\] is not defined for bool"),
        (
            lambda x: et.reciprocal_backward(x, x, eps=-1.0),
            ValueError,
            r"\[reciprocal_backward\] eps must be",
        ),
        (lambda x: et.floor_backward(x, (4,)), ValueError, r"\[floor_backward\] grad_output has shape"),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match="^" + text):
        call(et.ones(3))
