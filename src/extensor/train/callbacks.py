"""What may happen beside the training: hooks, and stopping early."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, Protocol

from ..checks import as_bool, as_int, as_number
from ..errors import describe
from ..nn import Module
from ..optim import Optimizer
from ..tensor import ExTensor

__all__ = ["Callback", "EarlyStopping"]


class Run(Protocol):
    """What callbacks see of the trainer."""

    model: Module
    optimizer: Optimizer

    interrupted: bool  # whether the run ended by an interrupt, to be resumed

    @property
    def step(self) -> int:
        """The number of optimiser steps made."""

    @property
    def epoch(self) -> int:
        """The number of epochs finished."""

    def stop(self, reason: str) -> None:
        """End the run after the current step."""


class Callback:
    """Called by the trainer at the places its methods name; subclasses define those they need.

    What a callback remembers between calls belongs into :meth:`state_dict`, so that a resumed run goes on as if it had
    never been interrupted. ``trainer.stop(reason)`` ends the run after the current step.

    Example:
        >>> import extensor as et
        >>> class Shout(et.train.Callback):
        ...     def on_epoch_end(self, trainer, record):
        ...         print("EPOCH", record["epoch"])
        >>> Shout().on_epoch_end(None, {"epoch": 3})
        EPOCH 3
    """

    def on_fit_start(self, trainer: Run) -> None:
        """Before the first step; after the checkpoint was loaded, if the run is resumed."""

    def on_step_end(self, trainer: Run, loss: float) -> None:
        """After every optimiser step, with the loss of its batch."""

    def on_validation_end(self, trainer: Run, record: dict[str, Any]) -> None:
        """After every validation, with ``val_loss`` and the other validation metrics."""

    def on_epoch_end(self, trainer: Run, record: dict[str, Any]) -> None:
        """After every epoch and its validation, with everything that is known about it."""

    def on_fit_end(self, trainer: Run) -> None:
        """After the last step, also if the run was stopped."""

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint has to keep."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what :meth:`state_dict` gave."""


class EarlyStopping(Callback):
    """Ends the run when a validation metric has not become better for a while.

    Args:
        metric: its name in the validation record: ``"val_loss"``, ``"val_accuracy"``.
        patience: how many validations in a row may pass without a better value.
        min_delta: how much better a value must be to count.
        mode: whether ``"min"`` or ``"max"`` is better.
        restore_best: give the model the weights (and statistics) of its best validation when the run ends.

    Example:
        >>> import extensor as et
        >>> stopping = et.train.EarlyStopping("val_accuracy", patience=3, mode="max")
        >>> stopping.state_dict()
        {'best': -inf, 'waited': 0}
    """

    def __init__(
        self,
        metric: str = "val_loss",
        patience: int = 5,
        min_delta: float = 0.0,
        mode: Literal["min", "max"] = "min",
        restore_best: bool = False,
    ) -> None:
        self.restore_best = as_bool("EarlyStopping", "restore_best", restore_best)
        self.weights: dict[str, ExTensor] | None = None
        self.metric = metric
        self.patience = as_int("EarlyStopping", "patience", patience)
        self.min_delta = as_number("EarlyStopping", "min_delta", min_delta)
        if self.patience < 1 or not self.min_delta >= 0:
            raise ValueError(
                f"[EarlyStopping] patience must be at least 1 and min_delta 0, got {patience} and {min_delta}"
            )
        if mode not in ("min", "max"):
            raise ValueError(f"[EarlyStopping] mode must be 'min' or 'max', got {describe(mode)}")
        self.mode = mode
        self.best = math.inf if mode == "min" else -math.inf
        self.waited = 0

    def on_validation_end(self, trainer: Run, record: dict[str, Any]) -> None:
        if self.metric not in record:
            raise ValueError(
                f"[EarlyStopping] there is no metric {self.metric!r}; there are {', '.join(record)}"
            )
        value = record[self.metric]
        gain = self.best - value if self.mode == "min" else value - self.best
        if gain > self.min_delta:  # never true for a nan
            self.best, self.waited = value, 0
            if self.restore_best:  # tensors never change: those of the moment are kept without a copy
                self.weights = trainer.model.state_dict()
            return
        self.waited += 1
        if self.waited >= self.patience:
            trainer.stop(
                f"{self.metric} has not become better than {self.best:.6g} for {self.waited} validations"
            )

    def on_fit_end(self, trainer: Run) -> None:
        if self.weights is not None and not trainer.interrupted:
            trainer.model.load_state_dict(self.weights)

    def state_dict(self) -> dict[str, Any]:
        kept = {"weights": self.weights} if self.weights is not None else {}
        return {"best": self.best, "waited": self.waited, **kept}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.weights = dict(state["weights"]) if "weights" in state else None
        self.best, self.waited = float(state["best"]), as_int("EarlyStopping", "waited", state["waited"])
