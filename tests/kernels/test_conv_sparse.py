"""Convolutions whose taps or outputs lie far apart: the work is that of the pixels seen, whatever stride and dilation are."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from extensor.kernels import KERNELS, NATIVE

FAR = 2**31 - 1
Kernel = Callable[..., Any]
ROADS = ["reference", *(["native"] if "conv2d" in NATIVE else [])]


def _kernel(road: str, name: str) -> Kernel:
    return NATIVE[name] if road == "native" else KERNELS[name].reference


def _meetings(size, kernel, y_size, stride, padding, dilation):
    """Every pixel (i, j) of the input that meets pixel (k, m) of the output through element (p, q) of the kernel."""
    for k, p in product(range(y_size[0]), range(kernel[0])):
        i = k * stride[0] + p * dilation[0] - padding[0]
        for m, q in product(range(y_size[1]), range(kernel[1])):
            j = m * stride[1] + q * dilation[1] - padding[2]
            if 0 <= i < size[0] and 0 <= j < size[1]:
                yield i, j, k, m, p, q


CASES = [
    # size of x, of the kernel, stride, padding, dilation
    ((3, 3), (3, 3), (20_000, 20_000), (0, 0, 0, 0), (1, 1)),
    ((3, 5), (2, 3), (FAR, 1), (0, 0, 1, 1), (1, 1)),
    ((3, 5), (2, 3), (1, FAR), (1, 1, 0, 0), (1, 2)),
    ((1, 1), (3, 3), (1, 1), (5_000, 5_000, 5_000, 5_000), (5_000, 5_000)),
    ((2, 3), (3, 2), (1, 2), (2**30, 2**30, 1, 1), (2**30, 1)),
    ((4, 4), (2, 2), (1000, 900), (999, 1000, 700, 1100), (300, 1)),
    ((100, 90), (2, 3), (40, 30), (0, 0, 3, 0), (50, 20)),
    ((64, 7), (1, 2), (21, 1), (5, 5, 0, 1), (1, 3)),
]


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(("size", "kernel", "stride", "padding", "dilation"), CASES)
def test_against_the_sum_written_out(road, dtype, groups, size, kernel, stride, padding, dilation) -> None:
    draw = np.random.default_rng(0)
    y_size = tuple(
        (n + padding[2 * d] + padding[2 * d + 1] - dilation[d] * (kernel[d] - 1) - 1) // stride[d] + 1
        for d, n in enumerate(size)
    )
    assert max(y_size) < 100
    x = draw.normal(size=(2, 2 * groups, *size)).astype(dtype)
    weight = draw.normal(size=(3 * groups, 2, *kernel)).astype(dtype)
    bias, x_bias = draw.normal(size=3 * groups).astype(dtype), draw.normal(size=2 * groups).astype(dtype)
    g = draw.normal(size=(2, 3 * groups, *y_size)).astype(dtype)

    y, grad_x, grad_weight = (np.zeros(a.shape) for a in (g, x, weight))
    for i, j, k, m, p, q in _meetings(size, kernel, y_size, stride, padding, dilation):
        for group in range(groups):
            ins, outs = slice(2 * group, 2 * group + 2), slice(3 * group, 3 * group + 3)
            w = weight[outs, :, p, q].astype(np.float64)
            y[:, outs, k, m] += x[:, ins, i, j] @ w.T
            grad_x[:, ins, i, j] += g[:, outs, k, m] @ w
            grad_weight[outs, :, p, q] += g[:, outs, k, m].T.astype(np.float64) @ x[:, ins, i, j]

    close = {"rtol": 1e-5, "atol": 1e-5} if dtype == np.float32 else {"rtol": 1e-12, "atol": 1e-12}
    options = stride, padding, dilation, groups
    got = _kernel(road, "conv2d")(x, weight, bias, *options)
    np.testing.assert_allclose(got, y + bias[:, None, None], **close)
    got = _kernel(road, "conv2d_backward")(g, x, weight, *options, (True, True, True))
    for one, want in zip(got, (grad_x, grad_weight, g.sum((0, 2, 3))), strict=True):
        np.testing.assert_allclose(one, want, **close)

    # The transposed convolution with the sizes exchanged. What no output reaches is asked for by output_padding.
    more = tuple(
        n
        + padding[2 * d]
        + padding[2 * d + 1]
        - (y_size[d] - 1) * stride[d]
        - dilation[d] * (kernel[d] - 1)
        - 1
        for d, n in enumerate(size)
    )
    got = _kernel(road, "conv_transpose2d")(g, weight, x_bias, *options, more)
    np.testing.assert_allclose(got, grad_x + x_bias[:, None, None], **close)
    got = _kernel(road, "conv_transpose2d_backward")(x, g, weight, *options, (True, True, True))
    for one, want in zip(got, (y, grad_weight, x.sum((0, 2, 3))), strict=True):
        np.testing.assert_allclose(one, want, **close)


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("shape", [(0, 1, 3, 3), (1, 0, 3, 3)])
def test_nothing_takes_no_time(road: str, shape: tuple[int, ...]) -> None:
    x, weight = np.ones(shape, np.float32), np.ones((2, shape[1], 3, 3), np.float32)
    options = (FAR, FAR), (0, 0, 0, 0), (1, 1), 1
    y = _kernel(road, "conv2d")(x, weight, None, *options)
    assert y.shape == (shape[0], 2, 1, 1)
    np.testing.assert_array_equal(y, 0)
    grads = _kernel(road, "conv2d_backward")(y, x, weight, *options, (True, True, True))
    assert [grad.shape for grad in grads] == [shape, weight.shape, (2,)]
    back = _kernel(road, "conv_transpose2d")(y, weight, None, *options, (0, 0))
    assert back.shape == shape


@pytest.mark.parametrize("road", ROADS)
def test_zeros_beyond_the_edge_meet_weights_that_are_not_finite(road: str) -> None:
    weight = np.ones((1, 1, 3, 3), np.float32)
    weight[0, 0, 0, 0] = np.inf
    options = (1, 1), (5_000, 5_000, 5_000, 5_000), (5_000, 5_000), 1
    with np.errstate(invalid="ignore"):
        y = _kernel(road, "conv2d")(np.ones((1, 1, 1, 1), np.float32), weight, None, *options)
    assert np.isnan(y).all()
