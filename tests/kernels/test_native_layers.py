"""The native kernels of normalisation and attention: equal to the reference, the same bits on any thread count."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import extensor as et
from extensor.kernels import KERNELS

NAMES = [
    "layer_norm", "layer_norm_backward", "rms_norm", "rms_norm_backward", "batch_norm", "batch_norm_backward",
    "group_norm", "group_norm_backward",
    "scaled_dot_product_attention", "scaled_dot_product_attention_backward", "self_attention", "self_attention_backward",
]  # fmt: skip
pytestmark = pytest.mark.skipif(
    KERNELS["layer_norm"].native is None, reason="the native core is not installed"
)

TOLERANCE = {np.float64: (1e-11, 1e-12), np.float32: (2e-5, 2e-5)}


def calls(name: str, dtype: Any) -> Iterator[tuple[Any, ...]]:
    """Arguments of the kernel: lengths below, at and above the width of vectors, blocks and chunks; layouts; absent operands."""
    rng = np.random.default_rng(23)

    def draw(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(dtype)

    def strided(*shape: int) -> np.ndarray:
        return np.repeat(draw(*shape), 2, -1)[..., ::2]

    kind = name.removesuffix("_backward")
    back = name != kind
    if kind in ("layer_norm", "rms_norm"):
        count = 3 if kind == "layer_norm" else 2
        for rows, n in ((1, 1), (3, 7), (5, 8), (70, 33), (300, 128), (2, 1000)):
            for weight in (draw(n), None):
                x = 3 + draw(rows, n)
                if back:
                    yield draw(rows, n), x, (n,), weight, 1e-5, (True, weight is not None, count == 3)[:count]
                else:
                    yield (x, (n,), weight, *([draw(n)] if count == 3 else []), 1e-5)
        x = strided(4, 5, 6)
        yield (
            (strided(4, 5, 6), x, (5, 6), draw(5, 6), 0.1, (True,) * count)
            if back
            else (x, (5, 6), draw(5, 6), *([None] if count == 3 else []), 0.1)
        )
    elif kind == "batch_norm":
        for shape in ((2, 3, 4), (3, 5, 7, 5), (8, 16, 16, 16)):
            n = shape[1]
            for training in (True, False):
                x, w, mean, var = 3 + draw(*shape), draw(n), draw(n), draw(n) ** 2 + dtype(0.5)
                if back:
                    yield (
                        draw(*shape),
                        draw(n),
                        draw(n),
                        x,
                        w,
                        mean,
                        var,
                        training,
                        0.3,
                        1e-5,
                        (True, True, True),
                    )
                else:
                    yield x, w, draw(n), mean, var, training, 0.3, 1e-5
        if not back:
            yield strided(2, 3, 4), None, None, None, None, True, 0.1, 1e-5
    elif kind == "group_norm":
        for shape, groups in (
            ((2, 3, 4), 1),
            ((3, 6, 7, 5), 3),
            ((1, 4, 9), 4),
            ((8, 16, 16, 16), 8),
            ((40, 12, 33), 2),
        ):
            n = shape[1]
            for weight in (draw(n), None):
                x = 3 + draw(*shape)
                if back:
                    yield draw(*shape), x, groups, weight, 1e-5, (groups != 3, weight is not None, True)
                else:
                    yield x, groups, weight, None if weight is None else draw(n), 1e-5
        x = strided(2, 4, 6)
        yield (strided(2, 4, 6), x, 2, draw(4), 0.1, (True,) * 3) if back else (x, 2, draw(4), None, 0.1)
    elif kind == "self_attention":
        for n, length, heads, d in ((1, 1, 1, 1), (2, 5, 3, 7), (2, 64, 4, 32), (1, 130, 2, 20)):
            for causal in (False, True):
                x = draw(n, length, 3 * heads * d)
                yield (draw(n, length, heads * d), x, heads, causal) if back else (x, heads, causal)
        x = strided(2, 3, 12)
        yield (strided(2, 3, 4), x, 2, True) if back else (x, 2, True)
    else:
        for batch, length, keys, d, e in (
            ((), 1, 1, 1, 1),
            ((2,), 5, 7, 4, 3),
            ((2, 3), 130, 130, 16, 16),
            ((), 600, 600, 8, 8),
        ):
            for causal in (False, True):
                for mask in (
                    None,
                    rng.random((length, keys)) < 0.7,
                    draw(*batch, length, keys),
                    draw(1, keys),
                ):
                    operands = (
                        draw(*batch, length, d),
                        draw(*batch, keys, d),
                        draw(*batch, keys, e),
                        mask,
                        causal,
                        0.4,
                    )
                    yield (
                        (draw(*batch, length, e), *operands, (True, True, True, False)) if back else operands
                    )
        hidden = np.zeros((5, 5), bool)
        q, k, v = (np.swapaxes(draw(2, 4, 5), -1, -2) for _ in range(3))
        yield (
            (draw(2, 5, 4), q, k, v, hidden, False, 1.0, (True, False, True, False))
            if back
            else (q, k, v, hidden, False, 1.0)
        )


def several(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", NAMES)
def test_equal_to_the_reference(name: str, dtype: Any) -> None:
    kernel, (rtol, atol) = KERNELS[name], TOLERANCE[dtype]
    for args in calls(name, dtype):
        found = kernel.native(*args)
        assert found is not NotImplemented
        for native, reference in zip(several(found), several(kernel.reference(*args)), strict=True):
            assert (native is None) == (reference is None)
            if native is not None:
                assert (native.shape, native.dtype) == (reference.shape, reference.dtype)
                scale = max(1.0, float(np.abs(reference).max(initial=0.0)))
                np.testing.assert_allclose(native, reference, rtol=rtol, atol=atol * scale)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_bits_on_any_number_of_threads(name: str) -> None:
    before = et.get_num_threads()
    try:
        for args in calls(name, np.float32):
            results = []
            for threads in (1, 2, 3, 4):
                et.set_num_threads(threads)
                results.append([r.tobytes() for r in several(KERNELS[name].native(*args)) if r is not None])
            assert all(result == results[0] for result in results)
    finally:
        et.set_num_threads(before)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("causal", [False, True])
def test_what_is_not_finite_reaches_those_who_see_it_and_no_others(bad: float, causal: bool) -> None:
    rng = np.random.default_rng(5)
    forward, backward = (KERNELS["scaled_dot_product_attention" + part] for part in ("", "_backward"))
    seen = rng.random((40, 40)) < 0.5
    for mask in (None, seen, np.where(seen, np.float32(0), np.float32(-np.inf))):
        for position in range(4):
            for place in (0, 17, -1):
                q, k, v, g = operands = [
                    rng.standard_normal((40, n)).astype(np.float32) for n in (3, 3, 5, 5)
                ]
                operands[position][place, 1] = bad
                attributes, needs = (mask, causal, 0.5), (True, True, True, False)
                with np.errstate(all="ignore"):
                    expected = forward.reference(q, k, v, *attributes)
                    grads = backward.reference(g, q, k, v, *attributes, needs)[:3]
                np.testing.assert_allclose(forward.on_arrays(q, k, v, *attributes), expected, 2e-5, 2e-5)
                for native, grad in zip(backward.on_arrays(g, q, k, v, *attributes, needs), grads):
                    np.testing.assert_allclose(native, grad, 2e-5, 2e-5)


def test_self_attention_leaves_what_is_not_finite_and_what_does_not_fit_to_the_reference() -> None:
    x, g = np.ones((1, 3, 12), np.float32), np.ones((1, 3, 4), np.float32)
    bad = np.where(np.arange(36).reshape(x.shape) == 35, np.float32(np.nan), x)
    forward, backward = KERNELS["self_attention"].native, KERNELS["self_attention_backward"].native
    for args in ((bad, 2, False), (x, 3, False), (x, 0, False), (x, 2.0, False), (x[0], 2, False)):
        assert forward(*args) is NotImplemented
        assert backward(g, *args) is NotImplemented
    assert backward(x, x, 2, False) is NotImplemented


def test_normalisation_leaves_what_does_not_fit_to_those_who_explain_it() -> None:
    x, w = np.ones((2, 4, 6), np.float32), np.ones(6, np.float32)
    for kind, fits, vector in (("layer_norm", (6,), w), ("rms_norm", (6,), w), ("group_norm", 2, w[:4])):
        forward, backward = KERNELS[kind].native, KERNELS[kind + "_backward"].native
        bias = (None,) * (kind != "rms_norm")
        needs = (True,) * (2 + len(bias))
        assert forward(x, fits, vector, *bias, 1e-5) is not NotImplemented
        assert backward(x, x, fits, vector, 1e-5, needs) is not NotImplemented
        for lengths, weight, eps in (
            ((5,), vector, 1e-5), (0, vector, 1e-5), ((), vector, 1e-5), ("6", vector, 1e-5), (fits, w[:3], 1e-5),
            (fits, vector[None], 1e-5), (fits, vector, -1.0), (fits, vector, np.inf), (fits, vector, "x"),
        ):  # fmt: skip
            assert forward(x, lengths, weight, *bias, eps) is NotImplemented
            assert backward(x, x, lengths, weight, eps, needs) is NotImplemented
        assert backward(x[:1], x, fits, vector, 1e-5, needs) is NotImplemented
        assert backward(x, x, fits, None, 1e-5, needs) is NotImplemented
