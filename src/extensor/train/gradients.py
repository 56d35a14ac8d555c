"""The gradients of one optimiser step: forward and backward over its batches, then clipping."""

from __future__ import annotations

import math
import time
from typing import Any

from ..data import DataLoader
from ..optim import clip_grad_norm, clip_grad_value
from .batches import groups, outputs_of
from .random_state import get_random_state, set_random_state
from .running_statistics import RunningStatistics
from .trainer_base import TrainerBase

__all__ = ["accumulate_gradients", "choose_precision", "clip_gradients", "not_finite"]


def accumulate_gradients(
    trainer: TrainerBase, batches: list[tuple[Any, Any]], statistics: RunningStatistics
) -> float:
    """Leave the gradients of the mean loss over all samples of ``batches`` in the parameters; returns that loss.

    Each batch counts by its samples: a smaller last batch weighs less, so that the gradients are those of one batch
    that holds them all.

    Raises:
        FloatingPointError: a loss is nan or infinite, and there is no loss scaler that has the step skipped. Weights and running
            statistics are those before the step.
    """
    trainer.optimizer.zero_grad()
    statistics.keep()
    samples = sum(len(targets) for _, targets in batches)
    total = 0.0
    for inputs, targets in batches:
        share = len(targets) / samples
        weight, scale = None if len(batches) == 1 else share, trainer.mixed_precision.scale
        outputs, loss = trainer.passes.learn(trainer.model, trainer.loss, inputs, targets, weight, scale)
        value = loss.item()
        if not math.isfinite(value):
            statistics.restore()
            trainer.optimizer.zero_grad()
            if trainer.mixed_precision.refuse(trainer.optimizer):
                return math.nan
            raise not_finite(trainer, value)
        total += value * share
        trainer.progress.totals.add(outputs, targets, value)
        trainer.progress.count_samples(len(targets))
    return total


def not_finite(trainer: TrainerBase, value: float) -> FloatingPointError:
    """What to raise for a loss that is nan or infinite."""
    return FloatingPointError(
        f"[Trainer] the loss is {value} at step {trainer.step + 1}; try a smaller learning rate or clip_norm=1.0"
    )


def clip_gradients(trainer: TrainerBase) -> float | None:
    """Hold the gradients within the bounds; returns the norm they had, if it was asked for."""
    if trainer.clip_norm is None and trainer.clip_value is None:
        return None
    moving = [p for p in trainer.model.parameters() if p.grad is not None]
    grads: Any = [p.grad for p in moving]
    norm = None
    if trainer.clip_value is not None:
        grads = clip_grad_value(grads, trainer.clip_value)
    if trainer.clip_norm is not None:
        grads, total = clip_grad_norm(grads, trainer.clip_norm)
        norm = total.item()
    for parameter, grad in zip(moving, grads):
        parameter.grad = grad
    return norm


def choose_precision(trainer: TrainerBase, train: DataLoader) -> None:
    """Measure forward and backward of the first step in either precision; everything is as before then."""
    began = time.monotonic()
    position, random = train.state_dict(), get_random_state(trainer.model)
    batches = next(groups(train, trainer.accumulate))
    statistics = RunningStatistics(trainer.model)
    statistics.keep()
    training = [(module, module.training) for module in trainer.model.modules()]
    trainer.model.train()

    def step() -> None:
        trainer.optimizer.zero_grad()
        for inputs, targets in batches:
            trainer.loss(outputs_of(trainer.model, inputs), targets).backward()

    try:
        trainer.mixed_precision.choose(step)
    finally:
        trainer.optimizer.zero_grad()
        statistics.restore()
        set_random_state(trainer.model, random)
        train.load_state_dict(position)
        for module, mode in training:
            module.training = mode
        trainer.progress.pause(time.monotonic() - began)
