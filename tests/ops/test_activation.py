"""The activations against SciPy and HIPS autograd, and at their kinks."""

from __future__ import annotations

import math
from typing import Any

import autograd.numpy as anp
import autograd.scipy.special as asp
import ml_dtypes
import numpy as np
import pytest
import scipy.special
from autograd import grad
from unary_checks import CHECKS, Function, gradient_at

import extensor as et

INF, NAN = float("inf"), float("nan")
ALPHA, SCALE = 1.6732632423543772, 1.0507009873554805


def elu(x, alpha=1.0):
    return anp.where(x > 0, x, alpha * anp.expm1(anp.minimum(x, 0.0)))


def softplus(x, beta=1.0, threshold=20.0):
    return anp.where(x * beta > threshold, x, anp.logaddexp(x * beta, 0.0 * x) / beta)


def gelu_tanh(x):
    return 0.5 * x * (1 + anp.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def clipped(x, low, high):
    return anp.where(x < low, low, anp.where(x > high, high, x))


BENDS = {"low": -5.0, "high": 5.0, "kinks": (-3.0, 3.0)}
FUNCTIONS = [
    Function("relu", lambda x: anp.where(x > 0, x, 0.0), kinks=(0.0,)),
    Function("leaky_relu", lambda x: anp.where(x > 0, x, 0.01 * x), kinks=(0.0,)),
    Function("leaky_relu", lambda x: anp.where(x > 0, x, -1.5 * x), kinks=(0.0,), options={"alpha": -1.5}),
    Function("sigmoid", asp.expit),
    Function("gelu", lambda x: 0.5 * x * (1 + asp.erf(x / math.sqrt(2)))),
    Function("gelu", gelu_tanh, options={"approximate": True}),
    Function("silu", lambda x: x * asp.expit(x)),
    Function("mish", lambda x: x * anp.tanh(softplus(x))),
    Function("elu", elu, kinks=(0.0,)),
    Function("elu", lambda x: elu(x, 0.3), kinks=(0.0,), options={"alpha": 0.3}),
    Function("selu", lambda x: SCALE * elu(x, ALPHA), kinks=(0.0,)),
    Function("softplus", softplus),
    Function(
        "softplus", lambda x: softplus(x, 2.0, 3.0), kinks=(1.5,), options={"beta": 2.0, "threshold": 3.0}
    ),
    Function("relu6", lambda x: clipped(x, 0.0, 6.0), -2.0, 8.0, (0.0, 6.0)),
    Function("hard_sigmoid", lambda x: clipped(x + 3, 0.0, 6.0) / 6, **BENDS),
    Function("hard_swish", lambda x: x * clipped(x + 3, 0.0, 6.0) / 6, **BENDS),
    Function("hard_tanh", lambda x: clipped(x, -1.0, 1.0), kinks=(-1.0, 1.0)),
    Function(
        "hard_tanh",
        lambda x: clipped(x, -2.0, 0.5),
        kinks=(-2.0, 0.5),
        options={"min_val": -2.0, "max_val": 0.5},
    ),
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
@pytest.mark.parametrize("function", FUNCTIONS, ids=str)
def test_function(function, check):
    check(function)


@pytest.mark.parametrize(
    ("name", "options", "x", "expected"),
    [
        ("relu", {}, [0.0, -0.0, INF, -INF], [0.0, 0.0, 1.0, 0.0]),
        ("leaky_relu", {"alpha": 0.2}, [0.0, -0.0, INF, -INF], [0.2, 0.2, 1.0, 0.2]),
        ("leaky_relu", {"alpha": 2.0}, [-1.0, 0.0, 1.0], [2.0, 2.0, 1.0]),
        ("elu", {"alpha": 0.5}, [0.0, -0.0, 1e4, -1e4, INF, -INF], [0.5, 0.5, 1.0, 0.0, 1.0, 0.0]),
        ("selu", {}, [0.0, -0.0, INF, -INF], [SCALE * ALPHA, SCALE * ALPHA, SCALE, 0.0]),
        ("relu6", {}, [0.0, -0.0, 6.0, INF, -INF], [0.0] * 5),
        ("hard_sigmoid", {}, [-3.0, 3.0, INF, -INF], [0.0] * 4),
        ("hard_swish", {}, [-3.0, 3.0, INF, -INF], [0.0, 1.0, 1.0, 0.0]),
        ("hard_tanh", {}, [-1.0, 1.0, INF, -INF], [0.0] * 4),
        ("hard_tanh", {"min_val": 2.0, "max_val": 2.0}, [1.0, 2.0, 3.0], [0.0] * 3),
        ("sigmoid", {}, [1e4, -1e4, INF, -INF], [0.0] * 4),
        ("softplus", {}, [20.5, 1e4, -1e4, INF, -INF], [1.0, 1.0, 0.0, 1.0, 0.0]),
        ("gelu", {}, [1e30, -1e30], [1.0, 0.0]),
        ("gelu", {"approximate": True}, [1e160, -1e160, 40.0, -40.0], [1.0, 0.0, 1.0, 0.0]),
        ("silu", {}, [1e4, -1e4], [1.0, 0.0]),
        ("mish", {}, [1e4, -1e4], [1.0, 0.0]),
    ],
)
def test_gradient_at_edges(name, options, x, expected):
    np.testing.assert_allclose(gradient_at(name, x, **options), expected, rtol=1e-15)


@pytest.mark.parametrize(
    ("name", "x"),
    [("relu", -1.0), ("relu6", 7.0), ("hard_sigmoid", 4.0), ("hard_swish", -4.0), ("hard_tanh", 2.0)],
)
def test_flat_pieces_swallow_an_infinite_gradient(name, x):
    assert gradient_at(name, [x], grad=INF) == [0.0]


def test_sigmoid_does_not_clip():
    """The two-branch form keeps its relative precision to the end of the range."""
    x = np.linspace(-700.0, 700.0, 2001)
    np.testing.assert_allclose(et.sigmoid(et.tensor(x)).numpy(), scipy.special.expit(x), rtol=1e-14, atol=0)


def test_gelu_keeps_its_relative_precision_in_the_tail():
    x = np.linspace(-37.0, 10.0, 2001)
    # the oracle rounds x**2 / 2 before the exponential: 37**2 / 2 units of the last place are 1.5e-13
    np.testing.assert_allclose(et.gelu(et.tensor(x)).numpy(), x * scipy.special.ndtr(x), rtol=3e-13, atol=0)
    density = np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    exact = scipy.special.ndtr(x) + x * density
    found = np.array(gradient_at("gelu", x))
    np.testing.assert_allclose(found, exact, rtol=3e-13, atol=2e-16)


def test_gelu_tanh_does_not_cancel():
    u = math.sqrt(8 / math.pi) * (8.0 + 0.044715 * 8.0**3)
    found = et.gelu(et.tensor([-8.0], dtype=et.float64), approximate=True).item()
    assert found == pytest.approx(-8.0 * math.exp(-u), rel=1e-13, abs=0)


@pytest.mark.parametrize("name", ["mish", "silu", "softplus"])
def test_negative_tails_keep_their_relative_precision(name):
    """Far below 0 all three are e**x, times x for two of them; the next term is e**-40 smaller."""
    x = -40.0
    leading = math.exp(x) * (1.0 if name == "softplus" else x)
    assert getattr(et, name)(et.tensor([x], dtype=et.float64)).item() == pytest.approx(
        leading, rel=1e-15, abs=0
    )


@pytest.mark.parametrize(("name", "slope"), [("elu", 1.0), ("selu", SCALE * ALPHA)])
def test_exponential_units_are_exact_near_zero(name, slope):
    found = getattr(et, name)(et.tensor([-1e-12], dtype=et.float64)).item()
    assert found == pytest.approx(-1e-12 * slope, rel=1e-12, abs=0)


@pytest.mark.parametrize("name", ["elu", "selu", "hard_swish", "softplus"])
def test_second_derivative_is_finite_far_away(name):
    """The branch that is not taken overflows there; its gradient must not come back as 0 * inf."""
    f = Function(name, np.asarray)
    x = et.tensor([1e4, -1e4], dtype=et.float64)
    found = et.grad(lambda x: f.backward(et.ones(2, dtype=et.float64), x).sum())(x)
    assert found.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("dtype", [et.float64, et.float32])
def test_recorded_tanh_gelu_is_finite_far_away_and_does_not_cancel(dtype):
    """Where the backward is itself recorded, its formula gives what the kernel gives."""
    x = np.array([1e30, -1e30, 1e13, 200.0, -200.0, 6.0, -6.0, -3.5, 0.5, -0.0], dtype)
    grad = et.tensor(np.full(len(x), 0.7, dtype), requires_grad=True)
    recorded = et.gelu_backward(grad, et.tensor(x, requires_grad=True), approximate=True)
    plain = et.gelu_backward(grad.detach(), et.tensor(x), approximate=True)
    rtol = 1e-13 if dtype == et.float64 else 1e-5
    np.testing.assert_allclose(recorded.numpy(), plain.numpy(), rtol=rtol, atol=0)
    second = et.grad(lambda x: et.gelu_backward(grad.detach(), x, approximate=True).sum())(et.tensor(x))
    assert second.numpy()[:5].tolist() == [0.0] * 5


@pytest.mark.parametrize(
    "name", ["relu", "relu6", "leaky_relu", "hard_sigmoid", "hard_swish", "hard_tanh", "gelu", "mish"]
)
@pytest.mark.parametrize("place", range(5))
def test_a_nan_is_nan_in_the_tangent_too(name, place):
    """A comparison does not turn it into 0, in whatever order of differentiation."""
    x = np.full(5, 0.3)
    x[place] = np.nan
    _, tangent = et.jvp(getattr(et, name), (et.tensor(x),), (et.ones(5, et.float64),))
    np.testing.assert_array_equal(np.isnan(tangent.numpy()), np.isnan(x))


# prelu: two inputs, and slopes in four shapes

SLOPES = [
    ((), (5,)), ((), ()), ((1,), (2, 3)), ((3,), (2, 3)), ((3,), (2, 3, 4)), ((3,), (2, 3, 2, 2)),
    ((5,), (5,)), ((2, 3, 4), (2, 3, 4)), ((3,), (0, 3)), ((1, 1), (4,)),
]  # fmt: skip


def prelu_oracle(x, alpha):
    if alpha.size == 1:
        alpha = alpha.reshape(())
    elif alpha.shape != x.shape:
        alpha = alpha.reshape((1, -1) + (1,) * (x.ndim - 2))
    return anp.where(x > 0, x, alpha * x)


@pytest.mark.parametrize(("slopes", "shape"), SLOPES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_prelu(slopes, shape, dtype):
    rng = np.random.default_rng(3)
    x, alpha, g = (np.asarray(rng.normal(size=s)) for s in (shape, slopes, shape))
    rtol = 1e-12 if dtype == np.float64 else 1e-5
    tx, ta, tg = (et.tensor(v, dtype=dtype) for v in (x, alpha, g))
    np.testing.assert_allclose(et.prelu(tx, ta).numpy(), prelu_oracle(x, alpha), rtol=rtol)
    found = et.prelu_backward(tg, tx, ta)
    expected = grad(lambda x, alpha: anp.sum(g * prelu_oracle(x, alpha)), (0, 1))(x, alpha)
    for mine, theirs, like in zip(found, expected, (tx, ta)):
        assert (mine.shape, mine.dtype) == (like.shape, like.dtype)
        np.testing.assert_allclose(mine.numpy(), theirs, rtol=rtol, atol=rtol)


def test_prelu_second_derivative():
    x, alpha, g = (np.random.default_rng(s).normal(size=n) for s, n in ((0, (2, 3)), (1, 3), (2, (2, 3))))

    def ours(x, alpha, g):
        grad_x, grad_alpha = et.prelu_backward(g, x, alpha)
        return (grad_x * grad_x).sum() + (grad_alpha * grad_alpha).sum()

    def theirs(x, alpha, g):
        slope = anp.where(x > 0, 1.0, alpha + 0.0 * x)
        grad_alpha = anp.sum(anp.where(x > 0, 0.0, g * x), 0)
        return anp.sum((g * slope) ** 2) + anp.sum(grad_alpha**2)

    found = et.grad(ours, argnums=(0, 1, 2))(*map(et.tensor, (x, alpha, g)))
    for mine, expected in zip(found, grad(theirs, (0, 1, 2))(x, alpha, g)):
        np.testing.assert_allclose(mine.numpy(), expected, rtol=1e-12)


def test_prelu_edges():
    x = et.tensor([0.0, -0.0, NAN, INF, -INF, 2.0], dtype=et.float64)
    alpha = et.tensor([0.25, 0.25, 0.25, 0.25, 0.25, NAN], dtype=et.float64)
    grad_x, grad_alpha = et.prelu_backward(et.ones(6, dtype=et.float64), x, alpha)
    np.testing.assert_array_equal(grad_x.numpy(), [0.25, 0.25, NAN, 1.0, 0.25, 1.0])
    np.testing.assert_array_equal(grad_alpha.numpy(), [0.0, -0.0, NAN, 0.0, -INF, 0.0])


def test_prelu_takes_a_python_number_and_skips_what_is_not_needed():
    x = et.tensor([-1.0, 2.0], dtype=et.float64)
    assert et.prelu(x, 0.1).tolist() == [-0.1, 2.0]
    assert et.prelu_backward(et.ones(2, dtype=et.float64), x, 0.1).grad_alpha.shape == ()
    assert et.prelu_backward(et.ones(2), x, et.tensor(0.1), needs=(True, False)).grad_alpha is None
    assert et.prelu_backward(et.ones(2), x, et.tensor(0.1), needs=(False, True)).grad_x is None


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_prelu_half_precision(dtype):
    x, g = (np.random.default_rng(s).normal(size=(40, 3)).astype(dtype) for s in (0, 1))
    alpha = np.array([0.1, -0.2, 0.3]).astype(dtype)
    found = et.prelu_backward(*map(et.tensor, (g, x, alpha)))
    wide = et.prelu_backward(*(et.tensor(v, dtype=et.float32) for v in (g, x, alpha)))
    for half, single in zip(found, wide):
        assert half.dtype == dtype
        assert half.numpy().tobytes() == single.numpy().astype(dtype).tobytes()


def test_functions_that_are_the_same_mathematics_agree():
    x = np.random.default_rng(4).normal(0, 3, 101)
    t = et.tensor(x)
    for same in (
        et.maximum(t, 0.0),
        et.clip(t, 0.0, None),
        et.leaky_relu(t, 0.0),
        et.prelu(t, et.tensor(0.0)),
    ):
        np.testing.assert_array_equal(et.relu(t).numpy(), same.numpy())
    np.testing.assert_array_equal(et.hard_tanh(t, 0.0, 6.0).numpy(), et.relu6(t).numpy())
    np.testing.assert_allclose(et.sigmoid(t).numpy(), et.exp(-et.softplus(-t)).numpy(), rtol=1e-14)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: et.relu(et.tensor([True])), TypeError, r"\[relu\] x must have a floating dtype, got bool"),
        (
            lambda x: et.relu_backward(et.ones(1), et.tensor([1])),
            TypeError,
            r"\[relu_backward\] x has dtype int64",
        ),
        (lambda x: et.leaky_relu(x, "steep"), TypeError, r"\[leaky_relu\] alpha must be a number"),
        (lambda x: et.leaky_relu(x, NAN), ValueError, r"\[leaky_relu\] alpha must be a finite number"),
        (
            lambda x: et.leaky_relu_backward(x, x, INF),
            ValueError,
            r"\[leaky_relu_backward\] alpha must be a finite",
        ),
        (lambda x: et.elu(x, None), TypeError, r"\[elu\] alpha must be a number"),
        (lambda x: et.gelu(x, "tanh"), TypeError, r"\[gelu\] approximate must be True or False"),
        (lambda x: et.gelu_backward(x, x, 1), TypeError, r"\[gelu_backward\] approximate must be"),
        (lambda x: et.softplus(x, 0), ValueError, r"\[softplus\] beta must not be 0"),
        (lambda x: et.softplus(x, 1, NAN), ValueError, r"\[softplus\] threshold must be a number"),
        (
            lambda x: et.softplus_backward(x, x, INF),
            ValueError,
            r"\[softplus_backward\] beta must be a finite",
        ),
        (lambda x: et.hard_tanh(x, 1, -1), ValueError, r"\[hard_tanh\] min_val must not be greater"),
        (
            lambda x: et.hard_tanh_backward(x, x, NAN),
            ValueError,
            r"\[hard_tanh_backward\] min_val must not be",
        ),
        (lambda x: et.prelu(x, et.ones(4)), ValueError, r"\[prelu\] alpha must be a scalar.*alpha: \(4,\)"),
        (
            lambda x: et.prelu(x, et.ones(3, dtype=et.int32)),
            TypeError,
            r"\[prelu\] alpha must have a floating",
        ),
        (
            lambda x: et.prelu_backward(x, x, et.ones(2)),
            ValueError,
            r"\[prelu_backward\] alpha must be a scalar",
        ),
        (
            lambda x: et.prelu_backward(et.ones(3), x, 0.1),
            ValueError,
            r"\[prelu_backward\] grad_output has shape",
        ),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match="^" + text):
        call(et.ones((2, 3)))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.int64])
@pytest.mark.parametrize("shape", [(), (0,), (3, 70)])
def test_relu_of_integers_is_their_maximum_with_zero(dtype: Any, shape: tuple[int, ...]) -> None:
    limits = np.iinfo(dtype)
    x = np.random.default_rng(3).integers(limits.min, limits.max, shape, dtype, endpoint=True)
    for value in (et.asarray(x), et.asarray(x[..., ::-1] if shape else x)):
        found = et.relu(value)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found.numpy(), np.maximum(value.numpy(), 0))
