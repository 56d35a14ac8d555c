"""The native steps of Adafactor and Muon, and the average of parameters, beside the references."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from extensor import get_num_threads, set_num_threads
from extensor.kernels import KERNELS, NATIVE

pytestmark = pytest.mark.skipif("muon_step" not in NATIVE, reason="the native module is not built")

each_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def assert_near(found: Any, expected: Any, dtype: Any, roundings: int = 16) -> None:
    """Lists of arrays and None, but for roundings."""
    assert len(found) == len(expected)
    for one, other in zip(found, expected):
        if other is None:
            assert one is None
            continue
        limit = roundings * np.finfo(dtype).eps
        assert one.dtype == dtype
        np.testing.assert_allclose(
            one, other, rtol=limit, atol=limit * np.abs(other).max(initial=0), strict=True
        )


@each_dtype
def test_average_of_parameters(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    shapes = [(), (3,), (0, 2), (64, 33), (5, 2000)]
    averages, values = ([np.asarray(rng.normal(size=s), dtype) for s in shapes] for _ in range(2))
    found = NATIVE["ema_step"](averages, values, 0.9)
    for one, other in zip(found, KERNELS["ema_step"].reference(averages, values, 0.9), strict=True):
        np.testing.assert_array_equal(one, other, strict=True)


def factors(rng: np.random.Generator, shapes: list[tuple[int, ...]], dtype: Any) -> list[list[Any]]:
    """Averages of rows and columns of matrices, and of the elements of vectors."""
    rows, columns, each = [], [], []
    for shape in shapes:
        deep = len(shape) > 1
        rows.append(rng.uniform(0, 1, (*shape[:-1], 1)).astype(dtype) if deep else None)
        columns.append(rng.uniform(0, 1, (*shape[:-2], 1, shape[-1])).astype(dtype) if deep else None)
        each.append(None if deep else np.asarray(rng.uniform(0, 1, shape), dtype))
    return [rows, columns, each]


@each_dtype
@pytest.mark.parametrize(
    ("eps1", "decay", "maximize"), list(itertools.product([None, 1e-3], [0.0, 0.1], [False, True]))
)
def test_adafactor(dtype: Any, eps1: float | None, decay: float, maximize: bool) -> None:
    rng = np.random.default_rng(0)
    shapes: list[tuple[int, ...]] = [(3, 50), (7,), (), (130, 17), (2, 3, 200), (1, 1), (5, 4097)]
    params, grads = ([np.asarray(rng.normal(size=s), dtype) for s in shapes] for _ in range(2))
    grads[1] *= 0
    params[3] *= 1e-6  # shorter than eps2
    state = factors(rng, shapes, dtype)
    args = (params, grads, *state, [1, 2, 3, 10, 1000, 1, 7], 1e-2, -0.8, eps1, 1e-3, 1.0, decay, maximize)
    expected = KERNELS["adafactor_step"].reference(*args)
    for found, other in zip(NATIVE["adafactor_step"](*args), expected, strict=True):
        assert_near(found, other, dtype)


@each_dtype
@pytest.mark.parametrize(
    ("nesterov", "match", "maximize"), list(itertools.product([False, True], [False, True], [False, True]))
)
def test_muon(dtype: Any, nesterov: bool, match: bool, maximize: bool) -> None:
    rng = np.random.default_rng(0)
    shapes = [(3, 50), (50, 3), (1, 1), (33, 33), (130, 70)]
    lists = [[rng.normal(size=s).astype(dtype) for s in shapes] for _ in range(3)]
    lists[1][2] *= 0
    lists[2][2] *= 0  # nothing to make orthogonal
    args = (*lists, 0.02, 0.95, 0.1, nesterov, (3.4445, -4.775, 2.0315), 1e-7, 5, match, maximize)
    expected = KERNELS["muon_step"].reference(*args)
    found = NATIVE["muon_step"](*args)
    # Five times a cubic whose slope is 3.4 at 0 carries roundings of the products on.
    assert_near(found[0], expected[0], dtype, roundings=4096)
    assert_near(found[1], expected[1], dtype)


def test_the_bits_do_not_depend_on_threads() -> None:
    rng = np.random.default_rng(0)
    lists = [[rng.normal(size=(300, 500)).astype(np.float32)] for _ in range(3)]
    state = factors(rng, [(300, 500)], np.float32)
    before = get_num_threads()
    found = []
    try:
        for threads in (1, 2, 4):
            set_num_threads(threads)
            (moved,), _ = NATIVE["muon_step"](
                *lists, 0.02, 0.95, 0.1, True, (3.4445, -4.775, 2.0315), 1e-7, 5, False, False
            )
            factored = NATIVE["adafactor_step"](
                *lists[:2], *state, [3], 1e-2, -0.8, None, 1e-3, 1.0, 0.1, False
            )
            found.append([moved.tobytes(), *(v[0].tobytes() for v in factored[:3])])
    finally:
        set_num_threads(before)
    assert found[0] == found[1] == found[2]


def test_what_is_left_to_the_reference() -> None:
    half, empty, odd = [np.ones((2, 3), np.float16)], [np.ones((0, 3), np.float32)], [np.ones((2, 2, 2))]
    for lists in (half, empty, odd):
        args = (lists, lists, lists, 0.02, 0.95, 0.1, True, (3.4445, -4.775, 2.0315), 1e-7, 5, False, False)
        assert NATIVE["muon_step"](*args) is NotImplemented
    matrix = [np.ones((2, 3))]
    options = ([1], 1e-2, -0.8, None, 1e-3, 1.0, 0.0, False)
    assert (
        NATIVE["adafactor_step"](matrix, matrix, [np.ones((2, 1))], [np.ones((2, 1))], [None], *options)
        is NotImplemented
    )
    assert NATIVE["adafactor_step"](matrix, matrix, [None], [None], [np.ones(3)], *options) is NotImplemented
    assert NATIVE["ema_step"](half, half, 0.9) is NotImplemented
