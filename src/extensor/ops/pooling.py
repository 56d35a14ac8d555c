"""Pooling of images (N, C, H, W): one number for each window of each channel, and the gradients; see :mod:`._pooled`."""

from __future__ import annotations

from typing import Any

from .. import kernels
from ..checks import as_floating, as_grad, shape_of
from ..graph import backward_of, differentiable
from ..tensor import ExTensor, Shape, TensorOrShape
from ._pooled import (
    adaptive_avg,
    adaptive_avg_backward,
    adaptive_avg_formula,
    avg_formula,
    avg_pooled,
    avg_pooled_backward,
    max_formula,
    max_pooled,
    max_pooled_backward,
)
from ._spatial import check_axes
from .reduction import mean_backward

__all__ = [
    "adaptive_avg_pool2d", "adaptive_avg_pool2d_backward", "avg_pool2d", "avg_pool2d_backward",
    "global_avg_pool2d", "global_avg_pool2d_backward", "max_pool2d", "max_pool2d_backward",
]  # fmt: skip


@differentiable
def max_pool2d(
    x: ExTensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    dilation: Any = 1,
) -> ExTensor:
    """The largest element of each window.

    The padding is -inf, so it never wins; a nan does.

    Args:
        x: images of shape (N, C, H, W).
        kernel_size: the size of a window: an int, or one for each direction.
        stride: steps between two windows; None means ``kernel_size``.
        padding: how much is added on both sides, at most half a window.
        ceil_mode: whether the last window may hang over the end.
        dilation: distance between two elements of a window.

    Returns:
        Images of shape (N, C, oh, ow), oh = (H + 2 * padding - kernel_size) // stride + 1, rounded up with ``ceil_mode``.

    Example:
        >>> import extensor as et
        >>> et.max_pool2d(et.tensor([[[[1.0, 2.0, 0.0, 3.0], [4.0, 0.0, 1.0, 1.0]]]]), 2).tolist()
        [[[[4.0, 3.0]]]]
    """
    return max_pooled("max_pool2d", x, kernel_size, stride, padding, ceil_mode, dilation, 2)


@backward_of(max_pool2d, formula=max_formula("max_pool2d_backward", 2))
def max_pool2d_backward(
    grad_output: ExTensor,
    x: ExTensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    dilation: Any = 1,
) -> ExTensor:
    """Gradient of :func:`max_pool2d`: to the maximum of each window, the first of a tie (row by row).

    A window that holds a nan has nan gradients.

    Args:
        grad_output: the gradient of the output.
        x: the input.
        kernel_size, stride, padding, ceil_mode, dilation: as given to :func:`max_pool2d`.

    Example:
        >>> import extensor as et
        >>> et.max_pool2d_backward(et.ones((1, 1, 1, 1)), et.tensor([[[[1.0, 2.0], [2.0, 0.0]]]]), 2).tolist()
        [[[[0.0, 1.0], [0.0, 0.0]]]]
    """
    options = kernel_size, stride, padding, ceil_mode, dilation
    return max_pooled_backward("max_pool2d_backward", grad_output, x, *options, 2)


@differentiable
def avg_pool2d(
    x: ExTensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> ExTensor:
    """The mean of each window.

    Args:
        x: images of shape (N, C, H, W).
        kernel_size: the size of a window: an int, or one for each direction.
        stride: steps between two windows; None means ``kernel_size``.
        padding: how many zeros are added on both sides, at most half a window.
        ceil_mode: whether the last window may hang over the end; what is beyond the padding does not count.
        count_include_pad: whether the zeros of the padding count as elements of the mean.

    Returns:
        Images of shape (N, C, oh, ow), oh = (H + 2 * padding - kernel_size) // stride + 1, rounded up with ``ceil_mode``.

    Example:
        >>> import extensor as et
        >>> et.avg_pool2d(et.tensor([[[[1.0, 2.0, 0.0, 3.0], [4.0, 1.0, 1.0, 0.0]]]]), 2).tolist()
        [[[[2.0, 1.0]]]]
    """
    return avg_pooled("avg_pool2d", x, kernel_size, stride, padding, ceil_mode, count_include_pad, 2)


@backward_of(avg_pool2d, keeps_shape=("x",), formula=avg_formula("avg_pool2d_backward", 2))
def avg_pool2d_backward(
    grad_output: ExTensor,
    x: TensorOrShape,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> ExTensor:
    """Gradient of :func:`avg_pool2d`: every element of a window gets an equal share.

    Args:
        grad_output: the gradient of the output.
        x: the input or just its shape.
        kernel_size, stride, padding, ceil_mode, count_include_pad: as given to :func:`avg_pool2d`.

    Example:
        >>> import extensor as et
        >>> et.avg_pool2d_backward(et.ones((1, 1, 1, 2)), (1, 1, 2, 4), 2).tolist()
        [[[[0.25, 0.25, 0.25, 0.25], [0.25, 0.25, 0.25, 0.25]]]]
    """
    options = kernel_size, stride, padding, ceil_mode, count_include_pad
    return avg_pooled_backward("avg_pool2d_backward", grad_output, x, *options, 2)


def _check_image(function: str, shape: Shape) -> None:
    check_axes(function, "x", shape, "N, C, H, W")
    if 0 in shape[2:]:
        raise ValueError(f"[{function}] x has no pixels to average (x: {shape})")


@differentiable
def global_avg_pool2d(x: ExTensor) -> ExTensor:
    """The mean of each channel over all pixels, of shape (N, C, 1, 1).   y = mean(x, (2, 3), keepdims=True)

    Example:
        >>> import extensor as et
        >>> et.global_avg_pool2d(et.tensor([[[[1.0, 2.0], [3.0, 6.0]]]])).tolist()
        [[[[3.0]]]]
    """
    x = as_floating("global_avg_pool2d", "x", x)
    _check_image("global_avg_pool2d", x.shape)
    return kernels.mean(x, (2, 3), True)


@backward_of(global_avg_pool2d, keeps_shape=("x",))
def global_avg_pool2d_backward(grad_output: ExTensor, x: TensorOrShape) -> ExTensor:
    """Gradient of :func:`global_avg_pool2d`: an equal share for every pixel.   dx = dy / (H * W)

    ``x`` is the input or just its shape.

    Example:
        >>> import extensor as et
        >>> et.global_avg_pool2d_backward(et.ones((1, 1, 1, 1)), (1, 1, 2, 2)).tolist()
        [[[[0.25, 0.25], [0.25, 0.25]]]]
    """
    shape = shape_of("global_avg_pool2d_backward", "x", x)
    _check_image("global_avg_pool2d_backward", shape)
    grad = as_grad("global_avg_pool2d_backward", grad_output, (*shape[:2], 1, 1))
    return mean_backward(grad, x, axis=(2, 3), keepdims=True)


@differentiable
def adaptive_avg_pool2d(x: ExTensor, output_size: Any) -> ExTensor:
    """The means of a grid of cells, as many as ``output_size`` says.

    Cell i of m covers the rows from floor(i H / m) to ceil((i + 1) H / m): neighbours share a row where H is not a
    multiple of m.

    Args:
        x: images of shape (N, C, H, W).
        output_size: height and width of the output: an int, or a pair; None keeps that of ``x``.

    Returns:
        Images of shape (N, C, *output_size).

    Example:
        >>> import extensor as et
        >>> et.adaptive_avg_pool2d(et.tensor([[[[1.0, 2.0, 6.0]]]]), (1, 2)).tolist()
        [[[[1.5, 4.0]]]]
    """
    return adaptive_avg("adaptive_avg_pool2d", x, output_size, 2)


@backward_of(
    adaptive_avg_pool2d, keeps_shape=("x",), formula=adaptive_avg_formula("adaptive_avg_pool2d_backward")
)
def adaptive_avg_pool2d_backward(grad_output: ExTensor, x: TensorOrShape, output_size: Any) -> ExTensor:
    """Gradient of :func:`adaptive_avg_pool2d`: every element of a cell gets an equal share.

    Args:
        grad_output: the gradient of the output.
        x: the input or just its shape.
        output_size: as given to :func:`adaptive_avg_pool2d`.

    Example:
        >>> import extensor as et
        >>> et.adaptive_avg_pool2d_backward(et.ones((1, 1, 1, 2)), (1, 1, 1, 3), (1, 2)).tolist()
        [[[[0.5, 1.0, 0.5]]]]
    """
    return adaptive_avg_backward("adaptive_avg_pool2d_backward", grad_output, x, output_size, 2)
