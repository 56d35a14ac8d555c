"""The loss and the metrics of a model on batches it does not learn from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..graph import no_grad
from .batches import inputs_and_targets
from .metric_totals import MetricTotals
from .trainer_base import TrainerBase

__all__ = ["evaluate"]


def evaluate(trainer: TrainerBase, batches: Iterable[Any]) -> dict[str, Any]:
    """The mean loss and the metrics over some batches, in evaluation mode and without recording."""
    modes = [(module, module.training) for module in trainer.model.modules()]
    totals = MetricTotals(trainer.metrics)
    trainer.model.eval()
    try:
        with no_grad(), trainer.mixed_precision.block():
            for batch in batches:
                inputs, targets = inputs_and_targets(batch)
                outputs = trainer.model(inputs)
                totals.add(outputs, targets, trainer.loss(outputs, targets).item())
    finally:
        for module, mode in modes:
            module.training = mode
    if not totals.samples:
        raise ValueError("[evaluate] there are no batches")
    return totals.values()
