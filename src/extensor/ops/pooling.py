"""Pooling of images (N, C, H, W): one number for each window of each channel, and the gradients."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .. import kernels
from ..checks import as_bool, as_floating, as_grad, differentiable_input, shape_of
from ..graph import backward_of, differentiable
from ..kernels.reference.pooling import cells, divisors
from ..tensor import ExTensor, Shape, TensorOrShape
from ._formulas import on_tensors
from ._maxima import maxima, maxima_backward, window_positions
from ._spatial import as_pair, check_axes, grid_of, pooling_of, remembered
from .casting import cast_like
from .conv import conv_transpose2d
from .creation import ones, zeros
from .indexing import take_along_axis_backward
from .joining import pad
from .reduction import mean_backward

__all__ = [
    "adaptive_avg_pool2d", "adaptive_avg_pool2d_backward", "avg_pool2d", "avg_pool2d_backward",
    "global_avg_pool2d", "global_avg_pool2d_backward", "max_pool2d", "max_pool2d_backward",
]  # fmt: skip


class Windows(NamedTuple):
    """The checked options of a pooling, as kernels take them."""

    window: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    size: tuple[int, ...]


@remembered
def _windows(
    function: str, x: Shape, kernel_size: Any, stride: Any, padding: Any, ceil_mode: Any, dilation: Any = 1
) -> Windows:
    check_axes(function, "x", x, "N, C, H, W")
    window, strides, pads = pooling_of(function, kernel_size, stride, padding)
    partial = as_bool(function, "ceil_mode", ceil_mode)
    size = []
    gaps = as_pair(function, "dilation", dilation, 1)
    reach = tuple(d * (k - 1) + 1 for d, k in zip(gaps, window))
    for n, k, s, p in zip(x[2:], reach, strides, pads):
        count = -((k - n - 2 * p) // s) + 1 if partial else (n + 2 * p - k) // s + 1
        if partial and (count - 1) * s >= n + p:
            count -= 1  # a window must begin on the image or on the padding before it
        size.append(count)
    if 0 in x[2:] or min(size) < 1:
        raise ValueError(
            f"[{function}] kernel_size {window} is larger than the padded x: {x} with padding {pads}; "
            "use more padding or a smaller kernel_size"
        )
    return Windows(window, strides, pads, tuple(size))


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
    x = as_floating("max_pool2d", "x", x)
    how = _windows("max_pool2d", x.shape, kernel_size, stride, padding, ceil_mode, dilation)
    gaps = _gaps("max_pool2d", dilation)
    return maxima(*dilated(x, how, gaps)[:2]) if gaps else kernels.max_pool2d(x, *how)


def _gaps(function: str, dilation: Any) -> tuple[int, ...] | None:
    """The distances between elements of a window; None if they stand side by side."""
    found = as_pair(function, "dilation", dilation, 1)
    return None if set(found) == {1} else found


def dilated(
    x: ExTensor, how: Windows, dilation: tuple[int, ...]
) -> tuple[ExTensor, list[np.ndarray], list[tuple[int, int]]]:
    """``x`` with its padding of -inf, the positions of the windows in it, and that padding."""
    positions = [
        window_positions(m, k, s, d) for m, k, s, d in zip(how.size, how.window, how.stride, dilation)
    ]
    ends = [int(p.max(initial=0)) + 1 for p in positions]
    margins = [(p, max(p, end - n - p)) for p, end, n in zip(how.padding, ends, x.shape[2:])]
    if any(map(any, margins)):
        x = pad(x, [(0, 0), (0, 0), *margins], constant_values=-math.inf)
    return x, positions, margins


@on_tensors(2)
def _max_pool2d_formula(
    g: Any,
    x: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    dilation: Any = 1,
) -> Any:
    how = _windows("max_pool2d_backward", x.shape, kernel_size, stride, padding, ceil_mode, dilation)
    gaps = _gaps("max_pool2d_backward", dilation)
    if gaps:
        return _dilated_backward(g, x, how, gaps)
    n, channels, height, width = x.shape
    places = kernels.max_pool2d_indices(x, *how).reshape((n, channels, math.prod(how.size)))
    grad = take_along_axis_backward(g.reshape(places.shape), (n, channels, height * width), places, axis=2)
    blank = kernels.max_pool2d_backward(
        zeros(g.shape, g.dtype), x, *how
    )  # nan in windows that hold one, else 0
    return grad.reshape(x.shape) + blank


@backward_of(max_pool2d, formula=_max_pool2d_formula)
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
    x = differentiable_input("max_pool2d_backward", "x", x)
    how = _windows("max_pool2d_backward", x.shape, kernel_size, stride, padding, ceil_mode, dilation)
    grad = as_grad("max_pool2d_backward", grad_output, (*x.shape[:2], *how.size))
    gaps = _gaps("max_pool2d_backward", dilation)
    if gaps:
        return cast_like(_dilated_backward(grad, x, how, gaps), x)
    return cast_like(kernels.max_pool2d_backward(grad, x, *how), x)


def _dilated_backward(grad: ExTensor, x: ExTensor, how: Windows, dilation: tuple[int, ...]) -> ExTensor:
    whole, positions, margins = dilated(x, how, dilation)
    found = maxima_backward(grad, whole, positions)
    (top, _), (left, _) = margins
    return found[:, :, top : top + x.shape[2], left : left + x.shape[3]]


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
    x = as_floating("avg_pool2d", "x", x)
    how = _windows("avg_pool2d", x.shape, kernel_size, stride, padding, ceil_mode)
    return kernels.avg_pool2d(x, *how, as_bool("avg_pool2d", "count_include_pad", count_include_pad))


@on_tensors(1)
def _avg_pool2d_formula(
    g: Any,
    x: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Any:
    shape = shape_of("avg_pool2d_backward", "x", x)
    how = _windows("avg_pool2d_backward", shape, kernel_size, stride, padding, ceil_mode)
    counts = ExTensor(divisors(shape, *how, count_include_pad).astype(g.dtype))
    share = (g / counts).reshape((shape[0] * shape[1], 1, *how.size))
    reach = [(m - 1) * s + k for m, s, k in zip(how.size, how.stride, how.window)]
    (top, left), (bottom, right) = how.padding, (p + n for p, n in zip(how.padding, shape[2:]))
    missing = (max(0, bottom - reach[0]), max(0, right - reach[1]))  # what the last step does not reach
    kernel = ones((1, 1, *how.window), g.dtype)
    whole = conv_transpose2d(share, kernel, stride=how.stride, output_padding=missing)
    return whole[:, :, top:bottom, left:right].reshape(shape)


@backward_of(avg_pool2d, keeps_shape=("x",), formula=_avg_pool2d_formula)
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
    shape = shape_of("avg_pool2d_backward", "x", x)
    how = _windows("avg_pool2d_backward", shape, kernel_size, stride, padding, ceil_mode)
    include = as_bool("avg_pool2d_backward", "count_include_pad", count_include_pad)
    grad = as_grad("avg_pool2d_backward", grad_output, (*shape[:2], *how.size))
    return cast_like(kernels.avg_pool2d_backward(grad, shape, *how, include), x)


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


def _grid(function: str, shape: Shape, output_size: Any) -> tuple[int, ...]:
    """The height and width of an adaptive pooling's output."""
    _check_image(function, shape)
    return grid_of(function, output_size, shape[2:])


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
    x = as_floating("adaptive_avg_pool2d", "x", x)
    size = _grid("adaptive_avg_pool2d", x.shape, output_size)
    even = _even_windows(x.shape, size)
    return kernels.avg_pool2d(x, *even, True) if even else kernels.adaptive_avg_pool2d(x, size)


def _even_windows(x: Shape, size: tuple[int, ...]) -> Windows | None:
    """Cells of one size side by side, which are the windows of a plain pooling; None if they are not."""
    if any(not m or n % m for n, m in zip(x[2:], size)):
        return None
    window = tuple(n // m for n, m in zip(x[2:], size))
    return Windows(window, window, (0, 0), size) if all(window) else None


@on_tensors(1)
def _adaptive_avg_pool2d_formula(g: Any, x: Any, output_size: Any) -> Any:
    shape = shape_of("adaptive_avg_pool2d_backward", "x", x)
    rows, columns = cells(shape[2], g.shape[2]), cells(shape[3], g.shape[3])
    tall = zeros((*shape[:3], g.shape[3]), g.dtype)
    for i, (top, bottom) in enumerate(rows):
        tall = tall.at[:, :, top:bottom].add(g[:, :, i : i + 1] / (bottom - top))
    grad = zeros(shape, g.dtype)
    for j, (left, right) in enumerate(columns):
        grad = grad.at[:, :, :, left:right].add(tall[:, :, :, j : j + 1] / (right - left))
    return grad


@backward_of(adaptive_avg_pool2d, keeps_shape=("x",), formula=_adaptive_avg_pool2d_formula)
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
    shape = shape_of("adaptive_avg_pool2d_backward", "x", x)
    size = _grid("adaptive_avg_pool2d_backward", shape, output_size)
    grad = as_grad("adaptive_avg_pool2d_backward", grad_output, (*shape[:2], *size))
    even = _even_windows(shape, size)
    if even:
        return cast_like(kernels.avg_pool2d_backward(grad, shape, *even, True), x)
    return cast_like(kernels.adaptive_avg_pool2d_backward(grad, shape), x)
