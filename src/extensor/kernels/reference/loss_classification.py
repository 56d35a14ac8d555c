"""Losses of classifiers. The backward kernels return the gradient of the predictions."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dispatch import formula, kernel
from ..namespace import constant, lift, primitive, wide_dtype, xp
from .activation import logistic_pair
from .elementwise import passed
from .loss_reduction import reduced, total, upstream
from .softmax import probabilities, row_max, row_sum

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_backward",
    "binary_cross_entropy_with_logits", "binary_cross_entropy_with_logits_backward",
    "cross_entropy", "cross_entropy_backward", "focal", "focal_backward", "hinge", "hinge_backward",
]  # fmt: skip


@primitive
def softplus(x):
    """log(1 + exp(x))."""
    return xp.logaddexp(0, x)


def weighted(x, weight):
    """``x`` times a weight that broadcasts to it; None is no weight."""
    return x if weight is None else x * weight


@kernel
def binary_cross_entropy(p, t, weight, reduction):
    # A log of 0 would make the loss infinite; it is held at -100.
    loss = (t - 1) * xp.maximum(xp.log1p(-p), -100) - t * xp.maximum(xp.log(p), -100)
    return reduced(weighted(loss, weight), reduction)


@formula
def binary_cross_entropy_backward(g, p, t, weight, reduction):
    slope = (p - t) / xp.maximum(p * (1 - p), 1e-12)
    return upstream(g, reduction, p.size) * weighted(slope, weight)


@kernel
def binary_cross_entropy_with_logits(x, t, weight, pos_weight, reduction):
    positive = weighted(t * softplus(-x), pos_weight)
    return reduced(weighted(positive + (1 - t) * softplus(x), weight), reduction)


@formula
def binary_cross_entropy_with_logits_backward(g, x, t, weight, pos_weight, reduction):
    # sigmoid(-x) is 1 - sigmoid(x) without the cancellation: (1 - t) s - t (1 - s) = s - t
    s, rest = logistic_pair(x)
    slope = (1 - t) * s - weighted(t * rest, pos_weight)
    return upstream(g, reduction, x.size) * weighted(slope, weight)


def one_hot(labels: Any, classes: int, axis: int, ignore_index: int | None, dtype: Any) -> Any:
    """Labels as distributions along ``axis``: 1 at the label, all zeros where the label is ``ignore_index``."""
    labels = xp.expand_dims(labels, axis)
    steps = xp.arange(classes).reshape([-1 if i == axis else 1 for i in range(labels.ndim)])
    found = labels == steps
    return (found if ignore_index is None else found & (labels != ignore_index)).astype(dtype)


def along(weight: Any, axis: int, ndim: int) -> Any:
    """A weight per class, shaped to broadcast along ``axis``."""
    return weight.reshape([-1 if i == axis else 1 for i in range(ndim)])


def class_targets(x, targets, axis, label_smoothing, weight, ignore_index):
    """The weighted, smoothed distributions T, and the count of the mean. The loss of a row is -sum T log softmax(x).

    Distributions are averaged over the rows; labels over the weights of the labels that are not ignored.
    """
    classes = x.shape[axis]
    labels = targets.dtype.kind in "iu"
    t = lift(one_hot(constant(targets), classes, axis, ignore_index, x.dtype), x) if labels else targets
    kept = lift(constant(t).any(axis, keepdims=True) if labels else True, x)
    w = None if weight is None else along(weight, axis, x.ndim)
    count = total(weighted(t, w)) if labels else (x.size // classes if classes else 0)
    if label_smoothing:
        t = xp.where(kept, t * (1 - label_smoothing) + label_smoothing / max(classes, 1), 0.0)
    return weighted(t, w), kept, count


@kernel
def cross_entropy(x, targets, axis, label_smoothing, weight, ignore_index, reduction):
    """``targets``: integer labels (the shape of x without ``axis``) or distributions (the shape of x)."""
    t, kept, count = class_targets(x, targets, axis, label_smoothing, weight, ignore_index)
    shifted = x - row_max(x, axis)
    log_p = shifted - xp.log(xp.exp(shifted).sum(axis, keepdims=True, dtype=wide_dtype(x))).astype(x.dtype)
    terms = t * -log_p
    if targets.dtype.kind in "iu":
        # A label does not look at the other classes, whose log_p may be -inf; an ignored row does not look at all.
        seen = kept if label_smoothing else one_hot(targets, x.shape[axis], axis, ignore_index, np.bool_)
        terms = xp.where(seen, terms, 0.0)
    return reduced(row_sum(terms, axis).squeeze(axis), reduction, count)


@formula
def cross_entropy_backward(g, x, targets, axis, label_smoothing, weight, ignore_index, reduction):
    t, kept, count = class_targets(x, targets, axis, label_smoothing, weight, ignore_index)
    slope = probabilities(x, axis) * row_sum(t, axis) - t
    each = upstream(g, reduction, count)
    if reduction == "none":
        each = xp.expand_dims(each, axis)
    return xp.where(kept, each, 0.0) * slope


def focal_parts(x, t, alpha):
    """sigmoid(x), 1 - sigmoid(x), 1 - p_t, the cross-entropy, and the balance alpha_t."""
    s, rest = logistic_pair(x)
    miss = s * (1 - t) + rest * t
    entropy = t * softplus(-x) + (1 - t) * softplus(x)
    balance = 1 if alpha is None else alpha * t + (1 - alpha) * (1 - t)
    return s, rest, miss, entropy, balance


@kernel
def focal(x, t, alpha, gamma, reduction):
    _, _, miss, entropy, balance = focal_parts(x, t, alpha)
    return reduced(balance * xp.power(miss, gamma) * entropy, reduction)


@formula
def focal_backward(g, x, t, alpha, gamma, reduction):
    s, rest, miss, entropy, balance = focal_parts(x, t, alpha)
    # d miss/dx = s (1 - s) (1 - 2t); divided by miss it is never above 1, and nothing is missed where miss is 0
    hit = miss == 0
    miss = xp.where(hit, 1.0, miss)
    change = xp.where(hit, 0.0, s * rest * (1 - 2 * t) / miss)
    discount = xp.where(hit, float(gamma == 0), xp.power(miss, gamma))
    slope = discount * (gamma * change * entropy + (1 - t) * s - t * rest)
    return upstream(g, reduction, x.size) * (balance * slope)


@kernel
def hinge(p, t, reduction):
    return reduced(xp.maximum(1 - t * p, 0), reduction)


@formula
def hinge_backward(g, p, t, reduction):
    short = 1 - t * p
    return passed(upstream(g, reduction, p.size) * -t, short, short > 0)
