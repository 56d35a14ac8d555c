"""The native reductions against the reference in float64: axes, layouts, special values, accuracy, threads."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from extensor import get_num_threads, set_num_threads
from extensor.dtypes import bfloat16
from extensor.kernels import KERNELS, NATIVE

pytestmark = pytest.mark.skipif("sum" not in NATIVE, reason="the native module is not built")

RNG = np.random.default_rng(20240608)

DTYPES = [np.float32, np.float64]
SHAPES = [
    (), (1,), (5,), (17,), (1000,), (100_003,), (3, 4), (64, 10), (10, 64), (7, 5, 6), (33, 70), (2, 3, 4, 5), (40, 600),
    (300, 1030), (5, 2000, 3), (0, 3), (3, 0),
]  # fmt: skip
KINDS = ["sum", "mean", "prod", "max_reduce", "min_reduce", "variance", "std", "logsumexp"]


def every_choice(ndim: int) -> list[tuple[int, ...]]:
    return list(
        itertools.chain.from_iterable(itertools.combinations(range(ndim), r) for r in range(ndim + 1))
    )


def is_split(shape: tuple[int, ...], axes: tuple[int, ...]) -> bool:
    """Whether a slice is more than one stretch (length, inner) of memory: a kept axis between two reduced ones."""
    kinds = [i in axes for i, n in enumerate(shape) if n != 1]
    return sum(1 for kind, _ in itertools.groupby(kinds) if kind) > 1


def options(kind: str) -> list[tuple[int, ...]]:
    return [(0,), (1,)] if kind in ("variance", "std") else [()]


def exact(kind: str, x: np.ndarray, axes: tuple[int, ...], keepdims: bool, *option: int) -> np.ndarray:
    """The reference in float64, along rows of neighbours: there NumPy adds up in pairs, elsewhere one by one."""
    kept = [i for i in range(x.ndim) if i not in axes]
    rows = (
        x.astype(np.float64)
        .transpose([*kept, *axes])
        .reshape(*(x.shape[i] for i in kept), math.prod(x.shape[i] for i in axes))
    )
    with np.errstate(all="ignore"):
        result = KERNELS[kind].reference(np.ascontiguousarray(rows), (rows.ndim - 1,), False, *option)
    return np.reshape(result, [n if i in kept else 1 for i, n in enumerate(x.shape) if keepdims or i in kept])


def room(kind: str, x: np.ndarray, axes: tuple[int, ...], expected: np.ndarray) -> Any:
    """What one rounding may be measured by: the sum of magnitudes for a sum, the shift for a logarithm of a sum."""
    wide = x.astype(np.float64)
    if kind in ("sum", "mean"):
        size = np.abs(wide).sum(axes).reshape(expected.shape)
        return size if kind == "sum" else size / max(1, math.prod(x.shape[i] for i in axes))
    if kind == "logsumexp":
        return np.abs(expected) + np.abs(wide).max(axes, initial=1).reshape(expected.shape)
    return np.abs(expected)


def units(kind: str, x: np.ndarray, axes: tuple[int, ...]) -> float:
    """Roundings allowed. float32 is accumulated in float64 and rounded once; float64 pays for its additions."""
    if kind in ("max_reduce", "min_reduce"):
        return 0
    if x.dtype == np.float32:
        return 4 if kind == "logsumexp" else 1
    return 8 + math.prod(x.shape[i] for i in axes) if kind == "prod" else 40


def assert_close(got: Any, expected: np.ndarray, dtype: Any, size: Any, allowed: float) -> None:
    assert got is not NotImplemented
    assert got.shape == expected.shape
    assert got.dtype == dtype
    with np.errstate(all="ignore"):
        rounded = expected.astype(dtype)
        near = np.abs(got.astype(np.float64) - expected) <= allowed * np.finfo(dtype).eps * size
    assert (near | (got == rounded) | (np.isnan(got) & np.isnan(rounded))).all(), (got, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_axes_and_layouts(kind: str, shape: tuple[int, ...], dtype: Any) -> None:
    values = np.asarray(RNG.standard_normal(shape) + 0.5).astype(dtype)
    for x in (values, values.T, values[::-1]) if values.ndim else (values,):
        for axes in itertools.chain.from_iterable(
            itertools.combinations(range(x.ndim), r) for r in range(x.ndim + 1)
        ):
            empty = math.prod(x.shape[i] for i in axes) == 0
            for keepdims, option in itertools.product((False, True), options(kind)):
                got = NATIVE[kind](x, axes, keepdims, *option)
                if empty and kind in ("max_reduce", "min_reduce"):
                    assert got is NotImplemented
                    continue
                expected = exact(kind, x, axes, keepdims, *option)
                assert_close(got, expected, dtype, room(kind, x, axes, expected), units(kind, x, axes))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("length", [3, 8, 37, 5000])
@pytest.mark.parametrize("kind", KINDS)
def test_special_values_at_every_kind_of_place(kind: str, length: int, dtype: Any) -> None:
    for place in sorted({0, 1, length // 2, length - 2, length - 1}):
        x = (1 + RNG.standard_normal((6, length)) / 100).astype(
            dtype
        )  # products of 5000 of them are still far from 0
        x[0, place] = np.nan
        x[1, place] = np.inf
        x[2, place] = -np.inf
        x[3] = -np.inf
        x[4, place], x[4, place - 1] = np.inf, -np.inf
        for matrix, axes in ((x, (1,)), (np.ascontiguousarray(x.T), (0,)), (x, (0, 1))):
            for option in options(kind):
                expected = exact(kind, matrix, axes, False, *option)
                assert_close(
                    NATIVE[kind](matrix, axes, False, *option), expected, dtype, np.abs(expected) + 4, 50
                )


def test_float32_adds_up_in_float64() -> None:
    for n in (3, 100, 70_000):
        x = np.tile(np.float32([1e8, 1, -1e8]), n)
        assert NATIVE["sum"](x, (0,), False) == n
        columns = np.ascontiguousarray(np.broadcast_to(x[:, None], (3 * n, 5)))
        np.testing.assert_array_equal(NATIVE["sum"](columns, (0,), False), np.full(5, n, np.float32))
    shifted = (np.arange(50_000) % 2 + 1e6).astype(np.float32)
    assert NATIVE["variance"](shifted, (0,), False, 0) == 0.25


@pytest.mark.parametrize("scale", [1e-30, 1e-8, 1.0, 1e8, 1e18, 1e34])
def test_long_rows_of_float32(scale: float) -> None:
    """Where elements cancel, and where a few of them together are more than float32 holds."""
    for n in (200, 5000, 40_000):
        x = (RNG.standard_normal((3, n)) * scale).astype(np.float32)
        x[1] = np.repeat(np.float32([2e38, 2e38, -2e38, -2e38]), n // 4)
        x[2, ::2] = -x[2, 1::2]
        x[2, n // 2] *= np.float32(1 + 1e-4)
        expected = x.astype(np.float64).sum(1)
        got = NATIVE["sum"](x, (1,), False)
        np.testing.assert_array_equal(got[1:], expected[1:].astype(np.float32))
        room = np.abs(expected[0]) + np.sqrt(np.square(x[0], dtype=np.float64).sum())
        assert abs(float(got[0]) - expected[0]) <= np.finfo(np.float32).eps * room


@pytest.mark.parametrize("dtype", [np.float16, bfloat16])
def test_half_is_rounded_once(dtype: Any) -> None:
    x = RNG.standard_normal((9, 40)).astype(dtype)
    got = NATIVE["sum"](x, (1,), False)
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, x.astype(np.float64).sum(1).astype(np.float32).astype(dtype))


@pytest.mark.parametrize("dtype", [np.float16, bfloat16])
@pytest.mark.parametrize("shape", [(1,), (5,), (127,), (128,), (3, 301), (70_000,), (20, 2, 130)], ids=str)
def test_sums_of_half_precision(shape: tuple[int, ...], dtype: Any) -> None:
    x = (RNG.standard_normal(shape) * RNG.uniform(0.01, 3, shape)).astype(dtype)
    wide = x.astype(np.float64)
    for name, axes in itertools.product(("sum", "mean"), every_choice(x.ndim)):
        got = NATIVE[name](x, axes, False)
        exact = getattr(np, name)(wide, axis=axes)
        assert got.dtype == dtype
        # added up in float32 a few at a time, rounded to half precision once
        size = getattr(np, name)(np.abs(wide), axis=axes)
        unit = 2.0**-11 if dtype == np.float16 else 2.0**-8
        room = np.abs(exact) * unit * (1 + 2**-10) + size * 2.0**-22 + 2.0**-25
        assert (np.abs(got.astype(np.float64) - exact) <= room).all()


def test_large_bfloat16_do_not_overflow_on_the_way() -> None:
    x = np.zeros(1000, bfloat16)
    x[:400], x[400:800] = 3e38, -3e38
    assert NATIVE["sum"](x, (0,), False) == 0
    x[3] = np.inf
    assert NATIVE["sum"](x, (0,), False) == np.inf
    x[999] = np.nan
    assert np.isnan(NATIVE["sum"](x, (0,), False).astype(np.float32))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 5, 6), (64, 128), (2, 3, 4, 5)], ids=str)
def test_sum_to_shape(shape: tuple[int, ...], dtype: Any) -> None:
    x = RNG.standard_normal(shape).astype(dtype)
    for extra in range(x.ndim + 1):
        for ones in itertools.product((False, True), repeat=x.ndim - extra):
            target = tuple(1 if one else n for one, n in zip(ones, shape[extra:]))
            got = NATIVE["sum_to_shape"](x, target)
            if target == shape:
                assert got is NotImplemented  # nothing to add: a view
                continue
            expected = KERNELS["sum_to_shape"].reference(x.astype(np.float64), target)
            size = KERNELS["sum_to_shape"].reference(np.abs(x.astype(np.float64)), target)
            assert_close(got, expected, dtype, size, 4)
    assert NATIVE["sum_to_shape"](x, (*shape[:-1], shape[-1] + 1)) is NotImplemented
    assert NATIVE["sum_to_shape"](x, (1, *shape)) is NotImplemented


@pytest.mark.parametrize("axes", [63, 64])
def test_sum_of_all_axes_an_array_can_have(axes: int) -> None:
    """64 axes take all bits of the set of axes."""
    x = np.ones((2, 3) + (1,) * (axes - 2), np.float32)
    assert NATIVE["sum_to_shape"](x, ()) == 6
    assert NATIVE["sum"](x, tuple(range(axes)), False) == 6


@pytest.mark.parametrize("dtype", [*DTYPES, np.float16])
@pytest.mark.parametrize("kind", ["argmax", "argmin"])
def test_argmax_finds_the_first(kind: str, dtype: Any) -> None:
    for shape in [(1,), (7,), (1000,), (5, 33), (33, 5), (4, 3, 600)]:
        x = RNG.integers(-9, 9, shape).astype(dtype)  # many ties
        with_nan = x.copy()
        with_nan.reshape(-1)[x.size // 2 :: 3] = np.nan
        for values in (x, with_nan):
            for axis, keepdims in itertools.product((None, *range(x.ndim)), (False, True)):
                got = NATIVE[kind](values, axis, keepdims)
                expected = getattr(np, kind)(values, axis, keepdims=keepdims)
                assert got.dtype == np.int64
                np.testing.assert_array_equal(got, expected)
                assert got.shape == np.shape(expected)
    assert NATIVE[kind](np.empty((0, 3), dtype), 0, False) is NotImplemented


@pytest.mark.parametrize("dtype", [np.bool_, *DTYPES])
@pytest.mark.parametrize("shape", [*SHAPES, (9000,), (3, 9000)], ids=str)
@pytest.mark.parametrize("name", ["any", "all", "count_nonzero"])
def test_what_is_true(name: str, shape: tuple[int, ...], dtype: Any) -> None:
    zeros = np.zeros(shape, dtype)
    last = zeros.copy()
    last.reshape(-1)[-1:] = 1
    mixed = np.asarray(RNG.integers(0, 2, shape)).astype(dtype)
    odd = np.where(mixed == 1, np.nan, -0.0).astype(dtype)  # nan is true, -0 is not
    for x in map(np.asarray, (zeros, last, last == 0, (last == 0).astype(dtype), mixed, odd)):
        for axes, keepdims in itertools.product(every_choice(x.ndim), (False, True)):
            got = NATIVE[name](x, axes, keepdims)
            if is_split(shape, axes):
                assert got is NotImplemented
                continue
            expected = np.asarray(getattr(np, name)(x, axis=axes, keepdims=keepdims))
            assert got.dtype == expected.dtype
            assert got.shape == expected.shape
            np.testing.assert_array_equal(got, expected)
    for x in (np.ones((3, 4), np.int64), np.ones((3, 4), np.float16), np.ones((3, 4), dtype).T):
        assert NATIVE[name](x, (0,), False) is NotImplemented


GRADIENTS = [f"{kind}_backward" for kind in KINDS if kind not in ("sum", "mean")]
SPREADS = ["sum_backward", "mean_backward"]


def upstream(shape: tuple[int, ...], axes: tuple[int, ...], keepdims: bool, dtype: Any) -> np.ndarray:
    kept = [1 if i in axes else n for i, n in enumerate(shape) if keepdims or i not in axes]
    return np.asarray(RNG.standard_normal(kept)).astype(dtype)


def gradient_room(
    name: str, g: np.ndarray, x: np.ndarray, axes: tuple[int, ...], expected: np.ndarray
) -> Any:
    """What one rounding may be measured by: x - mean is as inexact as the mean, and an exponential as its exponent."""
    wide = x.astype(np.float64)
    if name.startswith("logsumexp"):
        return np.abs(expected) * (1 + np.abs(wide - wide.max(axes, keepdims=True, initial=-np.inf))) + 1e-37
    if x.dtype == np.float64 and name.startswith(("variance", "std")) and x.size:
        # the expected value is a float64 too: elements that nearly agree leave few digits of their differences
        apart = np.abs(wide - wide.mean(axes, keepdims=True)).max(axes, keepdims=True)
        digits = np.abs(wide).max(axes, keepdims=True) / np.where(apart == 0, 1, apart)
        return np.abs(expected).max(axes, keepdims=True) * (1 + digits)
    if x.dtype == np.float64 and name.startswith(
        "prod"
    ):  # one rounding for each factor, here and in the reference
        return np.abs(expected) * (1 + math.prod(x.shape[i] for i in axes) / 10)
    return np.abs(expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_over_axes_and_lengths(name: str, shape: tuple[int, ...], dtype: Any) -> None:
    x = np.asarray(RNG.standard_normal(shape) * 3 + 0.5).astype(dtype)
    for axes, keepdims in itertools.product(every_choice(x.ndim), (False, True)):
        for option in options(name.removesuffix("_backward")):
            g = upstream(shape, axes, keepdims, dtype)
            got = NATIVE[name](g, x, axes, keepdims, *option)
            if is_split(shape, axes):
                assert got is NotImplemented
                continue
            with np.errstate(all="ignore"):
                expected = KERNELS[name].reference(
                    g.astype(np.float64), x.astype(np.float64), axes, keepdims, *option
                )
                room = gradient_room(name, g, x, axes, expected)
            assert_close(got, expected, dtype, room, 3 if dtype == np.float32 else 20)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [*SHAPES, (1, 1, 7), (2, 1, 3)], ids=str)
@pytest.mark.parametrize("name", SPREADS)
def test_gradients_of_sum_and_mean(name: str, shape: tuple[int, ...], dtype: Any) -> None:
    for axes, keepdims in itertools.product(every_choice(len(shape)), (False, True)):
        g = upstream(shape, axes, keepdims, dtype)
        for given in (g, np.broadcast_to(g.reshape(-1)[0], g.shape)) if g.size else (g,):
            got = NATIVE[name](given, shape, axes, keepdims)
            if 0 in shape:
                assert got is NotImplemented
                continue
            np.testing.assert_array_equal(got, KERNELS[name].reference(given, shape, axes, keepdims))
            assert got.shape == shape
            assert got.dtype == dtype
            if got.size * got.itemsize >= 64 * 1024:
                assert not got.flags.writeable  # a view
            elif not is_split(shape, axes):
                assert got.flags.c_contiguous
                assert got.flags.writeable


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "shape", [(7,), (4096,), (40_000,), (6, 33), (33, 6), (100, 600), (4, 50, 6)], ids=str
)
@pytest.mark.parametrize("name", ["max_reduce_backward", "min_reduce_backward"])
def test_equal_extremes_share_the_gradient(name: str, shape: tuple[int, ...], dtype: Any) -> None:
    x = RNG.integers(-3, 4, shape).astype(dtype)
    x[x == 0] *= RNG.choice([-1, 1], (x == 0).sum())  # 0 and -0 are equal
    for values in (x, np.minimum(x, 0), np.zeros_like(x), np.full_like(x, -np.inf)):
        for axes in every_choice(x.ndim):
            g = upstream(shape, axes, False, dtype)
            if not is_split(shape, axes):
                expected = KERNELS[name].reference(g, values, axes, False)
                np.testing.assert_array_equal(NATIVE[name](g, values, axes, False), expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("length", [3, 8, 37, 5000, 70_000])
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_at_special_values(name: str, length: int, dtype: Any) -> None:
    for place in sorted({0, length // 2, length - 1}):
        x = RNG.standard_normal((9, length)).astype(dtype)
        x[0, place] = np.nan
        x[1, place] = np.inf
        x[2, place] = -np.inf
        x[3] = -np.inf
        x[4, place], x[4, place - 1] = np.inf, -np.inf
        x[5] = 2
        x[6, place], x[6, place - 1] = np.inf, 1000
        x[7, place] = 1000
        for matrix, axes in (
            (x, (1,)),
            (np.ascontiguousarray(x.T), (0,)),
            (x[1], (0,)),
            (x[2], (0,)),
            (x[6], (0,)),
        ):
            g = upstream(matrix.shape, axes, False, dtype)
            for option in options(name.removesuffix("_backward")):
                with np.errstate(all="ignore"):
                    expected = KERNELS[name].reference(
                        g.astype(np.float64), matrix.astype(np.float64), axes, False, *option
                    )
                    room = (
                        np.nan_to_num(gradient_room(name, g, matrix, axes, expected), posinf=0)
                        + np.nan_to_num(np.abs(g)).max()
                    )
                assert_close(NATIVE[name](g, matrix, axes, False, *option), expected, dtype, room, 50)


@pytest.mark.parametrize("dtype", [np.float16, bfloat16])
@pytest.mark.parametrize("name", [*GRADIENTS, *SPREADS])
def test_gradients_in_half_precision(name: str, dtype: Any) -> None:
    x = RNG.standard_normal((9, 40)).astype(dtype)
    for axes in [(0,), (1,), (0, 1)]:
        g = upstream(x.shape, axes, False, dtype)
        option = options(name.removesuffix("_backward"))[0]
        second, wide = (x.shape, x.shape) if name in SPREADS else (x, x.astype(np.float32))
        got = NATIVE[name](g, second, axes, False, *option)
        assert got.dtype == dtype
        exact = KERNELS[name].reference(g.astype(np.float32), wide, axes, False, *option)
        difference = np.abs(got.astype(np.float64) - exact.astype(dtype).astype(np.float64))
        assert (difference <= np.abs(exact) * (2**-10 if dtype == np.float16 else 2**-7)).all()
    with_float = NATIVE[name](g.astype(np.float32), second, axes, False, *option)
    assert with_float is NotImplemented or name in SPREADS


@pytest.mark.parametrize("dtype", [np.float16, bfloat16])
def test_large_gradients_of_sum_and_mean_in_half_precision(dtype: Any) -> None:
    g = RNG.standard_normal(200).astype(dtype)
    moved = NATIVE["sum_backward"](g, (300, 200), (0,), False)
    assert moved.dtype == dtype
    np.testing.assert_array_equal(moved, np.broadcast_to(g, (300, 200)))
    assert NATIVE["mean_backward"](g, (300, 200), (0,), False) is NotImplemented
    divided = KERNELS["mean_backward"].on_arrays(g, (300, 200), (0,), False)
    np.testing.assert_array_equal(divided[7], (g.astype(np.float32) / np.float32(300)).astype(dtype))


@pytest.mark.parametrize("name", [*GRADIENTS, *SPREADS])
def test_gradients_leave_what_they_do_not_know_to_the_reference(name: str) -> None:
    x, option = RNG.standard_normal((4, 6)), options(name.removesuffix("_backward"))[0]
    second = x.shape if name in SPREADS else x
    for g, axes, keepdims in [
        (np.ones(4), (0,), False), (np.ones(6), (0,), True), (np.ones((1, 6)), (0,), False), (np.ones(6), (2,), False),
        (np.ones(6), 0, False), (np.ones(6), (0,), 1), (np.ones(6, np.int64), (0,), False), (np.ones(6, ">f8"), (0,), False),
    ]:  # fmt: skip
        assert NATIVE[name](g, second, axes, keepdims, *option) is NotImplemented
    if name in GRADIENTS:
        for other in (x.T.reshape(4, 6, order="F"), x.astype(np.float32), x.astype(np.int64)):
            assert NATIVE[name](np.ones(6), other, (0,), False, *option) is NotImplemented
    else:
        assert NATIVE[name](np.ones(6), (-4, 6), (0,), False) is NotImplemented
        assert NATIVE[name](np.ones(6), (4.0, 6), (0,), False) is NotImplemented


@pytest.fixture
def threads():  # type: ignore[no-untyped-def]
    before = get_num_threads()
    yield set_num_threads
    set_num_threads(before)


@pytest.mark.parametrize("shape", [(1_000_001,), (700, 800), (3, 300, 600), (9, 200_000)], ids=str)
@pytest.mark.parametrize("name", GRADIENTS)
def test_the_same_gradients_on_any_number_of_threads(name: str, shape: tuple[int, ...], threads: Any) -> None:
    x = RNG.standard_normal(shape).astype(np.float32)
    for axes in every_choice(x.ndim)[1:]:
        if is_split(shape, axes):
            continue
        g, results = upstream(shape, axes, False, np.float32), []
        for count in (1, 2, 3, 4):
            threads(count)
            results.append(
                NATIVE[name](g, x, axes, False, *options(name.removesuffix("_backward"))[0]).tobytes()
            )
        assert len(set(results)) == 1


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3_000_001,), (1500, 1600), (40, 300, 250)], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_bits_on_any_number_of_threads(
    kind: str, shape: tuple[int, ...], dtype: Any, threads: Any
) -> None:
    x = RNG.standard_normal(shape).astype(dtype)
    for axes in itertools.chain.from_iterable(
        itertools.combinations(range(x.ndim), r + 1) for r in range(x.ndim)
    ):
        results = []
        for count in (1, 2, 3, 4):
            threads(count)
            results.append(NATIVE[kind](x, axes, False, *options(kind)[0]).tobytes())
        assert len(set(results)) == 1


@pytest.mark.parametrize("shape", [(0, 4, 5), (3, 4, 0), (0, 4, 0), (3, 0, 5), (0, 4), (4, 0), (0,)])
@pytest.mark.parametrize("name", ["sum", "mean", "prod", "variance", "std", "logsumexp"])
def test_nothing_to_reduce(name, shape):
    x = np.zeros(shape, np.float32)
    ddof = (0,) if name in ("variance", "std") else ()
    for axes in [(0,), (len(shape) - 1,), tuple(range(len(shape))), (0, 2)[: len(shape) - 1] or (0,)]:
        expected = KERNELS[name].reference
        with np.errstate(all="ignore"):
            want = expected(x, axes, False, *ddof)
        np.testing.assert_array_equal(NATIVE[name](x, axes, False, *ddof), want)


def test_nothing_to_add_to_a_shape():
    found = NATIVE["sum_to_shape"](np.zeros((0, 4, 5), np.float32), (1, 4, 1))
    np.testing.assert_array_equal(found, np.zeros((1, 4, 1), np.float32))
