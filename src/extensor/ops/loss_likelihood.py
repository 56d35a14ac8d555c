"""Negative log-likelihoods: of classes, of the normal and of the Poisson distribution."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from .. import kernels
from ..checks import as_axis, as_bool, as_floating, as_grad, as_int, as_integers, check_needs
from ..graph import backward_of, differentiable
from ..tensor import ExTensor
from ._reduce_loss import as_positive, as_reduction, loss_shape, matched, refuse
from ._single_losses import reduced, single_grads
from ._wide import computed_wide, forward_wide
from .broadcasting import broadcast_to
from .casting import cast_like
from .elementwise import square
from .exponential import exp, log
from .indexing import take, take_along_axis, take_along_axis_backward
from .reduction import sum as total
from .selection import where
from .shape import expand_dims, squeeze

__all__ = [
    "GaussianNLLGradients", "gaussian_nll", "gaussian_nll_backward", "nll", "nll_backward", "poisson_nll", "poisson_nll_backward",
]  # fmt: skip


class _Rows(NamedTuple):
    x: ExTensor
    places: ExTensor  # of the labels, as take_along_axis wants them
    weights: ExTensor | None  # of the labels, 0 for those that are ignored; None if all count alike
    axis: int

    @property
    def divisor(self) -> ExTensor | int:
        """What a mean divides by."""
        return self.places.size if self.weights is None else total(self.weights)


def _rows(
    function: str, log_probabilities: Any, targets: Any, axis: Any, weight: Any, ignore_index: Any
) -> _Rows:
    x = as_floating(function, "log_probabilities", log_probabilities)
    place = as_axis(function, axis, x.ndim)
    t = as_integers(function, "targets", targets)
    shape = (*x.shape[:place], *x.shape[place + 1 :])
    if t.shape != shape:
        raise ValueError(
            f"[{function}] targets has shape {t.shape} but must have {shape}, x without axis {axis}"
        )
    ignored = None if ignore_index is None else as_int(function, "ignore_index", ignore_index)
    classes = x.shape[place]
    wrong = kernels.first_outside(t, 0, classes - 1, ignored)
    refuse(function, "targets", t, wrong, f"lie in [0, {classes})")
    counted = None if ignored is None else t != ignored
    safe = t if counted is None else where(counted, t, 0)
    weights = None if counted is None else counted.astype(x.dtype)
    if weight is not None:
        w = as_floating(function, "weight", weight)
        if w.shape != (classes,):
            raise ValueError(f"[{function}] weight has shape {w.shape} but there are {classes} classes")
        weights = take(w, safe, 0) if counted is None else where(counted, take(w, safe, 0), 0.0)
    return _Rows(x, expand_dims(safe, place), weights, place)


@differentiable
@forward_wide
def nll(
    log_probabilities: ExTensor,
    targets: ExTensor,
    axis: int = -1,
    weight: ExTensor | None = None,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> ExTensor:
    """Negative log-likelihood of labels: minus the log-probability of each, as :func:`log_softmax` gives them.   l = -w_t x_t

    Args:
        log_probabilities: x, with the classes along ``axis``.
        targets: labels, of the shape of x without ``axis``.
        axis: where the classes are.
        weight: a factor for each class. The mean divides by the sum of the factors of the labels.
        ignore_index: a label that does not count.
        reduction: ``"mean"`` or ``"sum"``, or ``"none"``.

    Example:
        >>> import extensor as et
        >>> et.nll(et.tensor([[-0.5, -2.0], [-1.0, -0.25]]), et.tensor([0, 1])).item()
        0.375
    """
    rows = _rows("nll", log_probabilities, targets, axis, weight, ignore_index)
    losses = -squeeze(take_along_axis(rows.x, rows.places, rows.axis), rows.axis)
    if rows.weights is not None:
        losses = losses * rows.weights
    wanted = as_reduction("nll", reduction)
    if wanted == "none":
        return losses
    return total(losses) / rows.divisor if wanted == "mean" else total(losses)


@backward_of(nll)
@computed_wide
def nll_backward(
    grad_output: ExTensor,
    log_probabilities: ExTensor,
    targets: ExTensor,
    axis: int = -1,
    weight: ExTensor | None = None,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> ExTensor:
    """Gradient of :func:`nll`.   dx_t = -dl * w_t, divided by the sum of the factors if averaged; 0 for the other classes

    Example:
        >>> import extensor as et
        >>> et.nll_backward(et.tensor(1.0), et.tensor([[-0.5, -2.0], [-1.0, -0.25]]), et.tensor([0, 1])).tolist()
        [[-0.5, 0.0], [0.0, -0.5]]
    """
    function = "nll_backward"
    rows = _rows(function, log_probabilities, targets, axis, weight, ignore_index)
    wanted = as_reduction(function, reduction)
    shape = squeeze(rows.places, rows.axis).shape
    grad = as_grad(function, grad_output, loss_shape(shape, wanted))
    if wanted == "mean" and rows.places.size:
        grad = grad / rows.divisor
    share = -broadcast_to(grad, shape)
    if rows.weights is not None:
        share = share * rows.weights
    found = take_along_axis_backward(expand_dims(share, rows.axis), rows.x.shape, rows.places, rows.axis)
    return cast_like(found, rows.x)


class GaussianNLLGradients(NamedTuple):
    """The gradients of :func:`gaussian_nll`; None where not wanted."""

    grad_predictions: ExTensor | None
    grad_targets: ExTensor | None
    grad_variance: ExTensor | None


def _gaussian(
    function: str, predictions: Any, targets: Any, variance: Any, eps: Any
) -> tuple[Any, Any, Any, float]:
    x, t, v = matched(function, predictions=predictions, targets=targets, variance=variance)
    refuse(function, "variance", v, kernels.first_outside(v, 0, math.inf, None), "not be negative")
    return x, t, v, as_positive(function, "eps", eps, zero=True)


@differentiable
@forward_wide
def gaussian_nll(
    predictions: ExTensor,
    targets: ExTensor,
    variance: ExTensor,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> ExTensor:
    """Negative log-likelihood of normal distributions.   l = (log v + (x - t)**2 / v) / 2,  v = max(variance, eps)

    Args:
        predictions: the means x.
        targets: what was observed, of the same shape.
        variance: the variances, not negative, of the same shape.
        full: whether the constant log(2 pi) / 2 is added.
        eps: the smallest variance.
        reduction: ``"mean"`` or ``"sum"`` over all elements, or ``"none"``.

    Example:
        >>> import extensor as et
        >>> et.gaussian_nll(et.tensor([1.0]), et.tensor([3.0]), et.tensor([1.0])).item()
        2.0
    """
    x, t, v, least = _gaussian("gaussian_nll", predictions, targets, variance, eps)
    safe = where(v < least, least, v)
    losses = (log(safe) + square(x - t) / safe) / 2
    if as_bool("gaussian_nll", "full", full):
        losses = losses + math.log(2 * math.pi) / 2
    return reduced("gaussian_nll", losses, reduction)


@backward_of(gaussian_nll, wrt=("predictions", "targets", "variance"))
@computed_wide
def gaussian_nll_backward(
    grad_output: ExTensor,
    predictions: ExTensor,
    targets: ExTensor,
    variance: ExTensor,
    eps: float = 1e-6,
    reduction: str = "mean",
    *,
    needs: tuple[bool, bool, bool] = (True, True, True),
) -> GaussianNLLGradients:
    """Gradient of :func:`gaussian_nll`.   dx = dl (x - t) / v,  dt = -dx,  dv = dl (1 - (x - t)**2 / v) / (2 v), 0 where v <= eps

    Example:
        >>> import extensor as et
        >>> grads = et.gaussian_nll_backward(et.tensor(1.0), et.tensor([1.0]), et.tensor([3.0]), et.tensor([1.0]))
        >>> grads.grad_predictions.tolist(), grads.grad_variance.tolist()
        ([-2.0], [-1.5])
    """
    function = "gaussian_nll_backward"
    check_needs(function, needs, 3)
    x, t, v, least = _gaussian(function, predictions, targets, variance, eps)
    grad = single_grads(function, grad_output, x.shape, reduction)
    safe = where(v < least, least, v)
    slope = grad * (x - t) / safe if needs[0] or needs[1] else None
    grad_v = None
    if needs[2]:
        grad_v = where(v <= least, 0.0, grad * (1 - square(x - t) / safe) / (2 * safe))
    return GaussianNLLGradients(
        None if slope is None or not needs[0] else cast_like(slope, x),
        None if slope is None or not needs[1] else cast_like(-slope, t),
        cast_like(grad_v, v),
    )


@differentiable
@forward_wide
def poisson_nll(
    predictions: ExTensor,
    targets: ExTensor,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    reduction: str = "mean",
) -> ExTensor:
    """Negative log-likelihood of counts.   l = exp(x) - t x, or with ``log_input=False`` l = x - t log(x + eps)

    Args:
        predictions: the logarithm of the expected count, or the count itself.
        targets: the counts, of the same shape.
        log_input: whether predictions are logarithms.
        full: whether Stirling's approximation t log t - t + log(2 pi t) / 2 is added where t > 1.
        eps: keeps the logarithm of 0 away.
        reduction: ``"mean"`` or ``"sum"`` over all elements, or ``"none"``.

    Example:
        >>> import extensor as et
        >>> et.poisson_nll(et.tensor([0.0]), et.tensor([2.0])).item()
        1.0
    """
    x, t = matched("poisson_nll", predictions=predictions, targets=targets)
    least = as_positive("poisson_nll", "eps", eps, zero=True)
    losses = exp(x) - t * x if as_bool("poisson_nll", "log_input", log_input) else x - t * log(x + least)
    if as_bool("poisson_nll", "full", full):
        many = t > 1
        safe = where(many, t, 1.0)
        losses = losses + where(many, t * log(safe) - t + log(2 * math.pi * safe) / 2, 0.0)
    return reduced("poisson_nll", losses, reduction)


@backward_of(poisson_nll)
@computed_wide
def poisson_nll_backward(
    grad_output: ExTensor,
    predictions: ExTensor,
    targets: ExTensor,
    log_input: bool = True,
    eps: float = 1e-8,
    reduction: str = "mean",
) -> ExTensor:
    """Gradient of :func:`poisson_nll`.   dx = dl (exp(x) - t), or dl (1 - t / (x + eps))

    Example:
        >>> import extensor as et
        >>> et.poisson_nll_backward(et.tensor(1.0), et.tensor([0.0]), et.tensor([2.0])).tolist()
        [-1.0]
    """
    function = "poisson_nll_backward"
    x, t = matched(function, predictions=predictions, targets=targets)
    least = as_positive(function, "eps", eps, zero=True)
    grad = single_grads(function, grad_output, x.shape, reduction)
    slope = exp(x) - t if as_bool(function, "log_input", log_input) else 1 - t / (x + least)
    return cast_like(grad * slope, x)
