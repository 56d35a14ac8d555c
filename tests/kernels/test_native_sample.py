"""Samples of images at places of their own: the native kernels beside the references."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from extensor.dtypes import bfloat16
from extensor.kernels import KERNELS, NATIVE

pytestmark = pytest.mark.skipif("sample" not in NATIVE, reason="the native module is not built")


def draw(
    dtype: Any, taps: int, batch: int = 2, channels: int = 5, pixels: int = 12, points: int = 7
) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(taps)
    image = rng.standard_normal((batch, channels, pixels)).astype(dtype)
    positions = rng.integers(-3, pixels, (taps, batch, points))
    return image, positions, rng.standard_normal(positions.shape).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("taps", [1, 4, 8])
@pytest.mark.parametrize(
    "sizes", [(2, 5, 12, 7), (1, 1, 1, 1), (3, 4, 9, 40), (2, 8, 5, 0), (0, 3, 4, 5), (2, 0, 4, 5)]
)
def test_as_the_reference(sizes: tuple[int, ...], taps: int, dtype: Any) -> None:
    """To the bit forward; the gradients but for the order of their sums."""
    image, positions, weights = draw(dtype, taps, *sizes)
    image[image > 1.5] = np.nan  # a pixel that is no number does not reach the samples that it is not part of
    y = NATIVE["sample"](image, positions, weights)
    np.testing.assert_array_equal(y, KERNELS["sample"].reference(image, positions, weights), strict=True)
    g = np.random.default_rng(1).standard_normal(y.shape).astype(dtype)
    limit = 8 * np.finfo(dtype).eps
    for needs in ((True, True), (True, False), (False, True)):
        args = (g, image, positions, weights, needs)
        for found, expected in zip(
            NATIVE["sample_backward"](*args), KERNELS["sample_backward"].reference(*args)
        ):
            if expected is None:
                assert found is None
            else:
                np.testing.assert_allclose(found, expected, rtol=limit, atol=8 * limit, strict=True)


def test_outside_counts_for_nothing() -> None:
    image = np.array([[[np.inf, 2.0]]])
    positions, weights = np.array([[[-1, 1]], [[1, -5]], [[-2, -2]], [[1, 1]]]), np.ones((4, 1, 2))
    assert NATIVE["sample"](image, positions, weights).tolist() == [[[4.0, 4.0]]]
    grads = NATIVE["sample_backward"](np.ones((1, 1, 2)), image, positions, weights, (True, True))
    assert grads[0].tolist() == [[[0.0, 4.0]]]
    assert grads[1].tolist() == [[[0.0, 2.0]], [[2.0, 0.0]], [[0.0, 0.0]], [[2.0, 2.0]]]


@pytest.mark.parametrize("dtype", [np.float16, bfloat16])
def test_half_precision_is_rounded_once(dtype: Any) -> None:
    args = draw(dtype, 4)
    kernel = KERNELS["sample"]
    np.testing.assert_array_equal(kernel.on_arrays(*args), kernel.by_reference(*args), strict=True)


def test_what_does_not_fit() -> None:
    image, positions, weights = draw(np.float32, 4)
    for wrong in (
        (image, positions + 12, weights),
        (image, positions.astype(np.int32), weights),
        (image, positions, weights.astype(np.float64)),
        (image, positions, weights[:, :1]),
        (image[:1], positions, weights),
        (image[0], positions, weights),
        (image, positions[:3], weights[:3]),
    ):
        assert NATIVE["sample"](*wrong) is NotImplemented
    g = np.ones((2, 5, 7), np.float32)
    assert NATIVE["sample_backward"](g[..., :6], image, positions, weights, (True, True)) is NotImplemented
    assert NATIVE["sample_backward"](g, image, positions, weights, (1, 0)) is NotImplemented


def test_any_layout() -> None:
    image, positions, weights = draw(np.float32, 4)
    turned = np.asfortranarray(image), positions, np.asfortranarray(weights)
    np.testing.assert_array_equal(NATIVE["sample"](*turned), NATIVE["sample"](image, positions, weights))
