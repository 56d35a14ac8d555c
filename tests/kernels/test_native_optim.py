"""The native optimiser steps give the bits of the reference, for every combination of options."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from extensor.kernels import KERNELS, NATIVE

pytestmark = pytest.mark.skipif("adam_step" not in NATIVE, reason="the native module is not built")

SHAPES = [(7,), (3, 50), (), (64, 33), (0, 4)]


def arrays(rng: np.random.Generator, dtype: Any, positive: bool = False) -> list[np.ndarray]:
    drawn = [np.asarray(rng.normal(size=shape), dtype) for shape in SHAPES]
    return [np.asarray(np.abs(a)) for a in drawn] if positive else drawn


def assert_same(got: Any, want: Any) -> None:
    if isinstance(want, (list, tuple)):
        assert type(got) is type(want)
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            assert_same(g, w)
    elif want is None:
        assert got is None
    else:
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want, strict=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("momentum", "dampening", "decay", "nesterov", "maximize"),
    list(itertools.product([0.0, 0.9], [0.0, 0.25], [0.0, 0.01], [False, True], [False, True])),
)
def test_sgd(
    dtype: Any, momentum: float, dampening: float, decay: float, nesterov: bool, maximize: bool
) -> None:
    rng = np.random.default_rng(0)
    params, grads, buffers = (arrays(rng, dtype) for _ in range(3))
    for state in ([None] * len(SHAPES), buffers, [None, *buffers[1:]]):
        args = (params, grads, state, 0.1, momentum, dampening, decay, nesterov, maximize)
        assert_same(NATIVE["sgd_step"](*args), KERNELS["sgd_step"].reference(*args))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("decay", "decoupled", "maximize"), list(itertools.product([0.0, 0.01], [False, True], [False, True]))
)
def test_adam(dtype: Any, decay: float, decoupled: bool, maximize: bool) -> None:
    rng = np.random.default_rng(0)
    params, grads, averages, squares = (arrays(rng, dtype, positive=k == 3) for k in range(4))
    args = (
        params,
        grads,
        averages,
        squares,
        None,
        [1, 2, 3, 10, 1000],
        1e-3,
        0.9,
        0.999,
        1e-8,
        decay,
        decoupled,
        maximize,
    )
    assert_same(NATIVE["adam_step"](*args), KERNELS["adam_step"].reference(*args))


def test_gradients_in_any_layout() -> None:
    rng = np.random.default_rng(0)
    param, grad = rng.normal(size=(40, 30)), rng.normal(size=(30, 40)).T
    args = ([param], [grad], [None], 0.1, 0.0, 0.0, 0.0, False, False)
    assert_same(NATIVE["sgd_step"](*args), KERNELS["sgd_step"].reference(*args))


def test_a_parameter_without_decay_stays_out_of_its_gradient() -> None:
    args = ([np.array([np.inf, 1.0])], [np.array([2.0, 3.0])], [None], 0.5, 0.9, 0.0, 0.0, False, False)
    np.testing.assert_array_equal(NATIVE["sgd_step"](*args)[1][0], [2.0, 3.0])


def test_what_is_not_covered_is_left_to_the_reference() -> None:
    x, half = np.ones(3, np.float32), np.ones(3, np.float16)
    sgd, adam = NATIVE["sgd_step"], NATIVE["adam_step"]
    rest = (0.1, 0.0, 0.0, 0.0, False, False)
    assert sgd([half], [half], [None], *rest) is NotImplemented
    assert sgd([x], [half], [None], *rest) is NotImplemented
    assert sgd([x], [np.ones(4, np.float32)], [None], *rest) is NotImplemented
    assert sgd([x, x], [x], [None], *rest) is NotImplemented
    assert sgd([x], [None], [None], *rest) is NotImplemented
    assert adam([x], [x], [x], [x], [x], [1], 1e-3, 0.9, 0.999, 1e-8, 0.0, False, False) is NotImplemented
