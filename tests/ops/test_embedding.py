"""Embedding: rows, repeated rows, the padding row, dtypes, error texts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import extensor as et

RNG = np.random.default_rng(11)


@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 5), (0,), (2, 0)])
@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint8])
def test_values_and_gradients(shape: tuple[int, ...], kind: Any) -> None:
    indices, weight = RNG.integers(0, 4, shape).astype(kind), RNG.standard_normal((4, 3))
    g = RNG.standard_normal((*shape, 3))
    ti, tw, tg = map(et.asarray, (indices, weight, g))
    np.testing.assert_array_equal(et.embedding(ti, tw).numpy(), weight[indices])
    one_hot = np.eye(4)[indices].reshape(-1, 4)
    for table in (tw, (4, 3)):
        grad = et.embedding_backward(tg, ti, table)
        np.testing.assert_allclose(grad.numpy(), one_hot.T @ g.reshape(-1, 3), rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("padding", [2, -2])
def test_the_padding_row(padding: int) -> None:
    indices, weight = et.tensor([2, 0, 2, 1]), et.asarray(RNG.standard_normal((4, 3)))
    assert (
        et.embedding(indices, weight, padding_idx=padding).tolist() == et.embedding(indices, weight).tolist()
    )
    grad = et.embedding_backward(et.ones((4, 3)), indices, weight, padding_idx=padding)
    assert grad.numpy()[:, 0].tolist() == [1.0, 1.0, 0.0, 0.0]


def test_recorded_to_any_order() -> None:
    indices = et.tensor([1, 1, 0])

    def f(w: et.ExTensor) -> et.ExTensor:
        return (et.embedding(indices, w, padding_idx=0) ** 3).sum()

    w = et.tensor([[2.0], [3.0], [5.0]])
    assert et.grad(f)(w).tolist() == [[0.0], [54.0], [0.0]]
    total, second = et.value_and_grad(lambda w: et.grad(f)(w).sum())(w)
    assert (total.item(), second.tolist()) == (54.0, [[0.0], [36.0], [0.0]])


def test_a_thousand_repeats_add_up_accurately() -> None:
    g = np.full((5000, 1), 0.1, np.float32)
    grad = et.embedding_backward(et.asarray(g), et.zeros(5000, et.int64), (2, 1))
    assert grad.numpy()[0, 0] == np.float32(5000 * np.float64(np.float32(0.1)))


@pytest.mark.parametrize("dtype", [et.float16, et.bfloat16])
def test_half_is_float32_rounded_once(dtype: Any) -> None:
    weight, g = (et.asarray(RNG.standard_normal(s)).astype(dtype) for s in ((4, 3), (50, 3)))
    indices = et.asarray(RNG.integers(0, 4, 50))
    assert et.embedding(indices, weight).dtype == dtype
    wide = et.embedding_backward(g.astype(et.float32), indices, weight.astype(et.float32)).astype(dtype)
    np.testing.assert_array_equal(et.embedding_backward(g, indices, weight).numpy(), wide.numpy())


W = et.ones((4, 3))
ERRORS = [
    (lambda: et.embedding(et.tensor([4]), W), et.OutOfBoundsError, r"\[embedding\] indices must lie between 0 and 3.*got 4"),
    (lambda: et.embedding(et.tensor([0, -1]), W), ValueError, r"\[embedding\] indices must lie between 0 and 3.*got -1"),
    (lambda: et.embedding(et.tensor([0.0]), W), TypeError, r"\[embedding\] indices must have an integer dtype"),
    (lambda: et.embedding(et.tensor([0]), et.ones(3)), ValueError, r"\[embedding\] weight must have the 2 axes"),
    (lambda: et.embedding(et.tensor([0]), W, padding_idx=4), ValueError, r"\[embedding\] padding_idx 4 is out of range"),
    (lambda: et.embedding_backward(et.ones((1, 2)), et.tensor([0]), W), ValueError, r"\[embedding_backward\] grad_output has shape \(1, 2\)"),
    (lambda: et.embedding_backward(et.ones((1, 3)), et.tensor([5]), (4, 3)), ValueError, r"\[embedding_backward\] indices must lie"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), ERRORS)
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()
