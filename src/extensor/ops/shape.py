"""New shapes and orders for the same elements, with NumPy's conventions. Results are views where possible.

The gradient of moving elements is moving them back, so every backward here is one of these functions again.
"""

from __future__ import annotations

import math
from typing import Any

from .. import kernels
from ..checks import (
    as_axes,
    as_axis,
    as_floating,
    as_grad,
    as_ints,
    as_shape,
    as_tensor,
    shape_of,
    takes_complex,
)
from ..errors import describe
from ..graph import backward_of, differentiable
from ..tensor import ExTensor, Shape, TensorOrShape
from .casting import cast_like
from .creation import allocate

__all__ = [
    "expand_dims", "expand_dims_backward", "flatten", "flatten_backward", "flip", "flip_backward",
    "moveaxis", "moveaxis_backward", "permute", "permute_backward", "ravel", "ravel_backward",
    "reshape", "reshape_backward", "roll", "roll_backward", "squeeze", "squeeze_backward",
    "swapaxes", "swapaxes_backward", "unsqueeze", "unsqueeze_backward",
]  # fmt: skip


@differentiable
@takes_complex
def reshape(x: ExTensor, shape: Any) -> ExTensor:
    """The same elements, in the same order, with another shape.

    Args:
        x: the tensor.
        shape: an int or a tuple of ints; one of them may be -1, which stands for whatever is left.

    Example:
        >>> import extensor as et
        >>> et.reshape(et.arange(6), (2, -1)).tolist()
        [[0, 1, 2], [3, 4, 5]]
    """
    x = as_tensor("reshape", "x", x)
    return allocate("reshape", kernels.reshape, x, _resolved(x, shape))


def _resolved(x: ExTensor, shape: Any) -> Shape:
    """``shape`` with its -1, if it has one, worked out."""
    wanted = as_ints("reshape", "shape", shape)
    if wanted.count(-1) > 1:
        raise ValueError(f"[reshape] shape may hold one -1, got {wanted}")
    known = as_shape("reshape", "shape", tuple(n for n in wanted if n != -1) if -1 in wanted else wanted)
    size = math.prod(known)
    if len(known) != len(wanted) and size and x.size % size == 0:
        wanted = tuple(x.size // size if n == -1 else n for n in wanted)
    elif len(known) != len(wanted) or size != x.size:
        raise ValueError(
            f"[reshape] x of shape {x.shape} has {x.size} elements, which do not fill the shape {wanted}"
        )
    return wanted


@backward_of(reshape, keeps_shape=("x",))
def reshape_backward(grad_output: ExTensor, x: TensorOrShape) -> ExTensor:
    """Gradient of :func:`reshape`: back to the shape of ``x`` (a tensor or a shape).   dx = reshape(dy, x.shape)

    Example:
        >>> import extensor as et
        >>> et.reshape_backward(et.ones(6), (2, 3)).shape
        (2, 3)
    """
    shape = shape_of("reshape_backward", "x", x)
    grad = as_floating("reshape_backward", "grad_output", grad_output)
    if grad.size != math.prod(shape):
        raise ValueError(
            f"[reshape_backward] grad_output of shape {grad.shape} does not fill x's shape {shape}"
        )
    return cast_like(reshape(grad, shape), x)


@differentiable
@takes_complex
def squeeze(x: ExTensor, axis: Any = None) -> ExTensor:
    """``x`` without its axes of length 1.

    Args:
        x: the tensor.
        axis: an axis or a tuple of axes to remove, each of length 1; None removes all that are.

    Example:
        >>> import extensor as et
        >>> et.squeeze(et.ones((1, 3, 1))).shape
        (3,)
    """
    x = as_tensor("squeeze", "x", x)
    return kernels.reshape(x, _squeezed("squeeze", x.shape, axis))


def _squeezed(function: str, shape: Shape, axis: Any) -> Shape:
    if axis is None:
        return tuple(n for n in shape if n != 1)
    axes = as_axes(function, axis, len(shape))
    if any(shape[a] != 1 for a in axes):
        raise ValueError(f"[{function}] axis {axis} must have length 1, but the shape is {shape}")
    return tuple(n for a, n in enumerate(shape) if a not in axes)


@backward_of(squeeze, keeps_shape=("x",))
def squeeze_backward(grad_output: ExTensor, x: TensorOrShape, axis: Any = None) -> ExTensor:
    """Gradient of :func:`squeeze`: back to the shape of ``x`` (a tensor or a shape).   dx = reshape(dy, x.shape)

    Example:
        >>> import extensor as et
        >>> et.squeeze_backward(et.ones(3), (1, 3, 1)).shape
        (1, 3, 1)
    """
    shape = shape_of("squeeze_backward", "x", x)
    wanted = _squeezed("squeeze_backward", shape, axis)
    return cast_like(reshape(as_grad("squeeze_backward", grad_output, wanted), shape), x)


def _unsqueezed(function: str, shape: Shape, axis: Any) -> Shape:
    """``shape`` with a 1 at each place that ``axis`` names in the result."""
    count = len(axis) if isinstance(axis, (tuple, list)) else 1
    axes = as_axes(function, axis if axis is not None else (None,), len(shape) + count)
    lengths = iter(shape)
    return tuple(1 if a in axes else next(lengths) for a in range(len(shape) + count))


@differentiable
@takes_complex
def unsqueeze(x: ExTensor, axis: Any) -> ExTensor:
    """``x`` with a new axis of length 1.

    Args:
        x: the tensor.
        axis: where the new axis stands in the result, or a tuple of places.

    Example:
        >>> import extensor as et
        >>> et.unsqueeze(et.ones(3), -1).shape
        (3, 1)
    """
    x = as_tensor("unsqueeze", "x", x)
    return kernels.reshape(x, _unsqueezed("unsqueeze", x.shape, axis))


@backward_of(unsqueeze)
def unsqueeze_backward(grad_output: ExTensor, axis: Any) -> ExTensor:
    """Gradient of :func:`unsqueeze`: without the new axes.   dx = squeeze(dy, axis)

    Example:
        >>> import extensor as et
        >>> et.unsqueeze_backward(et.ones((3, 1)), -1).shape
        (3,)
    """
    grad = as_floating("unsqueeze_backward", "grad_output", grad_output)
    return reshape(grad, _squeezed("unsqueeze_backward", grad.shape, (None,) if axis is None else axis))


@differentiable
@takes_complex
def expand_dims(x: ExTensor, axis: Any) -> ExTensor:
    """``x`` with new axes of length 1: NumPy's name of :func:`unsqueeze`.

    Example:
        >>> import extensor as et
        >>> et.expand_dims(et.ones(3), (0, 2)).shape
        (1, 3, 1)
    """
    x = as_tensor("expand_dims", "x", x)
    return kernels.reshape(x, _unsqueezed("expand_dims", x.shape, axis))


@backward_of(expand_dims)
def expand_dims_backward(grad_output: ExTensor, axis: Any) -> ExTensor:
    """Gradient of :func:`expand_dims`: without the new axes.   dx = squeeze(dy, axis)

    Example:
        >>> import extensor as et
        >>> et.expand_dims_backward(et.ones((1, 3, 1)), (0, 2)).shape
        (3,)
    """
    grad = as_floating("expand_dims_backward", "grad_output", grad_output)
    return reshape(grad, _squeezed("expand_dims_backward", grad.shape, (None,) if axis is None else axis))


def _flattened(function: str, shape: Shape, start_axis: Any, end_axis: Any) -> Shape:
    """``shape`` with the axes from start to end merged; a number becomes one element."""
    ndim = max(len(shape), 1)
    start, end = as_axis(function, start_axis, ndim), as_axis(function, end_axis, ndim)
    if start > end:
        raise ValueError(
            f"[{function}] start_axis {start_axis} comes after end_axis {end_axis} in the shape {shape}"
        )
    return (*shape[:start], math.prod(shape[start : end + 1]), *shape[end + 1 :])


@differentiable
@takes_complex
def flatten(x: ExTensor, start_axis: int = 0, end_axis: int = -1) -> ExTensor:
    """``x`` with neighbouring axes merged into one; by default all of them.

    Args:
        x: the tensor.
        start_axis: the first axis to merge.
        end_axis: the last axis to merge.

    Example:
        >>> import extensor as et
        >>> et.flatten(et.ones((2, 3, 4))).shape, et.flatten(et.ones((2, 3, 4)), 1).shape
        ((24,), (2, 12))
    """
    x = as_tensor("flatten", "x", x)
    return kernels.reshape(x, _flattened("flatten", x.shape, start_axis, end_axis))


@backward_of(flatten, keeps_shape=("x",))
def flatten_backward(
    grad_output: ExTensor, x: TensorOrShape, start_axis: int = 0, end_axis: int = -1
) -> ExTensor:
    """Gradient of :func:`flatten`: back to the shape of ``x`` (a tensor or a shape).   dx = reshape(dy, x.shape)

    Example:
        >>> import extensor as et
        >>> et.flatten_backward(et.ones(6), (2, 3)).shape
        (2, 3)
    """
    shape = shape_of("flatten_backward", "x", x)
    wanted = _flattened("flatten_backward", shape, start_axis, end_axis)
    return cast_like(reshape(as_grad("flatten_backward", grad_output, wanted), shape), x)


@differentiable
@takes_complex
def ravel(x: ExTensor) -> ExTensor:
    """All elements in one axis, the last axis running fastest.

    Example:
        >>> import extensor as et
        >>> et.ravel(et.tensor([[1, 2], [3, 4]])).tolist()
        [1, 2, 3, 4]
    """
    x = as_tensor("ravel", "x", x)
    return kernels.reshape(x, (x.size,))


@backward_of(ravel, keeps_shape=("x",))
def ravel_backward(grad_output: ExTensor, x: TensorOrShape) -> ExTensor:
    """Gradient of :func:`ravel`: back to the shape of ``x`` (a tensor or a shape).   dx = reshape(dy, x.shape)

    Example:
        >>> import extensor as et
        >>> et.ravel_backward(et.ones(6), (2, 3)).shape
        (2, 3)
    """
    shape = shape_of("ravel_backward", "x", x)
    wanted = _flattened("ravel_backward", shape, 0, -1)
    return cast_like(reshape(as_grad("ravel_backward", grad_output, wanted), shape), x)


def _order(function: str, axes: Any, ndim: int) -> tuple[int, ...]:
    """A permutation of the axes, counted from the front."""
    if not isinstance(axes, (tuple, list)):
        raise TypeError(f"[{function}] axes must be a tuple of ints, got {describe(axes)}")
    order = tuple(as_axis(function, a, ndim) for a in axes)
    if sorted(order) != list(range(ndim)):
        raise ValueError(f"[{function}] axes {tuple(axes)} must name each of the {ndim} axes once")
    return order


def _inverse(order: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(order.index(a) for a in range(len(order)))


@differentiable
@takes_complex
def permute(x: ExTensor, axes: Any) -> ExTensor:
    """``x`` with its axes in another order; axis ``i`` of the result is axis ``axes[i]`` of ``x``.

    Example:
        >>> import extensor as et
        >>> et.permute(et.ones((2, 3, 4)), (2, 0, 1)).shape
        (4, 2, 3)
    """
    x = as_tensor("permute", "x", x)
    return kernels.permute(x, _order("permute", axes, x.ndim))


@backward_of(permute)
def permute_backward(grad_output: ExTensor, axes: Any) -> ExTensor:
    """Gradient of :func:`permute`: the inverse permutation.

    Example:
        >>> import extensor as et
        >>> et.permute_backward(et.ones((4, 2, 3)), (2, 0, 1)).shape
        (2, 3, 4)
    """
    grad = as_floating("permute_backward", "grad_output", grad_output)
    return permute(grad, _inverse(_order("permute_backward", axes, grad.ndim)))


def _moved(function: str, ndim: int, source: Any, destination: Any) -> tuple[int, ...]:
    """The permutation that puts each axis of ``source`` at its place in ``destination``, the rest in order."""
    places = []
    for name, value in (("source", source), ("destination", destination)):
        listed = as_ints(function, name, value)
        found = [as_axis(function, a, ndim) for a in listed]
        if len(set(found)) != len(found):
            raise ValueError(f"[{function}] {name} {listed} names an axis twice")
        places.append(found)
    if len(places[0]) != len(places[1]):
        raise ValueError(f"[{function}] source {source} and destination {destination} differ in length")
    order = [a for a in range(ndim) if a not in places[0]]
    for place, axis in sorted(zip(places[1], places[0])):
        order.insert(place, axis)
    return tuple(order)


@differentiable
@takes_complex
def moveaxis(x: ExTensor, source: Any, destination: Any) -> ExTensor:
    """``x`` with some axes moved to new places; the others keep their order.

    Args:
        x: the tensor.
        source: an axis or a tuple of axes.
        destination: where they go, as many.

    Example:
        >>> import extensor as et
        >>> et.moveaxis(et.ones((2, 3, 4)), 0, -1).shape
        (3, 4, 2)
    """
    x = as_tensor("moveaxis", "x", x)
    return kernels.permute(x, _moved("moveaxis", x.ndim, source, destination))


@backward_of(moveaxis)
def moveaxis_backward(grad_output: ExTensor, source: Any, destination: Any) -> ExTensor:
    """Gradient of :func:`moveaxis`: the axes go back.   dx = moveaxis(dy, destination, source)

    Example:
        >>> import extensor as et
        >>> et.moveaxis_backward(et.ones((3, 4, 2)), 0, -1).shape
        (2, 3, 4)
    """
    grad = as_floating("moveaxis_backward", "grad_output", grad_output)
    return permute(grad, _inverse(_moved("moveaxis_backward", grad.ndim, source, destination)))


def _swapped(function: str, ndim: int, axis1: Any, axis2: Any) -> tuple[int, ...]:
    order = list(range(ndim))
    first, second = as_axis(function, axis1, ndim), as_axis(function, axis2, ndim)
    order[first], order[second] = order[second], order[first]
    return tuple(order)


@differentiable
@takes_complex
def swapaxes(x: ExTensor, axis1: int, axis2: int) -> ExTensor:
    """``x`` with two axes exchanged.

    Example:
        >>> import extensor as et
        >>> et.swapaxes(et.ones((2, 3, 4)), 0, 2).shape
        (4, 3, 2)
    """
    x = as_tensor("swapaxes", "x", x)
    return kernels.swapaxes(x, as_axis("swapaxes", axis1, x.ndim), as_axis("swapaxes", axis2, x.ndim))


@backward_of(swapaxes)
def swapaxes_backward(grad_output: ExTensor, axis1: int, axis2: int) -> ExTensor:
    """Gradient of :func:`swapaxes`: exchanged again.   dx = swapaxes(dy, axis1, axis2)

    Example:
        >>> import extensor as et
        >>> et.swapaxes_backward(et.ones((4, 3, 2)), 0, 2).shape
        (2, 3, 4)
    """
    grad = as_floating("swapaxes_backward", "grad_output", grad_output)
    return permute(grad, _swapped("swapaxes_backward", grad.ndim, axis1, axis2))


@differentiable
@takes_complex
def flip(x: ExTensor, axis: Any = None) -> ExTensor:
    """``x`` with the order of its elements reversed along ``axis``.

    Args:
        x: the tensor.
        axis: an axis, a tuple of axes, or None for all.

    Example:
        >>> import extensor as et
        >>> et.flip(et.tensor([[1, 2], [3, 4]]), axis=1).tolist()
        [[2, 1], [4, 3]]
    """
    x = as_tensor("flip", "x", x)
    return kernels.flip(x, as_axes("flip", axis, x.ndim))


@backward_of(flip)
def flip_backward(grad_output: ExTensor, axis: Any = None) -> ExTensor:
    """Gradient of :func:`flip`: reversed again.   dx = flip(dy, axis)

    Example:
        >>> import extensor as et
        >>> et.flip_backward(et.tensor([1.0, 2.0])).tolist()
        [2.0, 1.0]
    """
    grad = as_floating("flip_backward", "grad_output", grad_output)
    return flip(grad, as_axes("flip_backward", axis, grad.ndim))


def _shifts(function: str, shape: Shape, shift: Any, axis: Any) -> dict[int, int]:
    """Axis to shift; a single shift or a single axis goes with all of the others, as in NumPy."""
    shifts = as_ints(function, "shift", shift)
    axes = [as_axis(function, a, len(shape)) for a in as_ints(function, "axis", axis)]
    if len(shifts) != len(axes) and 1 not in (len(shifts), len(axes)):
        raise ValueError(f"[{function}] shift {shift} and axis {axis} differ in length")
    total = dict.fromkeys(axes, 0)
    for i in range(max(len(shifts), len(axes)) if shifts and axes else 0):
        place = axes[i % len(axes)]
        total[place] += shifts[i % len(shifts)]
    return {place: by % shape[place] if shape[place] else 0 for place, by in total.items()}


@differentiable
@takes_complex
def roll(x: ExTensor, shift: Any, axis: Any = None) -> ExTensor:
    """``x`` with its elements moved along ``axis``; what leaves at the end comes in at the front.

    Args:
        x: the tensor.
        shift: by how many places, an int or one per axis.
        axis: an axis or a tuple of axes; None rolls the flattened tensor.

    Example:
        >>> import extensor as et
        >>> et.roll(et.arange(5), 2).tolist()
        [3, 4, 0, 1, 2]
    """
    x = as_tensor("roll", "x", x)
    rolled = x if axis is not None else kernels.reshape(x, (x.size,))
    by = _shifts("roll", rolled.shape, shift, 0 if axis is None else axis)
    return kernels.reshape(kernels.roll(rolled, tuple(by.values()), tuple(by)), x.shape)


@backward_of(roll)
def roll_backward(grad_output: ExTensor, shift: Any, axis: Any = None) -> ExTensor:
    """Gradient of :func:`roll`: moved back.   dx = roll(dy, -shift, axis)

    Example:
        >>> import extensor as et
        >>> et.roll_backward(et.tensor([1.0, 2.0, 3.0]), 1).tolist()
        [2.0, 3.0, 1.0]
    """
    grad = as_floating("roll_backward", "grad_output", grad_output)
    by = _shifts(
        "roll_backward", (grad.size,) if axis is None else grad.shape, shift, 0 if axis is None else axis
    )
    back = tuple(-s for s in by.values())
    return roll(grad, back) if axis is None else roll(grad, back, tuple(by))
