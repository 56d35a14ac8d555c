"""Losses that ask for a margin: between a score and its side, between two scores, between labels and the rest."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .. import kernels
from ..checks import as_floating, as_integers, as_number, check_needs, differentiable_input
from ..graph import backward_of, differentiable
from ..tensor import ExTensor
from ._pairs import BOTH, Needs
from ._reduce_loss import as_finite, as_reduction, as_signs, as_weight, matched, refuse
from ._single_losses import reduced, single_grads
from ._wide import computed_wide, forward_wide
from .activation import relu, relu_backward, sigmoid, softplus
from .casting import cast_like
from .comparison import equal
from .creation import arange
from .elementwise import square
from .indexing import take, take_along_axis
from .reduction import mean
from .reduction import sum as total
from .selection import where
from .shape import expand_dims

__all__ = [
    "MarginRankingGradients", "hinge_embedding", "hinge_embedding_backward", "margin_ranking", "margin_ranking_backward",
    "multi_margin", "multi_margin_backward", "multilabel_margin", "multilabel_margin_backward", "multilabel_soft_margin",
    "multilabel_soft_margin_backward", "soft_margin", "soft_margin_backward",
]  # fmt: skip


@differentiable
@forward_wide
def soft_margin(predictions: ExTensor, targets: ExTensor, reduction: str = "mean") -> ExTensor:
    """Logistic loss of scores and sides.   l = log(1 + exp(-t x)),  t in {-1, 1}

    Args:
        predictions: scores x.
        targets: -1 and 1, of the same shape.
        reduction: ``"mean"`` or ``"sum"`` over all elements, or ``"none"``.

    Example:
        >>> import extensor as et
        >>> round(et.soft_margin(et.tensor([0.0, 100.0]), et.tensor([1, 1])).item(), 4)
        0.3466
    """
    x = as_floating("soft_margin", "predictions", predictions)
    t = as_signs("soft_margin", targets, x.shape, x)
    return reduced("soft_margin", softplus(-t * x), reduction)


@backward_of(soft_margin)
@computed_wide
def soft_margin_backward(
    grad_output: ExTensor, predictions: ExTensor, targets: ExTensor, reduction: str = "mean"
) -> ExTensor:
    """Gradient of :func:`soft_margin`.   dx = -dl * t * sigmoid(-t x)

    Example:
        >>> import extensor as et
        >>> et.soft_margin_backward(et.tensor(1.0), et.tensor([0.0]), et.tensor([1])).tolist()
        [-0.5]
    """
    x = differentiable_input("soft_margin_backward", "predictions", predictions)
    t = as_signs("soft_margin_backward", targets, x.shape, x)
    grad = single_grads("soft_margin_backward", grad_output, x.shape, reduction)
    return cast_like(-grad * t * sigmoid(-t * x), x)


@differentiable
@forward_wide
def hinge_embedding(
    predictions: ExTensor, targets: ExTensor, margin: float = 1.0, reduction: str = "mean"
) -> ExTensor:
    """Distances of pairs that belong together, or do not.   l = x if t = 1, max(0, margin - x) if t = -1

    Args:
        predictions: distances x.
        targets: -1 and 1, of the same shape.
        margin: the distance that is far enough.
        reduction: ``"mean"`` or ``"sum"`` over all elements, or ``"none"``.

    Example:
        >>> import extensor as et
        >>> et.hinge_embedding(et.tensor([0.5, 0.25]), et.tensor([1, -1]), reduction="none").tolist()
        [0.5, 0.75]
    """
    x = as_floating("hinge_embedding", "predictions", predictions)
    t = as_signs("hinge_embedding", targets, x.shape, x)
    away = relu(as_finite("hinge_embedding", "margin", margin) - x)
    return reduced("hinge_embedding", where(t > 0, x, away), reduction)


@backward_of(hinge_embedding)
@computed_wide
def hinge_embedding_backward(
    grad_output: ExTensor,
    predictions: ExTensor,
    targets: ExTensor,
    margin: float = 1.0,
    reduction: str = "mean",
) -> ExTensor:
    """Gradient of :func:`hinge_embedding`.   dx = dl if t = 1, -dl * [x < margin] if t = -1

    Example:
        >>> import extensor as et
        >>> et.hinge_embedding_backward(et.ones(2), et.tensor([0.5, 0.25]), et.tensor([1, -1]), reduction="none").tolist()
        [1.0, -1.0]
    """
    function = "hinge_embedding_backward"
    x = differentiable_input(function, "predictions", predictions)
    t = as_signs(function, targets, x.shape, x)
    grad = single_grads(function, grad_output, x.shape, reduction)
    away = relu_backward(-grad, as_finite(function, "margin", margin) - x)
    return cast_like(where(t > 0, grad, away), x)


class MarginRankingGradients(NamedTuple):
    """The gradients of :func:`margin_ranking`; None where not wanted."""

    grad_x1: ExTensor | None
    grad_x2: ExTensor | None


@differentiable
@forward_wide
def margin_ranking(
    x1: ExTensor, x2: ExTensor, targets: ExTensor, margin: float = 0.0, reduction: str = "mean"
) -> ExTensor:
    """Which of two scores should be larger: the first where t is 1, the second where it is -1.   l = max(0, margin - t (x1 - x2))

    Args:
        x1, x2: scores of one shape.
        targets: -1 and 1, of the same shape.
        margin: by how much.
        reduction: ``"mean"`` or ``"sum"`` over all elements, or ``"none"``.

    Example:
        >>> import extensor as et
        >>> et.margin_ranking(et.tensor([1.0, 1.0]), et.tensor([3.0, 0.0]), et.tensor([1, 1]), reduction="none").tolist()
        [2.0, 0.0]
    """
    a, b = matched("margin_ranking", x1=x1, x2=x2)
    t = as_signs("margin_ranking", targets, a.shape, a)
    gap = as_finite("margin_ranking", "margin", margin) - t * (a - b)
    return reduced("margin_ranking", relu(gap), reduction)


@backward_of(margin_ranking, wrt=("x1", "x2"))
@computed_wide
def margin_ranking_backward(
    grad_output: ExTensor,
    x1: ExTensor,
    x2: ExTensor,
    targets: ExTensor,
    margin: float = 0.0,
    reduction: str = "mean",
    *,
    needs: Needs = BOTH,
) -> MarginRankingGradients:
    """Gradient of :func:`margin_ranking`.   dx1 = -dl * t * [margin > t (x1 - x2)],  dx2 = -dx1

    Example:
        >>> import extensor as et
        >>> grads = et.margin_ranking_backward(et.tensor(1.0), et.tensor([1.0]), et.tensor([3.0]), et.tensor([1]))
        >>> grads.grad_x1.tolist(), grads.grad_x2.tolist()
        ([-1.0], [1.0])
    """
    function = "margin_ranking_backward"
    check_needs(function, needs)
    a, b = matched(function, x1=x1, x2=x2)
    t = as_signs(function, targets, a.shape, a)
    gap = as_finite(function, "margin", margin) - t * (a - b)
    found = t * relu_backward(single_grads(function, grad_output, a.shape, reduction), gap)
    return MarginRankingGradients(
        cast_like(-found, a) if needs[0] else None, cast_like(found, b) if needs[1] else None
    )


# Several classes


def _scores(function: str, predictions: Any, targets: Any) -> tuple[ExTensor, ExTensor]:
    """Scores (N, C) or (C,) and one label for each row, checked."""
    x = as_floating(function, "predictions", predictions)
    if x.ndim not in (1, 2) or not x.shape[-1]:
        raise ValueError(f"[{function}] predictions must have the shape (N, C) or (C,), got {x.shape}")
    t = as_integers(function, "targets", targets)
    if t.shape != x.shape[:-1]:
        raise ValueError(f"[{function}] targets has shape {t.shape} but must have {x.shape[:-1]}")
    refuse(
        function,
        "targets",
        t,
        kernels.first_outside(t, 0, x.shape[-1] - 1, None),
        f"lie in [0, {x.shape[-1]})",
    )
    return x, t


def _class_weights(function: str, weight: Any, x: ExTensor, t: ExTensor) -> ExTensor | None:
    if weight is None:
        return None
    w = as_floating(function, "weight", weight)
    if w.shape != x.shape[-1:]:
        raise ValueError(f"[{function}] weight has shape {w.shape} but there are {x.shape[-1]} classes")
    return take(w, t, 0)


def _exponent(function: str, p: Any) -> int:
    found = as_number(function, "p", p)
    if found not in (1, 2):
        raise ValueError(f"[{function}] p must be 1 or 2, got {found}")
    return int(found)


def _is_label(x: ExTensor, t: ExTensor) -> ExTensor:
    return equal(expand_dims(t, -1), arange(x.shape[-1]))


@differentiable
@forward_wide
def multi_margin(
    predictions: ExTensor,
    targets: ExTensor,
    p: int = 1,
    margin: float = 1.0,
    weight: ExTensor | None = None,
    reduction: str = "mean",
) -> ExTensor:
    """Hinge loss of several classes.   l = (w_t / C) * sum over j != t of max(0, margin - x_t + x_j)**p

    Args:
        predictions: scores x of shape (N, C), or (C,).
        targets: labels of shape (N,), or 0-d.
        p: 1 or 2.
        margin: by how much the score of the label should be above the others.
        weight: a factor for each class, or None.
        reduction: ``"mean"`` or ``"sum"`` over the rows, or ``"none"``.

    Example:
        >>> import extensor as et
        >>> round(et.multi_margin(et.tensor([[0.1, 0.2, 0.4, 0.8]]), et.tensor([3])).item(), 4)
        0.325
    """
    x, t = _scores("multi_margin", predictions, targets)
    w = _class_weights("multi_margin", weight, x, t)
    gap = as_finite("multi_margin", "margin", margin) - take_along_axis(x, expand_dims(t, -1), -1) + x
    over = relu(gap) if _exponent("multi_margin", p) == 1 else square(relu(gap))
    losses = total(where(_is_label(x, t), 0.0, over), -1) / x.shape[-1]
    return reduced("multi_margin", losses if w is None else losses * w, reduction)


@backward_of(multi_margin)
@computed_wide
def multi_margin_backward(
    grad_output: ExTensor,
    predictions: ExTensor,
    targets: ExTensor,
    p: int = 1,
    margin: float = 1.0,
    weight: ExTensor | None = None,
    reduction: str = "mean",
) -> ExTensor:
    """Gradient of :func:`multi_margin`.   dx_j = dl * w_t * p * max(0, margin - x_t + x_j)**(p - 1) / C for j != t; dx_t is minus their sum

    Example:
        >>> import extensor as et
        >>> et.multi_margin_backward(et.tensor(1.0), et.tensor([[0.5, 0.0]]), et.tensor([0])).tolist()
        [[-0.5, 0.5]]
    """
    function = "multi_margin_backward"
    x, t = _scores(function, predictions, targets)
    w = _class_weights(function, weight, x, t)
    grad = single_grads(function, grad_output, t.shape, reduction) / x.shape[-1]
    grad = expand_dims(grad if w is None else grad * w, -1)
    gap = as_finite(function, "margin", margin) - take_along_axis(x, expand_dims(t, -1), -1) + x
    share = grad if _exponent(function, p) == 1 else 2 * grad * relu(gap)
    labels = _is_label(x, t)
    others = where(labels, 0.0, relu_backward(share + 0 * gap, gap))
    return cast_like(where(labels, -total(others, -1, keepdims=True), others), x)


class _LabelLists(NamedTuple):
    labels: np.ndarray  # of each row up to its first -1, then 0; as many places as the longest list needs
    listed: np.ndarray  # which of these places hold a label
    chosen: np.ndarray  # which classes are labels


def _label_lists(function: str, predictions: Any, targets: Any) -> tuple[ExTensor, _LabelLists]:
    """Scores and the labels of each row, checked."""
    x = as_floating(function, "predictions", predictions)
    if x.ndim not in (1, 2):
        raise ValueError(f"[{function}] predictions must have the shape (N, C) or (C,), got {x.shape}")
    t = as_integers(function, "targets", targets)
    if t.shape != x.shape:
        raise ValueError(f"[{function}] targets has shape {t.shape} but predictions have {x.shape}")
    refuse(
        function,
        "targets",
        t,
        kernels.first_outside(t, -1, x.shape[-1] - 1, None),
        f"lie in [-1, {x.shape[-1]})",
    )
    listed = np.cumsum(t._array < 0, axis=-1) == 0
    most = int(listed.sum(-1).max(initial=0))
    listed, array = listed[..., :most], t._array[..., :most]
    chosen = np.zeros(x.shape, bool)
    places = np.nonzero(listed)
    chosen[(*places[:-1], array[places])] = True
    return x, _LabelLists(np.where(listed, array, 0), listed, chosen)


def _label_gaps(x: ExTensor, lists: _LabelLists) -> tuple[ExTensor, np.ndarray]:
    """1 - x[label] + x[other] for every listed label and every class that is none; and where both are so."""
    of_labels = take_along_axis(x, ExTensor(lists.labels), -1)
    gaps = 1 - expand_dims(of_labels, -1) + expand_dims(x, -2)
    return gaps, lists.listed[..., :, None] & ~lists.chosen[..., None, :]


@differentiable
@forward_wide
def multilabel_margin(predictions: ExTensor, targets: ExTensor, reduction: str = "mean") -> ExTensor:
    """Hinge loss of lists of labels.   l = (1 / C) * sum over labels y and classes i that are none of max(0, 1 - x_y + x_i)

    Args:
        predictions: scores x of shape (N, C), or (C,).
        targets: the labels of each row, then -1; what comes after it does not count. The same shape.
        reduction: ``"mean"`` or ``"sum"`` over the rows, or ``"none"``.

    Example:
        >>> import extensor as et
        >>> x, y = et.tensor([[0.1, 0.2, 0.4, 0.8]]), et.tensor([[3, 0, -1, 1]])
        >>> round(et.multilabel_margin(x, y).item(), 4)
        0.85
    """
    x, lists = _label_lists("multilabel_margin", predictions, targets)
    gaps, counted = _label_gaps(x, lists)
    losses = total(where(ExTensor(counted), relu(gaps), 0.0), (-2, -1)) / max(x.shape[-1], 1)
    return reduced("multilabel_margin", losses, reduction)


@backward_of(multilabel_margin)
@computed_wide
def multilabel_margin_backward(
    grad_output: ExTensor, predictions: ExTensor, targets: ExTensor, reduction: str = "mean"
) -> ExTensor:
    """Gradient of :func:`multilabel_margin`.   dx_i = dl * n_i / C,  dx_y = -dl * n_y / C

    n counts the pairs of a label y and another class i with x_y - x_i < 1 that an element is part of.

    Example:
        >>> import extensor as et
        >>> et.multilabel_margin_backward(et.tensor(1.0), et.tensor([[0.5, 0.0]]), et.tensor([[0, -1]])).tolist()
        [[-0.5, 0.5]]
    """
    function = "multilabel_margin_backward"
    x, lists = _label_lists(function, predictions, targets)
    gaps, counted = _label_gaps(x, lists)
    grad = single_grads(function, grad_output, x.shape[:-1], reduction) / max(x.shape[-1], 1)
    grad = expand_dims(expand_dims(grad, -1), -1)
    pulls = where(ExTensor(counted), relu_backward(grad + 0 * gaps, gaps), 0.0)
    is_label = ExTensor((lists.labels[..., :, None] == np.arange(x.shape[-1])) & lists.listed[..., None])
    down = total(where(is_label, total(pulls, -1, keepdims=True), 0.0), -2)
    return cast_like(total(pulls, -2) - down, x)


def _of_classes(function: str, predictions: Any, targets: Any) -> tuple[ExTensor, ExTensor]:
    """Predictions and targets with an axis of classes."""
    x, t = matched(function, predictions=predictions, targets=targets)
    if not x.ndim:
        raise ValueError(f"[{function}] predictions must have shape (N, C) or (C,), got a number")
    return x, t


@differentiable
@forward_wide
def multilabel_soft_margin(
    predictions: ExTensor, targets: ExTensor, weight: ExTensor | None = None, reduction: str = "mean"
) -> ExTensor:
    """Binary cross-entropy of every class, averaged over the classes.   l = mean_c w_c (t softplus(-x) + (1 - t) softplus(x))

    Args:
        predictions: scores x of shape (N, C), or (C,).
        targets: 0 and 1, or between, of the same shape.
        weight: a factor for each class; broadcasts to the predictions.
        reduction: ``"mean"`` or ``"sum"`` over the rows, or ``"none"``.

    Example:
        >>> import extensor as et
        >>> round(et.multilabel_soft_margin(et.tensor([[0.0, 100.0]]), et.tensor([[1.0, 1.0]])).item(), 4)
        0.3466
    """
    x, t = _of_classes("multilabel_soft_margin", predictions, targets)
    w = as_weight("multilabel_soft_margin", "weight", weight, x.shape)
    losses = t * softplus(-x) + (1 - t) * softplus(x)
    return reduced("multilabel_soft_margin", mean(losses if w is None else losses * w, -1), reduction)


@backward_of(multilabel_soft_margin)
@computed_wide
def multilabel_soft_margin_backward(
    grad_output: ExTensor,
    predictions: ExTensor,
    targets: ExTensor,
    weight: ExTensor | None = None,
    reduction: str = "mean",
) -> ExTensor:
    """Gradient of :func:`multilabel_soft_margin`.   dx = dl * w * (sigmoid(x) - t) / C

    Example:
        >>> import extensor as et
        >>> et.multilabel_soft_margin_backward(et.tensor(1.0), et.tensor([[0.0, 0.0]]), et.tensor([[1.0, 0.0]])).tolist()
        [[-0.25, 0.25]]
    """
    function = "multilabel_soft_margin_backward"
    x, t = _of_classes(function, predictions, targets)
    w = as_weight(function, "weight", weight, x.shape)
    as_reduction(function, reduction)
    grad = expand_dims(single_grads(function, grad_output, x.shape[:-1], reduction) / max(x.shape[-1], 1), -1)
    found = grad * (sigmoid(x) - t)
    return cast_like(found if w is None else found * w, x)
