"""The affine map of a dense layer and its gradient."""

from __future__ import annotations

from typing import NamedTuple

from .. import kernels
from ..checks import as_floating, as_grad, check_needs, differentiable_input
from ..graph import backward_of, differentiable
from ..tensor import ExTensor, Shape
from .casting import cast_like, in_one_dtype

__all__ = ["LinearGradients", "linear", "linear_backward"]

ALL = (True, True, True)


class LinearGradients(NamedTuple):
    """The gradients of :func:`linear`; None where ``needs`` says that one is not wanted."""

    grad_x: ExTensor | None
    grad_weight: ExTensor | None
    grad_bias: ExTensor | None


def _check_shapes(function: str, x: Shape, weight: Shape) -> None:
    if len(weight) != 2:
        raise ValueError(f"[{function}] weight must have the 2 axes (out, in), got shape {weight}")
    if not x:
        raise ValueError(
            f"[{function}] x is 0-d; its last axis must have the {weight[1]} inputs of weight {weight}"
        )
    if x[-1] != weight[1]:
        raise ValueError(
            f"[{function}] x has {x[-1]} features but weight takes {weight[1]} (x: {x}, weight: {weight})"
        )


@differentiable
def linear(x: ExTensor, weight: ExTensor, bias: ExTensor | None = None) -> ExTensor:
    """Affine map of the last axis.   y = x @ weight.T + bias

    Args:
        x: inputs of shape (..., in).
        weight: shape (out, in).
        bias: shape (out,), or None.

    Returns:
        The outputs, of shape (..., out).

    Example:
        >>> import extensor as et
        >>> et.linear(et.tensor([1.0, 2.0]), et.tensor([[1.0, 0.0], [1.0, 1.0]]), et.tensor([0.5, 0.5])).tolist()
        [1.5, 3.5]
    """
    x, weight = as_floating("linear", "x", x), as_floating("linear", "weight", weight)
    _check_shapes("linear", x.shape, weight.shape)
    if bias is not None:
        bias = as_floating("linear", "bias", bias)
        if bias.shape != weight.shape[:1]:
            raise ValueError(
                f"[linear] bias has shape {bias.shape} but weight {weight.shape} has {weight.shape[0]} outputs; "
                f"bias must have shape ({weight.shape[0]},)"
            )
    return kernels.linear(*in_one_dtype(x, weight, bias))


@backward_of(linear, wrt=("x", "weight", "bias"))
def linear_backward(
    grad_output: ExTensor, x: ExTensor, weight: ExTensor, *, needs: tuple[bool, bool, bool] = ALL
) -> LinearGradients:
    """Gradient of :func:`linear`.   dx = dy @ weight,  dweight = dy.T @ x,  dbias = sum of dy over all but the last axis

    Args:
        grad_output: the gradient of the outputs, of shape (..., out).
        x, weight: the inputs and the weight. The bias is not asked for; its gradient is returned all the same.
        needs: which of the three gradients are wanted; the others are None.

    Example:
        >>> import extensor as et
        >>> grads = et.linear_backward(et.ones((4, 2)), et.ones((4, 3)), et.ones((2, 3)))
        >>> grads.grad_weight.tolist(), grads.grad_bias.tolist()
        ([[4.0, 4.0, 4.0], [4.0, 4.0, 4.0]], [4.0, 4.0])
    """
    check_needs("linear_backward", needs, 3)
    x = differentiable_input("linear_backward", "x", x)
    weight = differentiable_input("linear_backward", "weight", weight)
    _check_shapes("linear_backward", x.shape, weight.shape)
    grad = as_grad("linear_backward", grad_output, (*x.shape[:-1], weight.shape[0]))
    grad_x, grad_weight, grad_bias = kernels.linear_backward(*in_one_dtype(grad, x, weight), needs)
    return LinearGradients(cast_like(grad_x, x), cast_like(grad_weight, weight), cast_like(grad_bias, grad))
