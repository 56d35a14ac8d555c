"""Convolutions of images, (N, C, H, W). float32 adds up in float64.

``padding`` is (top, bottom, left, right), the other attributes are pairs. Groups become an axis of their own:
x as (N, groups, C / groups, H, W), weight as (groups, O / groups, C / groups, kh, kw).
"""

from __future__ import annotations

import numpy as np

from ..dispatch import kernel
from .matrix import widened

__all__ = ["conv2d", "conv2d_backward", "conv_transpose2d", "conv_transpose2d_backward"]


def padded(x, padding):
    """``x`` with zeros around its last two axes."""
    top, bottom, left, right = padding
    return np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))


def patches(x, size, stride, dilation, groups):
    """What each element of the output sees, as rows: (N, groups, oh * ow, C / groups * kh * kw)."""
    reach = tuple(d * (k - 1) + 1 for d, k in zip(dilation, size))
    views = np.lib.stride_tricks.sliding_window_view(x, reach, axis=(2, 3))
    views = views[:, :, :: stride[0], :: stride[1], :: dilation[0], :: dilation[1]]
    n, c, oh, ow, kh, kw = views.shape
    views = views.reshape(n, groups, c // groups, oh, ow, kh, kw).transpose(0, 1, 3, 4, 2, 5, 6)
    return views.reshape(n, groups, oh * ow, c // groups * kh * kw)


def matrices(weight, groups):
    """The weight of each group as a matrix: (groups, O / groups, C / groups * kh * kw)."""
    out, c, kh, kw = weight.shape
    return weight.reshape(groups, out // groups, c * kh * kw)


def pixels(y, groups):
    """An image as rows, one for each pixel: (N, groups, h * w, C / groups)."""
    n, c, h, w = y.shape
    return y.reshape(n, groups, c // groups, h * w).swapaxes(2, 3)


def spread(g, weight, size, stride, dilation, groups):
    """The adjoint of the convolution: every pixel of ``g`` adds its multiple of the weight to an image of ``size``."""
    n, _, oh, ow = g.shape
    _, c, kh, kw = weight.shape
    rows = pixels(g, groups) @ matrices(weight, groups)
    rows = rows.reshape(n, groups, oh, ow, c, kh, kw).transpose(5, 6, 0, 1, 4, 2, 3)
    rows = rows.reshape(kh, kw, n, groups * c, oh, ow)
    out = np.zeros((n, groups * c, *size), g.dtype)
    for i in range(kh):
        for j in range(kw):
            top, left = i * dilation[0], j * dilation[1]
            out[
                :,
                :,
                top : top + (oh - 1) * stride[0] + 1 : stride[0],
                left : left + (ow - 1) * stride[1] + 1 : stride[1],
            ] += rows[i, j]
    return out


def weight_gradient(g, x, shape, stride, dilation, groups):
    """sum over images and pixels of the outer product of ``g`` and what it sees of the padded ``x``."""
    oh, ow = g.shape[2:]
    height, width = (
        (n - 1) * s + d * (k - 1) + 1 for n, s, d, k in zip((oh, ow), stride, dilation, shape[2:])
    )
    seen = patches(x[:, :, :height, :width], shape[2:], stride, dilation, groups)
    return (pixels(g, groups).swapaxes(2, 3) @ seen).sum(0).reshape(shape)


def biased(y, bias, dtype):
    """``y`` plus one number for each channel, in the dtype of the result."""
    if bias is not None:
        y, dtype = y + bias[:, None, None], np.result_type(dtype, bias)
    return y.astype(dtype, copy=False)


@kernel
def conv2d(x, weight, bias, stride, padding, dilation, groups):
    (x, weight), dtype = widened(x, weight)
    x = padded(x, padding)
    size = weight.shape[2:]
    oh, ow = ((n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip(x.shape[2:], size, stride, dilation))
    y = matrices(weight, groups) @ patches(x, size, stride, dilation, groups).swapaxes(2, 3)
    return biased(y.reshape(x.shape[0], weight.shape[0], oh, ow), bias, dtype)


@kernel
def conv2d_backward(g, x, weight, stride, padding, dilation, groups, needs):
    (g, x, weight), dtype = widened(g, x, weight)
    grad_x = grad_weight = None
    x = padded(x, padding)
    if needs[0]:
        top, bottom, left, right = padding
        height, width = x.shape[2:]
        grad_x = spread(g, weight, (height, width), stride, dilation, groups)
        grad_x = grad_x[:, :, top : height - bottom, left : width - right].astype(dtype)
    if needs[1]:
        grad_weight = weight_gradient(g, x, weight.shape, stride, dilation, groups).astype(dtype)
    return grad_x, grad_weight, g.sum((0, 2, 3)).astype(dtype) if needs[2] else None


@kernel
def conv_transpose2d(x, weight, bias, stride, padding, dilation, groups, output_padding):
    (x, weight), dtype = widened(x, weight)
    top, bottom, left, right = padding
    height, width = (
        (n - 1) * s + d * (k - 1) + 1 + more
        for n, s, d, k, more in zip(x.shape[2:], stride, dilation, weight.shape[2:], output_padding)
    )
    y = spread(x, weight, (height, width), stride, dilation, groups)
    return biased(y[:, :, top : height - bottom, left : width - right], bias, dtype)


@kernel
def conv_transpose2d_backward(g, x, weight, stride, padding, dilation, groups, needs):
    (g, x, weight), dtype = widened(g, x, weight)
    grad_x = grad_weight = None
    seen = padded(g, padding)
    if needs[0]:
        oh, ow = x.shape[2:]
        size = weight.shape[2:]
        height, width = (
            (n - 1) * s + d * (k - 1) + 1 for n, s, d, k in zip((oh, ow), stride, dilation, size)
        )
        grad_x = matrices(weight, groups) @ patches(
            seen[:, :, :height, :width], size, stride, dilation, groups
        ).swapaxes(2, 3)
        grad_x = grad_x.reshape(x.shape).astype(dtype)
    if needs[1]:
        grad_weight = weight_gradient(x, seen, weight.shape, stride, dilation, groups).astype(dtype)
    return grad_x, grad_weight, g.sum((0, 2, 3)).astype(dtype) if needs[2] else None
