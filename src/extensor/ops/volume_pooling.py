"""Pooling of sequences (N, C, L) and volumes (N, C, D, H, W), the largest elements of adaptive cells, and the gradients.

A sequence is an image of one row. Windows of a volume are windows of its slices, and then windows of those along the depth:
both are poolings of images.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..checks import as_bool, as_floating, as_grad, differentiable_input, shape_of
from ..errors import describe
from ..graph import backward_of, differentiable, undifferentiated
from ..tensor import ExTensor, Shape, TensorOrShape
from ._maxima import cell_positions, flat_places, maxima, maxima_backward, window_positions
from ._spatial import as_pair, check_axes
from ._wide import computed_wide, forward_wide
from .casting import cast_like
from .joining import pad
from .pooling import (
    adaptive_avg_pool2d,
    adaptive_avg_pool2d_backward,
    avg_pool2d,
    avg_pool2d_backward,
    max_pool2d,
    max_pool2d_backward,
)
from .shape import reshape

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool1d_backward", "adaptive_avg_pool3d", "adaptive_avg_pool3d_backward",
    "adaptive_max_pool1d", "adaptive_max_pool1d_backward", "adaptive_max_pool2d", "adaptive_max_pool2d_backward",
    "adaptive_max_pool3d", "adaptive_max_pool3d_backward", "adaptive_max_pool_indices", "avg_pool1d", "avg_pool1d_backward",
    "avg_pool3d", "avg_pool3d_backward", "max_pool1d", "max_pool1d_backward", "max_pool3d", "max_pool3d_backward",
    "max_pool_indices",
]  # fmt: skip

_AXES = {1: "N, C, L", 2: "N, C, H, W", 3: "N, C, D, H, W"}


def _row(x: Any) -> Any:
    """A sequence (or its shape) as an image of one row."""
    shape = x.shape if isinstance(x, ExTensor) else x
    image = (*shape[:2], 1, shape[2])
    return reshape(x, image) if isinstance(x, ExTensor) else image


def _along(function: str, kernel_size: Any, stride: Any, padding: Any) -> dict[str, Any]:
    """The options of a pooling of sequences as those of images of one row."""
    (window,) = as_pair(function, "kernel_size", kernel_size, 1, 1)
    (step,) = (window,) if stride is None else as_pair(function, "stride", stride, 1, 1)
    (margin,) = as_pair(function, "padding", padding, 0, 1)
    _check_padding(function, (margin,), (window,))
    return {"kernel_size": (1, window), "stride": (1, step), "padding": (0, margin)}


def _check_padding(function: str, padding: tuple[int, ...], window: tuple[int, ...]) -> None:
    if any(2 * p > k for p, k in zip(padding, window)):
        raise ValueError(f"[{function}] padding {padding} must be at most half of kernel_size {window}")


def _gap(function: str, dilation: Any) -> tuple[int, int]:
    return (1, *as_pair(function, "dilation", dilation, 1, 1))  # type: ignore[return-value]


def _sequence(function: str, x: Any) -> ExTensor:
    found = as_floating(function, "x", x)
    check_axes(function, "x", found.shape, _AXES[1])
    return found


@differentiable
def max_pool1d(
    x: ExTensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    dilation: Any = 1,
) -> ExTensor:
    """The largest element of each window of sequences; arguments as :func:`max_pool2d`, for one direction.

    Example:
        >>> import extensor as et
        >>> et.max_pool1d(et.tensor([[[1.0, 3.0, 2.0, 0.0]]]), 2).tolist()
        [[[3.0, 2.0]]]
    """
    x, how = _sequence("max_pool1d", x), _along("max_pool1d", kernel_size, stride, padding)
    as_bool("max_pool1d", "ceil_mode", ceil_mode)
    y = max_pool2d(_row(x), **how, ceil_mode=ceil_mode, dilation=_gap("max_pool1d", dilation))
    return reshape(y, (*y.shape[:2], y.shape[3]))


@backward_of(max_pool1d)
def max_pool1d_backward(
    grad_output: ExTensor,
    x: ExTensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    dilation: Any = 1,
) -> ExTensor:
    """Gradient of :func:`max_pool1d`: to the maximum of each window, the first of a tie.

    Example:
        >>> import extensor as et
        >>> et.max_pool1d_backward(et.ones((1, 1, 2)), et.tensor([[[1.0, 3.0, 2.0, 2.0]]]), 2).tolist()
        [[[0.0, 1.0, 1.0, 0.0]]]
    """
    function = "max_pool1d_backward"
    x = differentiable_input(function, "x", x)
    check_axes(function, "x", x.shape, _AXES[1])
    as_bool(function, "ceil_mode", ceil_mode)
    how = _along(function, kernel_size, stride, padding)
    grad = _grad_row(function, grad_output, x.shape)
    found = max_pool2d_backward(grad, _row(x), **how, ceil_mode=ceil_mode, dilation=_gap(function, dilation))
    return reshape(found, x.shape)


def _grad_row(function: str, grad_output: Any, x: Shape) -> ExTensor:
    grad = as_floating(function, "grad_output", grad_output)
    if grad.ndim != 3 or grad.shape[:2] != x[:2]:
        raise ValueError(f"[{function}] grad_output has shape {grad.shape}, but x has shape {x}")
    return _row(grad)


@differentiable
def avg_pool1d(
    x: ExTensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> ExTensor:
    """The mean of each window of sequences; arguments as :func:`avg_pool2d`, for one direction.

    Example:
        >>> import extensor as et
        >>> et.avg_pool1d(et.tensor([[[1.0, 3.0, 2.0, 0.0]]]), 2).tolist()
        [[[2.0, 1.0]]]
    """
    x, how = _sequence("avg_pool1d", x), _along("avg_pool1d", kernel_size, stride, padding)
    as_bool("avg_pool1d", "ceil_mode", ceil_mode)
    as_bool("avg_pool1d", "count_include_pad", count_include_pad)
    y = avg_pool2d(_row(x), **how, ceil_mode=ceil_mode, count_include_pad=count_include_pad)
    return reshape(y, (*y.shape[:2], y.shape[3]))


@backward_of(avg_pool1d, keeps_shape=("x",))
def avg_pool1d_backward(
    grad_output: ExTensor,
    x: TensorOrShape,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> ExTensor:
    """Gradient of :func:`avg_pool1d`: every element of a window gets an equal share. ``x`` may be just its shape.

    Example:
        >>> import extensor as et
        >>> et.avg_pool1d_backward(et.ones((1, 1, 2)), (1, 1, 4), 2).tolist()
        [[[0.5, 0.5, 0.5, 0.5]]]
    """
    function = "avg_pool1d_backward"
    shape = shape_of(function, "x", x)
    check_axes(function, "x", shape, _AXES[1])
    as_bool(function, "ceil_mode", ceil_mode)
    as_bool(function, "count_include_pad", count_include_pad)
    how = _along(function, kernel_size, stride, padding)
    grad = _grad_row(function, grad_output, shape)
    found = avg_pool2d_backward(
        grad, _row(shape), **how, ceil_mode=ceil_mode, count_include_pad=count_include_pad
    )
    return cast_like(reshape(found, shape), x)


# Volumes


def _in_two(
    function: str, kernel_size: Any, stride: Any, padding: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options of a pooling of volumes as those within slices and those along the depth."""
    window = as_pair(function, "kernel_size", kernel_size, 1, 3)
    steps = window if stride is None else as_pair(function, "stride", stride, 1, 3)
    margins = as_pair(function, "padding", padding, 0, 3)
    _check_padding(function, margins, window)
    inside = {"kernel_size": window[1:], "stride": steps[1:], "padding": margins[1:]}
    deep = {"kernel_size": (window[0], 1), "stride": (steps[0], 1), "padding": (margins[0], 0)}
    return inside, deep


def _as_slices(x: Any) -> Any:
    """(N, C, D, H, W) as images (N, C * D, H, W)."""
    shape = x.shape if isinstance(x, ExTensor) else x
    images = (shape[0], shape[1] * shape[2], *shape[3:])
    return reshape(x, images) if isinstance(x, ExTensor) else images


def _as_columns(slices: ExTensor, x: Shape) -> ExTensor:
    """What slices have become, as images (N, C, D, h * w) of the depth."""
    return reshape(slices, (*x[:3], slices.shape[2] * slices.shape[3]))


def _volume(function: str, shape: Shape) -> None:
    check_axes(function, "x", shape, _AXES[3])


@differentiable
def max_pool3d(
    x: ExTensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    dilation: Any = 1,
) -> ExTensor:
    """The largest element of each window of volumes; arguments as :func:`max_pool2d`, for three directions.

    Example:
        >>> import extensor as et
        >>> et.max_pool3d(et.tensor([[[[[1.0, 3.0]], [[2.0, 0.0]]]]]), (2, 1, 2)).tolist()
        [[[[[3.0]]]]]
    """
    x = as_floating("max_pool3d", "x", x)
    _volume("max_pool3d", x.shape)
    as_bool("max_pool3d", "ceil_mode", ceil_mode)
    (inside, deep), gaps = (
        _in_two("max_pool3d", kernel_size, stride, padding),
        as_pair("max_pool3d", "dilation", dilation, 1, 3),
    )
    slices = max_pool2d(_as_slices(x), **inside, ceil_mode=ceil_mode, dilation=gaps[1:])
    y = max_pool2d(_as_columns(slices, x.shape), **deep, ceil_mode=ceil_mode, dilation=(gaps[0], 1))
    return reshape(y, (*y.shape[:3], *slices.shape[2:]))


@backward_of(max_pool3d)
@computed_wide
def max_pool3d_backward(
    grad_output: ExTensor,
    x: ExTensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    dilation: Any = 1,
) -> ExTensor:
    """Gradient of :func:`max_pool3d`: to the maximum of each window, the first of a tie (slice by slice, row by row).

    Example:
        >>> import extensor as et
        >>> et.max_pool3d_backward(et.ones((1, 1, 1, 1, 1)), et.tensor([[[[[1.0, 3.0]], [[3.0, 0.0]]]]]), (2, 1, 2)).tolist()
        [[[[[0.0, 1.0]], [[0.0, 0.0]]]]]
    """
    function = "max_pool3d_backward"
    x = differentiable_input(function, "x", x)
    as_bool(function, "ceil_mode", ceil_mode)
    _volume(function, x.shape)
    (inside, deep), gaps = (
        _in_two(function, kernel_size, stride, padding),
        as_pair(function, "dilation", dilation, 1, 3),
    )
    within = {**inside, "ceil_mode": ceil_mode, "dilation": gaps[1:]}
    along = {**deep, "ceil_mode": ceil_mode, "dilation": (gaps[0], 1)}
    slices = max_pool2d(_as_slices(x), **within)
    columns = _as_columns(slices, x.shape)
    grad = _grad_columns(function, grad_output, max_pool2d(columns, **along).shape, slices.shape)
    found = reshape(max_pool2d_backward(grad, columns, **along), slices.shape)
    return cast_like(reshape(max_pool2d_backward(found, _as_slices(x), **within), x.shape), x)


def _grad_columns(function: str, grad_output: Any, columns: Shape, slices: Shape) -> ExTensor:
    grad = as_grad(function, grad_output, (*columns[:3], *slices[2:]))
    return reshape(grad, columns)


def _pooled(function: str, shape: Shape, how: dict[str, Any], **options: Any) -> Shape:
    """The shape that a pooling of images gives."""
    return avg_pool2d(ExTensor(np.broadcast_to(np.float32(0), (0, 0, *shape[2:]))), **how, **options).shape[
        2:
    ]


@differentiable
@forward_wide
def avg_pool3d(
    x: ExTensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> ExTensor:
    """The mean of each window of volumes; arguments as :func:`avg_pool2d`, for three directions.

    Example:
        >>> import extensor as et
        >>> et.avg_pool3d(et.tensor([[[[[1.0, 3.0]], [[2.0, 0.0]]]]]), (2, 1, 2)).tolist()
        [[[[[1.5]]]]]
    """
    x = as_floating("avg_pool3d", "x", x)
    _volume("avg_pool3d", x.shape)
    as_bool("avg_pool3d", "ceil_mode", ceil_mode)
    as_bool("avg_pool3d", "count_include_pad", count_include_pad)
    inside, deep = _in_two("avg_pool3d", kernel_size, stride, padding)
    options = {"ceil_mode": ceil_mode, "count_include_pad": count_include_pad}
    slices = avg_pool2d(_as_slices(x), **inside, **options)
    y = avg_pool2d(_as_columns(slices, x.shape), **deep, **options)
    return reshape(y, (*y.shape[:3], *slices.shape[2:]))


@backward_of(avg_pool3d, keeps_shape=("x",))
@computed_wide
def avg_pool3d_backward(
    grad_output: ExTensor,
    x: TensorOrShape,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> ExTensor:
    """Gradient of :func:`avg_pool3d`: every element of a window gets an equal share. ``x`` may be just its shape.

    Example:
        >>> import extensor as et
        >>> et.avg_pool3d_backward(et.ones((1, 1, 1, 1, 1)), (1, 1, 2, 1, 2), (2, 1, 2)).tolist()
        [[[[[0.25, 0.25]], [[0.25, 0.25]]]]]
    """
    function = "avg_pool3d_backward"
    shape = shape_of(function, "x", x)
    as_bool(function, "ceil_mode", ceil_mode)
    as_bool(function, "count_include_pad", count_include_pad)
    _volume(function, shape)
    inside, deep = _in_two(function, kernel_size, stride, padding)
    options = {"ceil_mode": ceil_mode, "count_include_pad": count_include_pad}
    plane = _pooled(function, _as_slices(shape), inside, **options)
    columns = (*shape[:3], plane[0] * plane[1])
    depth, _ = _pooled(function, columns, deep, **options)
    grad = _grad_columns(function, grad_output, (*shape[:2], depth, columns[3]), (*columns[:2], *plane))
    found = avg_pool2d_backward(grad, columns, **deep, **options)
    found = reshape(found, (shape[0], shape[1] * shape[2], *plane))
    return cast_like(reshape(avg_pool2d_backward(found, _as_slices(shape), **inside, **options), shape), x)


# Adaptive poolings


def _cells(function: str, shape: Shape, output_size: Any, count: int) -> tuple[int, ...]:
    """How many cells an adaptive pooling has in each direction; None keeps those of x."""
    check_axes(function, "x", shape, _AXES[count])
    if 0 in shape[2:]:
        raise ValueError(f"[{function}] x has no elements to pool (x: {shape})")
    sizes = output_size if isinstance(output_size, (tuple, list)) else (output_size,) * count
    if len(sizes) != count:
        raise ValueError(
            f"[{function}] output_size must be an int or {count} of them, got {describe(output_size)}"
        )
    return as_pair(
        function, "output_size", [n if m is None else m for n, m in zip(shape[2:], sizes)], 1, count
    )


@differentiable
def adaptive_avg_pool1d(x: ExTensor, output_size: Any) -> ExTensor:
    """The means of ``output_size`` cells of sequences, see :func:`adaptive_avg_pool2d`.

    Example:
        >>> import extensor as et
        >>> et.adaptive_avg_pool1d(et.tensor([[[1.0, 2.0, 6.0]]]), 2).tolist()
        [[[1.5, 4.0]]]
    """
    x = as_floating("adaptive_avg_pool1d", "x", x)
    size = _cells("adaptive_avg_pool1d", x.shape, output_size, 1)
    return reshape(adaptive_avg_pool2d(_row(x), (1, *size)), (*x.shape[:2], *size))


@backward_of(adaptive_avg_pool1d, keeps_shape=("x",))
def adaptive_avg_pool1d_backward(grad_output: ExTensor, x: TensorOrShape, output_size: Any) -> ExTensor:
    """Gradient of :func:`adaptive_avg_pool1d`: every element of a cell gets an equal share. ``x`` may be just its shape.

    Example:
        >>> import extensor as et
        >>> et.adaptive_avg_pool1d_backward(et.ones((1, 1, 2)), (1, 1, 3), 2).tolist()
        [[[0.5, 1.0, 0.5]]]
    """
    function = "adaptive_avg_pool1d_backward"
    shape = shape_of(function, "x", x)
    size = _cells(function, shape, output_size, 1)
    grad = as_grad(function, grad_output, (*shape[:2], *size))
    return cast_like(reshape(adaptive_avg_pool2d_backward(_row(grad), _row(shape), (1, *size)), shape), x)


@differentiable
@forward_wide
def adaptive_avg_pool3d(x: ExTensor, output_size: Any) -> ExTensor:
    """The means of a grid of cells of volumes, see :func:`adaptive_avg_pool2d`.

    Example:
        >>> import extensor as et
        >>> et.adaptive_avg_pool3d(et.ones((1, 2, 3, 4, 5)), (2, None, 1)).shape
        (1, 2, 2, 4, 1)
    """
    x = as_floating("adaptive_avg_pool3d", "x", x)
    size = _cells("adaptive_avg_pool3d", x.shape, output_size, 3)
    slices = adaptive_avg_pool2d(_as_slices(x), size[1:])
    y = adaptive_avg_pool2d(_as_columns(slices, x.shape), (size[0], size[1] * size[2]))
    return reshape(y, (*x.shape[:2], *size))


@backward_of(adaptive_avg_pool3d, keeps_shape=("x",))
@computed_wide
def adaptive_avg_pool3d_backward(grad_output: ExTensor, x: TensorOrShape, output_size: Any) -> ExTensor:
    """Gradient of :func:`adaptive_avg_pool3d`: every element of a cell gets an equal share. ``x`` may be just its shape.

    Example:
        >>> import extensor as et
        >>> et.adaptive_avg_pool3d_backward(et.ones((1, 1, 1, 1, 1)), (1, 1, 2, 1, 2), 1).tolist()
        [[[[[0.25, 0.25]], [[0.25, 0.25]]]]]
    """
    function = "adaptive_avg_pool3d_backward"
    shape = shape_of(function, "x", x)
    size = _cells(function, shape, output_size, 3)
    grad = as_grad(function, grad_output, (*shape[:2], *size))
    columns = (*shape[:3], size[1] * size[2])
    along = adaptive_avg_pool2d_backward(
        reshape(grad, (*shape[:2], size[0], columns[3])), columns, (size[0], columns[3])
    )
    slices = reshape(along, (shape[0], shape[1] * shape[2], *size[1:]))
    return cast_like(reshape(adaptive_avg_pool2d_backward(slices, _as_slices(shape), size[1:]), shape), x)


def _adaptive_max(function: str, x: Any, output_size: Any, count: int) -> ExTensor:
    x = as_floating(function, "x", x)
    size = _cells(function, x.shape, output_size, count)
    return maxima(x, [cell_positions(n, m) for n, m in zip(x.shape[2:], size)])


def _adaptive_max_backward(function: str, grad_output: Any, x: Any, output_size: Any, count: int) -> ExTensor:
    x = differentiable_input(function, "x", x)
    size = _cells(function, x.shape, output_size, count)
    grad = as_grad(function, grad_output, (*x.shape[:2], *size))
    return cast_like(maxima_backward(grad, x, [cell_positions(n, m) for n, m in zip(x.shape[2:], size)]), x)


@differentiable
def adaptive_max_pool1d(x: ExTensor, output_size: Any) -> ExTensor:
    """The largest element of each of ``output_size`` cells of sequences; cells as in :func:`adaptive_avg_pool2d`.

    Example:
        >>> import extensor as et
        >>> et.adaptive_max_pool1d(et.tensor([[[1.0, 2.0, 6.0]]]), 2).tolist()
        [[[2.0, 6.0]]]
    """
    return _adaptive_max("adaptive_max_pool1d", x, output_size, 1)


@backward_of(adaptive_max_pool1d)
def adaptive_max_pool1d_backward(grad_output: ExTensor, x: ExTensor, output_size: Any) -> ExTensor:
    """Gradient of :func:`adaptive_max_pool1d`: to the maximum of each cell, the first of a tie.

    Example:
        >>> import extensor as et
        >>> et.adaptive_max_pool1d_backward(et.ones((1, 1, 2)), et.tensor([[[1.0, 7.0, 6.0]]]), 2).tolist()
        [[[0.0, 2.0, 0.0]]]
    """
    return _adaptive_max_backward("adaptive_max_pool1d_backward", grad_output, x, output_size, 1)


@differentiable
def adaptive_max_pool2d(x: ExTensor, output_size: Any) -> ExTensor:
    """The largest element of each of a grid of cells of images; cells as in :func:`adaptive_avg_pool2d`.

    Example:
        >>> import extensor as et
        >>> et.adaptive_max_pool2d(et.tensor([[[[1.0, 2.0, 6.0]]]]), (1, 2)).tolist()
        [[[[2.0, 6.0]]]]
    """
    return _adaptive_max("adaptive_max_pool2d", x, output_size, 2)


@backward_of(adaptive_max_pool2d)
@computed_wide
def adaptive_max_pool2d_backward(grad_output: ExTensor, x: ExTensor, output_size: Any) -> ExTensor:
    """Gradient of :func:`adaptive_max_pool2d`: to the maximum of each cell, the first of a tie (row by row).

    Example:
        >>> import extensor as et
        >>> et.adaptive_max_pool2d_backward(et.ones((1, 1, 1, 1)), et.tensor([[[[1.0, 7.0], [7.0, 0.0]]]]), 1).tolist()
        [[[[0.0, 1.0], [0.0, 0.0]]]]
    """
    return _adaptive_max_backward("adaptive_max_pool2d_backward", grad_output, x, output_size, 2)


@differentiable
def adaptive_max_pool3d(x: ExTensor, output_size: Any) -> ExTensor:
    """The largest element of each of a grid of cells of volumes; cells as in :func:`adaptive_avg_pool2d`.

    Example:
        >>> import extensor as et
        >>> et.adaptive_max_pool3d(et.ones((1, 2, 3, 4, 5)), (2, None, 1)).shape
        (1, 2, 2, 4, 1)
    """
    return _adaptive_max("adaptive_max_pool3d", x, output_size, 3)


@backward_of(adaptive_max_pool3d)
@computed_wide
def adaptive_max_pool3d_backward(grad_output: ExTensor, x: ExTensor, output_size: Any) -> ExTensor:
    """Gradient of :func:`adaptive_max_pool3d`: to the maximum of each cell, the first of a tie.

    Example:
        >>> import extensor as et
        >>> et.adaptive_max_pool3d_backward(et.ones((1, 1, 1, 1, 1)), et.tensor([[[[[1.0, 7.0]], [[8.0, 0.0]]]]]), 1).tolist()
        [[[[[0.0, 0.0]], [[1.0, 0.0]]]]]
    """
    return _adaptive_max_backward("adaptive_max_pool3d_backward", grad_output, x, output_size, 3)


# Where the maxima are


def _directions(function: str, x: Any) -> tuple[ExTensor, int]:
    found = as_floating(function, "x", x)
    if found.ndim not in (3, 4, 5):
        raise ValueError(
            f"[{function}] x must be (N, C, L), (N, C, H, W) or (N, C, D, H, W), got shape {found.shape}"
        )
    return found, found.ndim - 2


@undifferentiated
def max_pool_indices(
    x: ExTensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    dilation: Any = 1,
) -> ExTensor:
    """Where the maxima of :func:`max_pool1d`, :func:`max_pool2d` or :func:`max_pool3d` are: positions in the flat channel, int64.

    Example:
        >>> import extensor as et
        >>> et.max_pool_indices(et.tensor([[[[1.0, 2.0, 0.0, 3.0], [4.0, 0.0, 1.0, 1.0]]]]), 2).tolist()
        [[[[4, 3]]]]
    """
    function = "max_pool_indices"
    x, count = _directions(function, x)
    pooled = {1: max_pool1d, 2: max_pool2d, 3: max_pool3d}[count]
    size = pooled(x, kernel_size, stride, padding, ceil_mode, dilation).shape[2:]
    window, gaps, margins = (
        as_pair(function, name, value, least, count)
        for name, value, least in (
            ("kernel_size", kernel_size, 1),
            ("dilation", dilation, 1),
            ("padding", padding, 0),
        )
    )
    steps = window if stride is None else as_pair(function, "stride", stride, 1, count)
    positions = [window_positions(*row) for row in zip(size, window, steps, gaps)]
    ends = [int(p.max(initial=0)) + 1 for p in positions]
    around = [(p, max(p, end - n - p)) for p, end, n in zip(margins, ends, x.shape[2:])]
    whole = pad(x, [(0, 0), (0, 0), *around], constant_values=-np.inf)
    return flat_places(whole, positions, margins, x.shape[2:])


@undifferentiated
def adaptive_max_pool_indices(x: ExTensor, output_size: Any) -> ExTensor:
    """Where the maxima of :func:`adaptive_max_pool2d` and its kin are: positions in the flat channel, int64.

    Example:
        >>> import extensor as et
        >>> et.adaptive_max_pool_indices(et.tensor([[[[1.0, 2.0, 6.0]]]]), (1, 2)).tolist()
        [[[[1, 2]]]]
    """
    x, count = _directions("adaptive_max_pool_indices", x)
    size = _cells("adaptive_max_pool_indices", x.shape, output_size, count)
    return flat_places(
        x, [cell_positions(n, m) for n, m in zip(x.shape[2:], size)], (0,) * count, x.shape[2:]
    )
