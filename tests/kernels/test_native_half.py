"""The native products of half precision bit by bit: order, blocks, layouts, the bfloat16 unit and widening, threads."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from extensor import get_num_threads, set_num_threads
from extensor.config import has_bf16_unit
from extensor.dtypes import bfloat16
from extensor.kernels import KERNELS, NATIVE
from extensor.kernels.reference.half_attention import half_attention, half_attention_backward
from extensor.kernels.reference.half_products import SHORTEST_DOT, fused_multiply_add, half_dot, half_product

pytestmark = pytest.mark.skipif("matmul" not in NATIVE, reason="the native module is not built")

RNG = np.random.default_rng(15)
DTYPES = [bfloat16, np.float16]
# m, n, k: thin on every side, odd tails, pairs without a partner, several blocks of k, a small result of a long sum
SIZES = [
    (1, 1, 1), (4, 4, 2), (1, 1, 700), (90, 1, 130), (1, 70, 301), (2, 33, 17), (5, 16, 16), (7, 17, 9), (13, 31, 257), (25, 64, 64), (100, 1, 50),
    (12, 32, 128), (24, 96, 65), (3, 40, 1030), (40, 30, 2051), (6, 5, 9000), (0, 3, 4), (3, 0, 4), (3, 4, 0),
]  # fmt: skip


def has_unit(dtype: Any) -> bool:
    return dtype == bfloat16 and has_bf16_unit()


def numbers(*shape: int, dtype: Any = bfloat16) -> np.ndarray:
    return (RNG.standard_normal(shape) * np.exp2(RNG.integers(-6, 6, shape))).astype(dtype)


def cancelling(m: int, n: int, k: int, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    """Operands whose product is 0 but for how its sums are rounded: that is what the result shows."""
    a, b, half = numbers(m, k, dtype=dtype), numbers(k, n, dtype=dtype), k // 2
    order = RNG.permutation(half)
    a[:, half : 2 * half], b[half : 2 * half] = a[:, order], -b[order]
    return a, b


def laid_out(x: np.ndarray, how: str) -> np.ndarray:
    """The same values: C order, Fortran order, every second of a larger array, or rows of odd length at an odd place."""
    if how == "C":
        return np.ascontiguousarray(x)
    if how == "F":
        return np.asfortranarray(x)
    if how == "spread":
        wide = np.zeros([2 * n for n in x.shape], x.dtype)
        wide[tuple(slice(None, None, 2) for _ in x.shape)] = x
        return wide[tuple(slice(None, None, 2) for _ in x.shape)]
    odd = np.zeros((x.shape[0], (x.shape[1] + 1) // 2 * 2 + 1), x.dtype)
    odd[:, 1 : 1 + x.shape[1]] = x
    return odd[:, 1 : 1 + x.shape[1]]


def assert_same_bits(got: Any, expected: np.ndarray) -> None:
    assert got is not NotImplemented
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    np.testing.assert_array_equal(got.view(np.uint16), expected.view(np.uint16))


def expected_sums(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A single row or column is made of scalar products if the other operand lies dense along k."""
    flush = has_unit(a.dtype)
    if a.shape[1] >= SHORTEST_DOT and len(a) == 1 and b.strides[0] == b.itemsize:
        return half_dot(a[0], b.T, flush)[None]
    if a.shape[1] >= SHORTEST_DOT and len(a) > 1 and b.shape[1] == 1 and a.strides[1] == a.itemsize:
        return half_dot(b[:, 0], a, flush)[:, None]
    return half_product(a, b, flush)


def expected_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return expected_sums(a, b).astype(a.dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=["bfloat16", "float16"])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_bits_are_those_of_the_reference(size: tuple[int, int, int], dtype: Any) -> None:
    a, b = cancelling(*size, dtype)
    expected = {}
    for left, right in itertools.product(("C", "F", "spread", "odd"), repeat=2):
        one, other = laid_out(a, left), laid_out(b, right)
        key = (one.strides, other.strides) if 1 in size[:2] else None
        if key not in expected:
            expected[key] = expected_product(one, other)
        assert_same_bits(NATIVE["matmul"](one, other), expected[key])


def test_reference_is_a_fused_multiply_add() -> None:
    # a tie in float64 that was none: 1 + 2^-24 + 2^-60 is above the middle of two floats, and 1 + 2^-24 is the middle
    one, half, tiny = np.float32(1), np.float32(2.0**-12), np.float32(2.0**-30)
    assert fused_multiply_add(half[None], half[None], one[None])[0] == 1
    above = np.nextafter(one, np.float32(2)) - np.float32(0)
    assert (
        fused_multiply_add(np.float32([2.0**-12]), np.float32([2.0**-12 * (1 + 2.0**-7)]), one[None])[0]
        == above
    )
    assert fused_multiply_add(tiny[None], tiny[None], np.float32([1 + 2.0**-23]))[0] == above


@pytest.mark.parametrize("dtype", DTYPES, ids=["bfloat16", "float16"])
def test_reference_is_near_the_exact_product(dtype: Any) -> None:
    a, b = numbers(9, 300, dtype=dtype), numbers(300, 7, dtype=dtype)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    magnitude = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64))
    assert (np.abs(half_product(a, b, flush=False) - exact) <= 300 * 2.0**-24 * magnitude).all()


def test_subnormal_numbers() -> None:
    """The unit takes them for 0, widening counts them."""
    tiny = np.full((1, 4), 2.0**-130).astype(bfloat16)
    large = np.full((4, 1), 2.0**20).astype(bfloat16)
    expected = 0.0 if has_unit(bfloat16) else 4 * 2.0**-110
    assert float(NATIVE["matmul"](tiny, large)[0, 0]) == expected
    assert_same_bits(NATIVE["matmul"](tiny, large), expected_product(tiny, large))
    mixed = (numbers(9, 50).astype(np.float32) * np.float32(2.0**-66)).astype(bfloat16)
    other = (numbers(50, 40).astype(np.float32) * np.float32(2.0**-63)).astype(bfloat16)
    assert_same_bits(NATIVE["matmul"](mixed, other), expected_product(mixed, other))


@pytest.mark.parametrize("columns", [5, 16, 20, 32, 45])
def test_sums_that_become_subnormal_are_kept(columns: int) -> None:
    """The unit leaves no subnormal sums, but a bias or the sum of two blocks of k may be one."""
    x, weight = np.zeros((14, 6), bfloat16), np.zeros((columns, 6), bfloat16)
    bias = np.where(np.arange(columns) % 3 == 0, 2.0**-130, 1.5).astype(bfloat16)
    assert_same_bits(NATIVE["linear"](x, weight, bias), np.repeat(bias[None], 14, axis=0))

    a, b = np.zeros((14, 2048), bfloat16), np.zeros((2048, columns), bfloat16)
    a[:, [0, 1024]] = 1
    b[0], b[1024] = 1.5 * 2.0**-126, -(2.0**-126)
    expected = np.full((14, columns), 2.0**-127).astype(bfloat16)
    assert_same_bits(NATIVE["matmul"](a, b), expected)
    assert_same_bits(expected_product(a, b), expected)


@pytest.mark.parametrize("dtype", DTYPES, ids=["bfloat16", "float16"])
@pytest.mark.parametrize("size", [(335, 33, 1023), (660, 34, 1030)], ids=str)
def test_blocks_of_rows_share_the_packed_panels(size: tuple[int, int, int], dtype: Any) -> None:
    a, b = cancelling(*size, dtype)
    expected = expected_product(a, b)
    before = get_num_threads()
    try:
        set_num_threads(1)
        for left, right in itertools.product("CF", repeat=2):
            assert_same_bits(NATIVE["matmul"](laid_out(a, left), laid_out(b, right)), expected)
    finally:
        set_num_threads(before)


@pytest.mark.parametrize("dtype", DTYPES, ids=["bfloat16", "float16"])
def test_columns_beyond_what_is_kept_packed(dtype: Any) -> None:
    a, b = numbers(330, 8192, dtype=dtype), numbers(8192, 600, dtype=dtype)
    before = get_num_threads()
    try:
        set_num_threads(1)
        parts = [NATIVE["matmul"](a[:150], b[:, first : first + 150]) for first in range(0, 600, 150)]
        assert_same_bits(NATIVE["matmul"](a, b)[:150], np.concatenate(parts, axis=1))
    finally:
        set_num_threads(before)


@pytest.mark.parametrize("dtype", DTYPES, ids=["bfloat16", "float16"])
def test_not_finite_numbers_stay_where_they_belong(dtype: Any) -> None:
    a, b = numbers(30, 33, dtype=dtype), numbers(33, 50, dtype=dtype)
    a[3, 32] = np.nan
    a[7, 5] = np.inf
    b[4, 9] = -np.inf
    got = NATIVE["matmul"](a, b).astype(np.float32)
    assert np.isnan(got[3]).all()
    assert np.isinf(got[7, :9]).all()
    assert np.isfinite(np.delete(np.delete(got, [3, 7], 0), 9, 1)).all()
    assert np.array_equal(got, expected_product(a, b).astype(np.float32), equal_nan=True)


@pytest.mark.parametrize("dtype", DTYPES, ids=["bfloat16", "float16"])
@pytest.mark.parametrize("activation", [(), ("relu",)], ids=["linear", "relu"])
def test_linear(dtype: Any, activation: tuple[str, ...]) -> None:
    x, weight, bias = numbers(3, 11, 70, dtype=dtype), numbers(45, 70, dtype=dtype), numbers(45, dtype=dtype)
    sums = half_product(x.reshape(33, 70), weight.T, flush=has_unit(dtype)) + bias.astype(np.float32)
    sums = np.maximum(sums, 0) if activation else sums
    assert_same_bits(NATIVE["linear"](x, weight, bias, *activation), sums.astype(dtype).reshape(3, 11, 45))


@pytest.mark.parametrize("dtype", DTYPES, ids=["bfloat16", "float16"])
def test_linear_backward(dtype: Any) -> None:
    g, x, weight = (
        numbers(3, 11, 45, dtype=dtype),
        numbers(3, 11, 70, dtype=dtype),
        numbers(45, 70, dtype=dtype),
    )
    grad_x, grad_weight, grad_bias = NATIVE["linear_backward"](g, x, weight, (True, True, True))
    rows = g.reshape(33, 45)
    assert_same_bits(grad_x, expected_product(rows, weight).reshape(x.shape))
    assert_same_bits(grad_weight, expected_product(rows.T, x.reshape(33, 70)))
    assert_same_bits(grad_bias, rows.astype(np.float64).sum(0).astype(np.float32).astype(dtype))
    assert NATIVE["linear_backward"](g, x, weight, (False, False, False)) == (None, None, None)
    across = np.asfortranarray(rows)
    assert_same_bits(
        NATIVE["linear_backward"](across, x.reshape(33, 70), weight, (False, False, True))[2], grad_bias
    )


@pytest.mark.parametrize("dtype", DTYPES, ids=["bfloat16", "float16"])
def test_batches_and_their_gradients(dtype: Any) -> None:
    a, b, g = (
        numbers(2, 1, 20, 30, dtype=dtype),
        numbers(3, 30, 10, dtype=dtype),
        numbers(2, 3, 20, 10, dtype=dtype),
    )
    got = NATIVE["matmul"](a, b)
    for i, j in itertools.product(range(2), range(3)):
        assert_same_bits(got[i, j], expected_product(a[i, 0], b[j]))
    full = np.ascontiguousarray(np.broadcast_to(a, (2, 3, 20, 30)))
    grad_a, grad_b = NATIVE["matmul_backward"](
        g, full, np.ascontiguousarray(np.broadcast_to(b, (2, 3, 30, 10))), (True, True)
    )
    for i, j in itertools.product(range(2), range(3)):
        assert_same_bits(grad_a[i, j], expected_product(g[i, j], b[j].T))
        assert_same_bits(grad_b[i, j], expected_product(a[i, 0].T, g[i, j]))
    for kernel in ("dot", "inner"):
        row = numbers(500, dtype=dtype)
        assert_same_bits(NATIVE[kernel](row, row), expected_product(row[None], row[:, None])[0, 0])


@pytest.mark.parametrize("dtype", DTYPES, ids=["bfloat16", "float16"])
@pytest.mark.parametrize("size", [(300, 400, 500), (60, 70, 9000), (1, 3000, 900), (700, 40, 2100)], ids=str)
def test_threads_give_the_same_bits(size: tuple[int, int, int], dtype: Any) -> None:
    a, b = cancelling(*size, dtype)
    before = get_num_threads()
    try:
        found = []
        for threads in (1, 2, 3, 4):
            set_num_threads(threads)
            found.append(NATIVE["matmul"](a, b))
    finally:
        set_num_threads(before)
    for other in found[1:]:
        assert_same_bits(other, found[0])
    # A corner of a large product is that of a small one: no cut decides about bits.
    assert_same_bits(found[0][:5, :6], expected_product(a[:5], b[:, :6]))


WIDENED = """
import sys
import numpy as np
from extensor.dtypes import bfloat16
from extensor.kernels import NATIVE
a, b = (np.load(path).view(bfloat16) for path in sys.argv[1:3])
np.save(sys.argv[3], NATIVE["matmul"](a, b).view(np.uint16))
"""


def test_widening_gives_the_bits_of_the_unit(tmp_path: Path) -> None:
    a, b = cancelling(50, 45, 1111, bfloat16)
    np.save(tmp_path / "a.npy", a.view(np.uint16))
    np.save(tmp_path / "b.npy", b.view(np.uint16))
    environment = os.environ | {"EXTENSOR_BF16_UNIT": "0"}
    subprocess.run(
        [sys.executable, "-c", WIDENED, *(str(tmp_path / name) for name in ("a.npy", "b.npy", "out.npy"))],
        env=environment, check=True,
    )  # fmt: skip
    assert_same_bits(np.load(tmp_path / "out.npy").view(bfloat16), NATIVE["matmul"](a, b))


@pytest.mark.parametrize("dtype", DTYPES, ids=["bfloat16", "float16"])
def test_reference_kernels_agree_within_a_rounding(dtype: Any) -> None:
    x, weight, bias = numbers(20, 60, dtype=dtype), numbers(30, 60, dtype=dtype), numbers(30, dtype=dtype)
    got = KERNELS["linear"].on_arrays(x, weight, bias).astype(np.float64)
    expected = KERNELS["linear"].by_reference(x, weight, bias).astype(np.float64)
    magnitude = np.abs(x.astype(np.float64)) @ np.abs(weight.astype(np.float64)).T
    unit = 2.0**-8 if dtype == bfloat16 else 2.0**-11
    assert (np.abs(got - expected) <= unit * np.abs(expected) + 1e-6 * magnitude).all()


# batch, queries, keys, features, values, causal, mask
ATTENTIONS = [
    (1, 1, 1, 1, 1, False, None), (2, 5, 7, 3, 5, False, None), (2, 5, 7, 3, 5, False, "added"), (1, 70, 70, 16, 24, True, None),
    (1, 33, 100, 64, 64, False, "allowed"), (1, 130, 40, 9, 40, True, "added"), (1, 20, 90, 32, 33, True, None),
]  # fmt: skip


@pytest.mark.skipif(not has_unit(bfloat16), reason="no dot product of bfloat16 pairs")
@pytest.mark.parametrize("case", ATTENTIONS, ids=str)
def test_attention(case: tuple[Any, ...]) -> None:
    batch, queries, keys, features, values, causal, kind = case
    q, k = (RNG.standard_normal((batch, n, features)).astype(bfloat16) for n in (queries, keys))
    v, g = (RNG.standard_normal((batch, n, values)).astype(bfloat16) for n in (keys, queries))
    mask = added = None
    if kind == "added":
        mask = RNG.standard_normal((queries, keys)).astype(bfloat16)
        added = mask.astype(np.float32)
    elif kind == "allowed":
        mask = RNG.random((queries, keys)) < 0.6
        mask[3] = False  # a query that sees nothing
        added = np.where(mask, np.float32(0), np.float32(-np.inf))
    got = NATIVE["scaled_dot_product_attention"](q, k, v, mask, causal, 0.3)
    grads = NATIVE["scaled_dot_product_attention_backward"](
        g, q, k, v, mask, causal, 0.3, (True, True, True, False)
    )
    assert grads[3] is None
    for i in range(batch):
        expected = [
            half_attention(q[i], k[i], v[i], added, causal, 0.3),
            *half_attention_backward(g[i], q[i], k[i], v[i], added, causal, 0.3),
        ]
        for found, wanted in zip((got[i], *(grad[i] for grad in grads[:3])), expected, strict=True):
            assert found.dtype == bfloat16
            near(found, wanted)


def near(found: np.ndarray, wanted: np.ndarray) -> None:
    """The same bits but for few elements, whose operands were rounded to the other side."""
    found, wanted = found.astype(np.float64), wanted.astype(np.float64)
    assert np.mean(found == wanted) > 0.85
    np.testing.assert_allclose(found, wanted, rtol=2.0**-7, atol=2.0**-9 * np.abs(wanted).max())


@pytest.mark.parametrize("dtype", DTYPES, ids=["bfloat16", "float16"])
def test_attention_threads_and_partial_gradients(dtype: Any) -> None:
    q, k, v, g = (RNG.standard_normal((2, 3, 150, 32)).astype(dtype) for _ in range(4))
    before = get_num_threads()
    try:
        found = []
        for threads in (1, 2, 4):
            set_num_threads(threads)
            out = NATIVE["scaled_dot_product_attention"](q, k, v, None, True, 0.2)
            grads = NATIVE["scaled_dot_product_attention_backward"](
                g, q, k, v, None, True, 0.2, (True, True, True, False)
            )
            found.append((out, *grads[:3]))
    finally:
        set_num_threads(before)
    for others in found[1:]:
        for one, other in zip(found[0], others, strict=True):
            assert_same_bits(other, one)
    for i in range(3):
        needs = tuple(j == i for j in range(3))
        partial = NATIVE["scaled_dot_product_attention_backward"](
            g, q, k, v, None, True, 0.2, (*needs, False)
        )
        assert [grad is not None for grad in partial] == [*needs, False]
        assert_same_bits(partial[i], found[0][i + 1])


@pytest.mark.parametrize("dtype", DTYPES, ids=["bfloat16", "float16"])
def test_self_attention_is_attention_of_its_parts(dtype: Any) -> None:
    batch, length, heads, features = 2, 40, 3, 16
    x = RNG.standard_normal((batch, length, 3 * heads * features)).astype(dtype)
    g = RNG.standard_normal((batch, length, heads * features)).astype(dtype)
    q, k, v = (
        part.transpose(0, 2, 1, 3) for part in np.moveaxis(x.reshape(batch, length, 3, heads, features), 2, 0)
    )
    out = NATIVE["scaled_dot_product_attention"](q, k, v, None, True, features**-0.5)
    assert_same_bits(
        NATIVE["self_attention"](x, heads, True),
        np.ascontiguousarray(out.transpose(0, 2, 1, 3)).reshape(g.shape),
    )
    upstream = g.reshape(batch, length, heads, features).transpose(0, 2, 1, 3)
    grads = NATIVE["scaled_dot_product_attention_backward"](
        upstream, q, k, v, None, True, features**-0.5, (True, True, True, False)
    )
    joined = np.stack([grad.transpose(0, 2, 1, 3) for grad in grads[:3]], 2).reshape(x.shape)
    assert_same_bits(NATIVE["self_attention_backward"](g, x, heads, True), np.ascontiguousarray(joined))


@pytest.mark.skipif(not has_unit(bfloat16), reason="no dot product of bfloat16 pairs")
def test_attention_leaves_what_is_not_finite_to_the_reference() -> None:
    q, k, v = (RNG.standard_normal((1, 6, 8)).astype(bfloat16) for _ in range(3))
    v[0, 4] = np.nan
    assert NATIVE["scaled_dot_product_attention"](q, k, v, None, True, 1.0) is NotImplemented
    out = KERNELS["scaled_dot_product_attention"].on_arrays(q, k, v, None, True, 1.0).astype(np.float32)
    assert np.isfinite(out[0, :4]).all()
    assert np.isnan(out[0, 4:]).all()
