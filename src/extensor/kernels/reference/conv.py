"""Convolutions of images, (N, C, H, W). float32 adds up in float64.

``padding`` is (top, bottom, left, right), the other attributes are pairs. Groups become an axis of their own:
x as (N, groups, C / groups, H, W), weight as (groups, O / groups, C / groups, kh, kw).
"""

from __future__ import annotations

from ..dispatch import kernel
from ..namespace import added, assigned, common_dtype, zeros
from .matrix import widened

__all__ = ["conv2d", "conv2d_backward", "conv_transpose2d", "conv_transpose2d_backward"]


def met(inputs, outputs, stride, offset):
    """Which outputs i meet an input at i * stride + offset, and those inputs: two slices of the same length."""
    first = max(0, -(offset // stride))
    last = min(outputs, -((offset - inputs) // stride))
    if first >= last:
        return slice(0, 0), slice(0, 0)
    return slice(first, last), slice(first * stride + offset, (last - 1) * stride + offset + 1, stride)


def meetings(shape, out, size, stride, padding, dilation):
    """For each element (p, q) of a kernel of ``size``: what it sees of images of ``shape``, and for which pixels."""
    for p in range(size[0]):
        rows, from_rows = met(shape[2], out[0], stride[0], p * dilation[0] - padding[0])
        for q in range(size[1]):
            columns, from_columns = met(shape[3], out[1], stride[1], q * dilation[1] - padding[2])
            yield p, q, (..., from_rows, from_columns), (..., rows, columns)


def patches(x, out, size, stride, padding, dilation, groups):
    """What each pixel of an output of size ``out`` sees, as columns: (N, groups, C / groups * kh * kw, oh * ow).

    Beyond the images are zeros. The work is that of the pixels seen, whatever the stride and the dilation.
    """
    n, c = x.shape[:2]
    seen = zeros((n, c, *size, *out), x.dtype, x)
    for p, q, there, here in meetings(x.shape, out, size, stride, padding, dilation):
        seen = assigned(seen, (slice(None), slice(None), p, q, *here[1:]), x[there])
    return seen.reshape(n, groups, c // groups * size[0] * size[1], out[0] * out[1])


def matrices(weight, groups):
    """The weight of each group as a matrix: (groups, O / groups, C / groups * kh * kw)."""
    out, c, kh, kw = weight.shape
    return weight.reshape(groups, out // groups, c * kh * kw)


def pixels(y, groups):
    """An image as rows, one for each pixel: (N, groups, h * w, C / groups)."""
    n, c, h, w = y.shape
    return y.reshape(n, groups, c // groups, h * w).swapaxes(2, 3)


def spread(g, weight, shape, stride, padding, dilation, groups):
    """The adjoint of the convolution: every pixel of ``g`` adds its multiple of the weight to images of ``shape``."""
    n, _, oh, ow = g.shape
    _, c, kh, kw = weight.shape
    rows = pixels(g, groups) @ matrices(weight, groups)
    rows = rows.reshape(n, groups, oh, ow, c, kh, kw).transpose(5, 6, 0, 1, 4, 2, 3)
    rows = rows.reshape(kh, kw, n, groups * c, oh, ow)
    out = zeros(shape, g.dtype, g)
    for p, q, there, here in meetings(shape, (oh, ow), (kh, kw), stride, padding, dilation):
        out = added(out, there, rows[p, q][here])
    return out


def weight_gradient(g, x, shape, stride, padding, dilation, groups):
    """sum over images and pixels of the outer product of ``g`` and what it sees of ``x``."""
    seen = patches(x, g.shape[2:], shape[2:], stride, padding, dilation, groups)
    return (pixels(g, groups).swapaxes(2, 3) @ seen.swapaxes(2, 3)).sum(0).reshape(shape)


def biased(y, bias, dtype):
    """``y`` plus one number for each channel, in the dtype of the result."""
    if bias is not None:
        y, dtype = y + bias[:, None, None], common_dtype(dtype, bias)
    return y.astype(dtype, copy=False)


@kernel
def conv2d(x, weight, bias, stride, padding, dilation, groups):
    (x, weight), dtype = widened(x, weight)
    size, around = weight.shape[2:], (padding[0] + padding[1], padding[2] + padding[3])
    out = tuple(
        (n + p - d * (k - 1) - 1) // s + 1
        for n, p, k, s, d in zip(x.shape[2:], around, size, stride, dilation)
    )
    y = matrices(weight, groups) @ patches(x, out, size, stride, padding, dilation, groups)
    return biased(y.reshape(x.shape[0], weight.shape[0], *out), bias, dtype)


@kernel
def conv2d_backward(g, x, weight, stride, padding, dilation, groups, needs):
    (g, x, weight), dtype = widened(g, x, weight)
    grad_x = grad_weight = None
    if needs[0]:
        grad_x = spread(g, weight, x.shape, stride, padding, dilation, groups).astype(dtype)
    if needs[1]:
        grad_weight = weight_gradient(g, x, weight.shape, stride, padding, dilation, groups).astype(dtype)
    return grad_x, grad_weight, g.sum((0, 2, 3)).astype(dtype) if needs[2] else None


@kernel
def conv_transpose2d(x, weight, bias, stride, padding, dilation, groups, output_padding):
    (x, weight), dtype = widened(x, weight)
    around = padding[0] + padding[1], padding[2] + padding[3]
    size = (
        (n - 1) * s + d * (k - 1) + 1 + more - p
        for n, s, d, k, more, p in zip(
            x.shape[2:], stride, dilation, weight.shape[2:], output_padding, around
        )
    )
    shape = x.shape[0], weight.shape[1] * groups, *size
    return biased(spread(x, weight, shape, stride, padding, dilation, groups), bias, dtype)


@kernel
def conv_transpose2d_backward(g, x, weight, stride, padding, dilation, groups, needs):
    (g, x, weight), dtype = widened(g, x, weight)
    grad_x = grad_weight = None
    if needs[0]:
        seen = patches(g, x.shape[2:], weight.shape[2:], stride, padding, dilation, groups)
        grad_x = (matrices(weight, groups) @ seen).reshape(x.shape).astype(dtype)
    if needs[1]:
        grad_weight = weight_gradient(x, g, weight.shape, stride, padding, dilation, groups).astype(dtype)
    return grad_x, grad_weight, g.sum((0, 2, 3)).astype(dtype) if needs[2] else None
