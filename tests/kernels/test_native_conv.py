"""The native convolutions and poolings against the reference: sizes, options, layouts, special values, threads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from extensor import get_num_threads, set_num_threads
from extensor.kernels import KERNELS, NATIVE

pytestmark = pytest.mark.skipif("conv2d" not in NATIVE, reason="the native module is not built")

ALL = (True, True, True)
TOLERANCE = {np.float32: 2e-6, np.float64: 1e-14}


def draw(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Random values, contiguous or not."""
    x = rng.standard_normal(shape).astype(dtype)
    layout = rng.integers(0, 4)
    return np.repeat(x, 2, axis=3)[..., ::2] if layout == 0 else np.asfortranarray(x) if layout == 1 else x


def assert_same(name: str, *args: Any, terms: int, dtype: Any) -> None:
    """Native and reference agree to the rounding of sums of this many terms; the native one is really there."""
    found, expected = KERNELS[name].native(*args), KERNELS[name].reference(*args)
    assert found is not NotImplemented
    pairs = zip(found, expected) if isinstance(found, tuple) else [(found, expected)]
    for ours, theirs in pairs:
        assert ours.dtype == dtype
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=TOLERANCE[dtype] * max(4, terms) ** 0.5 * 4)


def convolutions(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    """x, weight, bias, stride, padding, dilation, groups: all kinds of sizes, around the widths of vectors and tiles."""
    while True:
        groups = int(rng.choice([1, 1, 2, 3]))
        inner, outer = rng.integers(1, 10, 2)
        kernel, stride = rng.integers(1, 5, 2), rng.integers(1, 4, 2)
        dilation, padding = rng.integers(1, 3, 2), rng.integers(0, 4, 4)
        reach = dilation * (kernel - 1) + 1
        size = np.maximum(rng.integers(1, 40, 2), reach - padding[[0, 2]] - padding[[1, 3]])
        size = np.maximum(size, 1)
        n, dtype = int(rng.integers(0, 5)), rng.choice([np.float32, np.float64])
        x = draw(rng, (n, groups * inner, *size), dtype)
        weight = draw(rng, (groups * outer, inner, *kernel), dtype)
        bias = rng.standard_normal(groups * outer).astype(dtype) if rng.integers(0, 2) else None
        yield (
            x, weight, bias, *(tuple(map(int, v)) for v in (stride, padding, dilation)), groups,
        )  # fmt: skip


@pytest.mark.parametrize("seed", range(8))
def test_convolutions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for (x, weight, bias, *options), _ in zip(convolutions(rng), range(30)):
        dtype = x.dtype.type
        y = KERNELS["conv2d"].reference(x, weight, bias, *options)
        g = draw(rng, y.shape, dtype)
        terms = weight[0].size + weight[:, 0].size
        assert_same("conv2d", x, weight, bias, *options, terms=terms, dtype=dtype)
        assert_same("conv2d_backward", g, x, weight, *options, ALL, terms=terms + g[:, 0].size, dtype=dtype)
        if 0 in y.shape:
            continue
        more = tuple(int(rng.integers(0, max(s, d))) for s, d in zip(options[0], options[2]))
        channels = weight.shape[1] * options[3]
        sizes = [
            (n - 1) * s + d * (k - 1) + 1 + m - a - b
            for n, s, d, k, m, a, b in zip(
                y.shape[2:], options[0], options[2], weight.shape[2:], more, options[1][::2], options[1][1::2]
            )
        ]
        if min(sizes) < 1:
            continue
        bias = rng.standard_normal(channels).astype(dtype)
        assert_same("conv_transpose2d", g, weight, bias, *options, more, terms=terms, dtype=dtype)
        upstream = draw(rng, (x.shape[0], channels, *sizes), dtype)
        assert_same(
            "conv_transpose2d_backward", upstream, g, weight, *options, ALL, terms=terms + upstream[:, 0].size, dtype=dtype
        )  # fmt: skip


LARGE = [  # more rows than a window holds; more terms than a chain; channels of real networks
    ((2, 16, 70, 67), (20, 16, 3, 3), (1, 1), (1, 1, 1, 1)),
    ((2, 64, 8, 8), (64, 64, 3, 3), (1, 1), (1, 1, 1, 1)),
    ((1, 3, 97, 224), (8, 3, 7, 7), (2, 2), (3, 3, 3, 3)),
    ((1, 40, 6, 6), (30, 40, 1, 1), (1, 1), (0, 0, 0, 0)),
    ((1, 5, 40, 300), (9, 5, 3, 5), (1, 1), (1, 1, 2, 2)),
]
NARROW = [  # rows that leave much of a vector empty: vectors along the outputs, alone or with the columns of the kernel
    ((5, 6, 14, 14), (16, 6, 5, 5), (1, 1), (0, 0, 0, 0)),
    ((3, 16, 9, 9), (16, 16, 3, 3), (2, 2), (1, 1, 1, 1)),
    ((2, 40, 7, 5), (33, 40, 3, 3), (1, 1), (1, 1, 1, 1)),
    ((2, 20, 60, 5), (3, 20, 5, 3), (1, 1), (2, 2, 2, 2)),
    ((3, 16, 17, 21), (6, 16, 5, 7), (1, 1), (4, 0, 1, 6)),
    ((9, 1, 3, 3), (48, 1, 3, 3), (1, 2), (1, 1, 2, 0)),
]


@pytest.mark.parametrize(("x_shape", "w_shape", "stride", "padding"), LARGE + NARROW)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large(x_shape: Any, w_shape: Any, stride: Any, padding: Any, dtype: Any) -> None:
    rng = np.random.default_rng(1)
    x, weight = draw(rng, x_shape, dtype), draw(rng, w_shape, dtype)
    options = (stride, padding, (1, 1), 1)
    terms = weight[0].size
    assert_same("conv2d", x, weight, None, *options, terms=terms, dtype=dtype)
    g = draw(rng, KERNELS["conv2d"].native(x, weight, None, *options).shape, dtype)
    assert_same("conv2d_backward", g, x, weight, *options, ALL, terms=terms + g[:, 0].size, dtype=dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", [(3, 3), (5, 5), (3, 5), (1, 4), (7, 7), (12, 12)])
@pytest.mark.parametrize("size", [(14, 14), (7, 16), (3, 33), (29, 1), (300, 70)])
def test_a_kernel_for_each_channel(size: Any, kernel: Any, dtype: Any) -> None:
    rng = np.random.default_rng(4)
    x, weight = draw(rng, (2, 3, *size), dtype), draw(rng, (3, 1, *kernel), dtype)
    for dilation, more in (((1, 1), 0), ((1, 1), 1), ((2, 3), 0)):
        top, left = (d * (k - 1) // 2 + more for d, k in zip(dilation, kernel))
        options = ((1, 1), (top, kernel[0], left, dilation[1] * (kernel[1] - 1)), dilation, 3)
        bias = rng.standard_normal(3).astype(dtype)
        terms = weight[0].size
        assert_same("conv2d", x, weight, bias, *options, terms=terms, dtype=dtype)
        g = draw(rng, KERNELS["conv2d"].native(x, weight, bias, *options).shape, dtype)
        assert_same("conv2d_backward", g, x, weight, *options, ALL, terms=terms + g[:, 0].size, dtype=dtype)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    ("x_shape", "w_shape", "options"),
    [
        ((2, 3, 9, 17), (3, 1, 3, 3), ((1, 1), (1, 1, 1, 1), (1, 1), 3)),
        ((2, 3, 9, 11), (4, 3, 3, 3), ((2, 1), (1, 0, 1, 2), (1, 2), 1)),
        ((2, 3, 9, 9), (16, 3, 5, 5), ((1, 1), (0, 1, 0, 2), (1, 1), 1)),
        ((2, 3, 8, 5), (16, 3, 3, 3), ((1, 1), (1, 1, 1, 1), (1, 1), 1)),
    ],
)
def test_special_values_go_where_they_go_in_the_reference(
    x_shape: Any, w_shape: Any, options: Any, value: float
) -> None:
    rng = np.random.default_rng(2)
    x, weight = rng.standard_normal(x_shape), rng.standard_normal(w_shape)
    g = rng.standard_normal(KERNELS["conv2d"].reference(x, weight, None, *options).shape)
    for which in range(3):
        for position in rng.integers(0, (g, x, weight)[which].size, 12):
            arrays = [a.copy() for a in (g, x, weight)]
            arrays[which].flat[position] = value
            for name, args in (
                ("conv2d", (*arrays[1:], None, *options)),
                ("conv2d_backward", (*arrays, *options, ALL)),
            ):
                found = KERNELS[name].on_arrays(*args)
                with np.errstate(all="ignore"):
                    expected = KERNELS[name].reference(*args)
                for ours, theirs in zip(found, expected):
                    np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


def pools(rng: np.random.Generator) -> Iterator[tuple[np.ndarray, tuple[Any, ...]]]:
    """x, and window, stride, padding, size: often 2 x 2 windows side by side, which have a way of their own."""
    while True:
        dtype = rng.choice([np.float32, np.float64])
        shape = (*rng.integers(0, 4, 2), *rng.integers(2, 20, 2))
        x = rng.integers(-2, 3, shape).astype(dtype) if rng.integers(0, 2) else draw(rng, shape, dtype)
        for position in rng.integers(0, max(1, x.size), 3) if x.size and rng.integers(0, 2) else ():
            x = x.copy()
            x.flat[position] = rng.choice([np.nan, np.inf, -np.inf])
        if rng.integers(0, 3) == 0:
            yield x, ((2, 2), (2, 2), (0, 0), (x.shape[2] // 2, x.shape[3] // 2))
            continue
        window = np.minimum(rng.integers(1, 5, 2), shape[2:])
        stride, padding = rng.integers(1, 4, 2), rng.integers(0, window // 2 + 1)
        over = rng.integers(0, 2)  # windows that hang over the end
        size = (np.array(shape[2:]) + 2 * padding - window + over * (stride - 1)) // stride + 1
        size -= (size - 1) * stride >= shape[2:] + padding
        yield x, tuple(tuple(map(int, v)) for v in (window, stride, padding, size))


@pytest.mark.parametrize("seed", range(4))
def test_pools(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for (x, options), _ in zip(pools(rng), range(60)):
        g = draw(rng, (*x.shape[:2], *options[3]), x.dtype)
        include = bool(rng.integers(0, 2))
        calls = [
            ("max_pool2d", (x, *options)), ("max_pool2d_backward", (g, x, *options)),
            ("avg_pool2d", (x, *options, include)), ("avg_pool2d_backward", (g, x.shape, *options, include)),
        ]  # fmt: skip
        for name, args in calls:
            found, expected = KERNELS[name].native(*args), KERNELS[name].reference(*args)
            assert found.dtype == x.dtype
            np.testing.assert_allclose(
                found, expected, rtol=TOLERANCE[x.dtype.type], atol=TOLERANCE[x.dtype.type]
            )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", [*range(2, 40), 63, 64, 65, 131])
def test_pools_of_two_by_two(width: int, dtype: Any) -> None:
    """Every number of windows beside a vector's; ties, zeros of both signs, infinities and nan."""
    rng = np.random.default_rng(width)
    values = [-np.inf, -1.0, -0.0, 0.0, 1.0, np.inf, np.nan]
    x = rng.choice(values, (2, 3, 5, width), p=[0.1, 0.2, 0.2, 0.2, 0.2, 0.05, 0.05]).astype(dtype)
    options = ((2, 2), (2, 2), (0, 0), (2, width // 2))
    g = rng.standard_normal((2, 3, 2, width // 2)).astype(dtype)
    for name, args in (("max_pool2d", (x, *options)), ("max_pool2d_backward", (g, x, *options))):
        found, expected = KERNELS[name].native(*args), KERNELS[name].reference(*args)
        np.testing.assert_array_equal(found, expected)
        assert not np.signbit(found[found == 0]).any() or name == "max_pool2d"
    a, b, c, d = (x[:, :, i:4:2, j : 2 * (width // 2) : 2].astype(np.float64) for i in (0, 1) for j in (0, 1))
    with np.errstate(invalid="ignore"):
        mean = (((0.0 + a + c) + (0.0 + b + d)) / 4).astype(dtype)
    found = KERNELS["avg_pool2d"].native(x, *options, True)
    np.testing.assert_array_equal(found, mean)
    np.testing.assert_array_equal(np.signbit(found[found == 0]), np.signbit(mean[mean == 0]))
    g.flat[::5] = -0.0
    share = np.zeros_like(x)
    share[:, :, :4, : 2 * (width // 2)] = np.repeat(np.repeat(0.0 + g / 4, 2, axis=2), 2, axis=3)
    found = KERNELS["avg_pool2d_backward"].native(g, x.shape, *options, True)
    np.testing.assert_array_equal(found, share)
    assert not np.signbit(found[found == 0]).any()


@pytest.mark.parametrize(("outputs", "size", "images"), [(18, (33, 31), 9), (16, (14, 10), 64)])
def test_bits_do_not_depend_on_the_threads(outputs: int, size: tuple[int, int], images: int) -> None:
    rng = np.random.default_rng(4)
    before = get_num_threads()
    x = rng.standard_normal((images, 16, *size)).astype("f")
    weight = rng.standard_normal((outputs, 16, 3, 3)).astype("f")
    options = ((1, 1), (1, 1, 1, 1), (1, 1), 1)
    g = rng.standard_normal((images, outputs, *size)).astype("f")
    pooled = tuple((n + 1) // 2 for n in size)
    try:
        results = []
        for threads in (1, 2, 3, 4):
            set_num_threads(threads)
            y = KERNELS["conv2d"].native(x, weight, None, *options)
            grads = KERNELS["conv2d_backward"].native(g, x, weight, *options, ALL)
            pool = KERNELS["max_pool2d"].native(x, (3, 3), (2, 2), (1, 1), pooled)
            mean = KERNELS["avg_pool2d_backward"].native(pool, x.shape, (3, 3), (2, 2), (1, 1), pooled, True)
            results.append([a.tobytes() for a in (y, *grads, pool, mean)])
        assert all(result == results[0] for result in results)
    finally:
        set_num_threads(before)
