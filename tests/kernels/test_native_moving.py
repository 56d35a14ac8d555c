"""Native copies, joins, gathers and running sums against the reference."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from extensor import get_num_threads, set_num_threads
from extensor.dtypes import bfloat16
from extensor.kernels import KERNELS, NATIVE

pytestmark = pytest.mark.skipif("cumsum" not in NATIVE, reason="the native module is not built")

RNG = np.random.default_rng(20240610)
DTYPES = [np.float32, np.float64]
ITEMS = [np.bool_, np.int8, np.float16, bfloat16, np.int32, np.float32, np.float64, np.uint64]


def integers(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    return RNG.integers(0, 100, shape).astype(dtype)


@pytest.mark.parametrize("dtype", ITEMS)
def test_copy(dtype: Any) -> None:
    for shape in [(), (1,), (7,), (0, 3), (5, 33), (70, 41), (3, 4, 5), (2, 3, 40, 35), (100, 8, 8)]:
        x = np.asarray(integers(shape, dtype))
        layouts = [x.transpose(axes) for axes in itertools.permutations(range(x.ndim))]
        layouts += [x[::-1], x[..., ::-1], x[..., ::2], np.broadcast_to(x[:1], x.shape)] if x.ndim else []
        for layout in layouts:
            got = NATIVE["copy"](layout)
            assert got.dtype == layout.dtype
            assert got.flags.c_contiguous
            assert not np.shares_memory(got, x)
            np.testing.assert_array_equal(got, layout)
            assert got.shape == layout.shape


@pytest.mark.parametrize("dtype", ITEMS)
def test_concatenate(dtype: Any) -> None:
    for axis in range(3):
        tensors = [integers(tuple(n if i == axis else 4 for i in range(3)), dtype) for n in (3, 0, 1, 50)]
        got = NATIVE["concatenate"](tensors, axis, np.dtype(dtype))
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, np.concatenate(tensors, axis))
    assert (
        NATIVE["concatenate"]([tensors[0], tensors[0].astype(np.int64)], 0, np.dtype(dtype)) is NotImplemented
    )
    assert NATIVE["concatenate"]([tensors[0].T], 0, np.dtype(dtype)) is NotImplemented
    assert NATIVE["concatenate"]([tensors[3]], 0, np.dtype(np.int16)) is NotImplemented
    assert NATIVE["concatenate"]([tensors[3]], 0, None) is NotImplemented
    assert NATIVE["concatenate"]([], 0, np.dtype(dtype)) is NotImplemented


@pytest.mark.parametrize("dtype", ITEMS)
def test_take(dtype: Any) -> None:
    x = integers((6, 9, 5), dtype)
    for axis in range(3):
        for shape in [(), (4,), (0,), (3, 2)]:
            indices = np.asarray(RNG.integers(0, x.shape[axis], shape))
            got = NATIVE["take"](x, indices, axis)
            assert got.dtype == dtype
            np.testing.assert_array_equal(got, np.take(x, indices, axis))
        negative = np.array([-1, 0, -x.T.shape[axis]])
        np.testing.assert_array_equal(NATIVE["take"](x.T, negative, axis), np.take(x.T, negative, axis))
    indices = RNG.integers(-x.size, x.size, (2, 9000))[:, ::2]
    np.testing.assert_array_equal(NATIVE["take"](x.ravel(), indices, 0), np.take(x, indices))
    for axis in (None, -1, 0.0):
        assert NATIVE["take"](x, np.array([0]), axis) is NotImplemented
    for outside in (-7, 6):
        assert NATIVE["take"](x, np.array([0, outside]), 0) is NotImplemented
    assert NATIVE["take"](x, np.array([0]), 3) is NotImplemented
    assert NATIVE["take"](x, np.array([0], np.int32), 0) is NotImplemented
    assert NATIVE["take"](x[:0], np.array([0]), 0) is NotImplemented


@pytest.mark.parametrize("dtype", ITEMS)
def test_take_along_axis(dtype: Any) -> None:
    for shape in [(9,), (9000,), (6, 5), (70, 300), (3, 4, 5), (2, 40, 700)]:
        x = integers(shape, dtype)
        for axis, count in itertools.product(range(x.ndim), (0, 1, 33)):
            lengths = (*shape[:axis], count, *shape[axis + 1 :])
            for low in (0, -shape[axis]):
                indices = RNG.integers(low, shape[axis], lengths)
                got = NATIVE["take_along_axis"](x, indices, axis)
                assert got.dtype == dtype
                np.testing.assert_array_equal(got, np.take_along_axis(x, indices, axis))
            for outside in (shape[axis], -shape[axis] - 1):
                indices[..., -1:] = outside
                assert count == 0 or NATIVE["take_along_axis"](x, indices, axis) is NotImplemented
    x = integers((6, 5), dtype)
    np.testing.assert_array_equal(NATIVE["take_along_axis"](x.T, np.argsort(x.T, 1), 1), np.sort(x.T, 1))
    assert NATIVE["take_along_axis"](x, np.zeros((1, 5), np.int64), 1) is NotImplemented  # it broadcasts
    assert NATIVE["take_along_axis"](x, np.zeros(5, np.int64), 1) is NotImplemented


@pytest.mark.parametrize("dtype", DTYPES)
def test_take_along_axis_backward_accumulates(dtype: Any) -> None:
    backward, reference = NATIVE["take_along_axis_backward"], KERNELS["take_along_axis_backward"].reference
    for shape in [(9,), (9000,), (6, 5), (70, 300), (3, 4, 5), (2, 40, 700), (500, 90), (3000, 20)]:
        for axis, count in itertools.product(range(len(shape)), (0, 1, 33)):
            lengths = (*shape[:axis], count, *shape[axis + 1 :])
            indices = RNG.integers(-shape[axis], shape[axis], lengths)
            g = RNG.standard_normal(lengths).astype(dtype)
            got = backward(g, shape, indices, axis)
            assert (got.dtype, got.shape) == (dtype, shape)
            expected = reference(g.astype(np.float64), shape, indices, axis)
            np.testing.assert_array_equal(got, expected.astype(dtype))
            indices[..., -1:] = shape[axis]
            assert count == 0 or backward(g, shape, indices, axis) is NotImplemented
    indices = np.zeros((5, 6), np.int64)
    g = np.ones((6, 5), dtype)
    np.testing.assert_array_equal(backward(g.T, (5, 3), indices, 1)[:, 0], np.full(5, 6.0))
    assert backward(g, (5, 3), indices, 1) is NotImplemented


@pytest.mark.parametrize("dtype", DTYPES)
def test_take_backward_accumulates(dtype: Any) -> None:
    for shape, axis, count in itertools.product(
        [(6,), (6, 9), (3, 7, 300), (1000, 16)], (0, 1, 2), (0, 1, 5, 400)
    ):
        if axis >= len(shape):
            continue
        indices = RNG.integers(0, shape[axis], count)
        g = RNG.standard_normal((*shape[:axis], count, *shape[axis + 1 :])).astype(dtype)
        got = NATIVE["take_backward"](g, shape, indices, axis)
        assert got.dtype == dtype
        expected = KERNELS["take_backward"].reference(g.astype(np.float64), shape, indices, axis)
        np.testing.assert_array_equal(got, expected.astype(dtype))
        places = np.resize(indices, g.size) - 1
        flat = NATIVE["take_backward"](g.ravel(), (math.prod(shape),), places, 0)
        wide = KERNELS["take_backward"].reference(
            g.ravel().astype(np.float64), (math.prod(shape),), places, 0
        )
        np.testing.assert_array_equal(flat, wide.astype(dtype))
    g = np.ones((4, 300), dtype)[:, ::2]
    np.testing.assert_array_equal(
        NATIVE["take_backward"](-0.0 * g, (2, 150), np.array([1, 1, 0, -1]), 0), 0 * g[:2]
    )
    got = NATIVE["take_backward"](-0.0 * g, (5, 150), np.array([1, 1, 0, -1]), 0)
    assert not np.signbit(got).any()
    assert NATIVE["take_backward"](np.ones(2, dtype), (6,), np.array([0, 6]), 0) is NotImplemented
    assert NATIVE["take_backward"](np.ones((1, 2), dtype), (6,), np.array([0, 5]), 0) is NotImplemented
    assert NATIVE["take_backward"](np.ones(3, dtype), (6,), np.array([0, 5]), 0) is NotImplemented


@pytest.mark.parametrize("dtype", DTYPES)
def test_index_add(dtype: Any) -> None:
    for shape, count in itertools.product([(6,), (6, 9), (7, 3, 300), (1000, 16), (4, 0)], (0, 1, 5, 400)):
        indices = RNG.integers(-shape[0], shape[0], (count, 2))[:, 0]
        x = RNG.standard_normal(shape).astype(dtype)
        values = RNG.standard_normal((count, *shape[1:])).astype(dtype)
        got = NATIVE["index_add"](x, (indices, ...), values)
        assert got.dtype == dtype
        wide = KERNELS["index_add"].reference(x.astype(np.float64), (indices, ...), values.astype(np.float64))
        np.testing.assert_array_equal(got, wide.astype(dtype))
    x = np.ones((3, 2), dtype)
    places = np.array([1, 1])
    assert NATIVE["index_add"](x, (places, ...), np.ones(2, dtype)) is NotImplemented  # it broadcasts
    assert NATIVE["index_add"](x, (places + 2, ...), np.ones((2, 2), dtype)) is NotImplemented
    assert NATIVE["index_add"](x, (places, places, ...), np.ones(2, dtype)) is NotImplemented


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_embedding(dtype: Any) -> None:
    rng = np.random.default_rng(5)
    weight = rng.standard_normal((7, 6)).astype(dtype)[:, ::2]
    indices = rng.integers(0, 7, (5, 8))[:, ::2]
    np.testing.assert_array_equal(NATIVE["embedding"](indices, weight, None), weight[indices])
    g = np.swapaxes(rng.standard_normal((4, 5, 3)).astype(dtype), 0, 1)
    for padding in (None, 2):
        got = NATIVE["embedding_backward"](g, indices, (7, 3), padding)
        assert got.dtype == dtype
        wide = KERNELS["embedding_backward"].reference(g.astype(np.float64), indices, (7, 3), padding)
        np.testing.assert_allclose(got, wide, rtol=1e-6 if dtype == np.float32 else 1e-15)
    assert not got[2].any()
    assert NATIVE["embedding"](np.array([7]), weight, None) is NotImplemented
    assert NATIVE["embedding_backward"](g, indices, (7, 3), 7) is NotImplemented


@pytest.mark.parametrize("dtype", DTYPES)
def test_cumsum(dtype: Any) -> None:
    for shape in [(1,), (9,), (70_000,), (5, 33), (6, 600), (3, 4, 5), (2, 7, 700), (0, 3)]:
        x = RNG.standard_normal(shape).astype(dtype)
        for axis in (None, *range(x.ndim)):
            # float64 is added up in the order of the reference; float32 is rounded from those sums
            expected = KERNELS["cumsum"].reference(x.astype(np.float64), axis).astype(dtype)
            got = NATIVE["cumsum"](x, axis)
            np.testing.assert_array_equal(got, expected)
            assert got.dtype == dtype
            backward = (
                KERNELS["cumsum_backward"].reference(expected.astype(np.float64), shape, axis).astype(dtype)
            )
            got = NATIVE["cumsum_backward"](expected, shape, axis)
            np.testing.assert_array_equal(got, backward)
            assert got.shape == shape


@pytest.mark.parametrize("dtype", DTYPES)
def test_cumprod(dtype: Any) -> None:
    for shape in [(1,), (9,), (70_000,), (5, 33), (6, 600), (3, 4, 5), (2, 7, 700), (0, 3)]:
        x = RNG.uniform(0.5, 2.0, shape).astype(dtype) * RNG.choice([-1, 1], shape).astype(dtype)
        x.flat[4:5] = np.inf
        x[..., 2:3] = -0.0
        for axis in range(x.ndim):
            with np.errstate(all="ignore"):  # 0 * inf
                expected = np.cumprod(x, axis, np.float64).astype(dtype)
            got = NATIVE["cumprod"](x, axis)
            np.testing.assert_array_equal(got, expected)
            np.testing.assert_array_equal(np.signbit(got), np.signbit(expected))
            assert got.dtype == dtype
    assert NATIVE["cumprod"](np.ones((3, 4), dtype).T, 0) is NotImplemented
    assert NATIVE["cumprod"](np.array(2, dtype), 0) is NotImplemented


@pytest.fixture
def threads():  # type: ignore[no-untyped-def]
    before = get_num_threads()
    yield set_num_threads
    set_num_threads(before)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_same_bits_on_any_number_of_threads(dtype: Any, threads: Any) -> None:
    x = RNG.standard_normal((700, 900)).astype(dtype)
    indices = RNG.integers(0, 700, 3000)
    g = RNG.standard_normal((3000, 900)).astype(dtype)
    results = []
    for count in (1, 2, 3, 4):
        threads(count)
        arrays = [NATIVE["cumsum"](x, axis) for axis in (None, 0, 1)]
        arrays += [NATIVE["cumprod"](x, axis) for axis in (0, 1)]
        arrays += [NATIVE["take"](x, indices, 0), NATIVE["take_backward"](g, x.shape, indices, 0)]
        along = np.argsort(x, 0)
        arrays += [NATIVE["take_along_axis_backward"](x, x.shape, along // 3, axis) for axis in (0, 1)]
        arrays += [NATIVE["copy"](x.T), NATIVE["concatenate"]([x, x], 1, np.dtype(dtype))]
        results.append(b"".join(a.tobytes() for a in arrays))
    assert len(set(results)) == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.bool_])
def test_reshape(dtype: Any) -> None:
    x = np.arange(24).reshape(2, 3, 4).astype(dtype)
    for layout in (x, x.transpose(2, 0, 1), x[:, ::-1], x[:0]):
        sizes = [(24,), (4, 6), (2, 1, 12), (3, 2, 2, 2)] if layout.size else [(0,), (5, 0, 2)]
        for shape in sizes:
            found = KERNELS["reshape"].native(layout, shape)
            expected = KERNELS["reshape"].reference(layout, shape)
            np.testing.assert_array_equal(found, expected)
            assert np.shares_memory(found, layout) == np.shares_memory(expected, layout)
    for refused in ((5,), (-1, 6), (), [24]):
        assert KERNELS["reshape"].native(x, refused) is NotImplemented


@pytest.mark.parametrize("name", ["transpose", "permute"])
def test_transposes_are_views(name: str) -> None:
    x = np.arange(24).reshape(2, 3, 4)
    for layout in (x, x[::-1, :, ::2], x.T):
        for axes in itertools.permutations(range(3)):
            found = NATIVE[name](layout, axes)
            np.testing.assert_array_equal(found, layout.transpose(axes))
            assert np.shares_memory(found, x)
    assert NATIVE[name](np.array(5.0), ()).shape == ()
    for refused in ((0, 1), (0, 1, 1), (0, 1, 3), (0, 1, -1), (0, 1, 2.0), [0, 1, 2], (0, 1, 2**70)):
        assert NATIVE[name](x, refused) is NotImplemented


@pytest.mark.parametrize("dtype", ITEMS)
def test_stack(dtype: Any) -> None:
    for shape in [(), (3,), (4, 5), (2, 0, 3)]:
        tensors = [np.asarray(integers(shape, dtype)) for _ in range(3)]
        for axis in range(len(shape) + 1):
            got = NATIVE["stack"](tensors, axis, np.dtype(dtype))
            assert got.dtype == dtype
            np.testing.assert_array_equal(got, np.stack(tensors, axis))
        for axis in (-1, len(shape) + 1):
            assert NATIVE["stack"](tensors, axis, np.dtype(dtype)) is NotImplemented
    assert NATIVE["stack"]([tensors[0], tensors[0][:1]], 0, np.dtype(dtype)) is NotImplemented
    assert NATIVE["concatenate"]([tensors[0], tensors[0]], 2, np.dtype(dtype)).shape == (2, 0, 6)
    assert NATIVE["concatenate"]([np.zeros((), dtype)], 0, np.dtype(dtype)) is NotImplemented


@pytest.mark.parametrize("dtype", ITEMS)
def test_pad(dtype: Any) -> None:
    for shape in [(1,), (7,), (0, 3), (5, 33), (3, 4, 5), (2, 300, 70)]:
        x = integers(shape, dtype)
        each = tuple((i, 2 * i % 3) for i in range(x.ndim))
        alike = [(pair,) * x.ndim for pair in ((0, 0), (1, 1), (2, 0), (0, 3))]
        for widths, layout in itertools.product((*alike, each), (x, x.T)):
            for zero in (0, 0.0):
                got = NATIVE["pad"](layout, widths, "constant", ((zero, zero),) * x.ndim)
                assert got.dtype == dtype
                np.testing.assert_array_equal(got, np.pad(layout, widths))
            for value in (-0.3, -0.0, 2, np.inf, np.nan) if dtype in DTYPES else ():
                filled = NATIVE["pad"](layout, widths, "constant", ((value, value),) * x.ndim)
                expected = KERNELS["pad"].reference(layout, widths, "constant", ((value, value),) * x.ndim)
                assert filled.tobytes() == expected.tobytes()
    one, zeros = ((1, 1),) * 3, ((0, 0),) * 3
    assert NATIVE["pad"](x, one, "edge", zeros) is NotImplemented
    for widths in ((1, 2, 3), 1, (1, 1), one[:2], ((-1, 0),) * 3, ((1 << 61, 0),) * 3, list(one)):
        assert NATIVE["pad"](x, widths, "constant", zeros) is NotImplemented
    for values in (0, None, (0, 0), zeros[:2], ((0, 1), (0, 0), (0, 0)), ((True, True),) * 3, [[0, 0]] * 3):
        assert NATIVE["pad"](x, one, "constant", values) is NotImplemented
    assert NATIVE["pad"](np.zeros((), dtype), (), "constant", ()) is NotImplemented
    nothing = np.zeros((0, 3), dtype)  # its size stays 0, an axis may be too long
    for far in ((2**62, 2**62), (0, 2**63 - 1), (10**15, 1)):
        assert NATIVE["pad"](nothing, ((0, 0), far), "constant", zeros[:2]) is NotImplemented
    assert NATIVE["pad"](x.astype(np.int64), one, "constant", ((2, 2),) * 3) is NotImplemented


def test_views() -> None:
    x = RNG.standard_normal((3, 4, 5, 2))[:, ::-1, 1:]
    pairs: list[tuple[Any, Any]] = [
        (NATIVE["permute"](x, (2, 0, 3, 1)), x.transpose(2, 0, 3, 1)),
        (NATIVE["transpose"](x, (1, 0, 3, 2)), x.transpose(1, 0, 3, 2)),
        (NATIVE["swapaxes"](x, 3, 1), x.swapaxes(-1, 1)),
        (NATIVE["flip"](x, (0, 2)), np.flip(x, (0, 2))),
        (NATIVE["flip"](x, ()), x),
        (NATIVE["flip"](x[:0], (0,)), x[:0]),
        (NATIVE["index"](x, (slice(None), 1, ..., None)), x[:, 1, ..., None]),
        (NATIVE["index"](x, (1, 2, 3, 0, ...)), x[1, 2, 3, 0, ...]),
    ]
    for got, expected in pairs:
        assert type(got) is np.ndarray
        assert got.strides == expected.strides or got.size == 0
        assert np.shares_memory(got, x) == (got.size > 0)
        np.testing.assert_array_equal(got, expected)
    for refused in ((0, 1, 2), (0, 0, 1, 2), (0, 1, 2, 4), [0, 1, 2, 3]):
        assert NATIVE["permute"](x, refused) is NotImplemented
    assert NATIVE["swapaxes"](x, 0, 4) is NotImplemented
    assert NATIVE["flip"](x, (0, 0)) is NotImplemented
    assert NATIVE["flip"](x, (4,)) is NotImplemented
    assert NATIVE["flip"](x, (-1,)) is NotImplemented
    assert NATIVE["index"](x, (3, ...)) is NotImplemented
    assert NATIVE["index"](x, (0, 0, 0, 0, 0, ...)) is NotImplemented


@pytest.mark.parametrize("dtype", [np.float16, bfloat16, *DTYPES])
def test_index_and_its_backward(dtype: Any) -> None:
    x = integers((6, 7, 5), dtype)
    keys: list[Any] = [
        (np.array([[1, -1], [0, 1]]), ...),
        (slice(1, 5, 2), ...),
        (..., 3),
        (2, slice(None), None, slice(None, None, -2), ...),
    ]
    for key in keys:
        np.testing.assert_array_equal(NATIVE["index"](x, key), x[key])
        g = integers(x[key].shape, dtype)
        got = NATIVE["index_backward"](g, x.shape, key)
        assert got.dtype == dtype
        expected = KERNELS["index_backward"].reference(g.astype(np.float64), x.shape, key)
        np.testing.assert_array_equal(got, expected.astype(dtype))
        assert NATIVE["index_backward"](g[..., None], x.shape, key) is NotImplemented
    both = (np.array([0, 1]), np.array([1, 1]), ...)
    np.testing.assert_array_equal(NATIVE["index"](x, both), x[both])
    assert NATIVE["index_backward"](x[both], x.shape, both) is NotImplemented
    assert NATIVE["index"](x, (np.array([6]), ...)) is NotImplemented


@pytest.mark.parametrize("dtype", ITEMS)
def test_roll(dtype: Any) -> None:
    for shape in [(7,), (0, 3), (5, 33), (3, 4, 5)]:
        x = integers(shape, dtype)
        for axis, shift in itertools.product(range(x.ndim), (0, 1, -2, 40)):
            for layout in (x, x.T):
                got = NATIVE["roll"](layout, (shift,), (axis,))
                assert got.dtype == dtype
                np.testing.assert_array_equal(got, np.roll(layout, shift, axis))
    for shifts, axes in (
        ((1, 2), (0, 1)),
        ((1,), (3,)),
        ((1,), (-1,)),
        (1, 0),
        (1, None),
        ((1,), None),
        ((2**70,), (0,)),
    ):
        assert NATIVE["roll"](x, shifts, axes) is NotImplemented
    assert NATIVE["roll"](np.zeros((), dtype), (1,), (0,)) is NotImplemented
