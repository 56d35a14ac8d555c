"""What a trainer is given, checked, and how far it came: the ground the loop and the checkpoints stand on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from ..checks import as_bool, as_int, as_number
from ..distributed import World
from ..errors import describe
from ..nn import Module
from ..optim import LossScaler, LRScheduler, Optimizer, ReduceLROnPlateau
from ..tensor import ExTensor
from .callbacks import Callback
from .display import Kind
from .metrics import Metric
from .mixed_precision import MixedPrecision, Precision
from .passes import Passes
from .progress import Progress
from .scores import metrics_named
from .settings import settings_of

__all__ = ["TrainerBase", "at_least", "of_type"]


class TrainerBase:
    """The options of :class:`~extensor.train.Trainer`, where they are explained, and its progress."""

    def __init__(
        self,
        model: Module,
        optimizer: Optimizer,
        loss: Callable[[Any, Any], ExTensor],
        *,
        schedule: LRScheduler | None = None,
        schedule_every: Literal["step", "epoch"] = "step",
        metrics: Mapping[str, Metric | str] | Iterable[str] | None = None,
        clip_norm: float | None = None,
        clip_value: float | None = None,
        accumulate: int = 1,
        precision: Precision = "float32",
        compile: bool = True,
        validate_every: int | None = None,
        callbacks: Iterable[Callback] = (),
        folder: Any = None,
        checkpoint_every: int | None = None,
        keep: int = 3,
        monitor: str = "val_loss",
        monitor_mode: Literal["min", "max"] = "min",
        log_every: int = 10,
        layers_every: int = 100,
        tensorboard: bool = False,
        display: Kind = "auto",
        config: Mapping[str, Any] | None = None,
        world: World | None = None,
        shards: int | None = None,
    ) -> None:
        self.model: Module = of_type("model", model, Module)
        self.optimizer: Optimizer = of_type("optimizer", optimizer, Optimizer)
        if not callable(loss):
            raise TypeError(f"[Trainer] loss must be callable, got {describe(loss)}")
        self.loss = loss
        self.schedule: LRScheduler | None = (
            None if schedule is None else of_type("schedule", schedule, LRScheduler)
        )
        self.schedule_every = _one_of("schedule_every", schedule_every, "step", "epoch")
        self.metrics: dict[str, Metric] = {
            name: of_type(f"metrics[{name!r}]", metric, Metric)
            for name, metric in metrics_named(metrics).items()
        }
        self.clip_norm = None if clip_norm is None else as_number("Trainer", "clip_norm", clip_norm)
        self.clip_value = None if clip_value is None else as_number("Trainer", "clip_value", clip_value)
        self.accumulate = at_least(1, "accumulate", accumulate)
        self.mixed_precision = MixedPrecision("Trainer", precision)
        self.passes = Passes(as_bool("Trainer", "compile", compile))
        self.validate_every = _optional(1, "validate_every", validate_every)
        self.callbacks: list[Callback] = [of_type("callbacks", callback, Callback) for callback in callbacks]
        self.folder = None if folder is None else Path(folder)
        self.checkpoint_every = _optional(1, "checkpoint_every", checkpoint_every)
        self.keep = at_least(1, "keep", keep)
        self.monitor = monitor
        self.monitor_mode = _one_of("monitor_mode", monitor_mode, "min", "max")
        self.log_every = at_least(1, "log_every", log_every)
        self.layers_every = at_least(0, "layers_every", layers_every)
        self.tensorboard = tensorboard
        self.display: Kind = display
        self.config = None if config is None else dict(config)
        self.world: World | None = None if world is None else of_type("world", world, World)
        self.shards = 8 if shards is None and world is not None else _optional(1, "shards", shards)
        if world is not None and self.shards is not None and self.shards < world.size:
            raise ValueError(
                f"[Trainer] shards must be at least 1 for each of the {world.size} processes, got {self.shards}"
            )
        self.divided: Any = None  # the optimiser while ranks share its work
        self.interrupted = False
        self.progress = Progress(self.metrics)
        self.made_with = settings_of(self.optimizer, loss, schedule)  # before a step changes the rates

    @property
    def step(self) -> int:
        """The number of optimiser steps made."""
        return self.progress.step

    @property
    def epoch(self) -> int:
        """The number of epochs finished."""
        return self.progress.epoch

    @property
    def precision(self) -> str:
        """The precision of products: as asked for, or as measured once a run with ``"auto"`` has begun."""
        return self.mixed_precision.name

    @property
    def scaler(self) -> LossScaler | None:
        """What scales the loss, in float16."""
        return self.mixed_precision.scaler

    @property
    def leads(self) -> bool:
        """Whether this process writes the log, the checkpoints and the report."""
        return self.world is None or self.world.rank == 0

    def optimizer_state(self) -> dict[str, Any]:
        """The state of the optimiser; where ranks share it, all of them together."""
        return self.optimizer.state_dict() if self.divided is None else self.divided.state_dict()

    def stop(self, reason: str) -> None:
        """End the run after the current step; for callbacks."""
        self.progress.stop_reason = reason

    def step_schedule(self, when: Literal["step", "epoch"]) -> None:
        """A step of the schedule, if it steps then; one that waits for a plateau steps after validations."""
        if (
            self.schedule is None
            or self.schedule_every != when
            or isinstance(self.schedule, ReduceLROnPlateau)
        ):
            return
        self.schedule.step()

    def replay_schedule(self) -> bool:
        """Bring the schedule to where it stands by its own steps from the beginning: its length may have changed.

        Returns whether there is one that knows its length; one that waits for a plateau does not.
        """
        if self.schedule is None or isinstance(self.schedule, ReduceLROnPlateau):
            return False
        steps = self.schedule.last_epoch
        self.schedule.restart()
        for _ in range(steps):
            self.schedule.step()
        return True


def of_type(name: str, value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"[Trainer] {name} must be a {kind.__name__}, got {describe(value)}")
    return value


def at_least(lowest: int, name: str, value: Any) -> int:
    found = as_int("Trainer", name, value)
    if found < lowest:
        raise ValueError(f"[Trainer] {name} must be at least {lowest}, got {found}")
    return found


def _optional(lowest: int, name: str, value: Any) -> int | None:
    return None if value is None else at_least(lowest, name, value)


def _one_of(name: str, value: str, first: str, second: str) -> str:
    if value not in (first, second):
        raise ValueError(f"[Trainer] {name} must be {first!r} or {second!r}, got {describe(value)}")
    return value
