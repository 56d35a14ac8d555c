"""Decompositions of small matrices: what they promise, and the values that LAPACK finds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from extensor.kernels import NATIVE
from extensor.kernels.reference import linalg as kernels

pytestmark = pytest.mark.skipif("svdvals" not in NATIVE, reason="the native module is not built")

DTYPES = [np.float32, np.float64]


def close(a: Any, b: Any, size: float, dtype: Any) -> None:
    np.testing.assert_allclose(a, b, rtol=0, atol=40 * np.finfo(dtype).eps * max(size, 1e-300))


def difficult(rng: np.random.Generator, m: int, n: int) -> Iterator[np.ndarray]:
    """Usual ones, of low rank, with equal values, with nothing in them, badly scaled."""
    yield rng.standard_normal((m, n))
    yield rng.standard_normal((m, 1)) @ rng.standard_normal((1, n))
    yield np.eye(m, n)
    yield np.ones((m, n))
    yield np.zeros((m, n))
    yield rng.standard_normal((m, n)) * 10.0 ** rng.integers(-8, 8, (1, n))
    yield rng.integers(-1, 2, (m, n)).astype(float)
    yield rng.standard_normal((m, n)) * 1e-30


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 12])
def test_eigvalsh(n: int, dtype: Any) -> None:
    rng = np.random.default_rng(n)
    for x in difficult(rng, n, n):
        x = (x + x.T).astype(dtype)
        values = NATIVE["eigvalsh"](x)
        assert values.dtype == dtype
        close(values, np.linalg.eigvalsh(x.astype(float)), np.abs(x).max() * n, dtype)
        assert (np.diff(values) >= 0).all()


def test_eigvalsh_takes_the_symmetric_part() -> None:
    x = np.random.default_rng(0).standard_normal((4, 4))
    np.testing.assert_allclose(NATIVE["eigvalsh"](x), kernels.eigh.reference(x)[0], rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("m", "n"), [(1, 1), (2, 2), (3, 3), (5, 5), (12, 12), (7, 3), (3, 7), (32, 4), (1, 9), (12, 20)]
)
def test_svdvals(m: int, n: int, dtype: Any) -> None:
    rng = np.random.default_rng(m * n)
    for x in difficult(rng, m, n):
        x = x.astype(dtype)
        s = NATIVE["svdvals"](x)
        assert s.shape == (min(m, n),)
        close(s, np.linalg.svd(x.astype(float), compute_uv=False), np.abs(x).max() * max(m, n), dtype)
        assert (np.diff(s) <= 0).all()
        assert (s >= 0).all()


def test_layouts_give_the_same_bits() -> None:
    x = np.random.default_rng(0).standard_normal((2, 6, 6))
    x = x + x.swapaxes(-1, -2)
    for name in ("eigvalsh", "svdvals", "inv", "det"):
        strided = np.repeat(x, 2, -1)[..., ::2]
        np.testing.assert_array_equal(NATIVE[name](strided), NATIVE[name](x))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("m", "n"), [(1, 1), (2, 2), (3, 3), (10, 10), (32, 32), (9, 4), (4, 9), (1, 5), (5, 1)]
)
def test_qr(m: int, n: int, dtype: Any) -> None:
    """Signs included, as LAPACK has it."""
    rng = np.random.default_rng(m * n)
    x = rng.standard_normal((6, m, n)).astype(dtype)
    x[1] = np.eye(m, n)
    x[2, 0, 0] = 0  # nothing above something
    found, expected = NATIVE["qr"](x, "reduced"), np.linalg.qr(x.astype(float))
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == dtype
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=200 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 5, 32])
def test_slogdet(n: int, dtype: Any) -> None:
    x = np.random.default_rng(n).standard_normal((7, n, n)).astype(dtype)
    x[3] = 0
    sign, logarithm = NATIVE["slogdet"](x)
    expected = np.linalg.slogdet(x.astype(float))
    np.testing.assert_array_equal(sign, expected[0])
    np.testing.assert_allclose(
        logarithm, expected[1], rtol=30 * np.finfo(dtype).eps, atol=30 * np.finfo(dtype).eps
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [33, 64, 65, 200])
@pytest.mark.parametrize("k", [1, 2, 8])
def test_large_triangles(n: int, k: int, dtype: Any) -> None:
    rng = np.random.default_rng(n)
    a = (rng.standard_normal((2, n, n)) / n + 2 * np.eye(n)).astype(dtype)
    b = rng.standard_normal((2, n, k)).astype(dtype)
    for upper in (False, True):
        for unit in (False, True):
            found = NATIVE["triangular_solve"](a, b, upper, unit)
            whole = (np.triu(a) if upper else np.tril(a)).astype(float)
            if unit:
                whole[:, range(n), range(n)] = 1
            close(whole @ found.astype(float), b, 20, dtype)
    a[1, 5, 5] = 0
    assert (
        NATIVE["triangular_solve"](a, b, False, False) is NotImplemented
    )  # the reference says what is wrong


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_left_to_the_reference(value: float) -> None:
    x = np.ones((2, 3, 3))
    x[1, 1, 2] = value
    for name, more in (
        ("eigvalsh", ()),
        ("svdvals", ()),
        ("qr", ("reduced",)),
        ("slogdet", ()),
    ):
        assert NATIVE[name](x, *more) is NotImplemented


def test_batches_and_empty_ones() -> None:
    x = np.random.default_rng(0).standard_normal((3, 2, 4, 4))
    whole = NATIVE["svdvals"](x)
    for i in np.ndindex(3, 2):
        np.testing.assert_array_equal(whole[i], NATIVE["svdvals"](x[i]))
    assert NATIVE["svdvals"](np.ones((0, 3, 3))) is NotImplemented
