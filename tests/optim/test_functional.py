"""sgd_step: the formula, rounded once, pure."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import extensor as et


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", ml_dtypes.bfloat16])
@pytest.mark.parametrize("shape", [(), (0,), (7,), (33,), (3, 4)])
def test_formula(shape, dtype):
    rng = np.random.default_rng(0)
    param, grad = (np.asarray(rng.normal(size=shape)).astype(dtype) for _ in range(2))
    wide = np.float64 if dtype == "float64" else np.float32
    expected = (param.astype(wide) - wide(0.1) * grad.astype(wide)).astype(dtype)
    new = et.sgd_step(et.asarray(param), et.asarray(grad), 0.1)
    assert new.dtype == expected.dtype
    np.testing.assert_array_equal(new.numpy(), expected)


def test_the_new_parameter_is_a_leaf():
    param = et.tensor([1.0, 2.0], requires_grad=True)
    (param * param).sum().backward()
    new = et.sgd_step(param, param.grad, lr=0.5)
    assert new.tolist() == [0.0, 0.0]
    assert new.requires_grad
    assert new.is_leaf
    assert new.grad is None
    assert param.tolist() == [1.0, 2.0]
    assert not et.sgd_step(et.zeros(2), et.ones(2), 0.1).requires_grad


def test_the_gradient_may_have_another_dtype():
    assert et.sgd_step(et.ones(2, dtype=et.float16), et.ones(2), 0.5).dtype == et.float16


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ((np.zeros(2), np.zeros(3), 0.1), ValueError, "grad has shape"),
        ((np.zeros(2), np.zeros(2), -0.1), ValueError, "lr"),
        ((np.zeros(2), np.zeros(2), float("nan")), ValueError, "lr"),
        ((np.zeros(2), np.zeros(2), "a"), TypeError, "lr"),
        ((np.zeros(2, np.int64), np.zeros(2), 0.1), TypeError, "param"),
        ((np.zeros(2), np.zeros(2, np.int64), 0.1), TypeError, "grad"),
    ],
)
def test_refused(arguments, error, text):
    with pytest.raises(error, match=rf"^\[sgd_step\].*{text}"):
        et.sgd_step(*arguments)
