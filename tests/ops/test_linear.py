"""linear: against NumPy and HIPS autograd, the bias, dtypes, error texts."""

from __future__ import annotations

from typing import Any

import autograd
import autograd.numpy as anp
import numpy as np
import pytest

import extensor as et

BATCHES: list[tuple[int, ...]] = [(), (1,), (6,), (2, 3), (0,), (2, 0)]


def draw(batch: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(31)
    x, weight, bias = rng.standard_normal((*batch, 5)), rng.standard_normal((4, 5)), rng.standard_normal(4)
    return x, weight, bias, rng.standard_normal((*batch, 4))


@pytest.mark.parametrize("batch", BATCHES)
def test_values_and_gradients(batch: tuple[int, ...]) -> None:
    x, weight, bias, g = draw(batch)
    tx, tw, tb = map(et.asarray, (x, weight, bias))
    np.testing.assert_allclose(et.linear(tx, tw, tb).numpy(), x @ weight.T + bias, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(et.linear(tx, tw).numpy(), x @ weight.T, rtol=1e-12, atol=1e-14)
    found = et.linear_backward(et.asarray(g), tx, tw)
    expected = autograd.grad(lambda p: anp.sum((anp.dot(p[0], p[1].T) + p[2]) * g))((x, weight, bias))
    for grad, oracle in zip(found, expected):
        assert grad.shape == oracle.shape
        np.testing.assert_allclose(grad.numpy(), oracle, rtol=1e-12, atol=1e-13)
    assert found._fields == ("grad_x", "grad_weight", "grad_bias")


def test_only_what_is_needed() -> None:
    x, weight, _, g = map(et.asarray, draw((6,)))
    every = et.linear_backward(g, x, weight)
    for i in range(3):
        some = et.linear_backward(g, x, weight, needs=tuple(j == i for j in range(3)))
        assert [grad is None for grad in some] == [j != i for j in range(3)]
        assert some[i].tolist() == every[i].tolist()


@pytest.mark.parametrize("dtype", [et.float16, et.bfloat16])
def test_half_is_float32_rounded_once(dtype: Any) -> None:
    narrow = [et.asarray(v).astype(dtype) for v in draw((6,))]
    wide = [v.astype(et.float32) for v in narrow]
    pairs = [(et.linear(*narrow[:3]), et.linear(*wide[:3]))]
    pairs += zip(et.linear_backward(narrow[3], *narrow[:2]), et.linear_backward(wide[3], *wide[:2]))
    for found, expected in pairs:
        assert found.dtype == dtype
        np.testing.assert_array_equal(found.numpy(), expected.astype(dtype).numpy())


def test_gradients_have_the_dtypes_of_their_inputs() -> None:
    x, weight, bias = et.ones((2, 3)), et.ones((4, 3), et.float64), et.ones(4)
    y = et.linear(x, weight, bias)
    assert y.dtype == et.float64
    grads = et.linear_backward(et.ones_like(y), x, weight)
    assert [g.dtype for g in grads] == [et.float32, et.float64, et.float64]


ERRORS = [
    (lambda: et.linear(et.ones((2, 3)), et.ones((4, 5))), ValueError, r"\[linear\] x has 3 features but weight takes 5 \(x: \(2, 3\), weight: \(4, 5\)\)"),
    (lambda: et.linear(et.ones(3), et.ones(3)), ValueError, r"\[linear\] weight must have the 2 axes \(out, in\), got shape \(3,\)"),
    (lambda: et.linear(1.0, et.ones((4, 1))), ValueError, r"\[linear\] x is 0-d"),
    (lambda: et.linear(et.ones(3), et.ones((4, 3)), et.ones(3)), ValueError, r"\[linear\] bias has shape \(3,\) but weight \(4, 3\) has 4 outputs"),
    (lambda: et.linear(et.tensor([1, 2]), et.ones((4, 2))), TypeError, r"\[linear\] x must have a floating dtype, got int64"),
    (lambda: et.linear(et.ones(2), et.tensor([[1, 2]])), TypeError, r"\[linear\] weight must have a floating dtype"),
    (lambda: et.linear(et.ones(2), et.ones((1, 2)), et.tensor([1])), TypeError, r"\[linear\] bias must have a floating dtype"),
    (lambda: et.linear_backward(et.ones((2, 3)), et.ones((2, 3)), et.ones((4, 3))), ValueError, r"\[linear_backward\] grad_output has shape \(2, 3\) but .* \(2, 4\)"),
    (lambda: et.linear_backward(et.ones(4), et.ones(2), et.ones((4, 3))), ValueError, r"\[linear_backward\] x has 2 features"),
    (lambda: et.linear_backward(et.ones(4), et.tensor([1]), et.ones((4, 1))), TypeError, r"\[linear_backward\] x has dtype int64"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), ERRORS)
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()
