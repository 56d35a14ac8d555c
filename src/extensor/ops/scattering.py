"""Gathering, scattering and filling with PyTorch's meaning, each with its gradient."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..checks import (
    as_axis,
    as_grad,
    as_integers,
    as_number,
    as_tensor,
    check_needs,
    differentiable_input,
    shape_of,
    takes_complex,
)
from ..errors import OutOfBoundsError
from ..graph import backward_of, differentiable
from ..kernels.reference import scattering as kernels
from ..tensor import ExTensor, Indices, Shape, TensorOrShape
from ._pairs import BOTH, Needs
from .casting import cast_like
from .creation import zeros
from .selection import where

__all__ = [
    "ScatterGradients", "gather", "gather_backward", "masked_fill", "masked_fill_backward", "scatter", "scatter_add",
    "scatter_add_backward", "scatter_backward",
]  # fmt: skip


def _places(function: str, shape: Shape, axis: Any, index: Any) -> tuple[int, ExTensor]:
    """The axis, and the index with negative positions counted from the front; inside of ``shape``."""
    along, found = as_axis(function, axis, len(shape)), as_integers(function, "index", index)
    if found.ndim != len(shape) or any(
        m > n for i, (m, n) in enumerate(zip(found.shape, shape)) if i != along
    ):
        raise ValueError(f"[{function}] index of shape {found.shape} does not fit into x of shape {shape}")
    array = found.numpy().astype(np.int64)
    length = shape[along]
    if array.size and not (-length <= array.min() and array.max() < length):
        raise OutOfBoundsError(
            f"[{function}] index holds {int(array.min())} to {int(array.max())}, but axis {along} of x has length {length}"
        )
    return along, ExTensor(np.where(array < 0, array + length, array))


@differentiable
@takes_complex
def gather(x: ExTensor, axis: int, index: Indices) -> ExTensor:
    """Elements chosen along an axis, as in ``torch.gather``.   y_ij = x_(index_ij, j) for axis 0

    Args:
        x: any tensor.
        axis: the axis to choose along.
        index: positions along it; with as many axes as ``x``, nowhere longer than it but along ``axis``.

    Example:
        >>> import extensor as et
        >>> et.gather(et.tensor([[1.0, 2.0], [3.0, 4.0]]), 1, et.tensor([[0], [1]])).tolist()
        [[1.0], [4.0]]
    """
    x = as_tensor("gather", "x", x)
    along, places = _places("gather", x.shape, axis, index)
    return kernels.gather(x, places, along)


@backward_of(gather, keeps_shape=("x",))
def gather_backward(grad_output: ExTensor, x: TensorOrShape, axis: int, index: Indices) -> ExTensor:
    """Gradient of :func:`gather`: added where it was taken from; repeats accumulate.

    ``x`` is the input or just its shape.

    Example:
        >>> import extensor as et
        >>> et.gather_backward(et.ones((1, 2)), (1, 3), 1, et.tensor([[2, 2]])).tolist()
        [[0.0, 0.0, 2.0]]
    """
    shape = shape_of("gather_backward", "x", x)
    along, places = _places("gather_backward", shape, axis, index)
    grad = as_grad("gather_backward", grad_output, places.shape)
    return cast_like(scatter_add(zeros(shape, grad.dtype), along, places, grad), x)


class ScatterGradients(NamedTuple):
    """The gradients of :func:`scatter` and its kin; None where ``needs`` says that it is not wanted."""

    grad_x: ExTensor | None
    grad_source: ExTensor | None


def _sources(
    function: str, x: Any, axis: Any, index: Any, source: Any
) -> tuple[ExTensor, int, ExTensor, ExTensor]:
    x, found = as_tensor(function, "x", x), as_tensor(function, "source", source)
    along, places = _places(function, x.shape, axis, index)
    if found.ndim != places.ndim or any(m < n for m, n in zip(found.shape, places.shape)):
        raise ValueError(
            f"[{function}] source of shape {found.shape} is too small for index of shape {places.shape}"
        )
    return x, along, places, found


def _part(x: ExTensor, shape: Shape) -> ExTensor:
    """The leading block that an index of ``shape`` uses."""
    return x if x.shape == shape else x[tuple(map(slice, shape))]


def _spread(grad: ExTensor, source: ExTensor) -> ExTensor:
    """The gradient of a block, in zeros of the shape of all of ``source``."""
    if grad.shape == source.shape:
        return cast_like(grad, source)
    return cast_like(grad.pad([(0, n - m) for m, n in zip(grad.shape, source.shape)]), source)


@differentiable
@takes_complex
def scatter(x: ExTensor, axis: int, index: Indices, source: ExTensor) -> ExTensor:
    """``x`` with elements replaced along an axis, as in ``torch.scatter``.   y_(index_ij, j) = source_ij for axis 0

    Args:
        x: any tensor.
        axis: the axis to place along.
        index: positions along it; of repeated ones the last counts.
        source: the new elements; where it is larger than ``index``, its leading block.

    Example:
        >>> import extensor as et
        >>> et.scatter(et.zeros((1, 3)), 1, et.tensor([[2, 0]]), et.tensor([[5.0, 6.0]])).tolist()
        [[6.0, 0.0, 5.0]]
    """
    x, along, places, found = _sources("scatter", x, axis, index, source)
    return kernels.scatter(x, places, kernels_cast(_part(found.detach(), places.shape), x), along)


def kernels_cast(value: ExTensor, x: ExTensor) -> ExTensor:
    """In the dtype of the tensor it is put into."""
    return value if value.dtype == x.dtype else value.astype(x.dtype)


@backward_of(scatter, wrt=("x", "source"))
def scatter_backward(
    grad_output: ExTensor, x: ExTensor, axis: int, index: Indices, source: ExTensor, *, needs: Needs = BOTH
) -> ScatterGradients:
    """Gradient of :func:`scatter`: dx is 0 where elements were replaced, dsource is what arrived there.

    A source that was overwritten by a later one has the gradient 0.

    Example:
        >>> import extensor as et
        >>> x, source = et.zeros((1, 2)), et.ones((1, 1))
        >>> et.scatter_backward(et.tensor([[1.0, 2.0]]), x, 1, et.tensor([[1]]), source).grad_source.tolist()
        [[2.0]]
    """
    name = "scatter_backward"
    check_needs(name, needs)
    x, along, places, found = _sources(name, x, axis, index, source)
    grad = as_grad(name, grad_output, x.shape)
    if needs[0]:
        differentiable_input(name, "x", x)
    if needs[1]:
        differentiable_input(name, "source", found)
    # which source each place holds at the end: a number for each, scattered in the same order
    numbers = ExTensor(np.arange(1, places.size + 1).reshape(places.shape))
    last = kernels.scatter(ExTensor(np.zeros(x.shape, np.int64)), places, numbers, along)
    survived = kernels.gather(last, places, along).numpy() == numbers.numpy()
    return ScatterGradients(
        cast_like(where(last.numpy() == 0, grad, 0.0), x) if needs[0] else None,
        _spread(where(survived, gather(grad, along, places), 0.0), found) if needs[1] else None,
    )


@differentiable
@takes_complex
def scatter_add(x: ExTensor, axis: int, index: Indices, source: ExTensor) -> ExTensor:
    """``x`` with elements added along an axis, as in ``torch.scatter_add``; repeats accumulate.

    Args:
        x: any tensor.
        axis: the axis to place along.
        index: positions along it.
        source: what to add; where it is larger than ``index``, its leading block.

    Example:
        >>> import extensor as et
        >>> et.scatter_add(et.zeros((1, 3)), 1, et.tensor([[2, 2]]), et.tensor([[5.0, 6.0]])).tolist()
        [[0.0, 0.0, 11.0]]
    """
    x, along, places, found = _sources("scatter_add", x, axis, index, source)
    return kernels.scatter_add(x, places, kernels_cast(_part(found.detach(), places.shape), x), along)


@backward_of(scatter_add, wrt=("x", "source"))
def scatter_add_backward(
    grad_output: ExTensor, x: ExTensor, axis: int, index: Indices, source: ExTensor, *, needs: Needs = BOTH
) -> ScatterGradients:
    """Gradient of :func:`scatter_add`.   dx = dy,  dsource = gather(dy, axis, index)

    Example:
        >>> import extensor as et
        >>> x, source = et.zeros((1, 2)), et.ones((1, 1))
        >>> et.scatter_add_backward(et.tensor([[1.0, 2.0]]), x, 1, et.tensor([[1]]), source).grad_source.tolist()
        [[2.0]]
    """
    name = "scatter_add_backward"
    check_needs(name, needs)
    x, along, places, found = _sources(name, x, axis, index, source)
    grad = as_grad(name, grad_output, x.shape)
    if needs[0]:
        differentiable_input(name, "x", x)
    if needs[1]:
        differentiable_input(name, "source", found)
    return ScatterGradients(
        cast_like(grad, x) if needs[0] else None,
        _spread(gather(grad, along, places), found) if needs[1] else None,
    )


def _mask(function: str, x: ExTensor, mask: Any) -> np.ndarray:
    found = as_tensor(function, "mask", mask)
    if found.dtype.kind != "b":
        raise TypeError(f"[{function}] mask must be boolean, got {found.dtype}; compare it, e.g. x > 0")
    try:
        return np.broadcast_to(found.numpy(), x.shape)
    except ValueError:
        raise ValueError(
            f"[{function}] mask of shape {found.shape} does not broadcast to {x.shape}"
        ) from None


@differentiable
def masked_fill(x: ExTensor, mask: Indices, value: Any) -> ExTensor:
    """``x`` with a number wherever the mask holds.   y = value if mask, else x

    Args:
        x: any tensor.
        mask: booleans that broadcast to the shape of ``x``.
        value: a number.

    Example:
        >>> import extensor as et
        >>> et.masked_fill(et.tensor([1.0, 2.0]), et.tensor([True, False]), 0.0).tolist()
        [0.0, 2.0]
    """
    x = as_tensor("masked_fill", "x", x)
    return kernels.masked_fill(
        x, ExTensor(_mask("masked_fill", x, mask)), as_number("masked_fill", "value", value)
    )


@backward_of(masked_fill)
def masked_fill_backward(grad_output: ExTensor, x: ExTensor, mask: Indices) -> ExTensor:
    """Gradient of :func:`masked_fill`: 0 wherever the mask holds.   dx = 0 if mask, else dy

    Example:
        >>> import extensor as et
        >>> et.masked_fill_backward(et.ones(2), et.ones(2), et.tensor([True, False])).tolist()
        [0.0, 1.0]
    """
    x = differentiable_input("masked_fill_backward", "x", x)
    grad = as_grad("masked_fill_backward", grad_output, x.shape)
    return cast_like(where(_mask("masked_fill_backward", x, mask), 0.0, grad), x)
