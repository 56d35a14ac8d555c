"""Native softmax, log-softmax and cross-entropy against the reference in float64."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from extensor import get_num_threads, set_num_threads
from extensor.kernels import KERNELS, NATIVE

pytestmark = pytest.mark.skipif("softmax" not in NATIVE, reason="the native module is not built")

RNG = np.random.default_rng(20240609)
DTYPES = [np.float32, np.float64]
SHAPES = [
    (),
    (1,),
    (5,),
    (64, 10),
    (3, 7, 9),
    (20, 33),
    (8, 1000),
    (2, 3, 1000),
    (4, 2000, 6),
    (2, 9, 700),
    (0, 4),
    (4, 1),
]


def exact(name: str, *args: Any) -> np.ndarray:
    wide = [a.astype(np.float64) if isinstance(a, np.ndarray) and a.dtype.kind == "f" else a for a in args]
    with np.errstate(all="ignore"):
        return np.asarray(KERNELS[name].reference(*wide))


def assert_close(got: Any, expected: np.ndarray, dtype: Any, size: Any) -> None:
    """Within eight roundings of ``size``."""
    assert got is not NotImplemented
    assert got.shape == expected.shape
    assert got.dtype == dtype
    with np.errstate(all="ignore"):
        near = np.abs(got.astype(np.float64) - expected) <= 8 * np.finfo(dtype).eps * size
    assert (near | (got == expected) | (np.isnan(got) & np.isnan(expected))).all(), (got, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_forward_and_backward(shape: tuple[int, ...], dtype: Any) -> None:
    x = np.asarray(RNG.standard_normal(shape) * 5).astype(dtype)
    g = np.asarray(RNG.standard_normal(shape)).astype(dtype)
    for axis in range(max(1, x.ndim)):
        along = axis if x.ndim else None
        shift = np.abs(x).max(initial=1)
        y, log_y = exact("softmax", x, axis), exact("log_softmax", x, axis)
        assert_close(
            NATIVE["softmax"](x, axis), y, dtype, y * (1 + shift / 4)
        )  # the shift is rounded before exp
        assert_close(NATIVE["log_softmax"](x, axis), log_y, dtype, np.abs(log_y) + shift)
        y, log_y = y.astype(dtype), log_y.astype(dtype)
        size = y * (np.abs(g) + np.abs(g * y).sum(along, keepdims=True))
        assert_close(
            NATIVE["softmax_backward"](g, y, axis), exact("softmax_backward", g, y, axis), dtype, size
        )
        size = np.abs(g) + np.exp(log_y) * np.abs(g).sum(along, keepdims=True)
        assert_close(
            NATIVE["log_softmax_backward"](g, log_y, axis),
            exact("log_softmax_backward", g, log_y, axis),
            dtype,
            size,
        )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("length", [2, 8, 37, 700])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_special_values(name: str, length: int, dtype: Any) -> None:
    for place in {0, length // 2, length - 1}:
        x = RNG.standard_normal((6, length)).astype(dtype)
        x[0, place] = np.nan
        x[1, place] = np.inf
        x[2, place] = -np.inf
        x[3] = -np.inf
        x[4, place] = 1000
        for matrix, axis in ((x, 1), (np.ascontiguousarray(x.T), 0)):
            got, expected = NATIVE[name](matrix, axis), exact(name, matrix, axis)
            assert_close(got, expected, dtype, np.abs(expected) + (8 if name == "log_softmax" else 0))
            assert np.isnan(np.moveaxis(got, axis, 1)[3]).all()


LABELS = [np.int64, np.int32, np.uint8]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(64, 10), (5, 1000), (4, 6, 17), (7,)], ids=str)
def test_cross_entropy(shape: tuple[int, ...], dtype: Any) -> None:
    x = (RNG.standard_normal(shape) * 4).astype(dtype)
    axis = len(shape) - 1
    for label_type, ignored, reduction in itertools.product(LABELS, (None, 0, 3), ("mean", "sum", "none")):
        targets = np.asarray(RNG.integers(0, min(shape[-1], 200), shape[:-1])).astype(label_type)
        if shape == (7,):
            targets = np.asarray(2, label_type)  # a mean over no row at all has a test of its own
        options = (targets, axis, 0.0, None, ignored, reduction)
        expected = exact("cross_entropy", x, *options)
        assert_close(
            NATIVE["cross_entropy"](x, *options), expected, dtype, np.abs(expected) + np.abs(x).max()
        )
        g = np.asarray(RNG.standard_normal(expected.shape)).astype(dtype)
        slope = exact("cross_entropy_backward", g, x, *options)
        got = NATIVE["cross_entropy_backward"](g, x, *options)
        assert_close(got, slope, dtype, np.abs(slope) * np.abs(x).max() + np.abs(g).max() / 4)


def test_cross_entropy_edges() -> None:
    x = np.float32([[1, 2, 3], [np.nan, 0, 0], [-np.inf, 0, 1], [1000, 0, -1000]])
    labels = np.array([2, 1, 1, 0])
    for ignored in (None, 1):
        options = (labels, 1, 0.0, None, ignored, "none")
        np.testing.assert_allclose(
            NATIVE["cross_entropy"](x, *options), exact("cross_entropy", x, *options), 1e-6
        )
        g = np.ones(4, np.float32)
        got, expected = (
            NATIVE["cross_entropy_backward"](g, x, *options),
            exact("cross_entropy_backward", g, x, *options),
        )
        np.testing.assert_allclose(got, expected, 1e-6, 1e-7)
    none_left = (np.array([1, 1, 1, 1]), 1, 0.0, None, 1, "mean")
    assert np.isnan(NATIVE["cross_entropy"](x, *none_left))


def test_cross_entropy_leaves_the_rest_to_the_reference() -> None:
    x = RNG.standard_normal((4, 3)).astype(np.float32)
    labels = np.array([0, 1, 2, 0])
    weight = np.ones(3, np.float32)
    for options in (
        (labels, 0, 0.0, None, None, "mean"),
        (labels, 1, 0.1, None, None, "mean"),
        (labels, 1, 0.0, weight, None, "mean"),
        (np.array([0, 1, 3, 0]), 1, 0.0, None, None, "mean"),
        (np.array([0, 1, -1, 0]), 1, 0.0, None, None, "mean"),
        (x, 1, 0.0, None, None, "mean"),
    ):
        assert NATIVE["cross_entropy"](x, *options) is NotImplemented
        assert NATIVE["cross_entropy_backward"](np.ones((), np.float32), x, *options) is NotImplemented


@pytest.fixture
def threads():  # type: ignore[no-untyped-def]
    before = get_num_threads()
    yield set_num_threads
    set_num_threads(before)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1500, 600), (30, 200, 150)], ids=str)
def test_the_same_bits_on_any_number_of_threads(shape: tuple[int, ...], dtype: Any, threads: Any) -> None:
    x, g = (RNG.standard_normal(shape).astype(dtype) for _ in range(2))
    targets = RNG.integers(0, shape[-1], shape[:-1])
    options = (targets, len(shape) - 1, 0.0, None, None, "mean")
    results = []
    for count in (1, 2, 3, 4):
        threads(count)
        arrays = [NATIVE["cross_entropy"](x, *options)]
        arrays.append(NATIVE["cross_entropy_backward"](arrays[0], x, *options))
        for axis in range(x.ndim):
            for name in ("softmax", "log_softmax"):
                y = NATIVE[name](x, axis)
                arrays += [y, NATIVE[f"{name}_backward"](g, y, axis)]
        results.append(b"".join(a.tobytes() for a in arrays))
    assert len(set(results)) == 1
