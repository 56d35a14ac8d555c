"""Sums over the batches of an epoch or of a validation."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from typing import Any

from .metrics import Metric

__all__ = ["MetricTotals"]


class MetricTotals:
    """The loss and the metrics, batch by batch."""

    def __init__(self, metrics: Mapping[str, Metric]) -> None:
        self.loss, self.samples = 0.0, 0
        self.metrics = copy.deepcopy(dict(metrics))
        for metric in self.metrics.values():
            metric.reset()

    def add(self, outputs: Any, targets: Any, loss: float) -> None:
        count = len(targets)
        self.loss += loss * count
        self.samples += count
        for metric in self.metrics.values():
            metric.update(outputs, targets, loss)

    def take(self) -> dict[str, Any]:
        """What was added since the beginning, which begins again."""
        found = self.state_dict()
        self.loss, self.samples = 0.0, 0
        for metric in self.metrics.values():
            metric.reset()
        return found

    def merge(self, state: Mapping[str, Any]) -> None:
        """Add what :meth:`take` gave of other batches."""
        self.loss += state["loss"]
        self.samples += state["samples"]
        for name, metric in self.metrics.items():
            metric.merge(state["metrics"][name])

    def values(self) -> dict[str, Any]:
        """The mean loss and the metrics."""
        mean = self.loss / self.samples if self.samples else math.nan
        return {"loss": mean, **{name: metric.value() for name, metric in self.metrics.items()}}

    def state_dict(self) -> dict[str, Any]:
        metrics = {name: metric.state_dict() for name, metric in self.metrics.items()}
        return {"loss": self.loss, "samples": self.samples, "metrics": metrics}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        if set(state["metrics"]) != set(self.metrics):
            raise ValueError(
                f"it has the metrics {sorted(state['metrics'])}, the trainer {sorted(self.metrics)}"
            )
        for name, metric in self.metrics.items():
            metric.load_state_dict(state["metrics"][name])
        self.loss, self.samples = float(state["loss"]), int(state["samples"])
