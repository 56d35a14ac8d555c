"""The loop of one call of ``fit``: steps, schedules, validation, and what is due after each of them."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ..data import DataLoader
from ..distributed import World
from ..optim import ReduceLROnPlateau
from .batches import groups, sharded_groups
from .callbacks import EarlyStopping
from .display import Display
from .divided_optimizer import DividedOptimizer, can_divide
from .evaluation import evaluate
from .gradients import accumulate_gradients, clip_gradients
from .history import History
from .interrupts import Interrupts
from .layer_statistics import gradient_norms, update_ratios, values_of
from .run_folder import RunFolder
from .run_state import run_state
from .running_statistics import RunningStatistics
from .settings import time_of_day
from .sharded_gradients import ShardedGradients
from .trainer_base import TrainerBase

__all__ = ["Length", "TrainingLoop"]


@dataclass(frozen=True)
class Length:
    """How long to train: so many epochs, or so many optimiser steps."""

    number: int
    by_epochs: bool

    def steps(self, batches: int, accumulate: int) -> int:
        """The number of optimiser steps, for epochs of so many batches."""
        return self.number * math.ceil(batches / accumulate) if self.by_epochs else self.number


class TrainingLoop:
    """Trains until the run is over. Made for one call of ``fit``."""

    def __init__(
        self,
        trainer: TrainerBase,
        train: DataLoader,
        validation: Iterable[Any] | None,
        length: Length,
        folder: RunFolder,
        display: Display,
    ) -> None:
        self.trainer, self.progress = trainer, trainer.progress
        self.train, self.validation, self.length = train, validation, length
        self.folder, self.display = folder, display
        self.history = History()
        self._statistics = RunningStatistics(trainer.model)
        self._started = time.monotonic()
        self._agreed = 0
        self._world = trainer.world or World.alone()
        self._sharded = (
            None if trainer.shards is None else ShardedGradients(trainer, self._world, trainer.shards)
        )
        if self._sharded is not None and self._world.size > 1 and can_divide(trainer.optimizer):
            trainer.divided = DividedOptimizer(trainer.optimizer, self._sharded)

    @property
    def total_steps(self) -> int | None:
        """How many steps the run has; None where the data has no length."""
        if self.length.by_epochs and self.train.length is None:
            return None
        return self.length.steps(self.train.length or 0, self.trainer.accumulate)

    def run(self, interrupts: Interrupts) -> None:
        """Step after step until the length is reached, a callback stops the run, or it is interrupted."""
        self.trainer.model.train()
        for callback in self.trainer.callbacks:
            callback.on_fit_start(self.trainer)
        try:
            self._agree(interrupts)
            while not self._is_over(interrupts):
                for batches in self._groups():
                    self._step(batches)
                    self._after_step()
                    self._agree(interrupts)
                    if self._is_over(interrupts):
                        break
                if self.train.at_end and not self._asked_to_stop(interrupts):
                    if not self.train.position:
                        raise ValueError("[fit] there are no batches: the iterable is empty")
                    self._end_epoch()
                    self._agree(interrupts)
            self._end(interrupts)
        except FloatingPointError as error:
            self._write_end(str(error))
            raise

    def _groups(self) -> Iterator[list[Any]]:
        if self._sharded is None:
            return groups(self.train, self.trainer.accumulate)
        return sharded_groups(self.train, self.trainer.accumulate, self._sharded.shards, self._sharded.own)

    def _agree(self, interrupts: Interrupts) -> None:
        """Let all ranks stop at the same step if one of them was asked to."""
        if self._world.size == 1:
            return
        wish = 2 if interrupts.received is not None else 1 if self.progress.stop_reason is not None else 0
        self._agreed = self._world.highest(wish)
        if self._agreed:
            told = self._world.gather([interrupts.received, self.progress.stop_reason])
            interrupts.received = next((row[0] for row in told if row[0] is not None), None)
            self.progress.stop_reason = next((row[1] for row in told if row[1] is not None), None)

    def _asked_to_stop(self, interrupts: Interrupts) -> bool:
        if self._world.size > 1:
            return self._agreed > 0
        return interrupts.received is not None or self.progress.stop_reason is not None

    def _is_over(self, interrupts: Interrupts) -> bool:
        began_step, began_epoch = self.progress.began_at
        done = self.progress.epoch - began_epoch if self.length.by_epochs else self.progress.step - began_step
        return done >= self.length.number or self._asked_to_stop(interrupts)

    # A step

    def _step(self, batches: list[Any]) -> None:
        """Gradients, one step of the optimiser and of the schedule, and what the log wants to know of it."""
        trainer = self.trainer
        with trainer.mixed_precision.block():
            if self._sharded is None:
                loss = accumulate_gradients(trainer, batches, self._statistics)
            else:
                self._sharded.whole = self._needs_gradients()
                loss = self._sharded(batches)
        is_made = trainer.mixed_precision.unscale(trainer.optimizer)
        norm = clip_gradients(trainer) if is_made else None
        next_step = self.progress.step + 1
        is_due = trainer.layers_every and next_step % trainer.layers_every == 0
        watched = bool(self.folder.log and is_due and is_made)
        layers = {"grad_norm": gradient_norms(trainer.model)} if watched else {}
        before = values_of(trainer.model) if watched else {}
        lr = trainer.optimizer.param_groups[0]["lr"]
        if is_made:
            (trainer.optimizer if trainer.divided is None else trainer.divided).step()
        trainer.mixed_precision.update()
        trainer.step_schedule("step")
        self.progress.step = next_step
        if watched:
            layers["update_ratio"] = update_ratios(trainer.model, before)
            self.folder.write({"kind": "layers", "step": next_step, **layers})
        self._log_step(loss, lr, norm)
        for callback in trainer.callbacks:
            callback.on_step_end(trainer, loss)

    def _needs_gradients(self) -> bool:
        """Whether anyone but a divided optimiser looks at the gradients of this step."""
        trainer, next_step = self.trainer, self.progress.step + 1
        return (
            trainer.divided is None
            or trainer.clip_norm is not None
            or trainer.clip_value is not None
            or trainer.scaler is not None
            or any(not isinstance(callback, EarlyStopping) for callback in trainer.callbacks)
            or bool(trainer.layers_every and next_step % trainer.layers_every == 0)
        )

    def _log_step(self, loss: float, lr: float, norm: float | None) -> None:
        progress = self.progress
        if math.isfinite(loss):  # a step that a loss scaler skips may have none
            progress.window["loss"] += loss
            progress.window["steps"] += 1
        due = progress.step % self.trainer.log_every == 0
        if self._sharded is not None:
            self._sharded.settle_metrics(force=due)
        speed = progress.samples_per_second
        began_step, began_epoch = progress.began_at
        self.display.on_step(
            progress.step - began_step, progress.epoch - began_epoch, progress.totals.values, speed
        )
        if not due:
            return
        record: dict[str, Any] = {"kind": "step", "step": progress.step, "epoch": progress.epoch}
        steps = progress.window["steps"]
        record |= {"loss": progress.window["loss"] / steps if steps else None, "lr": lr}
        record |= {} if norm is None else {"grad_norm": norm}
        record |= self.trainer.mixed_precision.record()
        metrics = {name: value for name, value in progress.totals.values().items() if name != "loss"}
        so_far = {name: value for name, value in metrics.items() if isinstance(value, (int, float))}
        record |= {"epoch_so_far": so_far} if so_far else {}
        self.folder.write(record | {"samples_per_second": speed})
        progress.window = {"loss": 0.0, "steps": 0}

    def _after_step(self) -> None:
        """What is due at the number of steps made: validation, a checkpoint."""
        step, trainer = self.progress.step, self.trainer
        if trainer.validate_every and step % trainer.validate_every == 0:
            self._validate_by_steps()
        if trainer.checkpoint_every and step % trainer.checkpoint_every == 0:
            self._save_checkpoint()

    # An epoch, and the end

    def _end_epoch(self) -> None:
        progress = self.progress
        if self._sharded is not None:
            self._sharded.settle_metrics()
        record = {"kind": "epoch", "epoch": progress.epoch + 1, "step": progress.step}
        record |= progress.totals.values()
        seconds, speed = progress.seconds, progress.samples_per_second
        if not self.trainer.validate_every:
            record |= self._validate(progress.epoch + 1)
        self.trainer.step_schedule("epoch")
        progress.epoch += 1
        record |= {"lr": self.trainer.optimizer.param_groups[0]["lr"], "seconds": seconds}
        self._record(record | {"samples_per_second": speed})
        self.train.advance()
        progress.begin_epoch()
        for callback in self.trainer.callbacks:
            callback.on_epoch_end(self.trainer, self.history.records[-1])
        self._save_checkpoint()

    def _end(self, interrupts: Interrupts) -> None:
        history = self.history
        history.steps = self.progress.step
        if self.progress.stop_reason is not None:
            history.stopped = self.progress.stop_reason
        elif self._asked_to_stop(interrupts):
            history.stopped = "interrupted"
        elif self.trainer.validate_every and self.validation is not None:
            self._validate_by_steps()
        self._save_checkpoint()
        if self.trainer.divided is not None:
            self.trainer.divided.close()
        self.trainer.interrupted = history.stopped == "interrupted"
        # before the weights are kept: a callback may restore the best
        for callback in self.trainer.callbacks:
            callback.on_fit_end(self.trainer)
        if not self.trainer.interrupted:
            self._save_weights("model.safetensors", self.progress.epoch, {})
        self._write_end(history.stopped)
        scaler = self.trainer.scaler
        if scaler is not None and scaler.skipped:
            self.display.message(
                f"Skipped {scaler.skipped} steps, whose gradients overflowed; the loss scale is {scaler.get_scale():g}."
            )
        if history.stopped != "finished":
            resumable = history.stopped == "interrupted" and self.folder.path is not None
            kept = " A checkpoint is written; resume the run to go on from it." if resumable else ""
            self.display.message(f"Stopped at step {self.progress.step}: {history.stopped}.{kept}")

    # Validation

    def _validate_by_steps(self) -> None:
        """A validation that is due at a step, unless it was made there already."""
        if self.progress.validated_at != self.progress.step:
            self._record(
                {"kind": "validation", **self.progress.position, **self._validate(self.progress.epoch)}
            )

    def _validate(self, epochs: int) -> dict[str, Any]:
        """Metrics of the weights after so many whole epochs, which are kept if they are the best."""
        if self.validation is None:
            return {}
        began = time.monotonic()
        found = {f"val_{name}": value for name, value in evaluate(self.trainer, self.validation).items()}
        if isinstance(self.validation, DataLoader):
            self.validation.advance()  # a checkpoint must not find it at the end of this one
        self.progress.pause(time.monotonic() - began)  # the speed is that of training
        self.progress.validated_at = self.progress.step
        if isinstance(self.trainer.schedule, ReduceLROnPlateau):
            self.trainer.schedule.step(found["val_loss"])
        self._keep_best(found, epochs)
        for callback in self.trainer.callbacks:
            callback.on_validation_end(self.trainer, found)
        return found

    def _keep_best(self, found: dict[str, Any], epochs: int) -> None:
        name, best = self.trainer.monitor, self.progress.best
        if name not in found:
            raise ValueError(f"[Trainer] monitor: there is no metric {name!r}; there are {', '.join(found)}")
        value, loss = found[name], found["val_loss"]
        better = best is None or (value < best if self.trainer.monitor_mode == "min" else value > best)
        if value == best and self.progress.best_loss is not None:  # few samples have the same accuracy often
            better = loss < self.progress.best_loss
        if better and not math.isnan(value):
            self.progress.best, self.progress.best_loss = value, loss
            self._save_weights("best.safetensors", epochs, {name: repr(value)})

    # What is kept

    def write_beginning(self, resumed: bool) -> None:
        """The record that opens the run, or its continuation."""
        record = {"kind": "resume" if resumed else "begin", **self.progress.position, "at": time_of_day()}
        if self.total_steps is not None:
            record["total_steps"] = self.progress.began_at[0] + self.total_steps
        record |= {} if resumed else {**self.trainer.made_with, "precision": self.trainer.precision}
        if self.trainer.mixed_precision.reason is not None:
            record["precision_reason"] = self.trainer.mixed_precision.reason
        self.folder.write_frame(record)

    def _write_end(self, reason: str) -> None:
        record = {"kind": "end", **self.progress.position, "at": time_of_day(), "stopped": reason}
        self.folder.write_frame(record | {"seconds": time.monotonic() - self._started})

    def _record(self, record: dict[str, Any]) -> None:
        self.history.records.append(record)
        self.folder.write(record)
        self.display.on_record(record)
        self.folder.flush()

    def _save_checkpoint(self) -> None:
        progress = self.progress
        standing = (progress.step, progress.epoch, progress.validated_at, progress.stop_reason)
        if self._sharded is not None:
            self._sharded.settle_metrics()
        if self.trainer.folder is not None:  # of ranks that write nothing, the state has parts
            state = run_state(self.trainer, self.train, self.validation)
            self.folder.save_checkpoint(progress.step, standing, state)

    def _save_weights(self, name: str, epochs: int, texts: dict[str, str]) -> None:
        where = {"step": str(self.progress.step), "epoch": str(epochs)}
        self.folder.save_weights(name, self.trainer.model, where | texts)
