"""The native convolutions of half precision: bit by bit on the bfloat16 unit, and against float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from extensor import get_num_threads, set_num_threads
from extensor.config import has_bf16_unit
from extensor.dtypes import bfloat16
from extensor.kernels import KERNELS, NATIVE
from extensor.kernels.reference.half_conv import half_conv2d

pytestmark = pytest.mark.skipif("conv2d" not in NATIVE, reason="the native module is not built")

RNG = np.random.default_rng(16)
ALL = (True, True, True)
UNIT = {bfloat16: 2.0**-7, np.float16: 2.0**-10}
# images, inputs, outputs, height, width, kernel, stride, padding, dilation: one vector of outputs and more, odd everything, taps that
# lie apart, a window in several blocks, a kernel of one element with and without steps
CASES = [
    (2, 3, 16, 9, 9, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
    (1, 16, 16, 8, 32, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
    (2, 5, 20, 11, 14, (3, 3), (2, 2), (1, 1, 1, 1), (1, 1)),
    (1, 7, 33, 6, 7, (2, 3), (1, 2), (0, 1, 2, 0), (2, 3)),
    (1, 64, 40, 4, 4, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
    (3, 6, 10, 5, 6, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1)),
    (2, 6, 10, 8, 8, (1, 1), (2, 2), (0, 0, 0, 0), (1, 1)),
    (1, 4, 6, 5, 5, (5, 5), (1, 1), (0, 0, 0, 0), (1, 1)),
    (1, 2, 3, 40, 300, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
]  # fmt: skip


def draw(*shape: int, dtype: Any = bfloat16) -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


def operands(case: tuple[Any, ...], dtype: Any = bfloat16) -> tuple[Any, ...]:
    n, c, o, h, w, kernel, *options = case
    return draw(n, c, h, w, dtype=dtype), draw(o, c, *kernel, dtype=dtype), draw(o, dtype=dtype), *options


def assert_accurate(name: str, dtype: Any, *args: Any) -> None:
    """Within a rounding of float64, and of float32 for each term of the sums."""
    found = NATIVE[name](*args)
    assert found is not NotImplemented
    wide = [a.astype(np.float64) if isinstance(a, np.ndarray) else a for a in args]
    sizes = [np.abs(a) if isinstance(a, np.ndarray) else a for a in wide]
    exact, magnitude = KERNELS[name].reference(*wide), KERNELS[name].reference(*sizes)
    if not isinstance(found, tuple):
        found, exact, magnitude = (found,), (exact,), (magnitude,)
    for ours, theirs, size in zip(found, exact, magnitude, strict=True):
        assert ours.dtype == dtype
        assert ours.shape == theirs.shape
        assert (
            np.abs(ours.astype(np.float64) - theirs) <= UNIT[dtype] / 2 * np.abs(theirs) + 2e-5 * size
        ).all()


@pytest.mark.skipif(not has_bf16_unit(), reason="no dot product of bfloat16 pairs")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_bits_are_those_of_the_reference(case: tuple[Any, ...]) -> None:
    x, weight, bias, *options = operands(case)
    half = x.shape[1] // 2  # channels that cancel each other: the result is how sums are rounded
    x[:, half : 2 * half], weight[:, half : 2 * half] = x[:, :half], -weight[:, :half]
    for b in (bias, None):
        found = NATIVE["conv2d"](x, weight, b, *options, 1)
        np.testing.assert_array_equal(
            found.view(np.uint16), half_conv2d(x, weight, b, *options).view(np.uint16)
        )


@pytest.mark.skipif(not has_bf16_unit(), reason="no dot product of bfloat16 pairs")
def test_bits_of_the_gradient_of_x() -> None:
    x, weight, g = draw(2, 6, 9, 10), draw(7, 6, 3, 3), draw(2, 7, 9, 10)
    found = NATIVE["conv2d_backward"](g, x, weight, (1, 1), (1, 1, 1, 1), (1, 1), 1, (True, False, False))[0]
    turned = np.ascontiguousarray(weight.transpose(1, 0, 2, 3)[:, :, ::-1, ::-1])
    # rows of the kernel from the first on: those of the turned one from the last
    sums = half_conv2d(
        np.ascontiguousarray(g[:, :, ::-1]),
        np.ascontiguousarray(turned[:, :, ::-1]),
        None,
        (1, 1),
        (1, 1, 1, 1),
        (1, 1),
    )
    np.testing.assert_array_equal(
        found.view(np.uint16), np.ascontiguousarray(sums[:, :, ::-1]).view(np.uint16)
    )


def test_many_channels_are_those_of_float32_rounded_once() -> None:
    """From some 32 channels on, Winograd's method in float32 takes less time than direct sums on the unit."""
    x, weight, bias, g = draw(16, 48, 12, 12), draw(40, 48, 3, 3), draw(40), draw(16, 40, 12, 12)
    options = ((1, 1), (1, 1, 1, 1), (1, 1), 1)
    wide = [a.astype(np.float32) for a in (x, weight, bias, g)]
    found = (
        NATIVE["conv2d"](x, weight, bias, *options),
        *NATIVE["conv2d_backward"](g, x, weight, *options, ALL),
    )
    expected = (
        NATIVE["conv2d"](*wide[:3], *options),
        *NATIVE["conv2d_backward"](wide[3], wide[0], wide[1], *options, ALL),
    )
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours.view(np.uint16), theirs.astype(bfloat16).view(np.uint16))


@pytest.mark.parametrize("dtype", [bfloat16, np.float16], ids=["bfloat16", "float16"])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_gradients_and_groups(case: tuple[Any, ...], groups: int, dtype: Any) -> None:
    x, weight, bias, *options = operands(case, dtype)
    weight, bias = np.concatenate([weight] * groups), np.concatenate([bias] * groups)
    x = np.concatenate([x] * groups, 1)
    assert_accurate("conv2d", dtype, x, weight, bias, *options, groups)
    g = draw(*NATIVE["conv2d"](x, weight, bias, *options, groups).shape, dtype=dtype)
    assert_accurate("conv2d_backward", dtype, g, x, weight, *options, groups, ALL)
    assert_accurate("conv_transpose2d", dtype, g, weight, None, *options, groups, (0, 0))


@pytest.mark.parametrize("seed", range(4))
def test_any_convolution(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(25):
        groups = int(rng.choice([1, 1, 2, 3]))
        inner, outer = rng.integers(1, 20, 2)
        kernel, stride = rng.integers(1, 5, 2), rng.integers(1, 4, 2)
        dilation, padding = rng.integers(1, 3, 2), rng.integers(0, 4, 4)
        size = np.maximum(
            1,
            np.maximum(
                rng.integers(1, 40, 2), dilation * (kernel - 1) + 1 - padding[[0, 2]] - padding[[1, 3]]
            ),
        )
        x = draw(int(rng.integers(0, 4)), groups * inner, *size)
        weight = draw(groups * outer, inner, *kernel)
        options = [*(tuple(map(int, v)) for v in (stride, padding, dilation)), groups]
        y = NATIVE["conv2d"](x, weight, None, *options)
        assert_accurate("conv2d", bfloat16, x, weight, None, *options)
        assert_accurate("conv2d_backward", bfloat16, draw(*y.shape), x, weight, *options, ALL)


def test_threads_give_the_same_bits() -> None:
    x, weight, g = draw(19, 16, 20, 20), draw(24, 16, 3, 3), draw(19, 24, 20, 20)
    options = ((1, 1), (1, 1, 1, 1), (1, 1), 1)
    before = get_num_threads()
    try:
        found = []
        for threads in (1, 2, 4):
            set_num_threads(threads)
            found.append(
                (
                    NATIVE["conv2d"](x, weight, None, *options),
                    *NATIVE["conv2d_backward"](g, x, weight, *options, ALL),
                )
            )
    finally:
        set_num_threads(before)
    for others in found[1:]:
        for one, other in zip(found[0], others, strict=True):
            np.testing.assert_array_equal(one.view(np.uint16), other.view(np.uint16))


@pytest.mark.parametrize("width", [6, 7])
def test_not_finite_pixels_reach_what_sees_them(width: int) -> None:
    x, weight, g = draw(1, 4, 5, width), draw(5, 4, 3, 3), draw(1, 5, 5, width)
    x[0, 2, 0, 0] = np.inf
    options = ((1, 1), (1, 1, 1, 1), (1, 1), 1)
    y = NATIVE["conv2d"](x, weight, None, *options).astype(np.float32)
    assert not np.isfinite(y[0, :, :2, :2]).any()
    assert np.isfinite(y[0, :, 2:]).all()
    assert np.isfinite(y[0, :, :, 2:]).all()
    grad = KERNELS["conv2d_backward"].on_arrays(g, x, weight, *options, ALL)[1].astype(np.float32)
    assert not np.isfinite(grad[:, 2, :2, :2]).any()  # the corner is seen by these elements
    assert np.isfinite(grad[:, 2, 2]).all()
    assert np.isfinite(grad[:, [0, 1, 3]]).all()
