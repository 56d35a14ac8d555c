"""The native clipping of gradients by their norm against the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from extensor.config import get_num_threads, set_num_threads
from extensor.kernels import KERNELS, NATIVE

pytestmark = pytest.mark.skipif("clip_grad_norm" not in NATIVE, reason="the native module is not built")


def gradients(dtype: Any) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.normal(size=shape).astype(dtype) for shape in ((), (0, 3), (7,), (33, 5), (70_001,))]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("count", [0, 1, 2, 4, 5])
def test_as_the_reference(dtype: Any, count: int) -> None:
    grads = gradients(dtype)[:count]
    if count == 5:
        grads.append(np.full(3, 0.5, np.float32))  # one of another dtype beside them
    found, norm = NATIVE["clip_grad_norm"](grads, 0.25, 2.0)
    expected, right = KERNELS["clip_grad_norm"].by_reference(grads, 0.25, 2.0)
    assert type(norm) is float
    assert norm == pytest.approx(right, rel=1e-14)
    for a, b in zip(found, expected, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(a, b, rtol=2e-7 if a.dtype == np.float32 else 1e-14)


def test_short_gradients_are_returned_themselves() -> None:
    grads = gradients(np.float32)[:3]
    found, _ = NATIVE["clip_grad_norm"](grads, 1e6, 2.0)
    assert all(a is b for a, b in zip(found, grads, strict=True))


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan, 1e200])
def test_norms_that_are_not_finite(bad: float) -> None:
    grads = [np.array([1.0, bad]), np.array([2.0])]
    with np.errstate(all="ignore"):
        found, norm = NATIVE["clip_grad_norm"](grads, 1.0, 2.0)
        expected, right = KERNELS["clip_grad_norm"].by_reference(grads, 1.0, 2.0)
    assert str(norm) == str(right)
    np.testing.assert_array_equal(np.concatenate(found), np.concatenate(expected))


def test_the_same_bits_on_any_number_of_threads() -> None:
    grads = [np.random.default_rng(1).normal(size=300_000).astype("f") for _ in range(3)]
    before, results = get_num_threads(), set()
    try:
        for threads in (1, 2, 3, 4):
            set_num_threads(threads)
            found, norm = NATIVE["clip_grad_norm"](grads, 1.0, 2.0)
            results.add((norm, *(a.tobytes() for a in found)))
    finally:
        set_num_threads(before)
    assert len(results) == 1


def test_what_it_leaves_to_the_reference() -> None:
    wide = np.ones((3, 4))
    for grads, order in (
        ([wide], 1.0),
        ([wide.T], 2.0),
        ([wide.astype(np.float16)], 2.0),
        ([wide, None], 2.0),
        ((wide,), 2.0),
    ):
        assert NATIVE["clip_grad_norm"](grads, 1.0, order) is NotImplemented
