"""From a setup to a trainer in its folder, and what came of it on samples it has never seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..distributed import World
from .callbacks import EarlyStopping
from .passes import outputs_on
from .recipe import Setup
from .saved_run import weights_file
from .table_samples import unscaled
from .trainer import Trainer
from .weights import load_weights

__all__ = ["make_trainer", "test_results"]


def make_trainer(
    setup: Setup,
    folder: Path,
    recipe: str,
    total_steps: int,
    tensorboard: bool = False,
    world: World | None = None,
    shards: int | None = None,
    compile: bool = True,
) -> Trainer:
    """The trainer of a run in its folder; it logs often enough for a picture."""
    settings = setup.hyperparameters
    stopping = EarlyStopping(setup.monitor, settings.patience or 1, mode=setup.monitor_mode)
    return Trainer(
        setup.model,
        setup.optimizer,
        setup.loss,
        schedule=settings.make_schedule(setup.optimizer, total_steps),
        metrics=setup.metrics,
        clip_norm=settings.clip_norm or None,
        precision=settings.precision,
        compile=compile,
        validate_every=setup.validate_every,
        callbacks=[stopping] if settings.patience else [],
        folder=folder,
        monitor=setup.monitor,
        monitor_mode=setup.monitor_mode,
        tensorboard=tensorboard,
        config={"recipe": recipe, **setup.config},
        log_every=min(max(total_steps // 100, 1), 10),
        layers_every=min(max(total_steps // 60, 1), 100),
        world=world,
        shards=shards,
    )


def test_results(setup: Setup, folder: Path) -> dict[str, float]:
    """How good the best weights are on the samples kept for testing: accuracy, or RMSE and R2; empty for texts."""
    if setup.test is None or setup.test.targets is None:
        return {}
    model, kept, training = setup.model, setup.model.state_dict(), setup.model.training
    model.load_state_dict(load_weights(weights_file(folder))[0])
    model.eval()
    try:
        outputs = outputs_on(model, setup.test)
    finally:
        model.load_state_dict(kept)
        model.train(training)
    return _scores(outputs, setup.test.targets, setup.config.get("table"))


def _scores(outputs: np.ndarray, targets: np.ndarray, table: Any) -> dict[str, float]:
    if targets.dtype.kind != "f":
        return {"accuracy": float(np.mean(outputs.argmax(1) == targets))}
    found, wanted = (unscaled(v.astype(np.float64), table) for v in (outputs[:, 0], targets))
    squares = float(np.square(found - wanted).mean())
    spread = float(np.square(wanted - wanted.mean()).mean())
    return {"rmse": squares**0.5} | ({"r2": 1 - squares / spread} if spread > 0 else {})
