"""The native matrix products against float64: every NumPy case, layouts, edges, accuracy, threads."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from extensor import get_num_threads, set_num_threads
from extensor.dtypes import bfloat16
from extensor.kernels import KERNELS, NATIVE

pytestmark = pytest.mark.skipif("matmul" not in NATIVE, reason="the native module is not built")

RNG = np.random.default_rng(20240607)
DTYPES = [np.float32, np.float64]
# m, n, k: tiny, thin on every side, odd tails, several K-blocks, several row blocks, a small result of a long sum
SIZES = [
    (1, 1, 1), (4, 4, 1), (1, 1, 5000), (1, 1, 70_000), (1, 70, 300), (1, 600, 900), (2, 33, 17), (3, 100, 600), (5, 16, 16),
    (7, 17, 9), (8, 50, 100), (9, 64, 64), (13, 31, 257), (32, 64, 64), (64, 10, 128), (64, 128, 784), (100, 1, 50),
    (100, 2, 50), (50, 3, 700), (250, 100, 300), (320, 513, 400), (16, 1000, 27), (10, 20, 9000),
    (50, 65, 40), (130, 770, 1024), (200, 1024, 20),
]  # fmt: skip


def numbers(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


def laid_out(x: np.ndarray, how: str) -> np.ndarray:
    """The same values: C order, Fortran order, every second element of a larger array, or backwards."""
    if how == "C":
        return np.ascontiguousarray(x)
    if how == "F":
        return np.asfortranarray(x)
    if how == "backwards":
        return np.ascontiguousarray(np.flip(x))[tuple(slice(None, None, -1) for _ in x.shape)]
    wide = np.zeros([2 * n for n in x.shape], x.dtype)
    wide[tuple(slice(None, None, 2) for _ in x.shape)] = x
    return wide[tuple(slice(None, None, 2) for _ in x.shape)]


def assert_accurate(got: Any, exact: np.ndarray, magnitude: np.ndarray, units: float = 4) -> None:
    """Within ``units`` roundings of the sum of the terms' magnitudes."""
    assert got is not NotImplemented
    assert got.shape == exact.shape
    error = np.abs(got.astype(np.float64) - exact)
    assert (error <= units * np.finfo(got.dtype).eps * magnitude).all(), float((error / magnitude).max())


def exact_product(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The product as float64 has it, and the sums of the magnitudes of its terms."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    return np.matmul(a, b), np.matmul(np.abs(a), np.abs(b))


def assert_product(got: Any, a: np.ndarray, b: np.ndarray) -> None:
    assert got.dtype == a.dtype
    assert_accurate(got, *exact_product(a, b))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_sizes_and_layouts(size: tuple[int, int, int], dtype: Any) -> None:
    m, n, k = size
    a, b = numbers(m, k, dtype=dtype), numbers(k, n, dtype=dtype)
    exact, magnitude = exact_product(a, b)
    for left, right in itertools.product(("C", "F", "spread", "backwards"), repeat=2):
        got = NATIVE["matmul"](laid_out(a, left), laid_out(b, right))
        assert got.dtype == dtype
        assert_accurate(got, exact, magnitude)


CASES = [
    ((5,), (5,)), ((3, 5), (5,)), ((5,), (5, 4)), ((2, 3, 5), (5, 4)), ((2, 3, 5), (2, 5, 4)), ((2, 1, 3, 5), (4, 5, 2)),
    ((7, 2, 3, 5), (7, 1, 5, 2)), ((5,), (2, 5, 3)), ((2, 3, 5), (5,)), ((6, 64, 32), (6, 32, 64)), ((3, 4, 1), (1, 9)),
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shapes", CASES, ids=str)
def test_vectors_and_batches(shapes: tuple[tuple[int, ...], tuple[int, ...]], dtype: Any) -> None:
    a, b = numbers(*shapes[0], dtype=dtype), numbers(*shapes[1], dtype=dtype)
    assert_product(NATIVE["matmul"](a, b), a, b)
    if a.ndim > 2:  # batch axes whose strides do not follow each other, and repeated ones
        swapped = np.ascontiguousarray(np.swapaxes(a, 0, -2)).swapaxes(0, -2)
        assert_product(NATIVE["matmul"](swapped, b), a, b)
        repeated = np.broadcast_to(a[:1], a.shape)
        assert_product(NATIVE["matmul"](repeated, b), repeated, b)


@pytest.mark.parametrize(
    "shapes", [((0, 3), (3, 2)), ((3, 0), (0, 2)), ((2, 0, 3), (3, 4)), ((0,), (0,))], ids=str
)
def test_empty(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    a, b = numbers(*shapes[0]), numbers(*shapes[1])
    got = NATIVE["matmul"](a, b)
    np.testing.assert_array_equal(got, np.matmul(a, b))
    assert got.shape == np.matmul(a, b).shape


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_infinities_and_nan_follow_ieee(size: tuple[int, int, int]) -> None:
    m, n, k = size
    for left, right in itertools.product("CF", repeat=2):
        a, b = np.abs(numbers(m, k)) + 1, np.abs(numbers(k, n)) + 1
        a[m // 2, k // 2] = np.inf
        b[k // 2, n - 1] = 0  # 0 * inf
        b[k - 1, 0] = np.nan
        with np.errstate(invalid="ignore"):
            expected = a.astype(np.float64) @ b.astype(np.float64)
        got = NATIVE["matmul"](laid_out(a, left), laid_out(b, right))
        np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
        np.testing.assert_array_equal(np.isinf(got), np.isinf(expected))


@pytest.mark.parametrize("dtype", [np.float16, bfloat16])
def test_half_is_rounded_once(dtype: Any) -> None:
    a, b = numbers(9, 40).astype(dtype), numbers(40, 7).astype(dtype)
    got = NATIVE["matmul"](a, b)
    assert got.dtype == dtype
    np.testing.assert_array_equal(
        got, NATIVE["matmul"](a.astype(np.float32), b.astype(np.float32)).astype(dtype)
    )


def test_not_covered() -> None:
    a = numbers(3, 4)
    assert NATIVE["matmul"](a, a) is NotImplemented
    assert NATIVE["matmul"](a, a.T.astype(np.float64)) is NotImplemented
    assert NATIVE["matmul"](a, np.arange(12).reshape(4, 3)) is NotImplemented
    assert NATIVE["matmul"](np.float32(1) * np.ones(()), a) is NotImplemented
    assert NATIVE["matmul"](numbers(2, 3, 4), numbers(3, 4, 5)) is NotImplemented


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4), (64, 784), (32, 64), (1, 64), (0, 4)], ids=str)
def test_linear(shape: tuple[int, ...], dtype: Any) -> None:
    x, weight, bias = (numbers(*s, dtype=dtype) for s in (shape, (21, shape[-1]), (21,)))
    exact = x.astype(np.float64) @ weight.T.astype(np.float64)
    magnitude = np.abs(x).astype(np.float64) @ np.abs(weight.T).astype(np.float64)
    for w in (weight, np.asfortranarray(weight)):
        assert_accurate(NATIVE["linear"](x, w, None), exact, magnitude)
        with_bias = NATIVE["linear"](x, w, bias)
        assert_accurate(with_bias, exact + bias, magnitude + np.abs(bias))
        np.testing.assert_array_equal(NATIVE["linear"](x, w, bias, "relu"), np.maximum(with_bias, 0))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4), (64, 784), (3000, 27)], ids=str)
def test_linear_backward(shape: tuple[int, ...], dtype: Any) -> None:
    x, weight, g = (numbers(*s, dtype=dtype) for s in (shape, (21, shape[-1]), (*shape[:-1], 21)))
    if len(shape) == 3:  # axes that do not follow each other
        x, g = (np.ascontiguousarray(v.swapaxes(0, 1)).swapaxes(0, 1) for v in (x, g))
    wide = [v.astype(np.float64) for v in (g, x, weight)]
    for needs in itertools.product((True, False), repeat=3):
        got = NATIVE["linear_backward"](g, x, weight, needs)
        exact = KERNELS["linear_backward"].reference(*wide, needs)
        magnitude = KERNELS["linear_backward"].reference(*map(np.abs, wide), needs)
        for have, want, size in zip(got, exact, magnitude):
            assert (have is None) == (want is None)
            if want is not None:
                assert have.dtype == dtype
                assert_accurate(have, want, size)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "shapes",
    [
        ((3, 5), (5, 4)), ((2, 3, 5), (5, 4)), ((2, 3, 5), (2, 5, 4)), ((30, 50), (50,)), ((50,), (50, 40)), ((7,), (7,)),
        ((1, 5), (5,)), ((5,), (5, 1)),
    ],
    ids=str,
)  # fmt: skip
def test_matmul_backward(shapes: tuple[tuple[int, ...], tuple[int, ...]], dtype: Any) -> None:
    a, b = (numbers(*s, dtype=dtype) for s in shapes)
    g = numbers(*np.matmul(a, b).shape, dtype=dtype)
    wide = [v.astype(np.float64) for v in (g, a, b)]
    for needs in itertools.product((True, False), repeat=2):
        got = NATIVE["matmul_backward"](g, a, b, needs)
        exact = KERNELS["matmul_backward"].reference(*wide, needs)
        magnitude = KERNELS["matmul_backward"].reference(*map(np.abs, wide), needs)
        for have, want, size in zip(got, exact, magnitude):
            assert (have is None) == (want is None)
            if want is not None:
                assert_accurate(have, want, size)


def test_matmul_backward_of_vectors_in_any_layout() -> None:
    rng = np.random.default_rng(3)
    a, b, g = (rng.standard_normal(shape) for shape in ((6, 8), (8,), (6,)))
    expected = KERNELS["matmul_backward"].reference(g, a, b, (True, True))
    turned = KERNELS["matmul_backward"].reference(g, b, a.T, (True, True))
    for left, middle, right in itertools.product(("C", "F", "spread", "backwards"), repeat=3):
        x, y, z = laid_out(a, left), laid_out(b, middle), laid_out(g, right)
        for got, wanted in (
            (NATIVE["matmul_backward"](z, x, y, (True, True)), expected),
            (NATIVE["matmul_backward"](z, y, x.T, (True, True)), turned),
        ):
            for ours, theirs in zip(got, wanted):
                np.testing.assert_allclose(ours, theirs, rtol=1e-14)
    assert NATIVE["matmul_backward"](g[:5], a, b, (True, True)) is NotImplemented
    assert NATIVE["matmul_backward"](g, a, b[:7], (True, True)) is NotImplemented


@pytest.mark.parametrize(
    "shapes", [((5,), (5,)), ((3, 5), (5,)), ((5,), (5, 4)), ((2, 3, 5), (5, 4))], ids=str
)
def test_dot_and_inner(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    a, b = (np.random.default_rng(1).standard_normal(shape) for shape in shapes)
    np.testing.assert_allclose(NATIVE["dot"](a, b), np.dot(a, b), rtol=1e-14)
    if b.ndim == 1:
        np.testing.assert_allclose(NATIVE["inner"](a, b), np.inner(a, b), rtol=1e-14)
    assert NATIVE["dot"](a, np.ones((2, a.shape[-1], 3))) is NotImplemented
    assert NATIVE["inner"](a, np.ones((2, a.shape[-1]))) is NotImplemented


@pytest.fixture
def threads():  # type: ignore[no-untyped-def]
    before = get_num_threads()
    yield set_num_threads
    set_num_threads(before)


# Rows, outputs, inputs: a weight that is packed, and those beside which the rows are; vectors that are filled in part, several
# blocks of outputs and of inputs.
LINEAR = [
    (64, 128, 784), (16, 1000, 400), (33, 200, 777), (40, 1001, 1024), (17, 70, 30), (64, 10, 128), (500, 3, 9), (300, 100, 50),
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", LINEAR, ids=str)
def test_a_weight_in_either_layout_gives_the_same_bits(
    size: tuple[int, int, int], dtype: Any, threads: Any
) -> None:
    rows, outputs, inputs = size
    x, weight, bias = (numbers(*s, dtype=dtype) for s in ((rows, inputs), (outputs, inputs), (outputs,)))
    for extras in ((None,), (bias,), (bias, "relu")):
        results = set()
        for count in (1, 2, 3):
            threads(count)
            results |= {
                NATIVE["linear"](x, w, *extras).tobytes() for w in (weight, np.asfortranarray(weight))
            }
        assert len(results) == 1


# Large enough to be shared: squares, thin ones, a small result of a long sum, batches, and what one thread takes in blocks of rows.
SHARED = [
    ((256, 256), (256, 256)), ((33, 777), (777, 401)), ((1, 4096), (4096, 1030)), ((3, 4096), (4096, 1030)), ((40, 30_000), (30_000, 24)),
    ((1, 700_001), (700_001, 1)), ((16, 27), (27, 16_384)), ((40, 64, 48), (40, 48, 64)), ((3, 300, 200), (3, 200, 300)), ((1500, 1), (1, 1700)),
    ((1300, 200), (200, 40)),
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shapes", SHARED, ids=str)
def test_the_same_bits_on_any_number_of_threads(shapes: Any, dtype: Any, threads: Any) -> None:
    a, b = (numbers(*s, dtype=dtype) for s in shapes)
    for right in (b, np.ascontiguousarray(np.swapaxes(b, -1, -2)).swapaxes(-1, -2)):
        results = []
        for count in (1, 2, 3, 4):
            threads(count)
            results.append(NATIVE["matmul"](a, right).tobytes())
        assert len(set(results)) == 1
