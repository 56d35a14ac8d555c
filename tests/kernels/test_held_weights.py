"""What convolutions keep of held weights: the same bits, nothing left behind."""

from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np
import pytest

from extensor.kernels import KERNELS
from extensor.kernels.held_weights import held_weights

CASES: dict[str, tuple[tuple[int, ...], tuple[int, ...], tuple[Any, ...]]] = {
    "Winograd": ((4, 24, 12, 12), (40, 24, 3, 3), ((1, 1), (1, 1, 1, 1), (1, 1), 1)),
    "direct": ((2, 3, 9, 9), (5, 3, 5, 5), ((1, 1), (2, 2, 2, 2), (1, 1), 1)),
    "steps": ((2, 8, 9, 9), (6, 8, 3, 3), ((2, 2), (1, 1, 1, 1), (1, 1), 1)),
    "groups": ((2, 8, 9, 9), (8, 1, 3, 3), ((1, 1), (1, 1, 1, 1), (1, 1), 8)),
    "pointwise": ((2, 8, 9, 9), (6, 8, 1, 1), ((1, 1), (0, 0, 0, 0), (1, 1), 1)),
}


def drawn(shape: tuple[int, ...], seed: int, dtype: Any) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def results(x: np.ndarray, weight: np.ndarray, options: tuple[Any, ...]) -> list[bytes]:
    conv2d, backward = KERNELS["conv2d"].on_arrays, KERNELS["conv2d_backward"].on_arrays
    y = conv2d(x, weight, None, *options)
    return [
        a.tobytes()
        for a in (y, *backward(np.cos(y), x, weight, *options, (True, True, False)))
        if a is not None
    ]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("case", CASES)
def test_bits_are_those_without(case: str, dtype: Any) -> None:
    shape, weight_shape, options = CASES[case]
    weight = drawn(weight_shape, 0, dtype)
    images = [drawn((count, *shape[1:]), count, dtype) for count in (shape[0], shape[0], 1, shape[0])]
    wanted = [results(x, weight, options) for x in images]
    with held_weights([weight]):
        assert [results(x, weight, options) for x in images] == wanted


@pytest.mark.parametrize("value", [np.inf, np.nan, 1e30])
def test_weights_that_do_not_suit_the_method(value: float) -> None:
    shape, weight_shape, options = CASES["Winograd"]
    x, weight = drawn(shape, 1, np.float32), drawn(weight_shape, 0, np.float32)
    weight[3, 2, 1, 1] = value
    with np.errstate(all="ignore"):
        wanted = results(x, weight, options)
        with held_weights([weight]):
            assert [results(x, weight, options) for _ in range(3)] == [wanted] * 3


def test_weights_are_held_in_the_block_alone() -> None:
    shape, weight_shape, options = CASES["Winograd"]
    x, weight = drawn(shape, 1, np.float32), drawn(weight_shape, 0, np.float32)
    before = sys.getrefcount(weight)
    with pytest.raises(RuntimeError, match="enough"), held_weights([weight]):
        results(x, weight, options)
        raise RuntimeError("enough")
    assert sys.getrefcount(weight) == before
    weight *= 2  # nothing of the old one is left
    wanted = results(x, weight.copy(), options)
    assert results(x, weight, options) == wanted


def test_other_threads_keep_nothing() -> None:
    shape, weight_shape, options = CASES["Winograd"]
    x, weight = drawn(shape, 1, np.float32), drawn(weight_shape, 0, np.float32)
    found: list[list[bytes]] = []
    with held_weights([weight]):
        results(x, weight, options)
        weight *= 2  # which an update would not do
        thread = threading.Thread(target=lambda: found.append(results(x, weight, options)))
        thread.start()
        thread.join()
    assert found == [results(x, weight, options)]
