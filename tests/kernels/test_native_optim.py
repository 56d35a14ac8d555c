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
    elif want is None or isinstance(want, float):
        assert got == want
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


OPTIONS = list(itertools.product([0.0, 0.01], [False, True]))
STEPS = [1, 2, 3, 10, 1000]


def check(name: str, *args: Any) -> None:
    found = NATIVE[name](*args)
    assert found is not NotImplemented
    with np.errstate(all="ignore"):
        assert_same(found, KERNELS[name].reference(*args))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("decay", "maximize"), OPTIONS)
def test_rules_without_steps(dtype: Any, decay: float, maximize: bool) -> None:
    rng = np.random.default_rng(0)
    params, grads, means = (arrays(rng, dtype) for _ in range(3))
    squares, moved = (arrays(rng, dtype, positive=True) for _ in range(2))
    wide = [np.asarray(s + m * m) for s, m in zip(squares, means)]  # no less than the square of the mean
    check("rmsprop_step", params, grads, squares, None, None, 0.1, 0.99, 1e-8, decay, 0.0, maximize)
    check("rmsprop_step", params, grads, squares, None, means, 0.1, 0.99, 1e-8, decay, 0.9, maximize)
    check("rmsprop_step", params, grads, wide, means, None, 0.1, 0.99, 1e-8, decay, 0.0, maximize)
    check("lion_step", params, grads, means, 0.1, 0.9, 0.99, decay, maximize)
    check("adadelta_step", params, grads, squares, moved, 1.0, 0.9, 1e-6, decay, maximize)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("decoupled", [False, True])
@pytest.mark.parametrize(("decay", "maximize"), OPTIONS)
def test_rules_with_steps(dtype: Any, decay: float, maximize: bool, decoupled: bool) -> None:
    rng = np.random.default_rng(0)
    params, grads, means = (arrays(rng, dtype) for _ in range(3))
    squares = arrays(rng, dtype, positive=True)
    adam = (params, grads, means, squares)
    check("adagrad_step", params, grads, squares, STEPS, 0.1, 0.01, 1e-10, decay, maximize)
    check(
        "nadam_step",
        *adam,
        [1.0, 0.5, 0.25, 0.1, 1e-9],
        STEPS,
        2e-3,
        0.9,
        0.999,
        1e-8,
        decay,
        4e-3,
        decoupled,
        maximize,
    )
    check("radam_step", *adam, STEPS, 1e-3, 0.9, 0.999, 1e-8, decay, decoupled, maximize)
    check(
        "radam_step", *adam, STEPS, 1e-3, 0.9, 0.5, 1e-8, decay, decoupled, maximize
    )  # never enough squares


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("decay", "maximize"), OPTIONS)
def test_lamb(dtype: Any, decay: float, maximize: bool) -> None:
    """The averages to the bit; two norms are added up in another order."""
    rng = np.random.default_rng(0)
    params, grads, means = (arrays(rng, dtype) for _ in range(3))
    params[0] *= 0  # without a length
    squares = arrays(rng, dtype, positive=True)
    args = (params, grads, means, squares, STEPS, 1e-2, 0.9, 0.999, 1e-6, decay, maximize)
    found, expected = NATIVE["lamb_step"](*args), KERNELS["lamb_step"].reference(*args)
    assert_same(found[1:], expected[1:])
    for ours, theirs in zip(found[0], expected[0], strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=4 * np.finfo(dtype).eps, atol=np.finfo(dtype).eps)


@pytest.mark.parametrize("length", [1, 7, 8, 9, 4095, 4096, 4097, 100_003])
def test_length_of_a_parameter(length: int) -> None:
    """One step of LAMB whose direction is the parameter itself, so that only the two lengths decide."""
    x = np.random.default_rng(length).normal(size=length)
    args = ([x], [x * 0], [x * 0], [x * 0], [1], 0.5, 0.0, 0.0, 1.0, 1.0, False)
    np.testing.assert_allclose(NATIVE["lamb_step"](*args)[0][0], x * 0.5, rtol=1e-13)


def test_what_the_formulas_do_not_cover() -> None:
    param = [np.ones(3)]
    both = (param, param, param, param, param, 0.1, 0.99, 1e-8, 0.0, 0.9, False)
    assert NATIVE["rmsprop_step"](*both) is NotImplemented  # centred and with momentum
    half = [np.ones(3, np.float16)]
    assert NATIVE["lion_step"](half, half, half, 0.1, 0.9, 0.99, 0.0, False) is NotImplemented
    assert NATIVE["adagrad_step"](param, param, param, [1, 2], 0.1, 0.0, 1e-8, 0.0, False) is NotImplemented
