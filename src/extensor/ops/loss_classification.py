"""Losses of classifiers: predictions against labels. The gradient is that of the predictions; labels have none."""

from __future__ import annotations

from typing import Any

from ..checks import as_axis, as_floating, as_grad, as_int, as_number, as_tensor
from ..dtypes import INTEGER
from ..graph import backward_of, differentiable
from ..kernels import first_outside
from ..kernels.reference import loss_classification as kernels
from ..tensor import ExTensor
from ._reduce_loss import (
    as_positive,
    as_reduction,
    as_signs,
    as_weight,
    check_probabilities,
    loss_shape,
    matched,
    refuse,
)
from .casting import cast_like

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_backward",
    "binary_cross_entropy_with_logits", "binary_cross_entropy_with_logits_backward",
    "cross_entropy", "cross_entropy_backward", "focal", "focal_backward", "hinge", "hinge_backward",
]  # fmt: skip


def _probabilities(function: str, predictions: Any, targets: Any, weight: Any) -> tuple[Any, Any, Any]:
    p, t = matched(function, predictions=predictions, targets=targets)
    check_probabilities(function, predictions=p, targets=t)
    return p, t, as_weight(function, "weight", weight, p.shape)


@differentiable
def binary_cross_entropy(
    predictions: ExTensor, targets: ExTensor, weight: ExTensor | None = None, reduction: str = "mean"
) -> ExTensor:
    """Cross-entropy of probabilities with two classes.   l = -w (t log p + (1 - t) log(1 - p))

    The logarithms are held at -100 or above, so that a loss is finite. From scores, use
    :func:`binary_cross_entropy_with_logits`: it is more accurate, and its gradient does not explode.

    Args:
        predictions: probabilities, in [0, 1].
        targets: labels of the same shape, in [0, 1].
        weight: a factor per element, or anything that broadcasts to the predictions. The mean still divides by N.
        reduction: ``"mean"`` or ``"sum"`` over all elements, or ``"none"``.

    Example:
        >>> import extensor as et
        >>> round(et.binary_cross_entropy(et.tensor([0.5, 0.25]), et.tensor([1.0, 0.0])).item(), 4)
        0.4904
    """
    p, t, w = _probabilities("binary_cross_entropy", predictions, targets, weight)
    return kernels.binary_cross_entropy(p, t, w, as_reduction("binary_cross_entropy", reduction))


@backward_of(binary_cross_entropy)
def binary_cross_entropy_backward(
    grad_output: ExTensor,
    predictions: ExTensor,
    targets: ExTensor,
    weight: ExTensor | None = None,
    reduction: str = "mean",
) -> ExTensor:
    """Gradient of :func:`binary_cross_entropy`.   dp = dl * w (p - t) / max(p (1 - p), 1e-12),  dl = dy / N if averaged

    Example:
        >>> import extensor as et
        >>> et.binary_cross_entropy_backward(et.tensor(1.0), et.tensor([0.5]), et.tensor([1.0])).tolist()
        [-2.0]
    """
    p, t, w = _probabilities("binary_cross_entropy_backward", predictions, targets, weight)
    reduction = as_reduction("binary_cross_entropy_backward", reduction)
    grad = as_grad("binary_cross_entropy_backward", grad_output, loss_shape(p.shape, reduction))
    return cast_like(kernels.binary_cross_entropy_backward(grad, p, t, w, reduction), p)


def _logits(
    function: str, logits: Any, targets: Any, weight: Any, pos_weight: Any
) -> tuple[Any, Any, Any, Any]:
    x, t = matched(function, logits=logits, targets=targets)
    w = as_weight(function, "weight", weight, x.shape)
    return x, t, w, as_weight(function, "pos_weight", pos_weight, x.shape)


@differentiable
def binary_cross_entropy_with_logits(
    logits: ExTensor,
    targets: ExTensor,
    weight: ExTensor | None = None,
    pos_weight: ExTensor | None = None,
    reduction: str = "mean",
) -> ExTensor:
    """Binary cross-entropy of ``sigmoid(x)``.   l = w (v t softplus(-x) + (1 - t) softplus(x))

    Args:
        logits: scores, any real number.
        targets: labels of the same shape, 0 and 1 or between.
        weight: w, a factor per element; broadcasts to the logits. The mean still divides by N.
        pos_weight: v, a factor for the positive class; broadcasts to the logits, usually one number per column.
        reduction: ``"mean"`` or ``"sum"`` over all elements, or ``"none"``.

    Example:
        >>> import extensor as et
        >>> loss = et.binary_cross_entropy_with_logits(et.tensor([0.0, 100.0]), et.tensor([1.0, 0.0]), reduction="none")
        >>> [round(x, 4) for x in loss.tolist()]
        [0.6931, 100.0]
    """
    x, t, w, v = _logits("binary_cross_entropy_with_logits", logits, targets, weight, pos_weight)
    reduction = as_reduction("binary_cross_entropy_with_logits", reduction)
    return kernels.binary_cross_entropy_with_logits(x, t, w, v, reduction)


@backward_of(binary_cross_entropy_with_logits)
def binary_cross_entropy_with_logits_backward(
    grad_output: ExTensor,
    logits: ExTensor,
    targets: ExTensor,
    weight: ExTensor | None = None,
    pos_weight: ExTensor | None = None,
    reduction: str = "mean",
) -> ExTensor:
    """Gradient of :func:`binary_cross_entropy_with_logits`; without weights it is ``sigmoid(x) - t``.

    dx = dl * w ((1 - t) sigmoid(x) - v t sigmoid(-x)),  dl = dy / N if averaged

    Example:
        >>> import extensor as et
        >>> et.binary_cross_entropy_with_logits_backward(et.tensor(1.0), et.tensor([0.0]), et.tensor([1.0])).tolist()
        [-0.5]
    """
    name = "binary_cross_entropy_with_logits_backward"
    x, t, w, v = _logits(name, logits, targets, weight, pos_weight)
    reduction = as_reduction(name, reduction)
    grad = as_grad(name, grad_output, loss_shape(x.shape, reduction))
    grad_x = kernels.binary_cross_entropy_with_logits_backward(grad, x, t, w, v, reduction)
    return cast_like(grad_x, x)


def _class_inputs(
    function: str, logits: Any, targets: Any, axis: Any, label_smoothing: Any, weight: Any, ignore_index: Any
) -> tuple[Any, ...]:
    """The arguments of the cross-entropy kernels, but for the reduction."""
    x, t = as_floating(function, "logits", logits), as_tensor(function, "targets", targets)
    axis = as_axis(function, axis, x.ndim)
    classes = x.shape[axis]
    smoothing = as_number(function, "label_smoothing", label_smoothing)
    if not 0 <= smoothing <= 1:
        raise ValueError(f"[{function}] label_smoothing must lie in [0, 1], got {smoothing}")
    if t.dtype in INTEGER:
        ignored = None if ignore_index is None else as_int(function, "ignore_index", ignore_index)
        _check_labels(function, x, t, axis, ignored)
    else:
        ignored = None
        _check_distributions(function, x, as_floating(function, "targets", t), axis, ignore_index)
    if weight is not None:
        weight = as_floating(function, "weight", weight)
        if weight.shape != (classes,):
            raise ValueError(
                f"[{function}] weight must have one number per class, shape {(classes,)}, got {weight.shape} "
                f"(logits: {x.shape}, axis {axis})"
            )
    return x, t, axis, smoothing, weight, ignored


def _check_labels(function: str, x: ExTensor, t: ExTensor, axis: int, ignore_index: int | None) -> None:
    if t.shape != x.shape[:axis] + x.shape[axis + 1 :]:
        raise ValueError(
            f"[{function}] integer targets are labels and have the shape of logits without axis {axis} "
            f"(logits: {x.shape}, targets: {t.shape}); distributions must have a floating dtype"
        )
    last = x.shape[axis] - 1
    refuse(function, "targets", t, first_outside(t, 0, last, ignore_index), f"be labels from 0 to {last}")


def _check_distributions(function: str, x: ExTensor, t: ExTensor, axis: int, ignore_index: Any) -> None:
    if t.shape != x.shape:
        raise ValueError(
            f"[{function}] floating targets are distributions and have the shape of logits "
            f"(logits: {x.shape}, targets: {t.shape}); labels must have an integer dtype"
        )
    if ignore_index is not None:
        raise ValueError(f"[{function}] ignore_index is for integer labels, but targets has dtype {t.dtype}")


@differentiable
def cross_entropy(
    logits: ExTensor,
    targets: ExTensor,
    axis: int = -1,
    label_smoothing: float = 0.0,
    weight: ExTensor | None = None,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> ExTensor:
    """Cross-entropy of ``softmax(x)`` along ``axis`` with labels or distributions.   l = -sum_c w_c t_c log_softmax(x)_c

    A label stands for the distribution that is 1 there and 0 elsewhere. The mean over labels divides by the sum of
    their weights w (their number, without weights) and leaves the ignored out; it is nan if all are ignored. The mean
    over distributions divides by the number of rows.

    Args:
        logits: scores, any real numbers.
        targets: integer labels, of the shape of ``logits`` without ``axis``; or distributions, floating, of the
            shape of ``logits``.
        axis: the axis of the classes.
        label_smoothing: s in [0, 1]; t becomes (1 - s) t + s / C for C classes.
        weight: w, one number per class.
        ignore_index: rows with this label have the loss 0 and no gradient.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss per row.

    Example:
        >>> import extensor as et
        >>> logits = et.tensor([[2.0, 0.0], [0.0, 0.0]])
        >>> [round(x, 4) for x in et.cross_entropy(logits, et.tensor([0, 1]), reduction="none").tolist()]
        [0.1269, 0.6931]
    """
    inputs = _class_inputs("cross_entropy", logits, targets, axis, label_smoothing, weight, ignore_index)
    return kernels.cross_entropy(*inputs, as_reduction("cross_entropy", reduction))


@backward_of(cross_entropy)
def cross_entropy_backward(
    grad_output: ExTensor,
    logits: ExTensor,
    targets: ExTensor,
    axis: int = -1,
    label_smoothing: float = 0.0,
    weight: ExTensor | None = None,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> ExTensor:
    """Gradient of :func:`cross_entropy`.   dx = dl * (softmax(x) * sum_c T_c - T),  T = w t, smoothed; 0 in ignored rows

    ``dl`` is the gradient that arrives at a row: ``dy`` divided by what the mean divides by.

    Args:
        grad_output: the gradient of the loss, of the loss's shape.
        logits, targets, axis, label_smoothing, weight, ignore_index, reduction: as in the forward.

    Example:
        >>> import extensor as et
        >>> et.cross_entropy_backward(et.tensor(1.0), et.tensor([[0.0, 0.0]]), et.tensor([1])).tolist()
        [[0.5, -0.5]]
    """
    function = "cross_entropy_backward"
    inputs = _class_inputs(function, logits, targets, axis, label_smoothing, weight, ignore_index)
    x, axis, reduction = inputs[0], inputs[2], as_reduction(function, reduction)
    grad = as_grad(function, grad_output, loss_shape(x.shape[:axis] + x.shape[axis + 1 :], reduction))
    return cast_like(kernels.cross_entropy_backward(grad, *inputs, reduction), x)


def _focal_inputs(function: str, logits: Any, targets: Any, alpha: Any, gamma: Any) -> tuple[Any, ...]:
    x, t = matched(function, logits=logits, targets=targets)
    check_probabilities(function, targets=t)
    balance = as_number(function, "alpha", alpha)
    if not (0 <= balance <= 1 or balance == -1):
        raise ValueError(f"[{function}] alpha must lie in [0, 1], or be -1 for no balance, got {balance}")
    return x, t, None if balance == -1 else balance, as_positive(function, "gamma", gamma, zero=True)


@differentiable
def focal(
    logits: ExTensor, targets: ExTensor, alpha: float = 0.25, gamma: float = 2.0, reduction: str = "mean"
) -> ExTensor:
    """Binary cross-entropy of ``sigmoid(x)`` that looks at hard examples.   l = a_t (1 - p_t)**gamma (-log p_t)

    p_t = s t + (1 - s) (1 - t),  s = sigmoid(x),  a_t = alpha t + (1 - alpha) (1 - t).
    For labels between 0 and 1, ``-log p_t`` is the cross-entropy ``-t log s - (1 - t) log(1 - s)``.

    Args:
        logits: scores, any real number.
        targets: labels of the same shape, in [0, 1].
        alpha: the share of the positive class, in [0, 1]; -1 is no balance, a_t = 1.
        gamma: how strongly easy examples are discounted, 0 or more.
        reduction: ``"mean"`` or ``"sum"`` over all elements, or ``"none"``.

    Example:
        >>> import extensor as et
        >>> loss = et.focal(et.tensor([0.0, 3.0]), et.tensor([1.0, 1.0]), reduction="none")
        >>> [round(x, 5) for x in loss.tolist()]
        [0.04332, 3e-05]
    """
    return kernels.focal(
        *_focal_inputs("focal", logits, targets, alpha, gamma), as_reduction("focal", reduction)
    )


@backward_of(focal)
def focal_backward(
    grad_output: ExTensor,
    logits: ExTensor,
    targets: ExTensor,
    alpha: float = 0.25,
    gamma: float = 2.0,
    reduction: str = "mean",
) -> ExTensor:
    """Gradient of :func:`focal`.   dx = dl * a_t m**gamma (gamma s (1 - s) (1 - 2t) / m * h + s - t)

    m = 1 - p_t,  h = -log p_t,  dl = dy / N if averaged.

    Example:
        >>> import extensor as et
        >>> grad = et.focal_backward(et.tensor(1.0), et.tensor([0.0]), et.tensor([1.0]), alpha=-1, gamma=0)
        >>> grad.tolist()
        [-0.5]
    """
    x, t, balance, gamma = _focal_inputs("focal_backward", logits, targets, alpha, gamma)
    reduction = as_reduction("focal_backward", reduction)
    grad = as_grad("focal_backward", grad_output, loss_shape(x.shape, reduction))
    return cast_like(kernels.focal_backward(grad, x, t, balance, gamma, reduction), x)


def _hinge_inputs(function: str, predictions: Any, targets: Any) -> tuple[ExTensor, ExTensor]:
    p = as_floating(function, "predictions", predictions)
    return p, as_signs(function, targets, p.shape, p)


@differentiable
def hinge(predictions: ExTensor, targets: ExTensor, reduction: str = "mean") -> ExTensor:
    """How far a score falls short of the margin 1.   l = max(0, 1 - t p)

    Args:
        predictions: scores, any real number.
        targets: labels -1 and 1 of the same shape; integers will do.
        reduction: ``"mean"`` or ``"sum"`` over all elements, or ``"none"``.

    Example:
        >>> import extensor as et
        >>> et.hinge(et.tensor([0.5, 2.0]), et.tensor([1, 1]), reduction="none").tolist()
        [0.5, 0.0]
    """
    return kernels.hinge(*_hinge_inputs("hinge", predictions, targets), as_reduction("hinge", reduction))


@backward_of(hinge)
def hinge_backward(
    grad_output: ExTensor, predictions: ExTensor, targets: ExTensor, reduction: str = "mean"
) -> ExTensor:
    """Gradient of :func:`hinge`, 0 on the margin.   dp = dl * -t if t p < 1 else 0,  dl = dy / N if averaged

    Example:
        >>> import extensor as et
        >>> et.hinge_backward(et.tensor([1.0, 1.0]), et.tensor([0.5, 1.0]), et.tensor([1, 1]), reduction="none").tolist()
        [-1.0, 0.0]
    """
    p, t = _hinge_inputs("hinge_backward", predictions, targets)
    reduction = as_reduction("hinge_backward", reduction)
    grad = as_grad("hinge_backward", grad_output, loss_shape(p.shape, reduction))
    return cast_like(kernels.hinge_backward(grad, p, t, reduction), p)
