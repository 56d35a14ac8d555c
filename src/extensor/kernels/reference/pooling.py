"""Pooling of images, (N, C, H, W). Attributes are pairs; ``size`` is the height and width of the output.

A window may hang over the edge of the padding (``ceil_mode``); what it sees there does not count. Averages add
up in float64.
"""

from __future__ import annotations

import numpy as np

from ..dispatch import kernel
from ..namespace import added, namespace_of, wide_dtype, xp, zeros

__all__ = ["avg_pool2d", "avg_pool2d_backward", "max_pool2d", "max_pool2d_backward"]


Pair = tuple[int, ...]


def extended(x, window, stride, padding, size, fill):
    """``x`` with a margin of ``fill`` that every window fits into."""
    margins = [
        (p, max(0, (m - 1) * s + k - n - p))
        for n, k, s, p, m in zip(x.shape[2:], window, stride, padding, size)
    ]
    return xp.pad(x, ((0, 0), (0, 0), *margins), constant_values=fill)


def windows(x, window, stride, padding, size, fill):
    """A view of every window: (N, C, oh, ow, kh, kw)."""
    x = extended(x, window, stride, padding, size, fill)
    if namespace_of(x) is not np:
        return gathered(x, window, stride, size)
    views = np.lib.stride_tricks.sliding_window_view(x, window, axis=(2, 3))
    return views[:, :, :: stride[0], :: stride[1]][:, :, : size[0], : size[1]]


def gathered(x, window, stride, size):
    """The windows of an array without views."""
    rows, columns = (xp.arange(m)[:, None] * s + xp.arange(k) for m, s, k in zip(size, stride, window))
    return x[:, :, rows[:, None, :, None], columns[None, :, None, :]]


def fold(pieces, shape, window, stride, padding, size):
    """The adjoint of :func:`windows`: ``pieces(i, j)`` is added to what element (i, j) of each window sees."""
    height, width = ((m - 1) * s + k for m, s, k in zip(size, stride, window))
    height, width = (max(m, n + p) for m, n, p in zip((height, width), shape[2:], padding))
    first = pieces(0, 0)
    out = zeros((*shape[:2], height, width), wide_dtype(first), first)
    for i in range(window[0]):
        for j in range(window[1]):
            bottom, right = (a + (m - 1) * s + 1 for a, m, s in zip((i, j), size, stride))
            there = (slice(None), slice(None), slice(i, bottom, stride[0]), slice(j, right, stride[1]))
            out = added(out, there, pieces(i, j))
    return out[:, :, padding[0] : padding[0] + shape[2], padding[1] : padding[1] + shape[3]]


def first_maximum(x, window, stride, padding, size):
    """Which element of each window is its maximum: the first of a tie, the first nan, and never the padding."""
    flat = window[0] * window[1]
    seen = windows(x, window, stride, padding, size, -np.inf).reshape(*x.shape[:2], *size, flat)
    inside = windows(xp.ones((1, 1, *x.shape[2:]), bool), window, stride, padding, size, False)
    inside = inside.reshape(*size, flat)
    top = seen.max(-1, keepdims=True)
    return xp.argmax(((seen == top) | xp.isnan(seen)) & inside, -1)


@kernel
def max_pool2d(x, window, stride, padding, size):
    return windows(x, window, stride, padding, size, -np.inf).max((4, 5))


@kernel
def max_pool2d_backward(g, x, window, stride, padding, size):
    place = first_maximum(x, window, stride, padding, size)
    holds_nan = xp.isnan(max_pool2d.reference(x, window, stride, padding, size))

    def piece(i, j):
        return xp.where(holds_nan, np.nan, xp.where(place == i * window[1] + j, g, 0.0))

    return fold(piece, x.shape, window, stride, padding, size).astype(g.dtype)


def divisors(
    shape: Pair, window: Pair, stride: Pair, padding: Pair, size: Pair, count_include_pad: bool
) -> np.ndarray:
    """By what each sum is divided: the elements of the window on the image, or on the image and its padding."""
    counts = []
    for n, k, s, p, m in zip(shape[2:], window, stride, padding, size):
        start = np.arange(m) * s - p
        first, end = (start, n + p) if count_include_pad else (np.maximum(start, 0), n)
        counts.append(np.minimum(start + k, end) - first)
    return np.multiply.outer(*counts).astype(np.float64)


@kernel
def avg_pool2d(x, window, stride, padding, size, count_include_pad):
    total = windows(x, window, stride, padding, size, 0).sum((4, 5), dtype=wide_dtype(x))
    counts = divisors(x.shape, window, stride, padding, size, count_include_pad).astype(total.dtype)
    return (total / counts).astype(x.dtype)


@kernel
def avg_pool2d_backward(g, shape, window, stride, padding, size, count_include_pad):
    counts = divisors(shape, window, stride, padding, size, count_include_pad)
    share = g / counts.astype(wide_dtype(g))
    return fold(lambda i, j: share, shape, window, stride, padding, size).astype(g.dtype)
