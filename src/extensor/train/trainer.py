"""The training loop, as people call it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

from .._progress import listening
from ..checks import as_int
from ..distributed import World
from ..errors import describe
from ..tensor import ExTensor
from .agreement import check_alike
from .batches import as_loader
from .display import display_for
from .evaluation import evaluate, predict
from .gradients import choose_precision
from .history import History
from .interrupts import noticing_interrupts
from .lock import locked
from .loop import Length, TrainingLoop
from .run_folder import RunFolder
from .run_state import load_run_state, other_build
from .trainer_base import TrainerBase, at_least

__all__ = ["History", "Trainer"]


class Trainer(TrainerBase):
    """Trains a model: batches, gradients, steps, schedules, validation, logs, checkpoints.

    Args:
        model: what is trained.
        optimizer: moves its parameters.
        loss: called as ``loss(outputs, targets)``; returns a scalar, the mean over the batch. A batch without targets is
            its own target.
        schedule: changes the learning rates; a :class:`~extensor.optim.ReduceLROnPlateau` steps with ``val_loss`` after
            each validation.
        schedule_every: whether the schedule steps after every optimiser ``"step"`` or every ``"epoch"``.
        metrics: names (``["accuracy", "f1", "top_5"]``, ``["mae", "r2"]``; see :func:`~extensor.train.metric_named`), or a dict of
            names and :class:`~extensor.train.Metric` objects, for training and (with ``val_`` before the name)
            validation.
        clip_norm: the largest norm of all gradients together.
        clip_value: the largest magnitude of any element of a gradient.
        accumulate: how many batches make one optimiser step.
        precision: of products (:func:`extensor.autocast`): ``"float32"``, ``"bfloat16"``, ``"float16"`` with a
            :class:`~extensor.optim.LossScaler`, whose overflowing steps are skipped, or ``"auto"``: a few steps are measured,
            and bfloat16 is taken if it is faster. Weights and their updates stay in float32.
        compile: record forward and backward pass once for each shape of a batch and repeat them natively
            (:func:`extensor.compile`); the weights are the same bits. What cannot be recorded runs as it is written.
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
        display: ``"auto"`` (live in a terminal and in a notebook, plain lines elsewhere), ``"live"``, ``"plain"`` or ``"off"``.
        config: what describes the run, in numbers, text, lists and dicts; it is kept as ``config.json`` and with the
            weights.
        world: the processes that train together, see :class:`extensor.distributed.World`; each makes the same trainer.
        shards: how many parts each batch is cut into, by position; each is one forward and backward pass with random
            numbers and batch statistics of its own. The weights follow from it, and not from the number of processes,
            which may be from 1 to ``shards``. 8 with a world; without one, batches are not cut.

    Attributes:
        step: the number of optimiser steps made.
        epoch: the number of epochs finished.
        precision: the precision of products; what ``"auto"`` came to, once a run has begun.
        scaler: the loss scaler of ``"float16"``, or None.

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

    def fit(
        self,
        train: Any,
        *,
        epochs: int | None = None,
        steps: int | None = None,
        validation: Iterable[Any] | None = None,
        resume: bool = False,
        overwrite: bool = False,
        interrupt: Literal["raise", "return"] = "raise",
    ) -> History:
        """Train for a number of epochs or of optimiser steps.

        A run with a folder that is killed at any moment and fitted again with ``resume=True``, by a trainer that was made
        in the same way, ends with the same weights to the bit as one that was never interrupted. Ctrl-C lets the current
        step end, writes a checkpoint and raises KeyboardInterrupt then.

        Args:
            train: the batches: a :class:`~extensor.data.DataLoader`, a :class:`~extensor.data.Dataset` (in batches of 32, shuffled), or
                any iterable of batches, of another library's loader too. A batch is ``(inputs, targets)``; ``(a, b, targets)``, for a
                model that is called as ``model(a, b)``; or a dict with ``"targets"``, the others being arguments by name.
            epochs: how many times to go through the data; or give ``steps``.
            steps: how many optimiser steps to make.
            validation: batches to validate on, usually another loader.
            interrupt: ``"return"`` to return the history after a Ctrl-C instead.
            resume: go on from the newest whole checkpoint in the folder; from the beginning if there is none yet.
            overwrite: remove the run that the folder holds and begin a new one, as a notebook's cell that runs again does.

        Returns:
            The records of the run and why it ended.

        Raises:
            FloatingPointError: the loss became nan or infinite. The weights are those before that step.
            FolderInUseError: another run is writing to the folder.
            FileExistsError: the folder holds a run, and neither ``resume`` nor ``overwrite`` is True.
        """
        train = as_loader(train)
        if (epochs is None) == (steps is None):
            raise ValueError("[fit] needs either epochs or steps")
        length = Length(
            at_least(1, "epochs" if steps is None else "steps", epochs if steps is None else steps),
            steps is None,
        )
        if interrupt not in ("raise", "return"):
            raise ValueError(f"[fit] interrupt must be 'raise' or 'return', got {describe(interrupt)}")
        if resume and self.folder is None:
            raise ValueError("[fit] resume needs a folder; pass Trainer(..., folder=...)")
        if resume and overwrite:
            raise ValueError(
                "[fit] resume goes on with the run in the folder, overwrite removes it; choose one"
            )
        self.progress.stop_reason = None
        world = self.world or World.alone()
        check_alike(world, self, train, validation)
        with contextlib.ExitStack() as stack:
            stack.enter_context(failing_together(world))
            if self.folder is not None and self.leads:
                stack.enter_context(locked("fit", self.folder))
            folder = RunFolder(self.folder if self.leads else None, self.keep, self.tensorboard, self.config)
            stack.enter_context(contextlib.closing(folder))
            if overwrite:
                folder.remove_run()
            newest = folder.newest_checkpoint(resume)
            found = world.broadcast(None if newest is None else (str(newest[0]), newest[1]))
            log_length = None
            if found is None:
                self.progress.begin_fit()
            else:
                path, state = found
                load_run_state(self, state, train, validation, Path(path))
                log_length = as_int("fit", "log", state["log"])
            folder.open(log_length, self.step)
            display = display_for(self.display if self.leads else "off")
            loop = TrainingLoop(self, train, validation, length, folder, display)
            messages = [] if found is None else self._changes(found[1], loop.total_steps)
            if self.precision == "auto":
                choose_precision(self, train)
                self.mixed_precision.name = world.broadcast(self.mixed_precision.name)
                messages.append(f"{self.mixed_precision.reason}.".capitalize())
            self.progress.planned_steps = loop.total_steps
            if found is not None:
                loop.history.records += world.broadcast(folder.earlier_records())
            loop.write_beginning(resumed=found is not None)
            stack.callback(display.stop)
            display.start(loop.total_steps or 0, self.step - self.progress.began_at[0], epochs)
            stack.enter_context(listening(display))
            for text in messages:
                display.message(text)
            interrupts = stack.enter_context(noticing_interrupts())
            loop.run(interrupts)
        if loop.history.stopped == "interrupted" and interrupts.received == "SIGINT" and interrupt == "raise":
            raise KeyboardInterrupt
        return loop.history

    def _changes(self, state: dict[str, Any], total_steps: int | None) -> list[str]:
        """What is not as it was when the run was left, a sentence each; a longer run gets its schedule planned anew."""
        messages = []
        elsewhere = other_build(state)
        if elsewhere is not None:
            messages.append(f"Resuming: {elsewhere}. The run goes on, but its last bits may differ.")
        planned = self.progress.planned_steps
        if (
            planned is not None
            and total_steps is not None
            and planned != total_steps
            and self.replay_schedule()
        ):
            rate = self.optimizer.param_groups[0]["lr"]
            messages.append(
                f"Resuming: planned for {planned} steps, now for {total_steps}; the schedule is planned anew, "
                f"the learning rate goes on at {rate:.3g}."
            )
        return messages

    def predict(self, batches: Any) -> ExTensor:
        """The outputs of the model for all samples, in evaluation mode and without recording.

        Args:
            batches: inputs alone (a tensor or an array, taken in batches), a :class:`~extensor.data.Dataset`, or batches as
                :meth:`fit` takes them, of which the targets are left out.

        Example:
            >>> import extensor as et
            >>> from extensor import data, nn, optim, train
            >>> model = nn.Sequential(nn.Flatten(), nn.Linear(64, 10, rng=0))
            >>> trainer = train.Trainer(model, optim.SGD(model.parameters(), lr=0.1), et.cross_entropy)
            >>> trainer.predict(data.digits()).shape
            (1797, 10)
        """
        return predict(self, batches)

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
        return evaluate(self, batches)


@contextlib.contextmanager
def failing_together(world: World) -> Iterator[None]:
    """In this block what ends one rank ends all of them. A loss that is not finite is found by all at once."""
    try:
        yield
    except FloatingPointError:
        raise
    except BaseException as error:
        world.fail(error)
        raise
