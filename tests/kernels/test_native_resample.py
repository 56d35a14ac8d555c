"""Resampling along an axis: the native kernel beside the reference, its gradient too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from extensor.dtypes import bfloat16
from extensor.kernels import KERNELS, NATIVE

pytestmark = pytest.mark.skipif("resample" not in NATIVE, reason="the native module is not built")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("taps", [0, 1, 2, 3, 4])
def test_as_the_reference(taps: int, axis: int, dtype: Any) -> None:
    """To the bit forward; 0 taps are one without a weight."""
    rng = np.random.default_rng(taps)
    for before, after in ((1, 4), (5, 1), (7, 19), (33, 16), (4, 0)):
        shape = [3, 5, 8]
        shape[axis] = before
        x = rng.standard_normal(shape).astype(dtype)
        positions = rng.integers(0, before, (max(taps, 1), after))
        weights = rng.standard_normal(positions.shape) if taps else None
        args = (x, positions, weights, axis)
        np.testing.assert_array_equal(
            NATIVE["resample"](*args), KERNELS["resample"].reference(*args), strict=True
        )
        shape[axis] = after
        back = (rng.standard_normal(shape).astype(dtype), before, positions, weights, axis)
        found, expected = NATIVE["resample_backward"](*back), KERNELS["resample_backward"].reference(*back)
        limit = 4 * np.finfo(dtype).eps
        np.testing.assert_allclose(found, expected, rtol=limit, atol=limit, strict=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize(
    "places", [[0, 1, 2, 3, 4], [2, 1, 0, 1, 2, 3, 4, 3, 2], [0, 0, 0, 1, 2, 2], [4, 3], [3, 4, 0, 1, 2]]
)
def test_what_is_taken_in_one_stretch(places: list[int], axis: int, dtype: Any) -> None:
    """The longest run of neighbours is moved at once: first, in the middle, last, all, and none longer than one."""
    rng = np.random.default_rng(0)
    shape = [3, 2, 7]
    shape[axis] = 5
    x, positions = rng.standard_normal(shape).astype(dtype), np.array([places])
    np.testing.assert_array_equal(NATIVE["resample"](x, positions, None, axis), x.take(places, axis))
    shape[axis] = len(places)
    g = rng.integers(-9, 9, shape).astype(dtype)
    expected = np.zeros_like(x)
    np.add.at(expected, (*[slice(None)] * axis, places), g)
    np.testing.assert_array_equal(NATIVE["resample_backward"](g, 5, positions, None, axis), expected)


@pytest.mark.parametrize("dtype", [np.float16, bfloat16])
def test_half_precision_is_rounded_once(dtype: Any) -> None:
    x = np.random.default_rng(0).standard_normal((4, 9)).astype(dtype)
    args = (x, np.array([[0, 3, 8], [1, 4, 8]]), np.array([[0.25, 0.5, 1.0], [0.75, 0.5, 0.0]]), 1)
    np.testing.assert_array_equal(
        KERNELS["resample"].on_arrays(*args), KERNELS["resample"].by_reference(*args), strict=True
    )


@pytest.mark.parametrize(
    ("positions", "weights", "axis"),
    [
        ([[4]], None, 1),
        ([[-1]], None, 1),
        ([[0], [1]], None, 1),
        ([[0]], [[1.0, 2.0]], 1),
        ([[0]], None, 2),
        ([0], None, 1),
    ],
)
def test_what_does_not_fit(positions: Any, weights: Any, axis: int) -> None:
    given = None if weights is None else np.array(weights)
    assert NATIVE["resample"](np.ones((2, 4)), np.array(positions), given, axis) is NotImplemented


def test_any_layout() -> None:
    x = np.random.default_rng(0).standard_normal((6, 5, 4)).transpose(2, 0, 1)
    positions = np.array([[0, 2, 5]])
    np.testing.assert_array_equal(NATIVE["resample"](x, positions, None, 1), x[:, [0, 2, 5]])
