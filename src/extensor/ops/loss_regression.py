"""Losses of the difference between predictions and targets.

They depend on ``d = predictions - targets`` alone, so the gradient of the targets is minus that of the
predictions: a target that requires a gradient gets it from the same backward function.
"""

from __future__ import annotations

from typing import Any

from ..checks import as_grad
from ..graph import backward_of, differentiable
from ..kernels import Kernel
from ..kernels.reference import loss_regression as kernels
from ..tensor import ExTensor
from ._reduce_loss import as_positive, as_reduction, loss_shape, matched
from .casting import cast_like

__all__ = [
    "mean_squared_error", "mean_squared_error_backward", "mean_absolute_error", "mean_absolute_error_backward",
    "smooth_l1", "smooth_l1_backward", "huber", "huber_backward",
]  # fmt: skip


def _loss(
    function: str, kernel: Kernel, predictions: Any, targets: Any, reduction: Any, *options: float
) -> ExTensor:
    p, t = matched(function, predictions=predictions, targets=targets)
    return kernel(p, t, *options, as_reduction(function, reduction))


def _loss_backward(
    function: str,
    kernel: Kernel,
    grad_output: Any,
    predictions: Any,
    targets: Any,
    reduction: Any,
    *options: float,
) -> Any:
    p, t = matched(function, predictions=predictions, targets=targets)
    reduction = as_reduction(function, reduction)
    grad = as_grad(function, grad_output, loss_shape(p.shape, reduction))
    return cast_like(kernel(grad, p, t, *options, reduction), p)


@differentiable
def mean_squared_error(predictions: ExTensor, targets: ExTensor, reduction: str = "mean") -> ExTensor:
    """Squared error.   l = (p - t)**2

    Args:
        predictions, targets: floating tensors of the same shape.
        reduction: ``"mean"`` or ``"sum"`` over all elements, or ``"none"``.

    Example:
        >>> import extensor as et
        >>> et.mean_squared_error(et.tensor([1.0, 2.0]), et.tensor([1.0, 4.0])).item()
        2.0
    """
    return _loss("mean_squared_error", kernels.mean_squared_error, predictions, targets, reduction)


@backward_of(mean_squared_error, mirrored="targets")
def mean_squared_error_backward(
    grad_output: ExTensor, predictions: ExTensor, targets: ExTensor, reduction: str = "mean"
) -> ExTensor:
    """Gradient of :func:`mean_squared_error`.   dp = dl * 2 (p - t),  dl = dy / N if averaged

    Args:
        grad_output: the gradient of the loss, of the loss's shape.
        predictions, targets: as in the forward.
        reduction: as in the forward.

    Example:
        >>> import extensor as et
        >>> et.mean_squared_error_backward(et.tensor(1.0), et.tensor([1.0, 2.0]), et.tensor([1.0, 4.0])).tolist()
        [0.0, -2.0]
    """
    kernel = kernels.mean_squared_error_backward
    return _loss_backward("mean_squared_error_backward", kernel, grad_output, predictions, targets, reduction)


@differentiable
def mean_absolute_error(predictions: ExTensor, targets: ExTensor, reduction: str = "mean") -> ExTensor:
    """Absolute error.   l = abs(p - t)

    Args:
        predictions, targets: floating tensors of the same shape.
        reduction: ``"mean"`` or ``"sum"`` over all elements, or ``"none"``.

    Example:
        >>> import extensor as et
        >>> et.mean_absolute_error(et.tensor([1.0, 2.0]), et.tensor([1.0, 4.0])).item()
        1.0
    """
    return _loss("mean_absolute_error", kernels.mean_absolute_error, predictions, targets, reduction)


@backward_of(mean_absolute_error, mirrored="targets")
def mean_absolute_error_backward(
    grad_output: ExTensor, predictions: ExTensor, targets: ExTensor, reduction: str = "mean"
) -> ExTensor:
    """Gradient of :func:`mean_absolute_error`, 0 where p == t.   dp = dl * sign(p - t),  dl = dy / N if averaged

    Example:
        >>> import extensor as et
        >>> et.mean_absolute_error_backward(et.tensor(1.0), et.tensor([1.0, 2.0]), et.tensor([1.0, 4.0])).tolist()
        [0.0, -0.5]
    """
    kernel = kernels.mean_absolute_error_backward
    return _loss_backward(
        "mean_absolute_error_backward", kernel, grad_output, predictions, targets, reduction
    )


@differentiable
def smooth_l1(
    predictions: ExTensor, targets: ExTensor, beta: float = 1.0, reduction: str = "mean"
) -> ExTensor:
    """Absolute error, rounded off near zero.   l = (p - t)**2 / (2 beta) if abs(p - t) < beta else abs(p - t) - beta/2

    It is ``huber / beta`` for ``delta = beta``.

    Args:
        predictions, targets: floating tensors of the same shape.
        beta: where the parabola ends; 0 is :func:`mean_absolute_error`.
        reduction: ``"mean"`` or ``"sum"`` over all elements, or ``"none"``.

    Example:
        >>> import extensor as et
        >>> et.smooth_l1(et.tensor([1.0, 2.0]), et.tensor([1.5, 4.0]), reduction="none").tolist()
        [0.125, 1.5]
    """
    beta = as_positive("smooth_l1", "beta", beta, zero=True)
    return _loss("smooth_l1", kernels.smooth_l1, predictions, targets, reduction, beta)


@backward_of(smooth_l1, mirrored="targets")
def smooth_l1_backward(
    grad_output: ExTensor,
    predictions: ExTensor,
    targets: ExTensor,
    beta: float = 1.0,
    reduction: str = "mean",
) -> ExTensor:
    """Gradient of :func:`smooth_l1`.   dp = dl * clip((p - t) / beta, -1, 1),  dl = dy / N if averaged

    Example:
        >>> import extensor as et
        >>> et.smooth_l1_backward(et.tensor(1.0), et.tensor([1.0, 2.0]), et.tensor([1.5, 4.0]), reduction="sum").tolist()
        [-0.5, -1.0]
    """
    beta = as_positive("smooth_l1_backward", "beta", beta, zero=True)
    kernel = kernels.smooth_l1_backward
    return _loss_backward("smooth_l1_backward", kernel, grad_output, predictions, targets, reduction, beta)


@differentiable
def huber(predictions: ExTensor, targets: ExTensor, delta: float = 1.0, reduction: str = "mean") -> ExTensor:
    """Squared error near zero, absolute error beyond ``delta``.

    l = (p - t)**2 / 2 if abs(p - t) <= delta else delta (abs(p - t) - delta/2)

    Args:
        predictions, targets: floating tensors of the same shape.
        delta: where the parabola ends, above 0.
        reduction: ``"mean"`` or ``"sum"`` over all elements, or ``"none"``.

    Example:
        >>> import extensor as et
        >>> et.huber(et.tensor([1.0, 2.0]), et.tensor([1.5, 4.0]), delta=0.5, reduction="none").tolist()
        [0.125, 0.875]
    """
    delta = as_positive("huber", "delta", delta)
    return _loss("huber", kernels.huber, predictions, targets, reduction, delta)


@backward_of(huber, mirrored="targets")
def huber_backward(
    grad_output: ExTensor,
    predictions: ExTensor,
    targets: ExTensor,
    delta: float = 1.0,
    reduction: str = "mean",
) -> ExTensor:
    """Gradient of :func:`huber`.   dp = dl * clip(p - t, -delta, delta),  dl = dy / N if averaged

    Example:
        >>> import extensor as et
        >>> et.huber_backward(et.tensor(1.0), et.tensor([1.0, 2.0]), et.tensor([1.5, 4.0]), reduction="sum").tolist()
        [-0.5, -1.0]
    """
    delta = as_positive("huber_backward", "delta", delta)
    kernel = kernels.huber_backward
    return _loss_backward("huber_backward", kernel, grad_output, predictions, targets, reduction, delta)
