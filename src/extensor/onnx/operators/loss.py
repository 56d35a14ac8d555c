"""Losses."""

from __future__ import annotations

from typing import Any

import numpy as np

import extensor as et

from ..proto import array_of, as_value
from ..table import operator

__all__: list[str] = []


@operator("NegativeLogLikelihoodLoss")
def negative_log_likelihood_loss(
    x: Any, target: Any, weight: Any = None, *, ignore_index: int | None = None, reduction: str = "mean"
) -> Any:
    """Minus the log-probability (axis 1) of each target, weighed by class."""
    labels = array_of(target)
    used = np.ones(labels.shape, bool) if ignore_index is None else labels != ignore_index
    places = np.where(used, labels, 0).astype(np.int64)
    picked = et.squeeze(et.take_along_axis(x, as_value(np.expand_dims(places, 1)), 1), 1)
    weights = as_value(used.astype(x.dtype))
    if weight is not None:
        weights = et.take(weight, places, 0) * weights
    loss = -picked * weights
    if reduction == "none":
        return loss
    total = et.sum(loss)
    return total if reduction == "sum" else total / et.sum(weights)


@operator("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy_loss(
    x: Any,
    target: Any,
    weight: Any = None,
    *,
    ignore_index: int | None = None,
    reduction: str = "mean",
    outputs: int = 1,
) -> Any:
    """The negative log-likelihood of the softmax along axis 1; and the log-probabilities if asked for."""
    logs = et.log_softmax(x, 1)
    loss = negative_log_likelihood_loss(logs, target, weight, ignore_index=ignore_index, reduction=reduction)
    return (loss, logs) if outputs > 1 else loss
