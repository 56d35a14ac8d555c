"""Pooling: against the definition and HIPS autograd, ties, nan, padding, dtypes, error texts."""

from __future__ import annotations

import math
from typing import Any

import autograd
import autograd.numpy as anp
import numpy as np
import pytest

import extensor as et

NAN, INF = float("nan"), float("inf")
Options = dict[str, Any]

ROWS: list[tuple[tuple[int, ...], Options]] = [
    ((2, 3, 6, 8), {"kernel_size": 2}),
    ((2, 3, 6, 8), {"kernel_size": (3, 2)}),
    ((2, 2, 7, 5), {"kernel_size": 3, "stride": 1}),
    ((2, 2, 7, 8), {"kernel_size": 3, "stride": 2, "padding": 1}),
    ((1, 2, 7, 8), {"kernel_size": 2, "stride": (3, 4)}),
    ((1, 2, 6, 7), {"kernel_size": 3, "stride": 2, "ceil_mode": True}),
    ((1, 2, 6, 7), {"kernel_size": (2, 3), "stride": (5, 4), "padding": (1, 1), "ceil_mode": True}),
    ((1, 1, 3, 3), {"kernel_size": 2, "stride": 4, "ceil_mode": True}),
    ((0, 2, 4, 4), {"kernel_size": 2}),
]


def pair(value: Any) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else value


def spans(length: int, k: int, s: int, p: int, ceil_mode: bool) -> list[tuple[int, int]]:
    """Where each window starts and ends along one axis, the padding included, by PyTorch's rules."""
    count = (length + 2 * p - k) / s
    starts = [i * s - p for i in range((math.ceil if ceil_mode else math.floor)(count) + 1)]
    return [(start, start + k) for start in starts if start < length]


def windows(shape: tuple[int, ...], options: Options) -> list[list[tuple[int, int]]]:
    kernel = pair(options["kernel_size"])
    stride, padding = pair(options.get("stride", kernel)), pair(options.get("padding", 0))
    return [
        spans(n, k, s, p, options.get("ceil_mode", False))
        for n, k, s, p in zip(shape[2:], kernel, stride, padding)
    ]


def pooled(x: Any, options: Options, average: bool, include: bool = True) -> Any:
    """One window after the other, as the definition has it."""
    rows, columns = windows(x.shape, options)
    padding = pair(options.get("padding", 0))
    height, width = x.shape[2:]
    out = []
    for top, bottom in rows:
        for left, right in columns:
            seen = x[:, :, max(top, 0) : bottom, max(left, 0) : right]
            if not average:
                out.append(anp.max(anp.reshape(seen, (*x.shape[:2], seen.shape[2] * seen.shape[3])), axis=2))
                continue
            count = seen.shape[2] * seen.shape[3]
            if include:
                count = (min(bottom, height + padding[0]) - top) * (min(right, width + padding[1]) - left)
            out.append(anp.sum(seen, axis=(2, 3)) / count)
    return anp.reshape(anp.stack(out, axis=2), (*x.shape[:2], len(rows), len(columns)))


def values(shape: tuple[int, ...], seed: int = 5) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def check(function: Any, oracle: Any, x: np.ndarray, **options: Any) -> None:
    """Value and gradient; the backward alone, and through the recorder."""
    y = function(et.asarray(x), **options)
    expected = oracle(x)
    assert y.shape == expected.shape
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-12, atol=1e-14)
    g = values(y.shape, 6)
    wanted = autograd.grad(lambda x: anp.sum(oracle(x) * g))(x)
    backward = getattr(et, f"{function.__name__}_backward")
    grad = backward(et.asarray(g), et.asarray(x), **options)
    assert grad.shape == x.shape
    np.testing.assert_allclose(grad.numpy(), wanted, rtol=1e-12, atol=1e-14)
    leaf = et.tensor(x, requires_grad=True)
    (function(leaf, **options) * et.asarray(g)).sum().backward()
    np.testing.assert_array_equal(leaf.grad.numpy(), grad.numpy())


@pytest.mark.parametrize(("shape", "options"), ROWS)
def test_max_pool2d(shape: tuple[int, ...], options: Options) -> None:
    check(et.max_pool2d, lambda x: pooled(x, options, False), values(shape), **options)


@pytest.mark.parametrize("include", [True, False])
@pytest.mark.parametrize(("shape", "options"), ROWS)
def test_avg_pool2d(shape: tuple[int, ...], options: Options, include: bool) -> None:
    oracle = lambda x: pooled(x, options, True, include)  # noqa: E731
    check(et.avg_pool2d, oracle, values(shape), **options, count_include_pad=include)
    g = et.asarray(values(oracle(values(shape)).shape))
    from_shape = et.avg_pool2d_backward(g, shape, **options, count_include_pad=include)
    from_x = et.avg_pool2d_backward(g, et.asarray(values(shape)), **options, count_include_pad=include)
    assert from_shape.tolist() == from_x.tolist()


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (0, 2, 3, 3), (1, 1, 1, 1)])
def test_global_avg_pool2d(shape: tuple[int, ...]) -> None:
    check(et.global_avg_pool2d, lambda x: anp.mean(x, axis=(2, 3), keepdims=True), values(shape))


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        ((2, 3, 6, 8), 2),
        ((2, 3, 7, 5), (3, 2)),
        ((1, 2, 3, 4), (5, 7)),
        ((1, 2, 5, 6), (None, 4)),
        ((0, 2, 4, 4), 3),
    ],
)
def test_adaptive_avg_pool2d(shape: tuple[int, ...], size: Any) -> None:
    height, width = (n if m is None else m for n, m in zip(shape[2:], pair(size)))

    def edges(n: int, m: int) -> list[tuple[int, int]]:
        return [(math.floor(i * n / m), math.ceil((i + 1) * n / m)) for i in range(m)]

    def oracle(x: Any) -> Any:
        cells = [
            anp.mean(x[:, :, top:bottom, left:right], axis=(2, 3))
            for top, bottom in edges(shape[2], height)
            for left, right in edges(shape[3], width)
        ]
        return anp.reshape(anp.stack(cells, axis=2), (*shape[:2], height, width))

    check(et.adaptive_avg_pool2d, oracle, values(shape), output_size=size)


def image(*rows: list[float]) -> et.ExTensor:
    return et.tensor([[list(rows)]])


TIES = [
    (image([1.0, 1.0], [1.0, 1.0]), 2, [[1.0, 0.0], [0.0, 0.0]]),
    (image([0.0, 2.0], [2.0, 2.0]), 2, [[0.0, 1.0], [0.0, 0.0]]),
    (image([-0.0, 0.0]), (1, 2), [[1.0, 0.0]]),
    (image([0.0, -0.0]), (1, 2), [[1.0, 0.0]]),
    (image([-INF, -INF]), (1, 2), [[1.0, 0.0]]),
    (image([1.0, INF, INF]), (1, 3), [[0.0, 1.0, 0.0]]),
]


@pytest.mark.parametrize(("x", "kernel_size", "expected"), TIES)
def test_the_first_of_a_tie(x: et.ExTensor, kernel_size: Any, expected: list[list[float]]) -> None:
    assert et.max_pool2d_backward(et.ones((1, 1, 1, 1)), x, kernel_size)[0, 0].tolist() == expected


def test_the_padding_never_wins() -> None:
    x = et.full((1, 1, 3, 3), -INF)
    assert et.max_pool2d(x, 3, 2, 1).tolist() == [[[[-INF, -INF], [-INF, -INF]]]]
    grad = et.max_pool2d_backward(et.ones((1, 1, 2, 2)), x, 3, 2, 1)[0, 0].tolist()
    assert grad == [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    assert et.max_pool2d(et.full((1, 1, 2, 2), -5.0), 3, 1, 1).tolist() == [[[[-5.0, -5.0], [-5.0, -5.0]]]]


@pytest.mark.parametrize("dtype", [et.float32, et.float64, et.float16, et.bfloat16])
def test_a_nan_takes_its_windows(dtype: Any) -> None:
    """At every position; the window's value and gradients are nan, the other windows are untouched."""
    for position in range(16):
        x = np.arange(16.0)
        x[position] = NAN
        x = et.asarray(x.reshape(1, 1, 4, 4)).astype(dtype)
        y = et.max_pool2d(x, 2)
        row, column = position // 8, position % 4 // 2
        expected = np.zeros((2, 2), bool)
        expected[row, column] = True
        np.testing.assert_array_equal(et.isnan(y).numpy()[0, 0], expected)
        grad = et.max_pool2d_backward(et.ones_like(y), x, 2)
        np.testing.assert_array_equal(et.isnan(grad).numpy()[0, 0], np.kron(expected, np.ones((2, 2), bool)))
        assert et.where(et.isnan(grad), 0.0, grad).sum().item() == 3


def test_second_order_of_a_nan_window() -> None:
    """The formula that is recorded for higher derivatives says the same as the kernel."""
    x = et.tensor([[[[1.0, NAN, 3.0, 4.0, 4.0, 1.0]]]], requires_grad=True)
    g = et.tensor([[[[2.0, 3.0, 5.0]]]], requires_grad=True)
    grad = et.max_pool2d_backward(g, x, (1, 2))
    np.testing.assert_array_equal(grad.numpy(), [[[[NAN, NAN, 0.0, 3.0, 5.0, 0.0]]]])
    assert grad.requires_grad


@pytest.mark.parametrize("dtype", [et.float16, et.bfloat16])
@pytest.mark.parametrize("name", ["max_pool2d", "avg_pool2d", "global_avg_pool2d", "adaptive_avg_pool2d"])
def test_half_is_float32_rounded_once(name: str, dtype: Any) -> None:
    options: Options = {"adaptive_avg_pool2d": {"output_size": 3}, "global_avg_pool2d": {}}.get(
        name, {"kernel_size": 3, "stride": 2, "padding": 1}
    )
    function, backward = getattr(et, name), getattr(et, f"{name}_backward")
    x = et.asarray(values((2, 3, 7, 5))).astype(dtype)
    y = function(x, **options)
    g = et.asarray(values(y.shape, 6)).astype(dtype)
    wide, wide_g = x.astype(et.float32), g.astype(et.float32)
    for found, expected in (
        (y, function(wide, **options)),
        (backward(g, x, **options), backward(wide_g, wide, **options)),
    ):
        assert found.dtype == dtype
        np.testing.assert_array_equal(found.numpy(), expected.astype(dtype).numpy())


ERRORS = [
    (lambda: et.max_pool2d(et.ones((2, 3, 4)), 2), ValueError, r"\[max_pool2d\] x must have the 4 axes \(N, C, H, W\), got shape \(2, 3, 4\)"),
    (lambda: et.max_pool2d(et.ones((1, 1, 4, 4)), 5), ValueError, r"\[max_pool2d\] kernel_size \(5, 5\) is larger than the padded x: \(1, 1, 4, 4\) with padding \(0, 0\)"),
    (lambda: et.max_pool2d(et.ones((1, 1, 4, 4)), 0), ValueError, r"\[max_pool2d\] kernel_size must be at least 1"),
    (lambda: et.max_pool2d(et.ones((1, 1, 4, 4)), (1, 2, 3)), ValueError, r"\[max_pool2d\] kernel_size must be an int or 2 of them"),
    (lambda: et.max_pool2d(et.ones((1, 1, 4, 4)), 2.0), TypeError, r"\[max_pool2d\] kernel_size must be an int"),
    (lambda: et.max_pool2d(et.ones((1, 1, 4, 4)), 2, 0), ValueError, r"\[max_pool2d\] stride must be at least 1"),
    (lambda: et.max_pool2d(et.ones((1, 1, 4, 4)), 2, padding=2), ValueError, r"\[max_pool2d\] padding \(2, 2\) must be at most half of kernel_size \(2, 2\)"),
    (lambda: et.max_pool2d(et.ones((1, 1, 4, 4)), 2, ceil_mode=1), TypeError, r"\[max_pool2d\] ceil_mode must be True or False"),
    (lambda: et.max_pool2d(et.ones((1, 1, 0, 4)), 1), ValueError, r"\[max_pool2d\] kernel_size \(1, 1\) is larger"),
    (lambda: et.max_pool2d(et.ones((1, 1, 4, 4), et.int64), 2), TypeError, r"\[max_pool2d\] x must have a floating dtype"),
    (lambda: et.max_pool2d_backward(et.ones((1, 1, 2, 3)), et.ones((1, 1, 4, 4)), 2), ValueError, r"\[max_pool2d_backward\] grad_output has shape \(1, 1, 2, 3\) but .* \(1, 1, 2, 2\)"),
    (lambda: et.max_pool2d_backward(et.ones((1, 1, 2, 2)), et.ones((1, 1, 4, 4), et.int64), 2), TypeError, r"\[max_pool2d_backward\] x has dtype int64"),
    (lambda: et.avg_pool2d(et.ones((1, 1, 4, 4)), 5), ValueError, r"\[avg_pool2d\] kernel_size \(5, 5\) is larger"),
    (lambda: et.avg_pool2d(et.ones((1, 1, 4, 4)), 2, count_include_pad="x"), TypeError, r"\[avg_pool2d\] count_include_pad must be True or False"),
    (lambda: et.avg_pool2d_backward(et.ones((1, 1, 2, 2)), (1, 4, 4), 2), ValueError, r"\[avg_pool2d_backward\] x must have the 4 axes"),
    (lambda: et.global_avg_pool2d(et.ones((1, 4))), ValueError, r"\[global_avg_pool2d\] x must have the 4 axes"),
    (lambda: et.global_avg_pool2d(et.ones((1, 1, 0, 4))), ValueError, r"\[global_avg_pool2d\] x has no pixels to average"),
    (lambda: et.global_avg_pool2d_backward(et.ones((1, 1)), (1, 1, 4, 4)), ValueError, r"\[global_avg_pool2d_backward\] grad_output has shape"),
    (lambda: et.adaptive_avg_pool2d(et.ones((1, 1, 4, 4)), 0), ValueError, r"\[adaptive_avg_pool2d\] output_size must be at least 1"),
    (lambda: et.adaptive_avg_pool2d(et.ones((1, 1, 4, 4)), (1, 2, 3)), ValueError, r"\[adaptive_avg_pool2d\] output_size must be an int or a pair"),
    (lambda: et.adaptive_avg_pool2d_backward(et.ones((1, 1, 2, 2)), (1, 1, 4, 4), 3), ValueError, r"\[adaptive_avg_pool2d_backward\] grad_output has shape"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), ERRORS)
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()
