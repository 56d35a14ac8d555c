"""Putting tensors side by side, on one grid or to one shape, and taking them apart, each with its gradient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import kernels
from ..checks import as_axis, as_grad, as_tensor, broadcast_shape, differentiable_input, takes_complex
from ..dtypes import promote
from ..errors import describe
from ..graph import backward_of, differentiable
from ..kernels.reference import joining
from ..tensor import ExTensor, Shape
from ._several import as_grads
from .broadcasting import sum_to_shape
from .casting import cast_like
from .joining import concatenate_backward, slices_of, stack

__all__ = [
    "broadcast_arrays", "broadcast_arrays_backward", "column_stack", "column_stack_backward", "dstack", "dstack_backward",
    "hstack", "hstack_backward", "meshgrid", "meshgrid_backward", "unstack", "unstack_backward", "vstack", "vstack_backward",
]  # fmt: skip


def _tensors(function: str, tensors: Any) -> list[ExTensor]:
    if not isinstance(tensors, (list, tuple)):
        raise TypeError(f"[{function}] tensors must be a list or tuple of tensors, got {describe(tensors)}")
    if not tensors:
        raise ValueError(f"[{function}] tensors must not be empty")
    return [as_tensor(function, f"tensors[{i}]", t) for i, t in enumerate(tensors)]


def _fit(function: str, tensors: list[ExTensor], shapes: list[Shape], axis: int) -> None:
    """The shapes agree but along the axis to join."""
    first = shapes[0]
    for i, shape in enumerate(shapes):
        if len(shape) != len(first) or any(m != n for k, (m, n) in enumerate(zip(shape, first)) if k != axis):
            raise ValueError(
                f"[{function}] tensors[{i}] of shape {tensors[i].shape} does not fit beside tensors[0] of shape {tensors[0].shape}"
            )


def _joined(function: str, tensors: list[ExTensor], shapes: list[Shape], axis: int) -> ExTensor:
    _fit(function, tensors, shapes, axis)
    dtype = promote(*(t.dtype for t in tensors))
    flat = [kernels.reshape(t, shape) for t, shape in zip(tensors, shapes)]
    return joining.concatenate(
        [t if t.dtype == dtype else kernels.astype(t, dtype) for t in flat], axis, dtype
    )


def _joined_backward(
    function: str, grad_output: Any, tensors: Any, shape_of: Any, axis_of: Any
) -> list[ExTensor]:
    found = _tensors(function, tensors)
    shapes = [shape_of(t.shape) for t in found]
    axis = axis_of(shapes)
    _fit(function, found, shapes, axis)
    joined = list(shapes[0])
    joined[axis] = sum(shape[axis] for shape in shapes)
    grad = as_grad(function, grad_output, tuple(joined))
    for i, t in enumerate(found):
        differentiable_input(function, f"tensors[{i}]", t)
    parts = concatenate_backward(grad, shapes, axis)
    return [cast_like(part.reshape(t.shape), t) for part, t in zip(parts, found)]


def _line(shape: Shape) -> Shape:
    return shape or (1,)


def _rows(shape: Shape) -> Shape:
    return shape if len(shape) > 1 else (1, *_line(shape))


def _deep(shape: Shape) -> Shape:
    return shape if len(shape) > 2 else (1, *_line(shape), 1) if len(shape) < 2 else (*shape, 1)


def _columns(shape: Shape) -> Shape:
    return shape if len(shape) > 1 else (*_line(shape), 1)


def _second_or_first(shapes: list[Shape]) -> int:
    return 0 if len(shapes[0]) == 1 else 1


@differentiable
@takes_complex
def hstack(tensors: Sequence[ExTensor]) -> ExTensor:
    """Tensors side by side: along the second axis, vectors along their only one.

    Example:
        >>> import extensor as et
        >>> et.hstack([et.tensor([1.0]), et.tensor([2.0, 3.0])]).tolist()
        [1.0, 2.0, 3.0]
    """
    found = _tensors("hstack", tensors)
    shapes = [_line(t.shape) for t in found]
    return _joined("hstack", found, shapes, _second_or_first(shapes))


@backward_of(hstack, each="tensors")
def hstack_backward(grad_output: ExTensor, tensors: Sequence[ExTensor]) -> list[ExTensor]:
    """Gradients of :func:`hstack`: each tensor gets its own part.

    Example:
        >>> import extensor as et
        >>> et.hstack_backward(et.tensor([1.0, 2.0]), [et.ones(1), et.ones(1)])[1].tolist()
        [2.0]
    """
    return _joined_backward("hstack_backward", grad_output, tensors, _line, _second_or_first)


@differentiable
@takes_complex
def vstack(tensors: Sequence[ExTensor]) -> ExTensor:
    """Tensors on top of each other: along the first axis, vectors as rows.

    Example:
        >>> import extensor as et
        >>> et.vstack([et.tensor([1.0, 2.0]), et.tensor([3.0, 4.0])]).tolist()
        [[1.0, 2.0], [3.0, 4.0]]
    """
    found = _tensors("vstack", tensors)
    return _joined("vstack", found, [_rows(t.shape) for t in found], 0)


@backward_of(vstack, each="tensors")
def vstack_backward(grad_output: ExTensor, tensors: Sequence[ExTensor]) -> list[ExTensor]:
    """Gradients of :func:`vstack`: each tensor gets its own part.

    Example:
        >>> import extensor as et
        >>> et.vstack_backward(et.tensor([[1.0], [2.0]]), [et.ones(1), et.ones(1)])[1].tolist()
        [2.0]
    """
    return _joined_backward("vstack_backward", grad_output, tensors, _rows, lambda shapes: 0)


@differentiable
@takes_complex
def dstack(tensors: Sequence[ExTensor]) -> ExTensor:
    """Tensors behind each other: along the third axis.

    Example:
        >>> import extensor as et
        >>> et.dstack([et.tensor([1.0, 2.0]), et.tensor([3.0, 4.0])]).tolist()
        [[[1.0, 3.0], [2.0, 4.0]]]
    """
    found = _tensors("dstack", tensors)
    return _joined("dstack", found, [_deep(t.shape) for t in found], 2)


@backward_of(dstack, each="tensors")
def dstack_backward(grad_output: ExTensor, tensors: Sequence[ExTensor]) -> list[ExTensor]:
    """Gradients of :func:`dstack`: each tensor gets its own part.

    Example:
        >>> import extensor as et
        >>> et.dstack_backward(et.tensor([[[1.0, 2.0]]]), [et.ones(1), et.ones(1)])[1].tolist()
        [2.0]
    """
    return _joined_backward("dstack_backward", grad_output, tensors, _deep, lambda shapes: 2)


@differentiable
@takes_complex
def column_stack(tensors: Sequence[ExTensor]) -> ExTensor:
    """Vectors as the columns of a matrix; matrices side by side.

    Example:
        >>> import extensor as et
        >>> et.column_stack([et.tensor([1.0, 2.0]), et.tensor([3.0, 4.0])]).tolist()
        [[1.0, 3.0], [2.0, 4.0]]
    """
    found = _tensors("column_stack", tensors)
    return _joined("column_stack", found, [_columns(t.shape) for t in found], 1)


@backward_of(column_stack, each="tensors")
def column_stack_backward(grad_output: ExTensor, tensors: Sequence[ExTensor]) -> list[ExTensor]:
    """Gradients of :func:`column_stack`: each tensor gets its own part.

    Example:
        >>> import extensor as et
        >>> et.column_stack_backward(et.tensor([[1.0, 2.0]]), [et.ones(1), et.ones(1)])[1].tolist()
        [2.0]
    """
    return _joined_backward("column_stack_backward", grad_output, tensors, _columns, lambda shapes: 1)


def _common(function: str, shapes: list[Shape]) -> Shape:
    try:
        return broadcast_shape(*shapes)
    except ValueError:
        raise ValueError(
            f"[{function}] tensors of shapes {', '.join(map(str, shapes))} do not broadcast"
        ) from None


@differentiable
@takes_complex
def broadcast_arrays(*tensors: ExTensor) -> list[ExTensor]:
    """All tensors in the one shape they broadcast to; views.

    Example:
        >>> import extensor as et
        >>> [t.shape for t in et.broadcast_arrays(et.ones((2, 1)), et.ones(3))]
        [(2, 3), (2, 3)]
    """
    if not tensors:
        return []
    found = _tensors("broadcast_arrays", tensors)
    shape = _common("broadcast_arrays", [t.shape for t in found])
    return [kernels.broadcast_to(t, shape) for t in found]


@backward_of(broadcast_arrays, each="tensors")
def broadcast_arrays_backward(grad_output: Sequence[ExTensor], *tensors: ExTensor) -> list[ExTensor]:
    """Gradients of :func:`broadcast_arrays`: each summed to the shape of its tensor.

    Example:
        >>> import extensor as et
        >>> et.broadcast_arrays_backward([et.ones((2, 3)), et.ones((2, 3))], et.ones((2, 1)), et.ones(3))[1].tolist()
        [2.0, 2.0, 2.0]
    """
    name = "broadcast_arrays_backward"
    found = _tensors(name, tensors)
    shape = _common(name, [t.shape for t in found])
    for i, t in enumerate(found):
        differentiable_input(name, f"tensors[{i}]", t)
    grads = as_grads(name, grad_output, [shape] * len(found), found[0].dtype)
    return [cast_like(sum_to_shape(grad, t.shape), t) for grad, t in zip(grads, found)]


def _grid(function: str, tensors: Any, indexing: Any) -> tuple[list[ExTensor], list[Shape], Shape]:
    """The vectors, the shape in which each lies along its own axis, and that of the grid."""
    if not isinstance(indexing, str) or indexing not in ("xy", "ij"):
        raise ValueError(f'[{function}] indexing must be "xy" or "ij", got {describe(indexing)}')
    found = [as_tensor(function, f"tensors[{i}]", t) for i, t in enumerate(tensors)]
    for i, t in enumerate(found):
        if t.ndim > 1:
            raise ValueError(f"[{function}] tensors[{i}] must be a vector, got shape {t.shape}")
    axes = list(range(len(found)))
    if indexing == "xy" and len(axes) > 1:
        axes[0], axes[1] = 1, 0
    shapes = [tuple(t.size if k == axis else 1 for k in range(len(found))) for t, axis in zip(found, axes)]
    return found, shapes, broadcast_shape(*shapes) if shapes else ()


@differentiable
@takes_complex
def meshgrid(*tensors: ExTensor, indexing: str = "xy") -> list[ExTensor]:
    """The coordinates of a grid, from the vectors along its axes.

    Args:
        tensors: vectors.
        indexing: "xy": the first vector runs along the columns, as in a picture; "ij": along the first axis.

    Example:
        >>> import extensor as et
        >>> [t.tolist() for t in et.meshgrid(et.tensor([1.0, 2.0]), et.tensor([3.0]))]
        [[[1.0, 2.0]], [[3.0, 3.0]]]
    """
    found, shapes, shape = _grid("meshgrid", tensors, indexing)
    return [kernels.broadcast_to(kernels.reshape(t, own), shape) for t, own in zip(found, shapes)]


@backward_of(meshgrid, each="tensors")
def meshgrid_backward(
    grad_output: Sequence[ExTensor], *tensors: ExTensor, indexing: str = "xy"
) -> list[ExTensor]:
    """Gradients of :func:`meshgrid`: each summed over the axes that are not its own.

    Example:
        >>> import extensor as et
        >>> et.meshgrid_backward([et.ones((1, 2)), et.ones((1, 2))], et.ones(2), et.ones(1))[1].tolist()
        [2.0]
    """
    name = "meshgrid_backward"
    found, shapes, shape = _grid(name, tensors, indexing)
    for i, t in enumerate(found):
        differentiable_input(name, f"tensors[{i}]", t)
    grads = as_grads(name, grad_output, [shape] * len(found), found[0].dtype if found else None)
    return [cast_like(sum_to_shape(g, own).reshape(t.shape), t) for g, own, t in zip(grads, shapes, found)]


@differentiable
@takes_complex
def unstack(x: ExTensor, axis: int = 0) -> list[ExTensor]:
    """The slices along an axis, as a list; views.

    Example:
        >>> import extensor as et
        >>> [t.tolist() for t in et.unstack(et.tensor([[1.0, 2.0], [3.0, 4.0]]))]
        [[1.0, 2.0], [3.0, 4.0]]
    """
    x = as_tensor("unstack", "x", x)
    along = as_axis("unstack", axis, x.ndim)
    return [ExTensor(np.moveaxis(x._array, along, 0)[i, ...]) for i in slices_of("unstack", x, along)]


@backward_of(unstack)
def unstack_backward(grad_output: Sequence[ExTensor], x: ExTensor, axis: int = 0) -> ExTensor:
    """Gradient of :func:`unstack`: the gradients of the slices, stacked.

    Example:
        >>> import extensor as et
        >>> et.unstack_backward([et.ones(2), et.zeros(2)], et.ones((2, 2))).tolist()
        [[1.0, 1.0], [0.0, 0.0]]
    """
    x = differentiable_input("unstack_backward", "x", x)
    along = as_axis("unstack_backward", axis, x.ndim)
    shape = (*x.shape[:along], *x.shape[along + 1 :])
    if not x.shape[along]:
        return x * 0
    grads = as_grads("unstack_backward", grad_output, [shape] * x.shape[along], x.dtype)
    return cast_like(stack(grads, along), x)
