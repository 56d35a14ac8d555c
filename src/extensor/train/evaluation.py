"""The loss and the metrics of a model on batches it does not learn from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from .._progress import watched
from ..data import DataLoader, Dataset
from ..graph import no_grad
from ..tensor import ExTensor
from .batches import TARGETS, as_loader, inputs_and_targets, outputs_of
from .metric_totals import MetricTotals
from .trainer_base import TrainerBase

__all__ = ["evaluate", "predict"]


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


def predict(trainer: TrainerBase, batches: Any) -> ExTensor:
    """The outputs of the model for all samples, in their order."""
    if isinstance(batches, (ExTensor, np.ndarray)):
        batches = Dataset(batches)
    if isinstance(batches, Dataset):
        batches = DataLoader(batches, 256)
    modes = [(module, module.training) for module in trainer.model.modules()]
    trainer.model.eval()
    try:
        with no_grad(), trainer.mixed_precision.block():
            loader = as_loader(batches)
            parts = watched(loader, "predicting", total=loader.length)
            found = [outputs_of(trainer.model, _inputs(batch)).numpy() for batch in parts]
    finally:
        for module, mode in modes:
            module.training = mode
    if not found:
        raise ValueError("[predict] there are no batches")
    return ExTensor(np.concatenate(found))


def _inputs(batch: Any) -> Any:
    """The inputs of a batch that may come without targets."""
    if isinstance(batch, Mapping):
        return {key: value for key, value in batch.items() if key not in TARGETS}
    return inputs_and_targets(batch)[0] if isinstance(batch, (tuple, list)) and len(batch) > 1 else batch


def _per_batch(trainer: TrainerBase, batches: Iterable[Any]) -> Iterable[dict[str, Any]]:
    """The sums of each batch, in order; the ranks take turns with them."""
    rank, size = (0, 1) if trainer.world is None else (trainer.world.rank, trainer.world.size)
    own = MetricTotals(trainer.metrics)
    found: list[Any] = []
    turns = batches.in_turns(rank, size) if isinstance(batches, DataLoader) else batches
    total = batches.length if isinstance(batches, DataLoader) else None
    for number, batch in enumerate(watched(turns, "validating", total=total)):
        if number % size == rank:
            inputs, targets = inputs_and_targets(batch)
            outputs, loss = trainer.passes.judge(trainer.model, trainer.loss, inputs, targets)
            own.add(outputs, targets, loss.item())
            found.append([number, own.take()])
    every: list[Any] = [found] if trainer.world is None else trainer.world.gather(found)
    return [state for _, state in sorted((row for rows in every for row in rows), key=lambda row: row[0])]
