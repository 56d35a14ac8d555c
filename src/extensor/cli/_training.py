"""A run of ``extensor train``: started or resumed, closed with a line about it, its report and its gradients."""

from __future__ import annotations

import json
import math
import os
import statistics
import warnings
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from .._numerals import shown
from ..distributed import World
from ..nn import seed as seed_layers
from ..report import write_report
from ..testing.verifier import library_subjects
from ..testing.verifier import verify as verify_pairs
from ..train import History, read_header
from ..train.display_text import where
from ..train.functions_used import functions_used
from ..train.launch import make_trainer
from ..train.lock import locked
from ..train.recipes import RECIPES, Setup
from ..train.saved_run import read_config
from ._output import say
from ._train_options import SETTINGS, TrainOptions, of_run

__all__ = ["closing_line", "over_folds", "prepare", "run_training", "verify_run", "write_page"]

SHARDS = 8  # of a batch, where several processes share it and nobody says otherwise
_OF_A_RUN = (
    "recipe", "seed", "data_sha256", "validation_sha256", "test_sha256", "fold", "task", "target", "ignore", "classes", "table", "vocabulary", "length", "model",
    "shards", *SETTINGS,
)  # fmt: skip
_BEFORE_THERE_WAS = {"precision": "float32"}  # what older runs did, which do not say so
_WORDS = {"data_sha256": "data", "validation_sha256": "validation file", "test_sha256": "test file"}


def prepare(
    options: TrainOptions, folder: Path, resume: bool, world: World | None = None
) -> tuple[Setup, TrainOptions]:
    """The setup of the run and its options; what they do not say, a run to resume says, or the recipe.

    Raises:
        ValueError: the options or the data are not those the run was started with.
    """
    recipe = options.recipe or "lenet"
    before = {}
    if resume and (world is None or world.rank == 0) and os.path.lexists(folder / "config.json"):
        before = read_config(folder)
    if world is not None:
        before = world.broadcast(before)  # the folder need not be there on every host
    if before:
        options = options.completed_by(of_run(before))
    if options.shards is None and world is not None and not before:
        options = replace(options, shards=SHARDS)
    if options.epochs is None and options.steps is None:
        options = replace(options, epochs=RECIPES[recipe].epochs, steps=RECIPES[recipe].steps)
    seed_layers(options.seed or 0)
    setup = RECIPES[recipe].set_up(options.order())
    setup.config |= {"epochs": options.epochs} if options.steps is None else {"steps": options.steps}
    setup.config |= {} if options.shards is None else {"shards": options.shards}
    if before:
        _check_same_run(folder, before, {"recipe": recipe, **setup.config})
    return setup, options


def _check_same_run(folder: Path, before: dict[str, Any], now: dict[str, Any]) -> None:
    for name in _OF_A_RUN:
        old, new = before.get(name, _BEFORE_THERE_WAS.get(name)), json.loads(json.dumps(now.get(name)))
        if old != new:
            short = not isinstance(old, dict) and name not in _WORDS and len(f"{old}{new}") < 200
            raise ValueError(
                f"{folder} was started with another {_WORDS.get(name, name)}"
                + (f" ({old}, now {new})" if short else "")
                + ": --resume goes on with the same options and data; for others, --out names a new folder, or --overwrite replaces the run"
            )


def run_training(
    setup: Setup,
    options: TrainOptions,
    folder: Path,
    tensorboard: bool,
    resume: bool,
    owning: ExitStack,
    world: World | None = None,
) -> History:
    """Train it. The folder is locked until ``owning`` is left: what is written after the training belongs to the run too."""
    total = setup.total_steps(options.epochs, options.steps)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", UserWarning)
        trainer = make_trainer(
            setup,
            folder,
            options.recipe or "lenet",
            total,
            tensorboard,
            world,
            options.shards,
            options.compile is not False,
        )
    for warning in told:
        say(str(warning.message), err=True)
    if trainer.leads:
        owning.enter_context(locked("fit", folder, lends=True))
    return trainer.fit(
        setup.train,
        epochs=options.epochs,
        steps=options.steps,
        validation=setup.validation,
        resume=resume,
        overwrite=options.overwrite is True,
        interrupt="return",
    )


_TESTED = {"accuracy": "test accuracy {}", "rmse": "test RMSE {}", "r2": "test R2 {}"}


def _number(name: str, value: float) -> str:
    if "accuracy" in name:
        return shown(value, "percent")
    return f"{value:.4g}" if name == "rmse" else f"{value:.4f}"


def closing_line(results: dict[str, float], history: History, folder: Path) -> str:
    """How good its best weights are, how long it took, where it is."""
    interrupted = history.stopped == "interrupted"
    best = _best_record(history, folder)
    parts = [_TESTED[name].format(_number(name, value)) for name, value in results.items()]
    labels = {
        "val_accuracy": "validation accuracy",
        "val_loss": "validation loss",
        "val_perplexity": "perplexity",
    }
    for name, label in labels.items():
        if math.isfinite(best.get(name, math.nan)):
            parts.append(f"{label} {_number(name, best[name])}")
    said = ", ".join(parts) or ("interrupted" if interrupted else "done")
    since = f"; best at {where(best, None, 0)}" if best else ""
    further = "; the same command with --resume goes on" if interrupted else ""
    return f"{said}{since}\n{history.steps:,} steps; kept in {folder}{further}"


def _best_record(history: History, folder: Path) -> dict[str, Any]:
    """The validation that chose the best weights, which are what the tests and ``predict`` use; empty if there was none."""
    if not (folder / "best.safetensors").exists():
        return {}
    step = int(read_header(folder / "best.safetensors").metadata["step"])
    return next((r for r in history.records if r["step"] == step and "val_loss" in r), {})


def over_folds(results: list[dict[str, float]]) -> str:
    """The mean of what the folds came to, and how far they differ."""
    parts = []
    for name in results[0]:
        values = [found[name] for found in results if name in found]
        mean, spread = statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else 0.0
        parts.append(_TESTED[name].format(f"{_number(name, mean)} ± {_number(name, spread)}"))
    return f"{', '.join(parts) or 'done'} over {len(results)} folds"


def write_page(setup: Setup, folder: Path) -> None:
    """The page of the run; the run is kept whatever becomes of it."""
    try:
        page = write_report(folder, samples=setup.test)[0]
    except (ValueError, OSError) as error:
        say(f"the report was not written: {error}", err=True)
    else:
        say(f"report: {page}")


def verify_run(setup: Setup) -> None:
    """Check the gradients of the functions that a step of this run calls."""
    used = set(functions_used(setup))
    verdicts = list(verify_pairs(subject for subject in library_subjects() if subject.name in used))
    wrong = [verdict.name for verdict in verdicts if not verdict.passed]
    if wrong:
        raise click.ClickException(f"wrong gradients: {', '.join(wrong)}")
    cases = sum(verdict.cases for verdict in verdicts)
    say(
        f"checked numerically, right in {cases:,} cases: the gradients of\n  {', '.join(v.name for v in verdicts)}"
    )
