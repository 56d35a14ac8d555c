"""Pooling of sequences (N, C, L) and volumes (N, C, D, H, W), the largest elements of adaptive cells, and the gradients.

What they have in common with those of images stands in :mod:`._pooled`.
"""

from __future__ import annotations

from typing import Any

from ..checks import as_floating
from ..graph import backward_of, differentiable, undifferentiated
from ..tensor import ExTensor, TensorOrShape
from ._formulas import on_tensors
from ._pooled import (
    adaptive_avg,
    adaptive_avg_backward,
    adaptive_avg_formula,
    adaptive_max,
    adaptive_max_backward,
    adaptive_max_formula,
    adaptive_max_places,
    avg_formula,
    avg_pooled,
    avg_pooled_backward,
    max_formula,
    max_places,
    max_pooled,
    max_pooled_backward,
)

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool1d_backward", "adaptive_avg_pool3d", "adaptive_avg_pool3d_backward",
    "adaptive_max_pool1d", "adaptive_max_pool1d_backward", "adaptive_max_pool2d", "adaptive_max_pool2d_backward",
    "adaptive_max_pool3d", "adaptive_max_pool3d_backward", "adaptive_max_pool_indices", "avg_pool1d", "avg_pool1d_backward",
    "avg_pool3d", "avg_pool3d_backward", "max_pool1d", "max_pool1d_backward", "max_pool3d", "max_pool3d_backward",
    "max_pool_indices",
]  # fmt: skip


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
    return max_pooled("max_pool1d", x, kernel_size, stride, padding, ceil_mode, dilation, 1)


@backward_of(max_pool1d, formula=max_formula("max_pool1d_backward", 1))
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
    options = kernel_size, stride, padding, ceil_mode, dilation
    return max_pooled_backward("max_pool1d_backward", grad_output, x, *options, 1)


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
    return max_pooled("max_pool3d", x, kernel_size, stride, padding, ceil_mode, dilation, 3)


@backward_of(max_pool3d, formula=max_formula("max_pool3d_backward", 3))
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
    options = kernel_size, stride, padding, ceil_mode, dilation
    return max_pooled_backward("max_pool3d_backward", grad_output, x, *options, 3)


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
    return avg_pooled("avg_pool1d", x, kernel_size, stride, padding, ceil_mode, count_include_pad, 1)


@backward_of(avg_pool1d, keeps_shape=("x",), formula=avg_formula("avg_pool1d_backward", 1))
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
    options = kernel_size, stride, padding, ceil_mode, count_include_pad
    return avg_pooled_backward("avg_pool1d_backward", grad_output, x, *options, 1)


@differentiable
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
    return avg_pooled("avg_pool3d", x, kernel_size, stride, padding, ceil_mode, count_include_pad, 3)


@backward_of(avg_pool3d, keeps_shape=("x",), formula=avg_formula("avg_pool3d_backward", 3))
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
    options = kernel_size, stride, padding, ceil_mode, count_include_pad
    return avg_pooled_backward("avg_pool3d_backward", grad_output, x, *options, 3)


# Adaptive poolings


@differentiable
def adaptive_avg_pool1d(x: ExTensor, output_size: Any) -> ExTensor:
    """The means of ``output_size`` cells of sequences, see :func:`adaptive_avg_pool2d`.

    Example:
        >>> import extensor as et
        >>> et.adaptive_avg_pool1d(et.tensor([[[1.0, 2.0, 6.0]]]), 2).tolist()
        [[[1.5, 4.0]]]
    """
    return adaptive_avg("adaptive_avg_pool1d", x, output_size, 1)


@backward_of(
    adaptive_avg_pool1d, keeps_shape=("x",), formula=adaptive_avg_formula("adaptive_avg_pool1d_backward")
)
def adaptive_avg_pool1d_backward(grad_output: ExTensor, x: TensorOrShape, output_size: Any) -> ExTensor:
    """Gradient of :func:`adaptive_avg_pool1d`: every element of a cell gets an equal share. ``x`` may be just its shape.

    Example:
        >>> import extensor as et
        >>> et.adaptive_avg_pool1d_backward(et.ones((1, 1, 2)), (1, 1, 3), 2).tolist()
        [[[0.5, 1.0, 0.5]]]
    """
    return adaptive_avg_backward("adaptive_avg_pool1d_backward", grad_output, x, output_size, 1)


@differentiable
def adaptive_avg_pool3d(x: ExTensor, output_size: Any) -> ExTensor:
    """The means of a grid of cells of volumes, see :func:`adaptive_avg_pool2d`.

    Example:
        >>> import extensor as et
        >>> et.adaptive_avg_pool3d(et.ones((1, 2, 3, 4, 5)), (2, None, 1)).shape
        (1, 2, 2, 4, 1)
    """
    return adaptive_avg("adaptive_avg_pool3d", x, output_size, 3)


@backward_of(
    adaptive_avg_pool3d, keeps_shape=("x",), formula=adaptive_avg_formula("adaptive_avg_pool3d_backward")
)
def adaptive_avg_pool3d_backward(grad_output: ExTensor, x: TensorOrShape, output_size: Any) -> ExTensor:
    """Gradient of :func:`adaptive_avg_pool3d`: every element of a cell gets an equal share. ``x`` may be just its shape.

    Example:
        >>> import extensor as et
        >>> et.adaptive_avg_pool3d_backward(et.ones((1, 1, 1, 1, 1)), (1, 1, 2, 1, 2), 1).tolist()
        [[[[[0.25, 0.25]], [[0.25, 0.25]]]]]
    """
    return adaptive_avg_backward("adaptive_avg_pool3d_backward", grad_output, x, output_size, 3)


@differentiable
def adaptive_max_pool1d(x: ExTensor, output_size: Any) -> ExTensor:
    """The largest element of each of ``output_size`` cells of sequences; cells as in :func:`adaptive_avg_pool2d`.

    Example:
        >>> import extensor as et
        >>> et.adaptive_max_pool1d(et.tensor([[[1.0, 2.0, 6.0]]]), 2).tolist()
        [[[2.0, 6.0]]]
    """
    return adaptive_max("adaptive_max_pool1d", x, output_size, 1)


@backward_of(adaptive_max_pool1d, formula=on_tensors(2)(adaptive_max_formula))
def adaptive_max_pool1d_backward(grad_output: ExTensor, x: ExTensor, output_size: Any) -> ExTensor:
    """Gradient of :func:`adaptive_max_pool1d`: to the maximum of each cell, the first of a tie.

    Example:
        >>> import extensor as et
        >>> et.adaptive_max_pool1d_backward(et.ones((1, 1, 2)), et.tensor([[[1.0, 7.0, 6.0]]]), 2).tolist()
        [[[0.0, 2.0, 0.0]]]
    """
    return adaptive_max_backward("adaptive_max_pool1d_backward", grad_output, x, output_size, 1)


@differentiable
def adaptive_max_pool2d(x: ExTensor, output_size: Any) -> ExTensor:
    """The largest element of each of a grid of cells of images; cells as in :func:`adaptive_avg_pool2d`.

    Example:
        >>> import extensor as et
        >>> et.adaptive_max_pool2d(et.tensor([[[[1.0, 2.0, 6.0]]]]), (1, 2)).tolist()
        [[[[2.0, 6.0]]]]
    """
    return adaptive_max("adaptive_max_pool2d", x, output_size, 2)


@backward_of(adaptive_max_pool2d, formula=on_tensors(2)(adaptive_max_formula))
def adaptive_max_pool2d_backward(grad_output: ExTensor, x: ExTensor, output_size: Any) -> ExTensor:
    """Gradient of :func:`adaptive_max_pool2d`: to the maximum of each cell, the first of a tie (row by row).

    Example:
        >>> import extensor as et
        >>> et.adaptive_max_pool2d_backward(et.ones((1, 1, 1, 1)), et.tensor([[[[1.0, 7.0], [7.0, 0.0]]]]), 1).tolist()
        [[[[0.0, 1.0], [0.0, 0.0]]]]
    """
    return adaptive_max_backward("adaptive_max_pool2d_backward", grad_output, x, output_size, 2)


@differentiable
def adaptive_max_pool3d(x: ExTensor, output_size: Any) -> ExTensor:
    """The largest element of each of a grid of cells of volumes; cells as in :func:`adaptive_avg_pool2d`.

    Example:
        >>> import extensor as et
        >>> et.adaptive_max_pool3d(et.ones((1, 2, 3, 4, 5)), (2, None, 1)).shape
        (1, 2, 2, 4, 1)
    """
    return adaptive_max("adaptive_max_pool3d", x, output_size, 3)


@backward_of(adaptive_max_pool3d, formula=on_tensors(2)(adaptive_max_formula))
def adaptive_max_pool3d_backward(grad_output: ExTensor, x: ExTensor, output_size: Any) -> ExTensor:
    """Gradient of :func:`adaptive_max_pool3d`: to the maximum of each cell, the first of a tie.

    Example:
        >>> import extensor as et
        >>> et.adaptive_max_pool3d_backward(et.ones((1, 1, 1, 1, 1)), et.tensor([[[[[1.0, 7.0]], [[8.0, 0.0]]]]]), 1).tolist()
        [[[[[0.0, 0.0]], [[1.0, 0.0]]]]]
    """
    return adaptive_max_backward("adaptive_max_pool3d_backward", grad_output, x, output_size, 3)


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
    x, count = _directions("max_pool_indices", x)
    return max_places("max_pool_indices", x, kernel_size, stride, padding, ceil_mode, dilation, count)


@undifferentiated
def adaptive_max_pool_indices(x: ExTensor, output_size: Any) -> ExTensor:
    """Where the maxima of :func:`adaptive_max_pool2d` and its kin are: positions in the flat channel, int64.

    Example:
        >>> import extensor as et
        >>> et.adaptive_max_pool_indices(et.tensor([[[[1.0, 2.0, 6.0]]]]), (1, 2)).tolist()
        [[[[1, 2]]]]
    """
    x, count = _directions("adaptive_max_pool_indices", x)
    return adaptive_max_places("adaptive_max_pool_indices", x, output_size, count)
