"""Softmax and its logarithm, each with its gradient. A 0-d tensor counts as a row of one element."""

from __future__ import annotations

from typing import Any

from ..checks import as_axis, as_floating, differentiable_input
from ..graph import backward_of, differentiable
from ..kernels.reference import softmax as kernels
from ..tensor import ExTensor
from ._unary import unary_backward_from_output

__all__ = ["log_softmax", "log_softmax_backward", "softmax", "softmax_backward"]


def _row_axis(function: str, axis: Any, x: ExTensor) -> int:
    return as_axis(function, axis, max(x.ndim, 1))


@differentiable
def softmax(x: ExTensor, axis: int = -1) -> ExTensor:
    """Probabilities along ``axis``.   y_i = exp(x_i - m) / sum_j exp(x_j - m),  m = max_j x_j

    An entry of -inf has the probability 0; a row that is all -inf is nan.

    Args:
        x: the logits, any shape.
        axis: the axis along which the probabilities sum to 1; the last one by default.

    Example:
        >>> import extensor as et
        >>> et.softmax(et.tensor([1000.0, 1000.0])).tolist()
        [0.5, 0.5]
    """
    x = as_floating("softmax", "x", x)
    return kernels.softmax(x, _row_axis("softmax", axis, x))


@backward_of(softmax, from_output=True)
def softmax_backward(grad_output: ExTensor, output: ExTensor, axis: int = -1) -> ExTensor:
    """Gradient of :func:`softmax`, from its output.   dx_i = y_i * (dy_i - sum_j dy_j y_j)

    Args:
        grad_output: the gradient of the probabilities.
        output: the probabilities y.
        axis: the axis of the forward call.

    Example:
        >>> import extensor as et
        >>> et.softmax_backward(et.tensor([1.0, 0.0]), et.softmax(et.tensor([0.0, 0.0]))).tolist()
        [0.25, -0.25]
    """
    output = differentiable_input("softmax_backward", "output", output)
    axis = _row_axis("softmax_backward", axis, output)
    return unary_backward_from_output("softmax_backward", kernels.softmax_backward, grad_output, output, axis)


@differentiable
def log_softmax(x: ExTensor, axis: int = -1) -> ExTensor:
    """Logarithm of :func:`softmax`, exact where the probability underflows.   y_i = x_i - m - log(sum_j exp(x_j - m))

    Args:
        x: the logits, any shape.
        axis: the axis along which the probabilities sum to 1; the last one by default.

    Example:
        >>> import extensor as et
        >>> et.log_softmax(et.tensor([0.0, 1000.0])).tolist()
        [-1000.0, 0.0]
    """
    x = as_floating("log_softmax", "x", x)
    return kernels.log_softmax(x, _row_axis("log_softmax", axis, x))


@backward_of(log_softmax, from_output=True)
def log_softmax_backward(grad_output: ExTensor, output: ExTensor, axis: int = -1) -> ExTensor:
    """Gradient of :func:`log_softmax`, from its output.   dx_i = dy_i - exp(y_i) * sum_j dy_j

    Args:
        grad_output: the gradient of the log-probabilities.
        output: the log-probabilities y.
        axis: the axis of the forward call.

    Example:
        >>> import extensor as et
        >>> et.log_softmax_backward(et.tensor([1.0, 0.0]), et.log_softmax(et.tensor([0.0, 0.0]))).tolist()
        [0.5, -0.5]
    """
    output = differentiable_input("log_softmax_backward", "output", output)
    axis = _row_axis("log_softmax_backward", axis, output)
    return unary_backward_from_output(
        "log_softmax_backward", kernels.log_softmax_backward, grad_output, output, axis
    )
