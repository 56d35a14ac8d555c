"""Attention: against the whole score matrix in HIPS autograd, masks, blocks, memory, edges, error texts."""

from __future__ import annotations

import tracemalloc
from typing import Any

import autograd
import autograd.numpy as anp
import numpy as np
import pytest

import extensor as et
from extensor.config import has_bf16_unit
from extensor.kernels.reference import attention as reference

RNG = np.random.default_rng(3)


def draw(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


def oracle(q: Any, k: Any, v: Any, mask: Any, causal: bool, scale: float) -> Any:
    """softmax(scale q k^T + mask) v with everything in memory; every query must see something."""
    scores = anp.einsum("...ld,...sd->...ls", q, k) * scale
    if mask is not None:
        scores = anp.where(mask, scores, -1e30) if mask.dtype == bool else scores + mask
    if causal:
        scores = anp.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -1e30)
    e = anp.exp(scores - anp.max(scores, -1, keepdims=True))
    return anp.einsum("...ls,...se->...le", e / anp.sum(e, -1, keepdims=True), v)


BOOLEAN = np.tril(np.ones((5, 7), bool), 1)
CASES = [
    ((5, 4), (7, 4), (7, 3), None, False, None),
    ((2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 4), None, True, 0.7),
    ((2, 5, 4), (2, 7, 4), (2, 7, 4), BOOLEAN, False, None),
    ((2, 5, 4), (2, 7, 4), (2, 7, 4), BOOLEAN, True, None),
    ((2, 5, 4), (2, 7, 4), (2, 7, 4), draw(5, 7), True, None),
    ((2, 5, 4), (2, 7, 4), (2, 7, 4), draw(2, 1, 7), False, None),
    ((9, 4), (3, 4), (3, 1), None, True, None),
]


@pytest.mark.parametrize("block", [reference.BLOCK, 8])
@pytest.mark.parametrize("case", CASES)
def test_values_and_gradients(case: tuple[Any, ...], block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "BLOCK", block)
    *shapes, mask, causal, scale = case
    q, k, v = (draw(*s) for s in shapes)
    g, factor = draw(*q.shape[:-1], v.shape[-1]), scale or 0.5
    tq, tk, tv, tg = map(et.asarray, (q, k, v, g))
    tm = None if mask is None else et.asarray(mask)
    y = et.scaled_dot_product_attention(tq, tk, tv, tm, causal, scale)
    np.testing.assert_allclose(y.numpy(), oracle(q, k, v, mask, causal, factor), rtol=1e-11, atol=1e-13)
    found = et.scaled_dot_product_attention_backward(tg, tq, tk, tv, tm, causal, scale)
    floats = [q, k, v] + ([mask] if mask is not None and mask.dtype != bool else [])
    expected = autograd.grad(
        lambda p: anp.sum(oracle(*p[:3], p[3] if len(p) > 3 else mask, causal, factor) * g)
    )(floats)
    for grad, right in zip(found, expected):
        np.testing.assert_allclose(grad.numpy(), right, rtol=1e-10, atol=1e-12)
    assert (found.grad_mask is None) == (len(floats) == 3)


def test_leading_axes_broadcast() -> None:
    q, k, v, g = (et.asarray(draw(*s)) for s in ((2, 3, 5, 4), (3, 6, 4), (1, 6, 4), (2, 3, 5, 4)))
    wide = [et.broadcast_to(t, (2, 3, *t.shape[-2:])) for t in (q, k, v)]
    np.testing.assert_allclose(
        et.scaled_dot_product_attention(q, k, v).numpy(),
        et.scaled_dot_product_attention(*wide).numpy(),
        rtol=1e-12,
    )
    found = et.scaled_dot_product_attention_backward(g, q, k, v)
    whole = et.scaled_dot_product_attention_backward(g, *wide)
    for grad, right, like in zip(found, whole, (q, k, v)):
        np.testing.assert_allclose(
            grad.numpy(), et.sum_to_shape(right, like.shape).numpy(), rtol=1e-11, atol=1e-13
        )


@pytest.mark.parametrize("kind", ["boolean", "float"])
def test_a_query_that_sees_nothing(kind: str) -> None:
    q, k, v, g = (et.asarray(draw(3, 4)) for _ in range(4))
    allowed = np.array([[True, True, False], [False, False, False], [True, True, True]])
    mask = et.asarray(allowed if kind == "boolean" else np.where(allowed, 0.0, -np.inf))
    y = et.scaled_dot_product_attention(q, k, v, mask)
    assert y.numpy()[1].tolist() == [0.0] * 4
    found = et.scaled_dot_product_attention_backward(g, q, k, v, mask)
    assert found.grad_q.numpy()[1].tolist() == [0.0] * 4
    rows = [0, 2]
    others = et.scaled_dot_product_attention_backward(g[rows], q[rows], k, v, mask[rows])
    np.testing.assert_allclose(found.grad_k.numpy(), others.grad_k.numpy(), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(found.grad_v.numpy(), others.grad_v.numpy(), rtol=1e-12, atol=1e-14)

    def total(q: et.ExTensor) -> et.ExTensor:
        return (et.scaled_dot_product_attention(q, k, v, mask) * g).sum()

    second = et.hvp(total, q, et.asarray(draw(3, 4)))
    assert np.isfinite(second.numpy()).all()
    assert second.numpy()[1].tolist() == [0.0] * 4


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("position", range(6))
def test_what_is_hidden_does_not_reach_a_query(bad: float, position: int) -> None:
    """Queries before a key that is not finite are as if it were 0, whatever the block they fall into."""
    q, k, v, g = (draw(6, 4) for _ in range(4))
    calm = [q.copy(), k.copy(), v.copy()]
    k[position], v[position] = bad, bad
    calm[1][position] = calm[2][position] = 0.0
    y = et.scaled_dot_product_attention(*map(et.asarray, (q, k, v)), causal=True).numpy()
    right = et.scaled_dot_product_attention(*map(et.asarray, calm), causal=True).numpy()
    np.testing.assert_allclose(y[:position], right[:position], rtol=1e-12)
    assert np.isnan(y[position:]).any() or bad == -np.inf
    g[position:] = 0.0
    grads = et.scaled_dot_product_attention_backward(
        *map(et.asarray, (g[:position], q[:position], k, v)), causal=True
    )
    same = et.scaled_dot_product_attention_backward(
        *map(et.asarray, (g[:position], q[:position], *calm[1:])), causal=True
    )
    for found, expected in zip(grads[:3], same[:3]):
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-12, atol=1e-14)


def test_a_nan_query_does_not_reach_what_it_may_not_see() -> None:
    q, k, v, g = (draw(6, 4) for _ in range(4))
    q[2] = np.nan
    found = et.scaled_dot_product_attention_backward(*map(et.asarray, (g, q, k, v)), causal=True)
    for grad in (found.grad_k.numpy(), found.grad_v.numpy()):
        assert np.isnan(grad[:3]).all()
        assert np.isfinite(grad[3:]).all()


def test_memory_is_linear() -> None:
    """4,096 tokens: the whole score matrix in float32 would have 64 MiB."""
    q, k, v, g = (et.asarray(draw(4096, 8).astype(np.float32)) for _ in range(4))
    tracemalloc.start()
    et.scaled_dot_product_attention(q, k, v, causal=True)
    et.scaled_dot_product_attention_backward(g, q, k, v, causal=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30e6


@pytest.mark.parametrize("dtype", [et.float16, et.bfloat16])
def test_half_is_float32_rounded_once(dtype: Any) -> None:
    narrow = [et.asarray(draw(2, 5, 4)).astype(dtype) for _ in range(4)]
    wide = [v.astype(et.float32) for v in narrow]
    attend, back = et.scaled_dot_product_attention, et.scaled_dot_product_attention_backward
    pairs = [(attend(*narrow[:3]), attend(*wide[:3])), *zip(back(*narrow)[:3], back(*wide)[:3])]
    for found, expected in pairs:
        assert found.dtype == dtype
        if dtype == et.bfloat16 and has_bf16_unit():  # it takes weights and gradients of scores as bfloat16
            np.testing.assert_allclose(
                found.numpy().astype(np.float32), expected.numpy(), rtol=2.0**-7, atol=2.0**-7
            )
        else:
            np.testing.assert_array_equal(found.numpy(), expected.astype(dtype).numpy())


A = et.ones((2, 3, 4))
ERRORS = [
    (lambda f: f(et.ones(4), A, A), ValueError, r"q must have the axes \(..., length, features\), got shape \(4,\)"),
    (lambda f: f(et.ones((3, 5)), A, A), ValueError, r"q has 5 features but k has 4"),
    (lambda f: f(A, A, et.ones((2, 4, 4))), ValueError, r"k has length 3 but v has length 4"),
    (lambda f: f(et.ones((3, 3, 4)), A, A), ValueError, r"the leading axes of q, k and v do not broadcast"),
    (lambda f: f(A, A, A, et.ones((4, 3))), ValueError, r"mask of shape \(4, 3\) does not broadcast to the scores \(2, 3, 3\)"),
    (lambda f: f(A, A, A, et.ones((3, 3), et.int64)), TypeError, r"mask must be boolean \(True takes part\) or floating"),
    (lambda f: f(A, A, A, causal="yes"), TypeError, r"causal must be True or False"),
    (lambda f: f(A, A, A, scale="x"), TypeError, r"scale must be a number"),
    (lambda f: f(et.tensor([[1]]), A, A), TypeError, r"q "),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), ERRORS)
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=r"\[scaled_dot_product_attention\] " + text):
        call(et.scaled_dot_product_attention)
    with pytest.raises(error, match=r"\[scaled_dot_product_attention_backward\] " + text):
        call(lambda *a, **o: et.scaled_dot_product_attention_backward(A, *a, **o))


def test_the_shape_of_the_gradient() -> None:
    with pytest.raises(ValueError, match=r"\[scaled_dot_product_attention_backward\] grad_output has shape"):
        et.scaled_dot_product_attention_backward(et.ones((2, 3, 5)), A, A, A)


def apart(x: Any, heads: int) -> Any:
    n, length, width = x.shape
    return x.reshape((n, length, heads, width // heads)).swapaxes(1, 2)


def composed(x: Any, heads: int, causal: bool) -> Any:
    """What :func:`et.self_attention` computes, from public functions."""
    y = et.scaled_dot_product_attention(*(apart(part, heads) for part in et.split(x, 3, -1)), causal=causal)
    return y.swapaxes(1, 2).reshape((*x.shape[:2], x.shape[2] // 3))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", [et.float64, et.float32, et.float16])
def test_attention_of_rows_to_themselves(dtype: Any, causal: bool) -> None:
    x, g, w = (et.tensor(draw(*shape), dtype) for shape in ((2, 7, 24), (2, 7, 8), (2, 7, 24)))
    tolerance = {et.float64: 1e-10, et.float32: 1e-4, et.float16: 0.1}[dtype]

    def gradient(f: Any) -> Any:
        return lambda x: et.grad(lambda x: (f(x, 2, causal) * g).sum())(x)

    def second(f: Any) -> Any:
        return et.grad(lambda x: (gradient(f)(x) * w).sum())(x)

    for found, expected in (
        (et.self_attention(x, 2, causal), composed(x, 2, causal)),
        (gradient(et.self_attention)(x), gradient(composed)(x)),
        (second(et.self_attention), second(composed)),
    ):
        assert (found.shape, found.dtype) == (expected.shape, dtype)
        np.testing.assert_allclose(
            found.numpy().astype(float), expected.numpy().astype(float), tolerance, tolerance
        )


@pytest.mark.parametrize("shape", [(2, 6), (1, 2, 8), (1, 2, 0, 6)])
def test_rows_that_are_not_queries_keys_and_values(shape: tuple[int, ...]) -> None:
    with pytest.raises(
        ValueError, match=r"\[self_attention\] x must have shape \(N, T, 3 \* num_heads \* features\)"
    ):
        et.self_attention(et.ones(shape), 2, False)
