"""The loss and the metrics of a model on batches it does not learn from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..data import DataLoader
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
            for found in _per_batch(trainer, batches):
                totals.merge(found)
    finally:
        for module, mode in modes:
            module.training = mode
    if not totals.samples:
        raise ValueError("[evaluate] there are no batches")
    return totals.values()


def _per_batch(trainer: TrainerBase, batches: Iterable[Any]) -> Iterable[dict[str, Any]]:
    """The sums of each batch, in order; the ranks take turns with them."""
    rank, size = (0, 1) if trainer.world is None else (trainer.world.rank, trainer.world.size)
    own = MetricTotals(trainer.metrics)
    found: list[Any] = []
    for number, batch in enumerate(
        batches.in_turns(rank, size) if isinstance(batches, DataLoader) else batches
    ):
        if number % size == rank:
            inputs, targets = inputs_and_targets(batch)
            outputs = trainer.model(inputs)
            own.add(outputs, targets, trainer.loss(outputs, targets).item())
            found.append([number, own.take()])
    every: list[Any] = [found] if trainer.world is None else trainer.world.gather(found)
    return [state for _, state in sorted((row for rows in every for row in rows), key=lambda row: row[0])]
