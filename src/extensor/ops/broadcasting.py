"""NumPy's broadcasting rules, and their adjoint."""

from __future__ import annotations

from typing import Any

from .. import kernels
from ..checks import as_floating, as_shape, as_tensor, broadcast_shape, shape_of, takes_complex
from ..graph import backward_of, differentiable
from ..tensor import ExTensor, Shape, TensorOrShape
from .casting import cast_like

__all__ = [
    "are_shapes_broadcastable", "broadcast_shapes", "broadcast_to", "broadcast_to_backward",
    "sum_to_shape", "sum_to_shape_backward",
]  # fmt: skip


def broadcast_shapes(*shapes: Any) -> Shape:
    """The shape that ``shapes`` broadcast to, aligned on the right.

    Example:
        >>> import extensor as et
        >>> et.broadcast_shapes((3, 1), (4,))
        (3, 4)
    """
    checked = [as_shape("broadcast_shapes", "shapes", s) for s in shapes]
    try:
        return broadcast_shape(*checked)
    except ValueError:
        raise ValueError(
            f"[broadcast_shapes] shapes do not broadcast: {' and '.join(map(str, checked))}"
        ) from None


def are_shapes_broadcastable(*shapes: Any) -> bool:
    """Whether ``shapes`` broadcast together.

    Example:
        >>> import extensor as et
        >>> et.are_shapes_broadcastable((3, 2), (4,))
        False
    """
    checked = [as_shape("are_shapes_broadcastable", "shapes", s) for s in shapes]
    try:
        broadcast_shape(*checked)
    except ValueError:
        return False
    return True


def _check_target(function: str, shape: Shape, target: Shape) -> None:
    tail = shape[len(shape) - len(target) :] if len(target) <= len(shape) else None
    if tail is None or any(t not in (n, 1) for n, t in zip(tail, target)):
        raise ValueError(
            f"[{function}] {target} does not broadcast to {shape}, so nothing of that shape sums to it"
        )


@differentiable
@takes_complex
def sum_to_shape(grad: ExTensor, shape: TensorOrShape) -> ExTensor:
    """The adjoint of broadcasting: sum ``grad`` down to ``shape``.

    First the extra leading axes are summed, then the axes that were 1.

    Args:
        grad: a tensor of a shape that ``shape`` broadcasts to.
        shape: the shape before broadcasting (or a tensor of that shape).

    Example:
        >>> import extensor as et
        >>> et.sum_to_shape(et.ones((2, 3)), (3,)).tolist()
        [2.0, 2.0, 2.0]
    """
    grad = as_tensor("sum_to_shape", "grad", grad)
    target = shape.shape if isinstance(shape, ExTensor) else as_shape("sum_to_shape", "shape", shape)
    if grad.shape == target:
        return grad
    _check_target("sum_to_shape", grad.shape, target)
    return kernels.sum_to_shape(grad, target)


@backward_of(sum_to_shape, keeps_shape=("grad",))
def sum_to_shape_backward(grad_output: ExTensor, grad: TensorOrShape) -> ExTensor:
    """Gradient of :func:`sum_to_shape`: broadcast back.   dx = broadcast_to(dy, x.shape)

    Example:
        >>> import extensor as et
        >>> et.sum_to_shape_backward(et.tensor([1.0, 2.0]), (2, 2)).tolist()
        [[1.0, 2.0], [1.0, 2.0]]
    """
    shape = shape_of("sum_to_shape_backward", "grad", grad)
    grad_output = as_floating("sum_to_shape_backward", "grad_output", grad_output)
    _check_target("sum_to_shape_backward", shape, grad_output.shape)
    return cast_like(broadcast_to(grad_output, shape), grad)


@differentiable
@takes_complex
def broadcast_to(x: ExTensor, shape: Any) -> ExTensor:
    """``x`` broadcast to ``shape``; a view, nothing is copied.

    Example:
        >>> import extensor as et
        >>> et.broadcast_to(et.tensor([1.0, 2.0]), (2, 2)).tolist()
        [[1.0, 2.0], [1.0, 2.0]]
    """
    x = as_tensor("broadcast_to", "x", x)
    target = as_shape("broadcast_to", "shape", shape)
    try:
        return kernels.broadcast_to(x, target)
    except ValueError:
        raise ValueError(f"[broadcast_to] x of shape {x.shape} does not broadcast to {target}") from None


@backward_of(broadcast_to, keeps_shape=("x",))
def broadcast_to_backward(grad_output: ExTensor, x: TensorOrShape) -> ExTensor:
    """Gradient of :func:`broadcast_to`: sum over what was repeated.   dx = sum_to_shape(dy, x.shape)

    Example:
        >>> import extensor as et
        >>> et.broadcast_to_backward(et.ones((3, 2)), (2,)).tolist()
        [3.0, 3.0]
    """
    shape = shape_of("broadcast_to_backward", "x", x)
    grad_output = as_floating("broadcast_to_backward", "grad_output", grad_output)
    _check_target("broadcast_to_backward", grad_output.shape, shape)
    return cast_like(sum_to_shape(grad_output, shape), x)
