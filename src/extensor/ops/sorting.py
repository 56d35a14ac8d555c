"""Sorting and the largest elements with their gradients; searching, testing and counting, which have none.

Sorting is stable and treats nan as larger than every number.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..checks import (
    as_axes,
    as_axis,
    as_bool,
    as_grad,
    as_int,
    as_tensor,
    differentiable_input,
    takes_complex,
)
from ..graph import backward_of, differentiable, undifferentiated
from ..kernels import Kernel
from ..kernels import flip as flip_kernel
from ..kernels import subtract as subtract_kernel
from ..kernels.reference import sorting as kernels
from ..tensor import ExTensor
from ._several import as_grads
from .casting import cast_like
from .shape import flip

__all__ = [
    "sort", "sort_backward", "top_k", "top_k_backward", "TopKResult",
    "argsort", "argmax", "argmin", "any", "all", "count_nonzero",
]  # fmt: skip

Axis = int | tuple[int, ...] | None


def _along(function: str, axis: Any, ndim: int) -> int | None:
    return None if axis is None else as_axis(function, axis, ndim)


@differentiable
def sort(x: ExTensor, axis: int | None = -1, descending: bool = False, stable: bool = True) -> ExTensor:
    """The elements in ascending order along ``axis``, nan last; or the other way round.

    Args:
        x: any tensor.
        axis: the axis to sort along, the last by default; None sorts the flattened tensor.
        descending: whether the largest comes first (nan before it).
        stable: equal elements keep their order, whatever is asked for here; it decides who gets a gradient.

    Example:
        >>> import extensor as et
        >>> et.sort(et.tensor([3.0, 1.0, 2.0])).tolist()
        [1.0, 2.0, 3.0]
    """
    x, along = as_tensor("sort", "x", x), _along("sort", axis, as_tensor("sort", "x", x).ndim)
    as_bool("sort", "stable", stable)
    if not as_bool("sort", "descending", descending):
        return kernels.sort(x, along)
    place = 0 if along is None else along
    return flip_kernel(kernels.sort(x, along), (place,)) if x.ndim else kernels.sort(x, along)


@backward_of(sort)
def sort_backward(
    grad_output: ExTensor, x: ExTensor, axis: int | None = -1, descending: bool = False
) -> ExTensor:
    """Gradient of :func:`sort`: each element gets the gradient of the place it was sorted to.

    dx[order] = dy,  order = argsort(x);  of equal elements the first comes first

    Args:
        grad_output: the gradient of the sorted tensor.
        x: the input.
        axis, descending: as given to :func:`sort`.

    Example:
        >>> import extensor as et
        >>> et.sort_backward(et.tensor([10.0, 20.0, 30.0]), et.tensor([3.0, 1.0, 2.0])).tolist()
        [30.0, 10.0, 20.0]
    """
    x = differentiable_input("sort_backward", "x", x)
    along = _along("sort_backward", axis, x.ndim)
    grad = as_grad("sort_backward", grad_output, (x.size,) if along is None else x.shape)
    if not as_bool("sort_backward", "descending", descending) or not x.ndim:
        return cast_like(kernels.sort_backward(grad, x, along), x)
    # Turned round, the first of equal elements comes last, and first again when the result is turned.
    every = tuple(range(x.ndim)) if along is None else (along,)
    turned = flip(grad, 0 if along is None else along)
    return cast_like(flip(kernels.sort_backward(turned, flip(x, every), along), every), x)


def _top(function: str, x: ExTensor, k: Any, axis: Any) -> tuple[int, int]:
    """``k`` and ``axis``, checked against the shape of ``x``."""
    along, k = as_axis(function, axis, x.ndim), as_int(function, "k", k)
    if not 0 <= k <= x.shape[along]:
        raise ValueError(
            f"[{function}] k must be between 0 and {x.shape[along]}, the length of axis {axis}; got {k}"
        )
    return k, along


class TopKResult(NamedTuple):
    """What :func:`top_k` returns: the largest elements, and where they are along the axis (int64)."""

    values: ExTensor
    indices: ExTensor


@differentiable
def top_k(x: ExTensor, k: int, axis: int = -1) -> TopKResult:
    """The ``k`` largest elements along ``axis``, the largest first, and their indices.

    nan counts as larger than every number; of equal elements the first comes first. The gradient goes through the values.

    Args:
        x: any tensor.
        k: how many, at most the length of the axis.
        axis: the axis to search, the last by default.

    Returns:
        The values, and the indices for :func:`take_along_axis` (int64, of the same shape).

    Example:
        >>> import extensor as et
        >>> values, indices = et.top_k(et.tensor([3.0, 1.0, 4.0, 2.0]), 2)
        >>> values.tolist(), indices.tolist()
        ([4.0, 3.0], [2, 0])
    """
    x = as_tensor("top_k", "x", x)
    return TopKResult(*kernels.top_k(x, *_top("top_k", x, k, axis)))


@backward_of(top_k)
def top_k_backward(
    grad_output: ExTensor | tuple[ExTensor | None, ...] | list[ExTensor | None],
    x: ExTensor,
    k: int,
    axis: int = -1,
) -> ExTensor:
    """Gradient of :func:`top_k`: the elements that were taken get the gradient of their place, the others 0.

    Of equal elements the first is taken first.

    Args:
        grad_output: the gradient of the values; or a tuple of it and None, as indices have no gradient.
        x: the input.
        k, axis: as given to :func:`top_k`.

    Example:
        >>> import extensor as et
        >>> et.top_k_backward(et.tensor([10.0, 20.0]), et.tensor([3.0, 1.0, 4.0, 2.0]), 2).tolist()
        [20.0, 0.0, 10.0, 0.0]
    """
    x = differentiable_input("top_k_backward", "x", x)
    k, along = _top("top_k_backward", x, k, axis)
    shape = (*x.shape[:along], k, *x.shape[along + 1 :])
    (grad,) = as_grads("top_k_backward", grad_output, [shape, None], x.dtype)
    return cast_like(kernels.top_k_backward(grad, x, k, along), x)


@undifferentiated
def argsort(x: ExTensor, axis: int | None = -1, descending: bool = False, stable: bool = True) -> ExTensor:
    """The indices that sort ``x`` along ``axis``; equal elements keep their order, nan comes last (descending: first).

    Args:
        x: any tensor.
        axis: the axis to sort along, the last by default; None sorts the flattened tensor.
        descending: whether the largest comes first.
        stable: accepted for other libraries' sake; sorting is always stable.

    Example:
        >>> import extensor as et
        >>> et.argsort(et.tensor([3.0, 1.0, 2.0])).tolist()
        [1, 2, 0]
    """
    x = as_tensor("argsort", "x", x)
    along = _along("argsort", axis, x.ndim)
    as_bool("argsort", "stable", stable)
    if not as_bool("argsort", "descending", descending) or not x.ndim:
        return kernels.argsort(x, along)
    every = tuple(range(x.ndim)) if along is None else (along,)
    length = x.size if along is None else x.shape[along]
    order = kernels.argsort(flip_kernel(x, every), along)
    return flip_kernel(subtract_kernel(length - 1, order), (0,) if along is None else every)


def _search(function: str, kernel: Kernel, x: Any, axis: int | None, keepdims: bool) -> ExTensor:
    x = as_tensor(function, "x", x)
    along = _along(function, axis, x.ndim)
    if not (x.size if along is None else x.shape[along]):
        raise ValueError(
            f"[{function}] x of shape {x.shape} has no elements along axis {axis}, so no extreme one"
        )
    return kernel(x, along, as_bool(function, "keepdims", keepdims))


@undifferentiated
def argmax(x: ExTensor, axis: int | None = None, keepdims: bool = False) -> ExTensor:
    """The index of the largest element along ``axis``: the first of equal ones, the first nan if there is one.

    Args:
        x: any tensor.
        axis: the axis to search; None for the index into the flattened tensor.
        keepdims: keep the searched axis with length 1.

    Example:
        >>> import extensor as et
        >>> et.argmax(et.tensor([[1.0, 5.0], [4.0, 2.0]]), axis=1).tolist()
        [1, 0]
    """
    return _search("argmax", kernels.argmax, x, axis, keepdims)


@undifferentiated
def argmin(x: ExTensor, axis: int | None = None, keepdims: bool = False) -> ExTensor:
    """The index of the smallest element along ``axis``: the first of equal ones, the first nan if there is one.

    Args:
        x: any tensor.
        axis: the axis to search; None for the index into the flattened tensor.
        keepdims: keep the searched axis with length 1.

    Example:
        >>> import extensor as et
        >>> et.argmin(et.tensor([[1.0, 5.0], [4.0, 2.0]]), axis=1).tolist()
        [0, 1]
    """
    return _search("argmin", kernels.argmin, x, axis, keepdims)


def _test(function: str, kernel: Kernel, x: Any, axis: Axis, keepdims: bool) -> ExTensor:
    x = as_tensor(function, "x", x)
    return kernel(x, as_axes(function, axis, x.ndim), as_bool(function, "keepdims", keepdims))


@undifferentiated
@takes_complex
def any(x: ExTensor, axis: Axis = None, keepdims: bool = False) -> ExTensor:
    """Whether an element over ``axis`` is true (not zero); nan is true, nothing at all is false.

    Args:
        x: any tensor.
        axis: the axis or axes to test; None for all.
        keepdims: keep the tested axes with length 1.

    Example:
        >>> import extensor as et
        >>> et.any(et.tensor([[True, False], [False, False]]), axis=1).tolist()
        [True, False]
    """
    return _test("any", kernels.any, x, axis, keepdims)


@undifferentiated
@takes_complex
def all(x: ExTensor, axis: Axis = None, keepdims: bool = False) -> ExTensor:
    """Whether every element over ``axis`` is true (not zero); nan is true, and so is nothing at all.

    Args:
        x: any tensor.
        axis: the axis or axes to test; None for all.
        keepdims: keep the tested axes with length 1.

    Example:
        >>> import extensor as et
        >>> et.all(et.tensor([[True, True], [True, False]]), axis=1).tolist()
        [True, False]
    """
    return _test("all", kernels.all, x, axis, keepdims)


@undifferentiated
@takes_complex
def count_nonzero(x: ExTensor, axis: Axis = None, keepdims: bool = False) -> ExTensor:
    """How many elements over ``axis`` are not zero, in int64.

    Args:
        x: any tensor.
        axis: the axis or axes to count over; None for all.
        keepdims: keep the counted axes with length 1.

    Example:
        >>> import extensor as et
        >>> et.count_nonzero(et.tensor([0.0, 1.0, -2.0])).item()
        2
    """
    return _test("count_nonzero", kernels.count_nonzero, x, axis, keepdims)
