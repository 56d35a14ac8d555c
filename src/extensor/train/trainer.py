"""The training loop."""

from __future__ import annotations

import contextlib
import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from ..checks import as_int, as_number
from ..data import DamagedFileError, DataLoader
from ..errors import describe
from ..graph import no_grad
from ..nn import Module
from ..optim import LRScheduler, Optimizer, ReduceLROnPlateau, clip_grad_norm, clip_grad_value
from ..tensor import ExTensor
from .callbacks import Callback
from .checkpoint import Checkpoints, load_checkpoint
from .display import Kind, display_for
from .interrupts import Interrupts, noticing_interrupts
from .layer_statistics import gradient_norms, update_ratios, values_of
from .lock import locked
from .log import Log, read_log
from .metrics import Metric
from .outputs import Outputs
from .random_state import get_random_state, set_random_state
from .running import Running
from .settings import settings_of, time_of_day
from .tensorboard import EventWriter
from .weights import save_weights
from .whole_files import remove_unfinished, write_whole

__all__ = ["History", "Trainer"]


@dataclass
class History:
    """What came of a run.

    Attributes:
        records: the epoch and validation records, in order, as they are in the log.
        steps: how many optimiser steps were made in all.
        stopped: why the run ended: ``"finished"``, ``"interrupted"``, or the reason a callback gave.
    """

    records: list[dict[str, Any]] = field(default_factory=list)
    steps: int = 0
    stopped: str = "finished"

    def last(self, name: str) -> Any:
        """The newest value of a metric; None if there is none."""
        return next((record[name] for record in reversed(self.records) if name in record), None)


class Trainer:
    """Trains a model: batches, gradients, steps, schedules, validation, logs, checkpoints.

    Args:
        model: what is trained.
        optimizer: moves its parameters.
        loss: called as ``loss(outputs, targets)``; returns a scalar, the mean over the batch. A batch without targets is
            its own target.
        schedule: changes the learning rates; a :class:`~extensor.optim.ReduceLROnPlateau` steps with ``val_loss`` after
            each validation.
        schedule_every: whether the schedule steps after every optimiser ``"step"`` or every ``"epoch"``.
        metrics: names and :class:`~extensor.train.Metric` objects, for training and (with ``val_`` before the name)
            validation.
        clip_norm: the largest norm of all gradients together.
        clip_value: the largest magnitude of any element of a gradient.
        accumulate: how many batches make one optimiser step.
        validate_every: validate after so many steps; without it, after each epoch.
        callbacks: see :class:`~extensor.train.Callback`.
        folder: where the run is kept: ``log.jsonl``, ``checkpoints/``, ``best.safetensors`` (the weights with the best
            validation) and ``model.safetensors`` (the weights at the end). Without it nothing is written.
        checkpoint_every: write a checkpoint after so many steps; one is written after each epoch and at the end anyway.
        keep: how many checkpoints to keep.
        monitor: the validation metric that decides which weights are best.
        monitor_mode: whether ``"min"`` or ``"max"`` of it is better.
        log_every: log the mean loss of every so many steps.
        layers_every: log gradient norms and update ratios of the layers every so many steps; 0 for never.
        tensorboard: write TensorBoard's event files into the folder as well.
        display: ``"auto"`` (live in a terminal, plain lines elsewhere), ``"live"``, ``"plain"`` or ``"off"``.
        config: what describes the run, in numbers, text, lists and dicts; it is kept as ``config.json`` and with the
            weights.

    Attributes:
        step: the number of optimiser steps made.
        epoch: the number of epochs finished.

    Example:
        >>> import extensor as et
        >>> from extensor import data, nn, optim, train
        >>> digits = data.digits()
        >>> loader = data.DataLoader(digits, batch_size=128, shuffle=True, rng=0)
        >>> model = nn.Sequential(nn.Flatten(), nn.Linear(64, 10, rng=0))
        >>> trainer = train.Trainer(model, optim.Adam(model.parameters(), lr=0.01), et.cross_entropy,
        ...                         metrics={"accuracy": train.Accuracy()}, display="off")
        >>> history = trainer.fit(loader, epochs=5)
        >>> history.last("accuracy") > 0.9
        True
    """

    def __init__(
        self,
        model: Module,
        optimizer: Optimizer,
        loss: Callable[[Any, Any], ExTensor],
        *,
        schedule: LRScheduler | None = None,
        schedule_every: Literal["step", "epoch"] = "step",
        metrics: Mapping[str, Metric] | None = None,
        clip_norm: float | None = None,
        clip_value: float | None = None,
        accumulate: int = 1,
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
    ) -> None:
        self.model = _of_type("model", model, Module)
        self.optimizer = _of_type("optimizer", optimizer, Optimizer)
        if not callable(loss):
            raise TypeError(f"[Trainer] loss must be callable, got {describe(loss)}")
        self.loss = loss
        self.schedule = None if schedule is None else _of_type("schedule", schedule, LRScheduler)
        if schedule_every not in ("step", "epoch"):
            raise ValueError(
                f"[Trainer] schedule_every must be 'step' or 'epoch', got {describe(schedule_every)}"
            )
        self.schedule_every = schedule_every
        self.metrics = {
            name: _of_type(f"metrics[{name!r}]", metric, Metric) for name, metric in (metrics or {}).items()
        }
        self.clip_norm = None if clip_norm is None else as_number("Trainer", "clip_norm", clip_norm)
        self.clip_value = None if clip_value is None else as_number("Trainer", "clip_value", clip_value)
        self.accumulate = _at_least(1, "accumulate", accumulate)
        self.validate_every = _optional(1, "validate_every", validate_every)
        self.callbacks = [_of_type("callbacks", callback, Callback) for callback in callbacks]
        self.folder = None if folder is None else Path(folder)
        self.checkpoint_every = _optional(1, "checkpoint_every", checkpoint_every)
        self.keep = _at_least(1, "keep", keep)
        if monitor_mode not in ("min", "max"):
            raise ValueError(f"[Trainer] monitor_mode must be 'min' or 'max', got {describe(monitor_mode)}")
        self.monitor, self.monitor_mode = monitor, monitor_mode
        self.log_every = _at_least(1, "log_every", log_every)
        self.layers_every = _at_least(0, "layers_every", layers_every)
        self.tensorboard = tensorboard
        self.display: Kind = display
        self.config = None if config is None else dict(config)
        self.step = 0
        self.epoch = 0
        self._epoch_running = Running(self.metrics)
        self._window: dict[str, float] = {"loss": 0.0, "steps": 0}  # since the last line of the log
        self._samples_since = 0
        self._clock = time.monotonic()
        self._validated_at = -1
        self._best: float | None = None
        self._stop_reason: str | None = None
        self._fit_began_at = (0, 0)  # step and epoch
        self._fit_clock = self._clock
        self._out = Outputs()

    # For the user

    def fit(
        self,
        train: DataLoader,
        *,
        epochs: int | None = None,
        steps: int | None = None,
        validation: Iterable[Any] | None = None,
        resume: bool = False,
    ) -> History:
        """Train for a number of epochs or of optimiser steps.

        A run with a folder that is killed at any moment and fitted again with ``resume=True``, by a trainer that was made
        in the same way, ends with the same weights to the bit as one that was never interrupted. Ctrl-C lets the current
        step end, writes a checkpoint and returns.

        Args:
            train: the batches.
            epochs: how many times to go through the data; or give ``steps``.
            steps: how many optimiser steps to make.
            validation: batches to validate on, usually another loader.
            resume: go on from the newest whole checkpoint in the folder; from the beginning if there is none yet.

        Returns:
            The records of the run and why it ended.

        Raises:
            FloatingPointError: the loss became nan or infinite. The weights are those before that step.
            FolderInUseError: another run is writing to the folder.
            FileExistsError: the folder holds a run and ``resume`` is False.
        """
        _of_type("train", train, DataLoader)
        if (epochs is None) == (steps is None):
            raise ValueError("[fit] needs either epochs or steps")
        length = _at_least(1, "epochs" if steps is None else "steps", epochs if steps is None else steps)
        if resume and self.folder is None:
            raise ValueError("[fit] resume needs a folder; pass Trainer(..., folder=...)")
        self._stop_reason = None
        self._fit_clock = time.monotonic()
        history = History()
        with contextlib.ExitStack() as stack:
            if self.folder is not None:
                stack.enter_context(locked("fit", self.folder))
            self._out = stack.enter_context(contextlib.closing(Outputs()))
            resumed = self.folder is not None and self._open_folder(train, validation, resume, history)
            if not resumed:
                self._fit_began_at = (self.step, self.epoch)
                self._window = {"loss": 0.0, "steps": 0}
                self._begin_counting()
            run = _Fit(train, validation, length, epochs is not None, history)
            self._log_beginning(run, resumed)
            self._out.display = display_for(self.display)
            self._out.display.start(self._total_steps(run), self.step - self._fit_began_at[0], epochs)
            interrupts = stack.enter_context(noticing_interrupts())
            try:
                self._loop(run, interrupts)
            except FloatingPointError as error:
                self._log_end(str(error))
                raise
        return history

    def evaluate(self, batches: Iterable[Any]) -> dict[str, Any]:
        """The mean loss and the metrics over some batches, in evaluation mode and without recording.

        Example:
            >>> import extensor as et
            >>> from extensor import data, nn, optim, train
            >>> model = nn.Sequential(nn.Flatten(), nn.Linear(64, 10, rng=0))
            >>> trainer = train.Trainer(model, optim.SGD(model.parameters(), lr=0.1), et.cross_entropy)
            >>> result = trainer.evaluate(data.DataLoader(data.digits(), batch_size=500))
            >>> 2 < result["loss"] < 3
            True
        """
        modes = [(module, module.training) for module in self.model.modules()]
        counted = Running(self.metrics)
        self.model.eval()
        try:
            with no_grad():
                for batch in batches:
                    inputs, targets = _inputs_and_targets(batch)
                    outputs = self.model(inputs)
                    counted.add(outputs, targets, self.loss(outputs, targets).item())
        finally:
            for module, mode in modes:
                module.training = mode
        if not counted.samples:
            raise ValueError("[evaluate] there are no batches")
        return counted.values()

    def stop(self, reason: str) -> None:
        """End the run after the current step; for callbacks."""
        self._stop_reason = reason

    # The loop

    def _loop(self, run: _Fit, interrupts: Interrupts) -> None:
        self.model.train()
        for callback in self.callbacks:
            callback.on_fit_start(self)
        while not self._is_over(run, interrupts):
            for batches in _groups(run.train, self.accumulate):
                self._train_step(batches)
                self._after_step(run)
                if self._is_over(run, interrupts):
                    break
            if run.train.position == len(run.train) and not self._asked_to_stop(interrupts):
                self._end_epoch(run)
        self._end(run, interrupts)

    def _asked_to_stop(self, interrupts: Interrupts) -> bool:
        return interrupts.received is not None or self._stop_reason is not None

    def _is_over(self, run: _Fit, interrupts: Interrupts) -> bool:
        began_step, began_epoch = self._fit_began_at
        done = self.epoch - began_epoch if run.by_epochs else self.step - began_step
        return done >= run.length or self._asked_to_stop(interrupts)

    def _total_steps(self, run: _Fit) -> int:
        return run.length * math.ceil(len(run.train) / self.accumulate) if run.by_epochs else run.length

    def _train_step(self, batches: list[Any]) -> None:
        """Forward and backward for each batch, then one step of the optimiser and of the schedule."""
        self.optimizer.zero_grad()
        total = 0.0
        for batch in batches:
            inputs, targets = _inputs_and_targets(batch)
            outputs = self.model(inputs)
            loss = self.loss(outputs, targets)
            value = loss.item()
            if not math.isfinite(value):
                raise FloatingPointError(
                    f"[Trainer] the loss is {value} at step {self.step + 1}; try a smaller learning rate or clip_norm=1.0"
                )
            (loss if len(batches) == 1 else loss / len(batches)).backward()
            total += value / len(batches)
            self._epoch_running.add(outputs, targets, value)
            self._samples_since += len(inputs)
        norm = self._clip()
        next_step = self.step + 1
        watched = bool(self._out.log and self.layers_every and next_step % self.layers_every == 0)
        layers = {"grad_norm": gradient_norms(self.model)} if watched else {}
        before = values_of(self.model) if watched else {}
        rates = [group["lr"] for group in self.optimizer.param_groups]
        self.optimizer.step()
        if self.schedule is not None and self.schedule_every == "step" and not self._on_plateau():
            self.schedule.step()
        self.step = next_step
        if watched:
            layers["update_ratio"] = update_ratios(self.model, before)
            self._out.write({"kind": "layers", "step": self.step, **layers})
        self._log_step(total, rates[0], norm)
        for callback in self.callbacks:
            callback.on_step_end(self, total)

    def _clip(self) -> float | None:
        """Hold the gradients within the bounds; returns the norm they had, if it was asked for."""
        if self.clip_norm is None and self.clip_value is None:
            return None
        moving = [p for p in self.model.parameters() if p.grad is not None]
        grads: Any = [p.grad for p in moving]
        norm = None
        if self.clip_value is not None:
            grads = clip_grad_value(grads, self.clip_value)
        if self.clip_norm is not None:
            grads, total = clip_grad_norm(grads, self.clip_norm)
            norm = total.item()
        for parameter, grad in zip(moving, grads):
            parameter.grad = grad
        return norm

    def _on_plateau(self) -> bool:
        return isinstance(self.schedule, ReduceLROnPlateau)

    def _log_step(self, loss: float, lr: float, norm: float | None) -> None:
        self._window["loss"] += loss
        self._window["steps"] += 1
        elapsed = time.monotonic() - self._clock
        speed = self._samples_since / elapsed if elapsed > 0 else 0.0
        self._out.display.on_step(
            self.step - self._fit_began_at[0],
            self.epoch - self._fit_began_at[1],
            self._epoch_running.values,
            speed,
        )
        if self.step % self.log_every:
            return
        record = {"kind": "step", "step": self.step, "epoch": self.epoch}
        record |= {"loss": self._window["loss"] / self._window["steps"], "lr": lr}
        record |= {} if norm is None else {"grad_norm": norm}
        metrics = {name: value for name, value in self._epoch_running.values().items() if name != "loss"}
        so_far = {name: value for name, value in metrics.items() if isinstance(value, (int, float))}
        record |= {"epoch_so_far": so_far} if so_far else {}
        self._out.write(record | {"samples_per_second": speed})
        self._window = {"loss": 0.0, "steps": 0}

    def _after_step(self, run: _Fit) -> None:
        """What is due at the number of steps made: validation, a checkpoint."""
        if self.validate_every and self.step % self.validate_every == 0 and self._validated_at != self.step:
            self._record(run, {"kind": "validation", **self._position(), **self._validate(run)})
        if self.checkpoint_every and self.step % self.checkpoint_every == 0:
            self._checkpoint(run)

    def _end_epoch(self, run: _Fit) -> None:
        record = {"kind": "epoch", "epoch": self.epoch + 1, "step": self.step, **self._epoch_running.values()}
        elapsed = time.monotonic() - self._clock
        if not self.validate_every:
            record |= self._validate(run)
        if self.schedule is not None and self.schedule_every == "epoch" and not self._on_plateau():
            self.schedule.step()
        self.epoch += 1
        record |= {"lr": self.optimizer.param_groups[0]["lr"], "seconds": elapsed}
        record |= {"samples_per_second": self._samples_since / elapsed if elapsed > 0 else 0.0}
        self._record(run, record)
        run.train.advance()
        self._begin_counting()
        for callback in self.callbacks:
            callback.on_epoch_end(self, record)
        self._checkpoint(run)

    def _end(self, run: _Fit, interrupts: Interrupts) -> None:
        run.history.steps = self.step
        if self._stop_reason is not None:
            run.history.stopped = self._stop_reason
        elif interrupts.received is not None:
            run.history.stopped = "interrupted"
        elif self.validate_every and run.validation is not None and self._validated_at != self.step:
            self._record(run, {"kind": "validation", **self._position(), **self._validate(run)})
        self._checkpoint(run)
        if run.history.stopped != "interrupted":
            self._save_weights("model.safetensors", {})
        self._log_end(run.history.stopped)
        for callback in self.callbacks:
            callback.on_fit_end(self)
        if run.history.stopped != "finished":
            kept = " A checkpoint is written; resume the run to go on from it." if self.folder else ""
            self._out.display.message(f"Stopped at step {self.step}: {run.history.stopped}.{kept}")

    def _position(self) -> dict[str, Any]:
        return {"epoch": self.epoch, "step": self.step}

    def _begin_counting(self) -> None:
        """A new epoch: its sums, its clock."""
        self._epoch_running = Running(self.metrics)
        self._samples_since = 0
        self._clock = time.monotonic()

    # What frames the log; not for the event files, which hold numbers alone

    def _log_beginning(self, run: _Fit, resumed: bool) -> None:
        if self._out.log is None:
            return
        record = {"kind": "resume" if resumed else "begin", **self._position(), "at": time_of_day()}
        record["total_steps"] = self._fit_began_at[0] + self._total_steps(run)
        settings = {} if resumed else settings_of(self.optimizer, self.loss, self.schedule)
        self._out.log.write(record | settings)
        self._out.log.flush()

    def _log_end(self, reason: str) -> None:
        if self._out.log is not None:
            record = {"kind": "end", **self._position(), "at": time_of_day(), "stopped": reason}
            self._out.log.write(record | {"seconds": time.monotonic() - self._fit_clock})

    # Validation and records

    def _validate(self, run: _Fit) -> dict[str, Any]:
        if run.validation is None:
            return {}
        began = time.monotonic()
        found = {f"val_{name}": value for name, value in self.evaluate(run.validation).items()}
        if isinstance(run.validation, DataLoader):
            run.validation.advance()  # a checkpoint must not find it at the end of this one
        self._clock += time.monotonic() - began  # the speed is that of training
        self._validated_at = self.step
        if isinstance(self.schedule, ReduceLROnPlateau):
            self.schedule.step(found["val_loss"])
        self._keep_best(found)
        for callback in self.callbacks:
            callback.on_validation_end(self, found)
        return found

    def _keep_best(self, found: dict[str, Any]) -> None:
        if self.monitor not in found:
            raise ValueError(
                f"[Trainer] monitor: there is no metric {self.monitor!r}; there are {', '.join(found)}"
            )
        value = found[self.monitor]
        best = self._best
        better = best is None or (value < best if self.monitor_mode == "min" else value > best)
        if better and not math.isnan(value):
            self._best = value
            self._save_weights("best.safetensors", {self.monitor: repr(value)})

    def _record(self, run: _Fit, record: dict[str, Any]) -> None:
        run.history.records.append(record)
        self._out.write(record)
        self._out.display.on_record(record)
        self._out.flush()

    # The folder

    def _open_folder(self, train: DataLoader, validation: Any, resume: bool, history: History) -> bool:
        """Make the folder ready and load the newest checkpoint; returns whether there was one."""
        assert self.folder is not None
        checkpoints = Checkpoints(self.folder / "checkpoints", self.keep)
        for place in (self.folder, checkpoints.folder):
            remove_unfinished(place)
        log_path, length, found = self.folder / "log.jsonl", 0, None
        if checkpoints.files():
            if not resume:
                raise FileExistsError(
                    f"[fit] {self.folder} holds a run already; pass resume=True to go on with it, or choose another folder"
                )
            found = checkpoints.latest()
            if found is None:
                raise DamagedFileError(
                    f"[fit] every checkpoint in {checkpoints.folder} is damaged; remove them to start from the beginning"
                )
            state = load_checkpoint(found)
            self._load_state(state, train, validation, found)
            length = as_int("fit", "log", state["log"])
        self._out.checkpoints = checkpoints
        self._out.log = Log(log_path, length)
        if found is not None:
            history.records += [r for r in read_log(log_path) if r["kind"] in ("epoch", "validation")]
        elif self.config is not None:
            write_whole("fit", self.folder / "config.json", [json.dumps(self.config, indent=2).encode()])
        if self.tensorboard:
            self._out.events = EventWriter(self.folder / "events", self.step + 1 if found else 0)
        return found is not None

    def _checkpoint(self, run: _Fit) -> None:
        if self._out.checkpoints is None or self._out.log is None:
            return
        now = (self.step, self.epoch, self._validated_at, self._stop_reason)
        if now == self._out.saved_at:
            return
        self._out.flush()
        log_length = self._out.log.sync()
        self._out.saved_at = now
        self._out.checkpoints.save(self.step, {**self._state(run.train, run.validation), "log": log_length})

    def _save_weights(self, name: str, metadata: dict[str, str]) -> None:
        if self.folder is not None:
            texts = {"step": str(self.step), "epoch": str(self.epoch), **metadata}
            texts |= {} if self.config is None else {"config": json.dumps(self.config)}
            save_weights(self.folder / name, self.model.state_dict(), texts)

    def _state(self, train: DataLoader, validation: Any) -> dict[str, Any]:
        """Everything that decides how the run goes on."""
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "schedule": None if self.schedule is None else self.schedule.state_dict(),
            "random": get_random_state(self.model),
            "data": train.state_dict(),
            "validation": validation.state_dict() if isinstance(validation, DataLoader) else None,
            "callbacks": [callback.state_dict() for callback in self.callbacks],
            "progress": {
                "step": self.step,
                "epoch": self.epoch,
                "began_at": list(self._fit_began_at),
                "validated_at": self._validated_at,
                "stopped": self._stop_reason,
                "best": self._best,
                "window": dict(self._window),
                "running": self._epoch_running.state_dict(),
            },
        }

    def _load_state(self, state: dict[str, Any], train: DataLoader, validation: Any, path: Path) -> None:
        """Take over a state; if any part of it does not fit, everything is as it was."""
        before = self._state(train, validation)
        try:
            self._apply_state(state, train, validation)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            self._apply_state(before, train, validation)
            reason = f"it has no {error}" if isinstance(error, KeyError) else str(error)
            raise ValueError(f"[fit] {path} does not fit this trainer: {reason}") from error

    def _apply_state(self, state: dict[str, Any], train: DataLoader, validation: Any) -> None:
        if (state["schedule"] is None) != (self.schedule is None):
            raise ValueError("only one of the two has a schedule")
        if len(state["callbacks"]) != len(self.callbacks):
            raise ValueError(
                f"it has {len(state['callbacks'])} callbacks, the trainer has {len(self.callbacks)}"
            )
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        if self.schedule is not None:
            self.schedule.load_state_dict(state["schedule"])
        set_random_state(self.model, state["random"])
        train.load_state_dict(state["data"])
        if isinstance(validation, DataLoader) and state["validation"] is not None:
            validation.load_state_dict(state["validation"])
        for callback, saved in zip(self.callbacks, state["callbacks"]):
            callback.load_state_dict(saved)
        progress = state["progress"]
        running = Running(self.metrics)
        running.load_state_dict(progress["running"])
        began_step, began_epoch = progress["began_at"]
        window = {"loss": float(progress["window"]["loss"]), "steps": int(progress["window"]["steps"])}
        self.step, self.epoch = int(progress["step"]), int(progress["epoch"])
        self._begin_counting()
        self._fit_began_at = (int(began_step), int(began_epoch))
        self._validated_at, self._best = int(progress["validated_at"]), progress["best"]
        self._stop_reason = progress["stopped"]
        self._epoch_running, self._window = running, window


@dataclass
class _Fit:
    """What one call of ``fit`` was given."""

    train: DataLoader
    validation: Iterable[Any] | None
    length: int
    by_epochs: bool
    history: History


def _groups(train: DataLoader, size: int) -> Iterator[list[Any]]:
    """The batches of an epoch, ``size`` at a time; the last group may be smaller."""
    batches = iter(train)
    while group := list(islice(batches, size)):
        yield group


def _inputs_and_targets(batch: Any) -> tuple[Any, Any]:
    if not isinstance(batch, (tuple, list)) or len(batch) != 2:
        raise TypeError(f"[Trainer] a batch must be (inputs, targets), got {describe(batch)}")
    inputs, targets = batch
    return inputs, inputs if targets is None else targets


def _of_type(name: str, value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"[Trainer] {name} must be a {kind.__name__}, got {describe(value)}")
    return value


def _at_least(lowest: int, name: str, value: Any) -> int:
    found = as_int("Trainer", name, value)
    if found < lowest:
        raise ValueError(f"[Trainer] {name} must be at least {lowest}, got {found}")
    return found


def _optional(lowest: int, name: str, value: Any) -> int | None:
    return None if value is None else _at_least(lowest, name, value)
