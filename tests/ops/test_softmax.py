"""Softmax and log-softmax against SciPy and HIPS autograd, along every axis, and at their edges."""

from __future__ import annotations

import autograd.numpy as anp
import ml_dtypes
import numpy as np
import pytest
import scipy.special
from autograd import grad
from autograd.scipy.special import logsumexp

import extensor as et

INF, NAN = float("inf"), float("nan")
PAIRS = {
    "softmax": (et.softmax, et.softmax_backward, scipy.special.softmax),
    "log_softmax": (et.log_softmax, et.log_softmax_backward, scipy.special.log_softmax),
}
both = pytest.mark.parametrize("name", PAIRS)
ROWS = [
    ((), -1), ((), 0), ((1,), 0), ((0,), 0), ((7,), -1), ((65,), 0), ((3, 4), 0), ((3, 4), -1), ((3, 4), 1),
    ((2, 0, 3), 1), ((2, 0, 3), 2), ((2, 3, 5), 0), ((2, 3, 5), 1), ((2, 3, 5), -2), ((300, 3), 0),
]  # fmt: skip


def normal(shape, seed=0, scale=3.0):
    return np.asarray(np.random.default_rng(seed).normal(0, scale, shape))


def oracle(name, x, axis):
    """The functions as HIPS autograd can differentiate them; a 0-d tensor is a row of one."""
    logs = x - logsumexp(x, axis=axis, keepdims=True) if x.ndim else x - x
    return anp.exp(logs) if name == "softmax" else logs


@both
@pytest.mark.parametrize(("shape", "axis"), ROWS)
@pytest.mark.parametrize(("dtype", "rtol"), [(np.float64, 1e-12), (np.float32, 1e-5)])
def test_values_and_gradients(name, shape, axis, dtype, rtol):
    forward, backward, scipys = PAIRS[name]
    x, g = normal(shape), normal(shape, 1)
    y = forward(et.tensor(x, dtype=dtype), axis=axis)
    assert (y.shape, y.dtype) == (shape, dtype)
    found = backward(et.tensor(g, dtype=dtype), y, axis=axis)
    assert (found.shape, found.dtype) == (shape, dtype)
    if x.size:
        np.testing.assert_allclose(
            y.numpy(), scipys(x, axis=axis) if shape else oracle(name, x, axis), rtol=rtol, atol=rtol
        )
        expected = grad(lambda x: anp.sum(g * oracle(name, x, axis)))(x)
        np.testing.assert_allclose(found.numpy(), expected, rtol=10 * rtol, atol=10 * rtol)


@both
def test_second_derivative(name):
    forward, backward, _ = PAIRS[name]
    x, g, h = normal((2, 4)), normal((2, 4), 1), normal((2, 4), 2)

    def first(x, g):
        return grad(lambda x: anp.sum(g * oracle(name, x, 0)))(x)

    expected = grad(lambda x, g: anp.sum(h * first(x, g)), (0, 1))(x, g)
    found = et.grad(lambda x, g: (backward(g, forward(x, 0), 0) * et.tensor(h)).sum(), argnums=(0, 1))(
        et.tensor(x), et.tensor(g)
    )
    for mine, theirs in zip(found, expected):
        np.testing.assert_allclose(mine.numpy(), theirs, rtol=1e-10, atol=1e-12)
    scalar = et.grad(lambda x: backward(x, forward(x)))(et.tensor(2.0))
    assert scalar.item() == 0.0


@both
def test_strided(name):
    forward, backward, _ = PAIRS[name]
    x, g = normal((6, 10)), normal((6, 10), 1)
    for axis in (0, 1):
        plain = forward(et.tensor(x[::2, ::3]), axis)
        np.testing.assert_allclose(forward(et.asarray(x[::2, ::3]), axis).numpy(), plain.numpy(), rtol=1e-15)
        np.testing.assert_allclose(
            backward(et.asarray(g[::2, ::3]), plain, axis).numpy(),
            backward(et.tensor(g[::2, ::3]), plain, axis).numpy(),
            rtol=1e-14,
            atol=1e-16,
        )


@pytest.mark.parametrize(
    ("row", "probabilities", "logs"),
    [
        ([1000.0, 1000.0], [0.5, 0.5], [-np.log(2), -np.log(2)]),
        ([-1000.0, 1000.0], [0.0, 1.0], [-2000.0, 0.0]),
        ([1e308, -1e308], [1.0, 0.0], [0.0, -INF]),
        ([0.0, -INF], [1.0, 0.0], [0.0, -INF]),
        ([-INF, -INF], [NAN, NAN], [NAN, NAN]),
        ([INF, 0.0], [NAN, NAN], [NAN, NAN]),  # inf - inf: the whole row is lost, as in PyTorch
        ([NAN, 0.0], [NAN, NAN], [NAN, NAN]),
    ],
)
def test_extreme_rows(row, probabilities, logs):
    x = et.tensor(row, dtype=et.float64)
    np.testing.assert_allclose(et.softmax(x).numpy(), probabilities, rtol=1e-15)
    np.testing.assert_allclose(et.log_softmax(x).numpy(), logs, rtol=1e-15)


def test_an_entry_of_minus_inf_has_gradient_zero():
    x, g = et.tensor([0.0, -INF, 1.0], dtype=et.float64), et.tensor([1.0, 2.0, 3.0], dtype=et.float64)
    assert et.softmax_backward(g, et.softmax(x)).numpy()[1] == 0.0
    assert (
        et.log_softmax_backward(et.tensor([1.0, 0.0, 3.0], dtype=et.float64), et.log_softmax(x)).numpy()[1]
        == 0.0
    )
    assert np.isfinite(et.softmax_backward(g, et.softmax(x)).numpy()).all()


@both
@pytest.mark.parametrize("length", [1, 2, 7, 8, 9, 17, 64, 70])
def test_a_nan_anywhere_spoils_its_row_and_no_other(name, length):
    forward, backward, _ = PAIRS[name]
    for dtype in (np.float32, np.float64):
        for i in range(length):
            x = normal((2, length)).astype(dtype)
            x[0, i] = NAN
            y = forward(et.tensor(x))
            gradient = backward(et.ones((2, length), dtype=dtype), y)
            for found in (y.numpy(), gradient.numpy()):
                assert np.isnan(found[0]).all()
                assert np.isfinite(found[1]).all()


@both
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_precision_is_float32_rounded_once(name, dtype):
    forward, backward, _ = PAIRS[name]
    x, g = normal((5, 33)).astype(dtype), normal((5, 33), 1).astype(dtype)
    y = forward(et.tensor(x))
    assert y.dtype == dtype
    assert y.numpy().tobytes() == forward(et.tensor(x, dtype=et.float32)).numpy().astype(dtype).tobytes()
    wide = backward(et.tensor(g, dtype=et.float32), y.astype(et.float32))
    assert backward(et.tensor(g), y).numpy().tobytes() == wide.numpy().astype(dtype).tobytes()


def test_long_float32_rows_are_summed_accurately():
    """Added up one after the other in float32, 0.1 drifts away from the exact sum by parts in a thousand."""
    x = np.full((200_000, 2), np.log(0.1), np.float32)
    x[0] = 0.0
    exact = 1 / np.exp(x.astype(np.float64)).sum(0)
    np.testing.assert_allclose(et.softmax(et.tensor(x), axis=0).numpy()[0], exact, rtol=2e-7)
    np.testing.assert_allclose(et.log_softmax(et.tensor(x), axis=0).numpy()[0], np.log(exact), rtol=2e-7)


@both
@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        (lambda x: ((x,), {"axis": 2}), ValueError, r"\[{}\] axis 2 is out of range"),
        (lambda x: ((x,), {"axis": None}), TypeError, r"\[{}\] axis must be an int"),
        (lambda x: ((et.tensor([1, 2]),), {}), TypeError, r"\[{}\] x must have a floating dtype"),
        (lambda x: ((et.tensor(1.0),), {"axis": 1}), ValueError, r"\[{}\] axis 1 is out of range"),
        (lambda x: ((x, x), {"axis": -3}), ValueError, r"\[{}_backward\] axis -3 is out of range"),
        (lambda x: ((et.ones(3), x), {}), ValueError, r"\[{}_backward\] grad_output has shape \(3,\)"),
        (
            lambda x: ((x, et.ones((2, 3), dtype=et.int64)), {}),
            TypeError,
            r"\[{}_backward\] output has dtype int64",
        ),
        (
            lambda x: ((et.ones((2, 3), dtype=et.int64), x), {}),
            TypeError,
            r"\[{}_backward\] grad_output must have",
        ),
    ],
)
def test_errors(name, arguments, error, text):
    positional, options = arguments(et.ones((2, 3)))
    function = PAIRS[name][len(positional) - 1]
    with pytest.raises(error, match="^" + text.format(name)):
        function(*positional, **options)
