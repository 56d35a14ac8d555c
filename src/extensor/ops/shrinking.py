"""Activations that are used now and then, gated linear units, and their gradients."""

from __future__ import annotations

from typing import Any

from ..checks import as_axis, as_floating, as_grad, as_number, differentiable_input
from ..graph import backward_of, differentiable
from ..kernels.reference import shrinking as kernels
from ..tensor import ExTensor, Shape
from ._reduce_loss import as_positive
from ._unary import floating_unary, unary_backward
from ._wide import computed_wide, forward_wide
from .activation import sigmoid
from .joining import concatenate, split

__all__ = [
    "celu", "celu_backward", "glu", "glu_backward", "hard_shrink", "hard_shrink_backward", "log_sigmoid",
    "log_sigmoid_backward", "soft_shrink", "soft_shrink_backward", "softsign", "softsign_backward", "tanh_shrink",
    "tanh_shrink_backward", "threshold", "threshold_backward",
]  # fmt: skip


def _alpha(function: str, alpha: Any) -> float:
    found = as_number(function, "alpha", alpha)
    if found == 0:
        raise ValueError(f"[{function}] alpha must not be 0")
    return found


@differentiable
def celu(x: ExTensor, alpha: float = 1.0) -> ExTensor:
    """Exponential linear unit with a continuous slope.   y = x if x > 0 else alpha * (exp(x / alpha) - 1)

    Example:
        >>> import extensor as et
        >>> et.celu(et.tensor([-1000.0, 0.0, 2.0]), alpha=0.5).tolist()
        [-0.5, 0.0, 2.0]
    """
    return floating_unary("celu", kernels.celu, x, _alpha("celu", alpha))


@backward_of(celu)
def celu_backward(grad_output: ExTensor, x: ExTensor, alpha: float = 1.0) -> ExTensor:
    """Gradient of :func:`celu`.   dx = dy if x > 0 else dy * exp(x / alpha)

    Example:
        >>> import extensor as et
        >>> et.celu_backward(et.ones(2), et.tensor([0.0, 2.0])).tolist()
        [1.0, 1.0]
    """
    return unary_backward(
        "celu_backward", kernels.celu_backward, grad_output, x, _alpha("celu_backward", alpha)
    )


def _lambd(function: str, lambd: Any) -> float:
    return as_positive(function, "lambd", lambd, zero=True)


@differentiable
def hard_shrink(x: ExTensor, lambd: float = 0.5) -> ExTensor:
    """Small elements become 0.   y = 0 if |x| <= lambd else x

    Example:
        >>> import extensor as et
        >>> et.hard_shrink(et.tensor([-1.0, 0.5, 2.0])).tolist()
        [-1.0, 0.0, 2.0]
    """
    return floating_unary("hard_shrink", kernels.hard_shrink, x, _lambd("hard_shrink", lambd))


@backward_of(hard_shrink)
def hard_shrink_backward(grad_output: ExTensor, x: ExTensor, lambd: float = 0.5) -> ExTensor:
    """Gradient of :func:`hard_shrink`.   dx = dy * [|x| > lambd]

    Example:
        >>> import extensor as et
        >>> et.hard_shrink_backward(et.ones(3), et.tensor([-1.0, 0.5, 2.0])).tolist()
        [1.0, 0.0, 1.0]
    """
    name = "hard_shrink_backward"
    return unary_backward(name, kernels.hard_shrink_backward, grad_output, x, _lambd(name, lambd))


@differentiable
def soft_shrink(x: ExTensor, lambd: float = 0.5) -> ExTensor:
    """Elements come closer to 0 by ``lambd``, small ones reach it.   y = sign(x) * max(|x| - lambd, 0)

    Example:
        >>> import extensor as et
        >>> et.soft_shrink(et.tensor([-1.0, 0.25, 2.0])).tolist()
        [-0.5, 0.0, 1.5]
    """
    return floating_unary("soft_shrink", kernels.soft_shrink, x, _lambd("soft_shrink", lambd))


@backward_of(soft_shrink)
def soft_shrink_backward(grad_output: ExTensor, x: ExTensor, lambd: float = 0.5) -> ExTensor:
    """Gradient of :func:`soft_shrink`.   dx = dy * [|x| > lambd]

    Example:
        >>> import extensor as et
        >>> et.soft_shrink_backward(et.ones(3), et.tensor([-1.0, 0.5, 2.0])).tolist()
        [1.0, 0.0, 1.0]
    """
    name = "soft_shrink_backward"
    return unary_backward(name, kernels.soft_shrink_backward, grad_output, x, _lambd(name, lambd))


@differentiable
def log_sigmoid(x: ExTensor) -> ExTensor:
    """Logarithm of the logistic function, without overflow.   y = -log(1 + exp(-x))

    Example:
        >>> import extensor as et
        >>> et.log_sigmoid(et.tensor([-1000.0, 1000.0])).tolist()
        [-1000.0, 0.0]
    """
    return floating_unary("log_sigmoid", kernels.log_sigmoid, x)


@backward_of(log_sigmoid)
def log_sigmoid_backward(grad_output: ExTensor, x: ExTensor) -> ExTensor:
    """Gradient of :func:`log_sigmoid`.   dx = dy * sigmoid(-x)

    Example:
        >>> import extensor as et
        >>> et.log_sigmoid_backward(et.ones(2), et.tensor([0.0, -1000.0])).tolist()
        [0.5, 1.0]
    """
    return unary_backward("log_sigmoid_backward", kernels.log_sigmoid_backward, grad_output, x)


@differentiable
def softsign(x: ExTensor) -> ExTensor:
    """A slower tanh.   y = x / (1 + |x|)

    Example:
        >>> import extensor as et
        >>> et.softsign(et.tensor([-3.0, 0.0, 1.0])).tolist()
        [-0.75, 0.0, 0.5]
    """
    return floating_unary("softsign", kernels.softsign, x)


@backward_of(softsign)
def softsign_backward(grad_output: ExTensor, x: ExTensor) -> ExTensor:
    """Gradient of :func:`softsign`.   dx = dy / (1 + |x|)**2

    Example:
        >>> import extensor as et
        >>> et.softsign_backward(et.ones(2), et.tensor([0.0, -1.0])).tolist()
        [1.0, 0.25]
    """
    return unary_backward("softsign_backward", kernels.softsign_backward, grad_output, x)


@differentiable
def tanh_shrink(x: ExTensor) -> ExTensor:
    """What tanh takes off.   y = x - tanh(x)

    Example:
        >>> import extensor as et
        >>> et.tanh_shrink(et.tensor([0.0, 100.0])).tolist()
        [0.0, 99.0]
    """
    return floating_unary("tanh_shrink", kernels.tanh_shrink, x)


@backward_of(tanh_shrink)
def tanh_shrink_backward(grad_output: ExTensor, x: ExTensor) -> ExTensor:
    """Gradient of :func:`tanh_shrink`.   dx = dy * tanh(x)**2

    Example:
        >>> import extensor as et
        >>> et.tanh_shrink_backward(et.ones(2), et.tensor([0.0, 100.0])).tolist()
        [0.0, 1.0]
    """
    return unary_backward("tanh_shrink_backward", kernels.tanh_shrink_backward, grad_output, x)


@differentiable
def threshold(x: ExTensor, threshold: float, value: float) -> ExTensor:
    """Elements above a threshold, a constant for the others.   y = x if x > threshold else value

    Example:
        >>> import extensor as et
        >>> et.threshold(et.tensor([-1.0, 0.5, 2.0]), 0.5, 7.0).tolist()
        [7.0, 7.0, 2.0]
    """
    limit, other = as_number("threshold", "threshold", threshold), as_number("threshold", "value", value)
    return floating_unary("threshold", kernels.threshold, x, limit, other)


@backward_of(threshold)
def threshold_backward(grad_output: ExTensor, x: ExTensor, threshold: float) -> ExTensor:
    """Gradient of :func:`threshold`.   dx = dy * [x > threshold]

    Example:
        >>> import extensor as et
        >>> et.threshold_backward(et.ones(3), et.tensor([-1.0, 0.5, 2.0]), 0.5).tolist()
        [0.0, 0.0, 1.0]
    """
    limit = as_number("threshold_backward", "threshold", threshold)
    return unary_backward("threshold_backward", kernels.threshold_backward, grad_output, x, limit)


def _halves(function: str, shape: Shape, axis: Any) -> int:
    """The axis of a gated unit, whose length must be even."""
    place = as_axis(function, axis, len(shape))
    if shape[place] % 2:
        raise ValueError(f"[{function}] axis {axis} of x must have an even length to be split (x: {shape})")
    return place


@differentiable
@forward_wide
def glu(x: ExTensor, axis: int = -1) -> ExTensor:
    """Gated linear unit: the first half of ``axis``, gated by the second.   y = a * sigmoid(b),  x = [a, b]

    Args:
        x: a floating tensor.
        axis: the axis that holds both halves; its length is even.

    Example:
        >>> import extensor as et
        >>> et.glu(et.tensor([2.0, 4.0, 0.0, 0.0])).tolist()
        [1.0, 2.0]
    """
    x = as_floating("glu", "x", x)
    a, b = split(x, 2, _halves("glu", x.shape, axis))
    return a * sigmoid(b)


@backward_of(glu)
@computed_wide
def glu_backward(grad_output: ExTensor, x: ExTensor, axis: int = -1) -> ExTensor:
    """Gradient of :func:`glu`.   da = dy * s,  db = dy * a * s * (1 - s),  s = sigmoid(b)

    Example:
        >>> import extensor as et
        >>> et.glu_backward(et.ones(1), et.tensor([2.0, 0.0])).tolist()
        [0.5, 0.5]
    """
    x = differentiable_input("glu_backward", "x", x)
    place = _halves("glu_backward", x.shape, axis)
    half = (*x.shape[:place], x.shape[place] // 2, *x.shape[place + 1 :])
    grad = as_grad("glu_backward", grad_output, half)
    a, b = split(x, 2, place)
    s = sigmoid(b)
    gated = grad * s
    return concatenate([gated, gated * a * (1 - s)], place)
