"""Reductions over axes: sums, extremes, statistics, products, and their gradients.

``axis`` is None (all axes), an int or a tuple of ints; ``keepdims`` keeps the reduced axes with length 1.
A backward takes the same ``axis`` and ``keepdims``. ``max``, ``min`` and ``var`` are other names of
``max_reduce``, ``min_reduce`` and ``variance``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import kernels
from ..checks import (
    as_axes,
    as_axis,
    as_bool,
    as_grad,
    as_number,
    as_tensor,
    differentiable_input,
    reduced_shape,
    shape_of,
    takes_complex,
)
from ..dtypes import FLOATING, float32
from ..graph import backward_of, differentiable
from ..kernels import Kernel
from ..tensor import ExTensor, Shape, TensorOrShape
from ._formulas import on_tensors
from .casting import cast_like

__all__ = [
    "sum", "sum_backward", "mean", "mean_backward", "max_reduce", "max_reduce_backward", "max", "max_backward",
    "min_reduce", "min_reduce_backward", "min", "min_backward", "variance", "variance_backward", "var", "var_backward",
    "std", "std_backward", "prod", "prod_backward", "logsumexp", "logsumexp_backward", "cumsum", "cumsum_backward",
]  # fmt: skip

Axis = int | tuple[int, ...] | None


def _reduce(function: str, kernel: Kernel, x: Any, axis: Axis, keepdims: bool, *options: Any) -> ExTensor:
    x = as_tensor(function, "x", x)
    return kernel(x, as_axes(function, axis, x.ndim), as_bool(function, "keepdims", keepdims), *options)


def _averaged(function: str, kernel: Kernel, x: Any, axis: Axis, keepdims: bool, *options: Any) -> ExTensor:
    """A reduction with floating results: those of integers and booleans are rounded to float32, once."""
    x = as_tensor(function, "x", x)
    found = _reduce(function, kernel, x, axis, keepdims, *options)
    return found if x.dtype in FLOATING else kernels.astype(found, float32)


def _reduce_backward(
    function: str, kernel: Kernel, grad_output: Any, x: Any, axis: Axis, keepdims: bool, *options: Any
) -> ExTensor:
    """For the reductions whose gradient needs the elements of ``x``."""
    x = differentiable_input(function, "x", x)
    axes, keepdims = as_axes(function, axis, x.ndim), as_bool(function, "keepdims", keepdims)
    grad = as_grad(function, grad_output, reduced_shape(x.shape, axes, keepdims))
    return cast_like(kernel(grad, x, axes, keepdims, *options), x)


def _average_backward(
    function: str, kernel: Kernel, grad_output: Any, x: TensorOrShape, axis: Axis, keepdims: bool
) -> ExTensor:
    """For sum and mean, whose gradients need only the shape of ``x``."""
    shape = shape_of(function, "x", x)
    axes, keepdims = as_axes(function, axis, len(shape)), as_bool(function, "keepdims", keepdims)
    grad = as_grad(function, grad_output, reduced_shape(shape, axes, keepdims))
    return cast_like(kernel(grad, shape, axes, keepdims), x)


def _count(shape: Shape, axis: Axis) -> int:
    """How many elements each reduction runs over."""
    return math.prod(shape[i] for i in as_axes("reduction", axis, len(shape)))


@differentiable
@takes_complex
def sum(x: ExTensor, axis: Axis = None, keepdims: bool = False) -> ExTensor:
    """Sum over ``axis``; 0 where there is nothing to add.   y = sum_i x_i

    Integers and bools add up in int64 (unsigned: uint64), float32 in higher precision, rounded once.

    Args:
        x: any tensor.
        axis: the axis or axes to add up; None for all.
        keepdims: keep the reduced axes with length 1.

    Example:
        >>> import extensor as et
        >>> et.sum(et.tensor([[1.0, 2.0], [3.0, 4.0]]), axis=0).tolist()
        [4.0, 6.0]
    """
    return _reduce("sum", kernels.sum, x, axis, keepdims)


@backward_of(sum, keeps_shape=("x",))
def sum_backward(
    grad_output: ExTensor, x: TensorOrShape, axis: Axis = None, keepdims: bool = False
) -> ExTensor:
    """Gradient of :func:`sum`: every element that was added gets the gradient of its sum.   dx_i = dy

    Args:
        grad_output: the gradient of the sum.
        x: the input, or just its shape.
        axis, keepdims: as given to :func:`sum`.

    Example:
        >>> import extensor as et
        >>> et.sum_backward(et.tensor([1.0, 2.0]), (2, 2), axis=1).tolist()
        [[1.0, 1.0], [2.0, 2.0]]
    """
    return _average_backward("sum_backward", kernels.sum_backward, grad_output, x, axis, keepdims)


@differentiable
@takes_complex
def mean(x: ExTensor, axis: Axis = None, keepdims: bool = False) -> ExTensor:
    """Mean over ``axis``; nan where there are no elements.   y = (1/n) sum_i x_i

    The mean of integers and of a mask is float32, rounded once.

    Args:
        x: any tensor.
        axis: the axis or axes to average; None for all.
        keepdims: keep the reduced axes with length 1.

    Example:
        >>> import extensor as et
        >>> et.mean(et.tensor([[1.0, 2.0], [3.0, 4.0]]), axis=1).tolist()
        [1.5, 3.5]
    """
    return _averaged("mean", kernels.mean, x, axis, keepdims)


@backward_of(mean, keeps_shape=("x",))
def mean_backward(
    grad_output: ExTensor, x: TensorOrShape, axis: Axis = None, keepdims: bool = False
) -> ExTensor:
    """Gradient of :func:`mean`.   dx_i = dy / n

    Args:
        grad_output: the gradient of the mean.
        x: the input, or just its shape.
        axis, keepdims: as given to :func:`mean`.

    Example:
        >>> import extensor as et
        >>> et.mean_backward(et.tensor(1.0), (4,)).tolist()
        [0.25, 0.25, 0.25, 0.25]
    """
    return _average_backward("mean_backward", kernels.mean_backward, grad_output, x, axis, keepdims)


def _extremum(function: str, kernel: Kernel, x: Any, axis: Axis, keepdims: bool) -> ExTensor:
    x = as_tensor(function, "x", x)
    axes = as_axes(function, axis, x.ndim)
    if not x.size and 0 not in reduced_shape(x.shape, axes, False):
        raise ValueError(
            f"[{function}] x of shape {x.shape} has no elements along axis {axis}, so no extreme one"
        )
    return kernel(x, axes, as_bool(function, "keepdims", keepdims))


@differentiable
def max_reduce(x: ExTensor, axis: Axis = None, keepdims: bool = False) -> ExTensor:
    """The largest element over ``axis``; nan if one is nan.   y = max_i x_i

    Args:
        x: any tensor with at least one element to choose from.
        axis: the axis or axes to search; None for all.
        keepdims: keep the reduced axes with length 1.

    Example:
        >>> import extensor as et
        >>> et.max_reduce(et.tensor([[1.0, 5.0], [4.0, 2.0]]), axis=1).tolist()
        [5.0, 4.0]
    """
    return _extremum("max_reduce", kernels.max_reduce, x, axis, keepdims)


@backward_of(max_reduce)
def max_reduce_backward(
    grad_output: ExTensor, x: ExTensor, axis: Axis = None, keepdims: bool = False
) -> ExTensor:
    """Gradient of :func:`max_reduce`: the largest elements share it equally; a nan makes its whole slice nan.

    dx_i = dy / n  for the n elements with x_i == max(x),  0 for the others

    Args:
        grad_output: the gradient of the maximum.
        x: the input.
        axis, keepdims: as given to :func:`max_reduce`.

    Example:
        >>> import extensor as et
        >>> et.max_reduce_backward(et.tensor(1.0), et.tensor([1.0, 3.0, 2.0, 3.0])).tolist()
        [0.0, 0.5, 0.0, 0.5]
    """
    return _reduce_backward(
        "max_reduce_backward", kernels.max_reduce_backward, grad_output, x, axis, keepdims
    )


@differentiable
def min_reduce(x: ExTensor, axis: Axis = None, keepdims: bool = False) -> ExTensor:
    """The smallest element over ``axis``; nan if one is nan.   y = min_i x_i

    Args:
        x: any tensor with at least one element to choose from.
        axis: the axis or axes to search; None for all.
        keepdims: keep the reduced axes with length 1.

    Example:
        >>> import extensor as et
        >>> et.min_reduce(et.tensor([[1.0, 5.0], [4.0, 2.0]]), axis=1).tolist()
        [1.0, 2.0]
    """
    return _extremum("min_reduce", kernels.min_reduce, x, axis, keepdims)


@backward_of(min_reduce)
def min_reduce_backward(
    grad_output: ExTensor, x: ExTensor, axis: Axis = None, keepdims: bool = False
) -> ExTensor:
    """Gradient of :func:`min_reduce`: the smallest elements share it equally; a nan makes its whole slice nan.

    dx_i = dy / n  for the n elements with x_i == min(x),  0 for the others

    Args:
        grad_output: the gradient of the minimum.
        x: the input.
        axis, keepdims: as given to :func:`min_reduce`.

    Example:
        >>> import extensor as et
        >>> et.min_reduce_backward(et.tensor(1.0), et.tensor([1.0, 3.0, 2.0])).tolist()
        [1.0, 0.0, 0.0]
    """
    return _reduce_backward(
        "min_reduce_backward", kernels.min_reduce_backward, grad_output, x, axis, keepdims
    )


@differentiable
def variance(x: ExTensor, axis: Axis = None, keepdims: bool = False, ddof: float = 0) -> ExTensor:
    """Variance over ``axis``.   y = sum_i (x_i - mean(x))**2 / (n - ddof)

    Where ``n <= ddof`` the divisor is 0: the result is inf, or nan for equal elements.

    Args:
        x: any tensor; the variance of integers is float32.
        axis: the axis or axes to take the variance over; None for all.
        keepdims: keep the reduced axes with length 1.
        ddof: what is subtracted from the number of elements: 0 for a population, 1 for a sample.

    Example:
        >>> import extensor as et
        >>> et.variance(et.tensor([1.0, 2.0, 3.0]), ddof=1).item()
        1.0
    """
    return _averaged("variance", kernels.variance, x, axis, keepdims, as_number("variance", "ddof", ddof))


@backward_of(variance)
def variance_backward(
    grad_output: ExTensor, x: ExTensor, axis: Axis = None, keepdims: bool = False, ddof: float = 0
) -> ExTensor:
    """Gradient of :func:`variance`.   dx_i = dy * 2 (x_i - mean(x)) / (n - ddof)

    Args:
        grad_output: the gradient of the variance.
        x: the input.
        axis, keepdims, ddof: as given to :func:`variance`.

    Example:
        >>> import extensor as et
        >>> et.variance_backward(et.tensor(1.0), et.tensor([1.0, 3.0])).tolist()
        [-1.0, 1.0]
    """
    ddof = as_number("variance_backward", "ddof", ddof)
    return _reduce_backward(
        "variance_backward", kernels.variance_backward, grad_output, x, axis, keepdims, ddof
    )


@differentiable
def std(x: ExTensor, axis: Axis = None, keepdims: bool = False, ddof: float = 0) -> ExTensor:
    """Standard deviation over ``axis``.   y = sqrt(sum_i (x_i - mean(x))**2 / (n - ddof))

    Args:
        x: any tensor; the deviation of integers is float32.
        axis: the axis or axes to take the deviation over; None for all.
        keepdims: keep the reduced axes with length 1.
        ddof: what is subtracted from the number of elements: 0 for a population, 1 for a sample.

    Example:
        >>> import extensor as et
        >>> et.std(et.tensor([1.0, 3.0])).item()
        1.0
    """
    return _averaged("std", kernels.std, x, axis, keepdims, as_number("std", "ddof", ddof))


@backward_of(std)
def std_backward(
    grad_output: ExTensor, x: ExTensor, axis: Axis = None, keepdims: bool = False, ddof: float = 0
) -> ExTensor:
    """Gradient of :func:`std`; 0 where all elements are equal.   dx_i = dy * (x_i - mean(x)) / ((n - ddof) * std(x))

    Args:
        grad_output: the gradient of the deviation.
        x: the input.
        axis, keepdims, ddof: as given to :func:`std`.

    Example:
        >>> import extensor as et
        >>> et.std_backward(et.tensor(1.0), et.tensor([1.0, 3.0])).tolist()
        [-0.5, 0.5]
    """
    ddof = as_number("std_backward", "ddof", ddof)
    return _reduce_backward("std_backward", kernels.std_backward, grad_output, x, axis, keepdims, ddof)


@differentiable
@takes_complex
def prod(x: ExTensor, axis: Axis = None, keepdims: bool = False) -> ExTensor:
    """Product over ``axis``; 1 where there is nothing to multiply.   y = x_1 x_2 ... x_n

    Args:
        x: any tensor; integers multiply in int64 (unsigned: uint64).
        axis: the axis or axes to multiply over; None for all.
        keepdims: keep the reduced axes with length 1.

    Example:
        >>> import extensor as et
        >>> et.prod(et.tensor([[1.0, 2.0], [3.0, 4.0]]), axis=1).tolist()
        [2.0, 12.0]
    """
    return _reduce("prod", kernels.prod, x, axis, keepdims)


def _products_of_others(x: ExTensor) -> ExTensor:
    """For every element the product of the others on the last axis, from pairs of pairs: no division, no n x n."""
    n = x.shape[-1]
    if n <= 1:
        return ExTensor(np.ones(x.shape, x.dtype))
    if n % 2:
        x = x.pad([(0, 0)] * (x.ndim - 1) + [(0, 1)], constant_values=1)
    pairs = x.reshape((*x.shape[:-1], x.shape[-1] // 2, 2))
    above = _products_of_others(pairs[..., 0] * pairs[..., 1])
    return (above.unsqueeze(-1) * pairs[..., ::-1]).reshape(x.shape)[..., :n]


@on_tensors(2)
def _prod_formula(g: ExTensor, x: ExTensor, axis: Axis = None, keepdims: bool = False) -> ExTensor:
    axes = as_axes("reduction", axis, x.ndim)
    kept = [i for i in range(x.ndim) if i not in axes]
    order = (*kept, *axes)
    moved = x.transpose(order)
    others = _products_of_others(moved.reshape((*(x.shape[i] for i in kept), _count(x.shape, axis))))
    nans = np.isnan(x._array).any(axes, keepdims=True)
    poison = ExTensor(np.where(nans, np.nan, 1.0).astype(x.dtype))
    return (
        g.reshape(reduced_shape(x.shape, axes, True))
        * poison
        * others.reshape(moved.shape).transpose(tuple(np.argsort(order)))
    )


@backward_of(prod, formula=_prod_formula)
def prod_backward(grad_output: ExTensor, x: ExTensor, axis: Axis = None, keepdims: bool = False) -> ExTensor:
    """Gradient of :func:`prod`, exact with any number of zeros; a nan makes its whole slice nan.

    dx_i = dy * prod_{j != i} x_j

    Args:
        grad_output: the gradient of the product.
        x: the input.
        axis, keepdims: as given to :func:`prod`.

    Example:
        >>> import extensor as et
        >>> et.prod_backward(et.tensor(1.0), et.tensor([2.0, 0.0, 3.0])).tolist()
        [0.0, 6.0, 0.0]
    """
    return _reduce_backward("prod_backward", kernels.prod_backward, grad_output, x, axis, keepdims)


@differentiable
def logsumexp(x: ExTensor, axis: Axis = None, keepdims: bool = False) -> ExTensor:
    """Logarithm of a sum of exponentials, without overflow.   y = m + log(sum_i exp(x_i - m)),  m = max_i x_i

    -inf where all elements are -inf or there are none; inf where one is inf.

    Args:
        x: any tensor; the result of integers is float32.
        axis: the axis or axes to reduce; None for all.
        keepdims: keep the reduced axes with length 1.

    Example:
        >>> import extensor as et
        >>> round(et.logsumexp(et.tensor([1000.0, 1000.0])).item(), 3)
        1000.693
    """
    return _averaged("logsumexp", kernels.logsumexp, x, axis, keepdims)


@backward_of(logsumexp)
def logsumexp_backward(
    grad_output: ExTensor, x: ExTensor, axis: Axis = None, keepdims: bool = False
) -> ExTensor:
    """Gradient of :func:`logsumexp`: the softmax.   dx_i = dy * exp(x_i) / sum_j exp(x_j)

    nan where all elements of a slice are -inf, and at an element that is inf, as in softmax.

    Args:
        grad_output: the gradient of the logarithm.
        x: the input.
        axis, keepdims: as given to :func:`logsumexp`.

    Example:
        >>> import extensor as et
        >>> et.logsumexp_backward(et.tensor(1.0), et.tensor([5.0, 5.0])).tolist()
        [0.5, 0.5]
    """
    return _reduce_backward("logsumexp_backward", kernels.logsumexp_backward, grad_output, x, axis, keepdims)


def _along(function: str, axis: Any, ndim: int) -> int | None:
    return None if axis is None else as_axis(function, axis, ndim)


@differentiable
@takes_complex
def cumsum(x: ExTensor, axis: int | None = None) -> ExTensor:
    """Running sums along ``axis``.   y_i = x_0 + ... + x_i

    Args:
        x: any tensor; integers and bools add up in int64 (unsigned: uint64).
        axis: the axis to add along; None adds along the flattened tensor and gives a 1-d result.

    Example:
        >>> import extensor as et
        >>> et.cumsum(et.tensor([1.0, 2.0, 3.0])).tolist()
        [1.0, 3.0, 6.0]
    """
    x = as_tensor("cumsum", "x", x)
    return kernels.cumsum(x, _along("cumsum", axis, x.ndim))


@backward_of(cumsum, keeps_shape=("x",))
def cumsum_backward(grad_output: ExTensor, x: TensorOrShape, axis: int | None = None) -> ExTensor:
    """Gradient of :func:`cumsum`: running sums from the other end.   dx_i = dy_i + ... + dy_n

    Args:
        grad_output: the gradient of the running sums.
        x: the input, or just its shape.
        axis: as given to :func:`cumsum`.

    Example:
        >>> import extensor as et
        >>> et.cumsum_backward(et.tensor([1.0, 1.0, 1.0]), (3,)).tolist()
        [3.0, 2.0, 1.0]
    """
    shape = shape_of("cumsum_backward", "x", x)
    along = _along("cumsum_backward", axis, len(shape))
    grad = as_grad("cumsum_backward", grad_output, (math.prod(shape),) if along is None else shape)
    return cast_like(kernels.cumsum_backward(grad, shape, along), x)


max, max_backward = max_reduce, max_reduce_backward
min, min_backward = min_reduce, min_reduce_backward
var, var_backward = variance, variance_backward
