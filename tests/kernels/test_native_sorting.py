"""Sorting, and the largest elements: the native kernels beside the reference, element for element."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from extensor import get_num_threads, set_num_threads
from extensor.kernels import KERNELS, NATIVE

pytestmark = pytest.mark.skipif("top_k" not in NATIVE, reason="the native module is not built")

DTYPES = [np.float32, np.float64, np.int32, np.int64]
LENGTHS = [1, 2, 7, 64, 65, 199, 200, 201, 3000]


def same(name: str, *args: Any) -> None:
    found, expected = NATIVE[name](*args), KERNELS[name].reference(*args)
    assert found is not NotImplemented
    for ours, theirs in zip(found, expected) if isinstance(found, tuple) else [(found, expected)]:
        np.testing.assert_array_equal(ours, theirs, strict=True)
        if ours.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(ours), np.signbit(theirs))


def numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any, ties: bool) -> np.ndarray:
    if np.dtype(dtype).kind == "i":
        info = np.iinfo(dtype)
        x = rng.integers(-3, 4, shape) if ties else rng.integers(info.min, info.max, shape, endpoint=True)
        return x.astype(dtype)
    x = rng.standard_normal(shape) * 10.0 ** rng.integers(-30, 30, shape)
    if ties:
        x = rng.choice([-np.inf, -1.0, -0.0, 0.0, 1e-40, 1.0, np.inf, np.nan, -np.nan], shape)
    return x.astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("ties", [False, True])
def test_as_the_reference(length: int, dtype: Any, ties: bool) -> None:
    rng = np.random.default_rng(length)
    x = numbers(rng, (2, 3, length), dtype, ties)
    g = rng.standard_normal(x.shape).astype(dtype)
    same("sort", x, 2)
    same("argsort", x, 2)
    same("argsort", x, None)
    same("sort_backward", g, x, 2)
    for k in {1, min(length, 5), min(length, 64), length // 2 + 1, length}:
        same("top_k", x, k, 2)
        same("top_k_backward", g[..., :k], x, k, 2)


def test_layouts() -> None:
    x = np.random.default_rng(0).standard_normal((50, 40))
    same("sort", x.T, 1)
    same("argsort", x[:, ::3], 1)
    assert NATIVE["sort"](x, 0) is NotImplemented  # along the last axis alone
    assert NATIVE["top_k"](x, 0, 1) is NotImplemented
    assert NATIVE["sort"](x.astype(np.int16), 1) is NotImplemented


def test_bits_do_not_depend_on_the_threads() -> None:
    x, before = np.random.default_rng(0).integers(0, 9, (64, 2000)).astype("f"), get_num_threads()
    found = []
    try:
        for threads in (1, 2, 5):
            set_num_threads(threads)
            found.append((NATIVE["argsort"](x, 1), NATIVE["top_k"](x, 20, 1)[1]))
    finally:
        set_num_threads(before)
    for other in found[1:]:
        for ours, theirs in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(ours, theirs)
