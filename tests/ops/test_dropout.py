"""Dropout: what is kept, how often, the seed, the gradient, error texts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import extensor as et


@pytest.mark.parametrize("p", [0.0, 0.2, 0.5, 0.9, 1.0])
def test_what_is_kept_grows_and_the_rest_is_zero(p: float) -> None:
    x = et.random.normal(0, (200, 100), dtype=et.float64)
    y, mask = et.dropout(x, p, 1)
    scale = 1 / (1 - p) if p < 1 else 0.0
    np.testing.assert_array_equal(y.numpy(), np.where(mask.numpy(), x.numpy() * scale, 0.0))
    assert mask.dtype == et.bool_
    assert abs(mask.numpy().mean() - (1 - p)) < 0.012  # four standard deviations
    g = et.random.normal(2, (200, 100), dtype=et.float64)
    right = np.where(mask.numpy(), g.numpy() * scale, 0.0)
    for form in (g, (g, None), [g, None]):
        np.testing.assert_array_equal(et.dropout_backward(form, mask, p).numpy(), right)


def test_the_seed_decides() -> None:
    x = et.ones((3, 50))
    assert et.dropout(x, 0.5, 3).mask.tolist() == et.dropout(x.astype(et.float16), 0.5, 3).mask.tolist()
    assert et.dropout(x, 0.5, 3).mask.tolist() != et.dropout(x, 0.5, 4).mask.tolist()
    rng = et.random.generator(3)
    first, second = et.dropout(x, 0.5, rng), et.dropout(x, 0.5, rng)
    assert first.mask.tolist() == et.dropout(x, 0.5, 3).mask.tolist()
    assert first.mask.tolist() != second.mask.tolist()


def test_a_checkpoint_draws_the_same_mask_again() -> None:
    rng = et.random.generator(0)

    def f(x: et.ExTensor) -> et.ExTensor:
        return et.dropout(x, 0.5, rng).output.sum()

    x = et.tensor(np.ones(64), requires_grad=True)
    total = et.checkpoint(f)(x)
    total.backward()
    assert x.grad.sum().item() == total.item()


def test_recorded_and_as_source() -> None:
    def f(x: et.ExTensor) -> et.ExTensor:
        y, _ = et.dropout(x, 0.5, 0)
        return (y * y).sum()

    x = et.ones(6)
    found = et.grad(f)(x)
    assert found.tolist() == [8.0, 0.0, 0.0, 0.0, 8.0, 8.0]
    scope: dict[str, Any] = {}
    exec(et.backward_source(f, x), scope)
    assert scope["backward"](x)[0].tolist() == found.tolist()


@pytest.mark.parametrize("dtype", [et.float16, et.bfloat16])
def test_half_is_float32_rounded_once(dtype: Any) -> None:
    x = et.random.normal(0, (33,)).astype(dtype)
    y, mask = et.dropout(x, 0.3, 1)
    wide = et.dropout(x.astype(et.float32), 0.3, 1).output.astype(dtype)
    np.testing.assert_array_equal(y.numpy(), wide.numpy())
    grad = et.dropout_backward(x, mask, 0.3)
    np.testing.assert_array_equal(grad.numpy(), wide.numpy())


MASK = et.tensor([True, False, True])
ERRORS = [
    (lambda: et.dropout(et.ones(3), 1.5, 0), ValueError, r"\[dropout\] p must lie between 0 and 1, got 1.5"),
    (lambda: et.dropout(et.ones(3), float("nan"), 0), ValueError, r"\[dropout\] p must lie between 0 and 1, got nan"),
    (lambda: et.dropout(et.ones(3), 0.5, None), TypeError, r"\[dropout\] rng must be an int or a numpy.random.Generator"),
    (lambda: et.dropout(et.tensor([1, 2]), 0.5, 0), TypeError, r"\[dropout\] x must have a floating dtype"),
    (lambda: et.dropout_backward(et.ones(2), MASK, 0.5), ValueError, r"\[dropout_backward\] grad_output\[0\] has shape \(2,\)"),
    (lambda: et.dropout_backward(et.ones(3), et.ones(3), 0.5), TypeError, r"\[dropout_backward\] mask must be boolean"),
    (lambda: et.dropout_backward(None, MASK, 0.5), TypeError, r"\[dropout_backward\] grad_output must be a tensor"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), ERRORS)
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()
