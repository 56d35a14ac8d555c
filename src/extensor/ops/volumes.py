"""Convolutions of volumes (N, C, D, H, W), the transposed ones of sequences and volumes, and their gradients.

A volume is a stack of images: the slices that one window covers stand side by side as channels of an image, and the kernel's
slices likewise. So a convolution of volumes is one of images with kd times as many channels, and its gradients are theirs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..checks import as_floating, as_grad, check_needs, differentiable_input
from ..graph import backward_of, differentiable
from ..tensor import ExTensor, Shape
from ._wide import computed_wide, forward_wide
from .casting import cast_like
from .conv import (
    ALL,
    ConvGradients,
    Geometry,
    Needs,
    _checked_bias,
    _convolution,
    _transposed,
    conv2d,
    conv2d_backward,
    conv_transpose2d,
    conv_transpose2d_backward,
)
from .indexing import take, take_backward
from .joining import pad
from .matrix import transpose
from .reduction import sum as total
from .shape import reshape

__all__ = [
    "conv3d", "conv3d_backward", "conv_transpose1d", "conv_transpose1d_backward", "conv_transpose3d",
    "conv_transpose3d_backward",
]  # fmt: skip


def _positions(count: int, kernel: int, stride: int, dilation: int) -> ExTensor:
    """Which slices each window covers: (windows, kernel)."""
    return ExTensor(np.arange(count)[:, None] * stride + np.arange(kernel) * dilation)


def _slices(x: ExTensor, positions: ExTensor, groups: int) -> ExTensor:
    """Volumes as images of what each window covers: (N * windows, groups * kernel * C/groups, H, W)."""
    n, channels, _, height, width = x.shape
    seen = take(transpose(x, (0, 2, 1, 3, 4)), positions, 1)
    windows, kernel = positions.shape
    if groups > 1:
        seen = reshape(seen, (n, windows, kernel, groups, channels // groups, height, width))
        seen = transpose(seen, (0, 1, 3, 2, 4, 5, 6))
    return reshape(seen, (n * windows, kernel * channels, height, width))


def _volumes(seen: ExTensor, shape: Shape, positions: ExTensor, groups: int) -> ExTensor:
    """The adjoint of :func:`_slices`: what stands in the windows, added up where they overlap."""
    n, channels, depth, height, width = shape
    windows, kernel = positions.shape
    if groups > 1:
        seen = reshape(seen, (n, windows, groups, kernel, channels // groups, height, width))
        seen = transpose(seen, (0, 1, 3, 2, 4, 5, 6))
    seen = reshape(seen, (n, windows, kernel, channels, height, width))
    return transpose(take_backward(seen, (n, depth, channels, height, width), positions, 1), (0, 2, 1, 3, 4))


def _as_images(x: ExTensor) -> ExTensor:
    """Volumes slice by slice: (N * D, C, H, W)."""
    n, channels, depth, height, width = x.shape
    return reshape(transpose(x, (0, 2, 1, 3, 4)), (n * depth, channels, height, width))


def _as_volumes(y: ExTensor, n: int, depth: int) -> ExTensor:
    """Images, slice after slice, as volumes again."""
    return transpose(reshape(y, (n, depth, *y.shape[1:])), (0, 2, 1, 3, 4))


def _flat_kernel(weight: ExTensor) -> ExTensor:
    """(out, in/groups, kd, kh, kw) as (out, kd * in/groups, kh, kw); of a transposed convolution in and out change places."""
    out, inner, depth, height, width = weight.shape
    return reshape(transpose(weight, (0, 2, 1, 3, 4)), (out, depth * inner, height, width))


def _deep_kernel(weight: ExTensor, shape: Shape) -> ExTensor:
    """The inverse of :func:`_flat_kernel`."""
    out, inner, depth, height, width = shape
    return transpose(reshape(weight, (out, depth, inner, height, width)), (0, 2, 1, 3, 4))


def _in_plane(how: Geometry) -> dict[str, Any]:
    return {"stride": how.stride[1:], "dilation": how.dilation[1:], "groups": how.groups}


def _inside(x: ExTensor, how: Geometry) -> ExTensor:
    """Without the padding."""
    cut = tuple(slice(before, n - after) for (before, after), n in zip(how.padding, x.shape[2:]))
    return x[(slice(None), slice(None), *cut)]


def _is_padded(how: Geometry) -> bool:
    return any(any(sides) for sides in how.padding)


def _is_pointwise(weight: ExTensor, how: Geometry) -> bool:
    """Whether every voxel is on its own: all slices are one image then."""
    return weight.shape[2:] == (1, 1, 1) and how.stride == (1, 1, 1) and not _is_padded(how)


def _one_image(x: ExTensor) -> ExTensor:
    """(N, C, D, H, W) as (N, C, D * H, W)."""
    return reshape(x, (*x.shape[:2], x.shape[2] * x.shape[3], x.shape[4]))


@differentiable
def conv3d(
    x: ExTensor,
    weight: ExTensor,
    bias: ExTensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> ExTensor:
    """Convolution of volumes.   y[n, o] = bias[o] + sum over c of x[n, c] * weight[o, c]

    Args:
        x: volumes of shape (N, C, D, H, W).
        weight: shape (out, C/groups, kd, kh, kw).
        bias: shape (out,), or None.
        stride, padding, dilation, groups: as in :func:`conv2d`, for three directions.

    Returns:
        Volumes of shape (N, out, od, oh, ow).

    Example:
        >>> import extensor as et
        >>> et.conv3d(et.ones((1, 1, 2, 2, 3)), et.ones((1, 1, 2, 2, 2)), et.tensor([0.5])).tolist()
        [[[[[8.5, 8.5]]]]]
    """
    x, weight = as_floating("conv3d", "x", x), as_floating("conv3d", "weight", weight)
    how = _convolution("conv3d", x.shape, weight.shape, stride, padding, dilation, groups)
    bias = _checked_bias("conv3d", bias, weight.shape[0])
    if _is_pointwise(weight, how):
        y = conv2d(_one_image(x), _flat_kernel(weight), bias, groups=how.groups)
        return reshape(y, (x.shape[0], weight.shape[0], *how.size))
    whole = pad(x, how.margins) if _is_padded(how) else x
    positions = _positions(how.size[0], weight.shape[2], how.stride[0], how.dilation[0])
    seen = _slices(whole, positions, how.groups)
    return _as_volumes(conv2d(seen, _flat_kernel(weight), bias, **_in_plane(how)), x.shape[0], how.size[0])


@backward_of(conv3d, wrt=("x", "weight", "bias"))
@computed_wide
def conv3d_backward(
    grad_output: ExTensor,
    x: ExTensor,
    weight: ExTensor,
    *,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    needs: Needs = ALL,
) -> ConvGradients:
    """Gradient of :func:`conv3d`; see :func:`conv2d_backward`.

    Args:
        grad_output: the gradient of the output.
        x, weight: the input and the weight. The bias is not asked for; its gradient is returned all the same.
        stride, padding, dilation, groups: as given to :func:`conv3d`.
        needs: which of the three gradients are wanted; the others are None.

    Example:
        >>> import extensor as et
        >>> grads = et.conv3d_backward(et.ones((1, 1, 1, 1, 2)), et.ones((1, 1, 1, 1, 3)), et.ones((1, 1, 1, 1, 2)))
        >>> grads.grad_x.tolist(), grads.grad_weight.tolist(), grads.grad_bias.tolist()
        ([[[[[1.0, 2.0, 1.0]]]]], [[[[[2.0, 2.0]]]]], [2.0])
    """
    function = "conv3d_backward"
    check_needs(function, needs, 3)
    x, weight = differentiable_input(function, "x", x), differentiable_input(function, "weight", weight)
    how = _convolution(function, x.shape, weight.shape, stride, padding, dilation, groups)
    grad = as_grad(function, grad_output, (x.shape[0], weight.shape[0], *how.size))
    grad_x = grad_weight = None
    if _is_pointwise(weight, how):
        found = conv2d_backward(
            _one_image(grad), _one_image(x), _flat_kernel(weight), needs=needs, groups=how.groups
        )
        grad_x = None if found.grad_x is None else reshape(found.grad_x, x.shape)
    else:
        whole = pad(x, how.margins) if _is_padded(how) else x
        positions = _positions(how.size[0], weight.shape[2], how.stride[0], how.dilation[0])
        seen = _slices(whole, positions, how.groups)
        found = conv2d_backward(_as_images(grad), seen, _flat_kernel(weight), needs=needs, **_in_plane(how))
        if found.grad_x is not None:
            grad_x = _inside(_volumes(found.grad_x, whole.shape, positions, how.groups), how)
    if found.grad_weight is not None:
        grad_weight = _deep_kernel(found.grad_weight, weight.shape)
    return ConvGradients(
        cast_like(grad_x, x), cast_like(grad_weight, weight), cast_like(found.grad_bias, grad)
    )


# Transposed convolutions


@differentiable
@forward_wide
def conv_transpose3d(
    x: ExTensor,
    weight: ExTensor,
    bias: ExTensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    output_padding: Any = 0,
) -> ExTensor:
    """Transposed convolution of volumes: every voxel adds its multiple of the kernel to the output.

    Args:
        x: volumes of shape (N, C, D, H, W).
        weight: shape (C, out/groups, kd, kh, kw).
        bias: shape (out,), or None.
        stride, padding, dilation, groups, output_padding: as in :func:`conv_transpose2d`, for three directions.

    Returns:
        Volumes of shape (N, out, od, oh, ow).

    Example:
        >>> import extensor as et
        >>> et.conv_transpose3d(et.ones((1, 1, 2, 1, 1)), et.ones((1, 1, 2, 1, 2))).tolist()
        [[[[[1.0, 1.0]], [[2.0, 2.0]], [[1.0, 1.0]]]]]
    """
    function = "conv_transpose3d"
    x, weight = as_floating(function, "x", x), as_floating(function, "weight", weight)
    how = _transposed(function, x.shape, weight.shape, stride, padding, dilation, groups, output_padding)
    bias = _checked_bias(function, bias, weight.shape[1] * how.groups)
    spread = conv_transpose2d(
        _as_images(x), _flat_kernel(weight), None, how.stride[1:], 0, how.dilation[1:], how.groups, how.output_padding[1:]
    )  # fmt: skip
    whole = _whole_shape(x.shape, weight.shape, how)
    positions = _positions(x.shape[2], weight.shape[2], how.stride[0], how.dilation[0])
    y = _inside(_volumes(spread, whole, positions, how.groups), how)
    return y if bias is None else y + reshape(bias, (-1, 1, 1, 1))


def _whole_shape(x: Shape, weight: Shape, how: Geometry) -> Shape:
    """The shape of the output before the padding is cut off."""
    size = (n + before + after for n, (before, after) in zip(how.size, how.padding))
    return (x[0], weight[1] * how.groups, *size)


@backward_of(conv_transpose3d, wrt=("x", "weight", "bias"))
def conv_transpose3d_backward(
    grad_output: ExTensor,
    x: ExTensor,
    weight: ExTensor,
    *,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    output_padding: Any = 0,
    needs: Needs = ALL,
) -> ConvGradients:
    """Gradient of :func:`conv_transpose3d`; see :func:`conv_transpose2d_backward`.

    Args:
        grad_output: the gradient of the output.
        x, weight: the input and the weight. The bias is not asked for; its gradient is returned all the same.
        stride, padding, dilation, groups, output_padding: as given to :func:`conv_transpose3d`.
        needs: which of the three gradients are wanted; the others are None.

    Example:
        >>> import extensor as et
        >>> grads = et.conv_transpose3d_backward(et.ones((1, 1, 3, 1, 2)), et.ones((1, 1, 2, 1, 1)), et.ones((1, 1, 2, 1, 2)))
        >>> grads.grad_x.tolist(), grads.grad_bias.tolist()
        ([[[[[4.0]], [[4.0]]]]], [6.0])
    """
    function = "conv_transpose3d_backward"
    check_needs(function, needs, 3)
    x, weight = differentiable_input(function, "x", x), differentiable_input(function, "weight", weight)
    how = _transposed(function, x.shape, weight.shape, stride, padding, dilation, groups, output_padding)
    grad = as_grad(function, grad_output, (x.shape[0], weight.shape[1] * how.groups, *how.size))
    whole = pad(grad, how.margins) if _is_padded(how) else grad
    positions = _positions(x.shape[2], weight.shape[2], how.stride[0], how.dilation[0])
    found = conv_transpose2d_backward(
        _slices(whole, positions, how.groups), _as_images(x), _flat_kernel(weight),
        output_padding=how.output_padding[1:], needs=(needs[0], needs[1], False), **_in_plane(how),
    )  # fmt: skip
    grad_x = None if found.grad_x is None else _as_volumes(found.grad_x, x.shape[0], x.shape[2])
    grad_weight = None if found.grad_weight is None else _deep_kernel(found.grad_weight, weight.shape)
    grad_bias = total(grad, (0, 2, 3, 4)) if needs[2] else None
    return ConvGradients(cast_like(grad_x, x), cast_like(grad_weight, weight), grad_bias)


def _row(x: ExTensor) -> ExTensor:
    """A sequence as an image of one row."""
    return reshape(x, (*x.shape[:2], 1, x.shape[2]))


def _in_one_row(how: Geometry) -> dict[str, Any]:
    ((before, _),) = how.padding
    return {
        "stride": (1, *how.stride), "padding": (0, before), "dilation": (1, *how.dilation), "groups": how.groups,
        "output_padding": (0, *how.output_padding),
    }  # fmt: skip


@differentiable
def conv_transpose1d(
    x: ExTensor,
    weight: ExTensor,
    bias: ExTensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    output_padding: Any = 0,
) -> ExTensor:
    """Transposed convolution of sequences: every element adds its multiple of the kernel to the output.

    Args:
        x: sequences of shape (N, C, L).
        weight: shape (C, out/groups, k).
        bias: shape (out,), or None.
        stride, padding, dilation, groups, output_padding: as in :func:`conv_transpose2d`, for one direction.

    Returns:
        Sequences of shape (N, out, ol), ol = (L - 1) * stride - 2 * padding + dilation * (k - 1) + output_padding + 1.

    Example:
        >>> import extensor as et
        >>> et.conv_transpose1d(et.tensor([[[1.0, 2.0]]]), et.ones((1, 1, 2)), stride=2).tolist()
        [[[1.0, 1.0, 2.0, 2.0]]]
    """
    function = "conv_transpose1d"
    x, weight = as_floating(function, "x", x), as_floating(function, "weight", weight)
    how = _transposed(function, x.shape, weight.shape, stride, padding, dilation, groups, output_padding)
    bias = _checked_bias(function, bias, weight.shape[1] * how.groups)
    y = conv_transpose2d(_row(x), _row(weight), bias, **_in_one_row(how))
    return reshape(y, (*y.shape[:2], y.shape[3]))


@backward_of(conv_transpose1d, wrt=("x", "weight", "bias"))
def conv_transpose1d_backward(
    grad_output: ExTensor,
    x: ExTensor,
    weight: ExTensor,
    *,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    output_padding: Any = 0,
    needs: Needs = ALL,
) -> ConvGradients:
    """Gradient of :func:`conv_transpose1d`; see :func:`conv_transpose2d_backward`.

    Args:
        grad_output: the gradient of the output.
        x, weight: the input and the weight. The bias is not asked for; its gradient is returned all the same.
        stride, padding, dilation, groups, output_padding: as given to :func:`conv_transpose1d`.
        needs: which of the three gradients are wanted; the others are None.

    Example:
        >>> import extensor as et
        >>> grads = et.conv_transpose1d_backward(et.ones((1, 1, 4)), et.tensor([[[1.0, 2.0]]]), et.ones((1, 1, 2)), stride=2)
        >>> grads.grad_x.tolist(), grads.grad_weight.tolist(), grads.grad_bias.tolist()
        ([[[2.0, 2.0]]], [[[3.0, 3.0]]], [4.0])
    """
    function = "conv_transpose1d_backward"
    check_needs(function, needs, 3)
    x, weight = differentiable_input(function, "x", x), differentiable_input(function, "weight", weight)
    how = _transposed(function, x.shape, weight.shape, stride, padding, dilation, groups, output_padding)
    grad = as_grad(function, grad_output, (x.shape[0], weight.shape[1] * how.groups, *how.size))
    found = conv_transpose2d_backward(_row(grad), _row(x), _row(weight), needs=needs, **_in_one_row(how))
    return ConvGradients(
        None if found.grad_x is None else reshape(found.grad_x, x.shape),
        None if found.grad_weight is None else reshape(found.grad_weight, weight.shape),
        found.grad_bias,
    )
