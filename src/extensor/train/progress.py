"""How far a run came: counters and sums that a checkpoint keeps."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from .metric_totals import MetricTotals
from .metrics import Metric

__all__ = ["Progress"]


class Progress:
    """Where a run stands.

    Attributes:
        step: the number of optimiser steps made.
        epoch: the number of epochs finished.
        planned_steps: how long the run was planned when its schedule was made.
        began_at: step and epoch at which the call of ``fit`` began that the run belongs to.
        validated_at: the step of the newest validation; -1 before the first.
        best, best_loss: the best value of the monitored metric so far, and the validation loss it came with.
        stop_reason: why the run was asked to stop, if it was.
        totals: loss and metrics of the epoch so far.
        window: sum of losses and number of steps since the last step record of the log.
    """

    def __init__(self, metrics: Mapping[str, Metric]) -> None:
        self._metrics = metrics
        self.step = 0
        self.epoch = 0
        self.began_at = (0, 0)
        self.planned_steps: int | None = None
        self.validated_at = -1
        self.best: float | None = None
        self.best_loss: float | None = None
        self.stop_reason: str | None = None
        self.window: dict[str, float] = {"loss": 0.0, "steps": 0}
        self.begin_epoch()

    def begin_epoch(self) -> None:
        """New sums and a new clock."""
        self.totals = MetricTotals(self._metrics)
        self._samples = 0
        self._clock = time.monotonic()

    def begin_fit(self) -> None:
        """Another call of ``fit`` that goes on from here."""
        self.began_at = (self.step, self.epoch)
        self.window = {"loss": 0.0, "steps": 0}
        self.begin_epoch()

    def count_samples(self, samples: int) -> None:
        """So many more samples were trained on."""
        self._samples += samples

    def pause(self, seconds: float) -> None:
        """Time that does not belong to training."""
        self._clock += seconds

    @property
    def seconds(self) -> float:
        """Time spent training in this epoch."""
        return time.monotonic() - self._clock

    @property
    def samples_per_second(self) -> float:
        elapsed = self.seconds
        return self._samples / elapsed if elapsed > 0 else 0.0

    @property
    def position(self) -> dict[str, Any]:
        """Epoch and step, as records have them."""
        return {"epoch": self.epoch, "step": self.step}

    def state_dict(self) -> dict[str, Any]:
        return {
            "step": self.step,
            "epoch": self.epoch,
            "began_at": list(self.began_at),
            "validated_at": self.validated_at,
            "stopped": self.stop_reason,
            "best": self.best,
            "best_loss": self.best_loss,
            "window": dict(self.window),
            "running": self.totals.state_dict(),
            "planned_steps": self.planned_steps,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        totals = MetricTotals(self._metrics)
        totals.load_state_dict(state["running"])
        began_step, began_epoch = state["began_at"]
        window = {"loss": float(state["window"]["loss"]), "steps": int(state["window"]["steps"])}
        self.step, self.epoch = int(state["step"]), int(state["epoch"])
        self.begin_epoch()
        self.began_at = (int(began_step), int(began_epoch))
        self.validated_at, self.best = int(state["validated_at"]), state["best"]
        self.best_loss = state.get("best_loss")
        self.stop_reason = state["stopped"]
        self.totals, self.window = totals, window
        self.planned_steps = None if state.get("planned_steps") is None else int(state["planned_steps"])
