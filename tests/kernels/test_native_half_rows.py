"""Softmax, norms and losses of half precision, read and written in one pass: what float32 gives, rounded once, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from extensor import get_num_threads, set_num_threads
from extensor.dtypes import bfloat16
from extensor.kernels import NATIVE

pytestmark = pytest.mark.skipif("softmax" not in NATIVE, reason="the native module is not built")

HALF = pytest.mark.parametrize("dtype", [bfloat16, np.float16], ids=["bfloat16", "float16"])
# One vector and less, its tail, groups of rows with and without a rest, rows too long to go in groups.
SIZES = [(1, 1), (3, 5), (8, 16), (19, 33), (64, 384), (5, 1500)]
BOTH = (True, True)
ALL = (True, True, True)


def draw(dtype: Any, *shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def unlike(dtype: Any, *shape: int) -> np.ndarray:
    """Rows of very different sizes, one of equal numbers, one with a nan and one with infinities."""
    x = draw(np.float32, *shape)
    x[0] = 3
    x[-1] *= 200
    if shape[0] > 4:
        x[2, 0], x[3, -1] = np.nan, np.inf
    return x.astype(dtype)


def calls(dtype: Any, rows: int, n: int) -> list[tuple[str, tuple[Any, ...]]]:
    x, g, w, b = unlike(dtype, rows, n), draw(dtype, rows, n), draw(dtype, n), draw(dtype, n)
    share = np.abs(draw(np.float32, rows, n)).clip(0, 1).astype(dtype)
    labels = np.arange(rows) % n
    one, each = np.array(1.5, dtype), draw(dtype, rows)
    found: list[tuple[str, tuple[Any, ...]]] = [
        ("softmax", (x, 1)),
        ("log_softmax", (x, 1)),
        ("softmax_backward", (g, share, 1)),
        ("log_softmax_backward", (g, x, 1)),
        ("softmax", (np.asfortranarray(x), 0)),  # columns, which are widened first
        ("layer_norm", (x, (n,), w, b, 1e-5)),
        ("layer_norm", (x, (n,), None, None, 1e-5)),
        ("rms_norm", (x, (n,), w, 1e-5)),
        ("layer_norm_backward", (g, x, (n,), w, 1e-5, ALL)),
        ("layer_norm_backward", (g, x, (n,), w, 1e-5, (False, True, False))),
        ("rms_norm_backward", (g, x, (n,), w, 1e-5, BOTH)),
        ("mean_squared_error", (x[::2], g[::2], "mean")),  # not in one piece
        ("kl_divergence", (share, share[::-1].copy(), 1, "sum")),
        ("kl_divergence_backward", (one, share, share[::-1].copy(), 1, "mean", BOTH)),
    ]
    for reduction in ("none", "mean", "sum"):
        upstream = (each if reduction == "none" else one).copy()
        options = (1, 0.0, None, -1, reduction)
        found.append(("cross_entropy", (x, np.where(labels == 2, -1, labels), *options)))
        found.append(("cross_entropy_backward", (upstream, x, np.where(labels == 2, -1, labels), *options)))
        arriving = g if reduction == "none" else one
        found.append(("mean_squared_error", (x, g, reduction)))
        found.append(("mean_squared_error_backward", (arriving, x, g, reduction)))
        found.append(("huber", (x, g, 0.5, reduction)))
        found.append(("huber_backward", (arriving, x, g, 0.5, reduction)))
        found.append(("binary_cross_entropy", (share, share, None, reduction)))
        found.append(("binary_cross_entropy_backward", (arriving, share, share, None, reduction)))
    return found


def results(value: Any) -> list[np.ndarray]:
    assert value is not NotImplemented
    return [v for v in (value if isinstance(value, tuple) else (value,)) if v is not None]


def bits(array: np.ndarray) -> np.ndarray:
    """The bits, with one nan for all of them."""
    return np.where(np.isnan(array.astype(np.float32)), np.uint16(0x7FFF), array.view(np.uint16))


@HALF
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_the_same_as_float32_rounded_once(size: tuple[int, int], dtype: Any) -> None:
    def wide(value: Any) -> Any:
        is_half = isinstance(value, np.ndarray) and value.dtype == dtype
        return value.astype(np.float32) if is_half else value

    for name, args in calls(dtype, *size):
        found = results(NATIVE[name](*args))
        expected = results(NATIVE[name](*map(wide, args)))
        for ours, theirs in zip(found, expected, strict=True):
            assert ours.dtype == dtype, name
            assert ours.shape == theirs.shape, name
            with np.errstate(over="ignore"):
                rounded = theirs.astype(dtype)
            np.testing.assert_array_equal(bits(ours), bits(rounded), err_msg=f"{name} {args[1:]}")


@HALF
def test_threads_give_the_same_bits(dtype: Any) -> None:
    before, found = get_num_threads(), []
    try:
        for threads in (1, 2, 3, 4):
            set_num_threads(threads)
            found.append([results(NATIVE[name](*args)) for name, args in calls(dtype, 700, 300)])
    finally:
        set_num_threads(before)
    for others in found[1:]:
        for one, other in zip(found[0], others, strict=True):
            for a, b in zip(one, other, strict=True):
                np.testing.assert_array_equal(bits(a), bits(b))


@HALF
def test_inputs_are_not_written_to(dtype: Any) -> None:
    for name, args in calls(dtype, 9, 40):
        before = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
        NATIVE[name](*args)
        for given, copy in zip(args, before, strict=True):
            if isinstance(given, np.ndarray):
                assert given.tobytes() == copy.tobytes(), name


@HALF
def test_empty(dtype: Any) -> None:
    x = np.empty((0, 5), dtype)
    assert NATIVE["softmax"](x, 1).shape == (0, 5)
    assert NATIVE["layer_norm"](x, (5,), None, None, 1e-5).shape == (0, 5)
    assert NATIVE["cross_entropy"](x, np.empty(0, np.int64), 1, 0.0, None, None, "none").shape == (0,)
    assert NATIVE["mean_squared_error"](x, x, "none").dtype == dtype


@HALF
def test_batch_norm_is_native(dtype: Any) -> None:
    x, w, b, mean, var = draw(dtype, 4, 3, 5, 6), *(draw(dtype, 3) for _ in range(4))
    var = np.abs(var)
    for training in (True, False):
        found = results(NATIVE["batch_norm"](x, w, b, mean, var, training, 0.1, 1e-5))
        wide = [a.astype(np.float32) for a in (x, w, b, mean, var)]
        expected = results(NATIVE["batch_norm"](*wide, training, 0.1, 1e-5))
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_array_equal(bits(ours), bits(theirs.astype(dtype)))
