"""``extensor train``: a recipe from data to weights, in a folder that survives anything."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import click

from .. import config
from ..nn import seed as seed_layers
from ..report import write_report
from ..testing.verifier import library_subjects
from ..testing.verifier import verify as verify_pairs
from ..train import FolderInUseError, Trainer
from ..train.recipes import RECIPES, Setup
from ..train.saved_run import read_config

__all__ = ["command", "make_trainer", "set_up"]


def _line(name: str) -> str:
    """A recipe in the help."""
    recipe = RECIPES[name]
    length = f"{recipe.epochs} epochs" if recipe.epochs is not None else f"{recipe.steps} steps"
    return f"  {name:9} {recipe.about} ({length})"


@click.command(
    help=f"""Train RECIPE (lenet if none is named) and keep everything in a folder: weights, log, checkpoints, and a \
page to look at.

\b
Recipes:
{chr(10).join(_line(name) for name in RECIPES)}

\b
Examples:
  extensor train lenet                   digits that come with ExTensor
  extensor train lenet --data mnist/     a folder with the MNIST files
  extensor train mlp --data flowers.csv  your own table; the last column is
                                         predicted, or the one --target names
  extensor train chargpt --data my.txt   then: extensor sample runs/chargpt
  extensor train lenet --resume          go on after a crash, to the same bits

In a table, a column of words becomes one input for each of its words (100 at most), and an empty cell among numbers \
counts as the mean of its column, one among words as one more word. A fifth of the rows is kept for testing.

Ctrl-C ends a run with a checkpoint and the exit code 130; a second one ends it at once.
"""
)
@click.argument(
    "recipe", metavar="[RECIPE]", type=click.Choice(list(RECIPES)), default="lenet", required=False
)
@click.option(
    "--data",
    type=click.Path(path_type=Path, exists=True),
    help="A folder or file to learn from.  [default: embedded digits]",
)
@click.option(
    "--target", metavar="COLUMN", help="Of a table: what to predict, by name or number.  [default: the last]"
)
@click.option(
    "--ignore", metavar="COLUMN", multiple=True, help="Of a table: a column to leave out (repeatable)."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="The run's folder.  [default: runs/RECIPE]",
)
@click.option(
    "--epochs",
    metavar="N",
    type=click.IntRange(1),
    help="How often to go through the data.  [default: see above]",
)
@click.option(
    "--steps", metavar="N", type=click.IntRange(1), help="How many optimiser steps, instead of epochs."
)
@click.option(
    "--seed",
    metavar="N",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Of weights, shuffling and dropout.",
)
@click.option(
    "--threads", metavar="N", type=click.IntRange(1), help="Threads to compute with.  [default: all cores]"
)
@click.option("--resume", is_flag=True, help="Go on from the newest whole checkpoint in the folder.")
@click.option("--tensorboard", is_flag=True, help="Write TensorBoard's event files too.")
@click.option(
    "--verify", is_flag=True, help="Afterwards check the gradients of the functions that were used."
)
def command(
    recipe: str, data: Path | None, target: str | None, ignore: tuple[str, ...], out: Path | None, epochs: int | None,
    steps: int | None, seed: int, threads: int | None, resume: bool, tensorboard: bool, verify: bool,
) -> None:  # fmt: skip
    """See the help above."""
    if epochs is not None and steps is not None:
        raise click.UsageError("give --epochs or --steps, not both")
    if threads is not None:
        config.set_num_threads(threads)
    folder = out or Path("runs") / recipe
    chosen = RECIPES[recipe]
    if (target or ignore) and not chosen.tables:
        raise click.UsageError(
            f"--target and --ignore are for tables, and {recipe} learns from none; use mlp"
        )
    named = {"target": target, "ignore": ignore} if chosen.tables else {}
    if epochs is None and steps is None:
        epochs, steps = chosen.epochs, chosen.steps
    try:
        before = read_config(folder) if resume and (folder / "config.json").exists() else {}
        if data is None and before.get("data"):
            data = Path(before["data"])
        seed_layers(seed)
        setup = set_up(recipe, data, seed, epochs, steps, named)
        if before:
            _check_same_run(folder, before, {"recipe": recipe, **setup.config})
        for note in setup.notes:
            click.echo(note, err=True)
        history = make_trainer(setup, folder, recipe, tensorboard, epochs, steps).fit(
            setup.train, epochs=epochs, steps=steps, validation=setup.validation, resume=resume
        )
    except FileExistsError as error:
        raise click.ClickException(
            f"{error} (--resume goes on with it, --out names another folder)"
        ) from None
    except (ValueError, OSError, FolderInUseError, FloatingPointError) as error:
        raise click.ClickException(str(error)) from None
    click.echo(_closing(history, folder))
    if history.stopped == "interrupted":
        raise SystemExit(130)
    if verify:
        _verify()
    _report(setup, folder)


# What a run cannot change when it goes on: with other data, for instance, its scaling would no longer be right.
_OF_A_RUN = ("recipe", "seed", "data", "classes", "table", "vocabulary", "length", "model")


def _check_same_run(folder: Path, before: dict[str, Any], now: dict[str, Any]) -> None:
    """ValueError if the options or the data are not those the run was started with."""
    for name in _OF_A_RUN:
        old, new = before.get(name), json.loads(json.dumps(now.get(name)))
        if name == "data" and old and new and Path(old).resolve() == Path(new).resolve():
            continue
        if old != new:
            short = not isinstance(old, (dict, list)) and len(f"{old}{new}") < 200
            raise ValueError(
                f"{folder} was started with another {name}"
                + (f" ({old}, now {new})" if short else "")
                + ": --resume goes on with the same options and data; for others, --out names a new folder"
            )


def set_up(
    recipe: str, path: Path | None, seed: int, epochs: int | None, steps: int | None, named: dict[str, Any]
) -> Setup:
    """The recipe, told how many steps its schedule has."""
    build = RECIPES[recipe].build
    if steps is None and epochs is not None:
        steps = epochs * len(build(path, seed, None, **named).train)
    return build(path, seed, steps, **named)


def make_trainer(
    setup: Setup, folder: Path, recipe: str, tensorboard: bool, epochs: int | None, steps: int | None
) -> Trainer:
    """The trainer of a run in its folder; it logs often enough for a picture."""
    total = steps if steps is not None else (epochs or 1) * len(setup.train)
    return Trainer(
        setup.model, setup.optimizer, setup.loss, schedule=setup.schedule, metrics=setup.metrics, clip_norm=setup.clip_norm,
        validate_every=setup.validate_every, folder=folder, monitor=setup.monitor,
        monitor_mode="max" if setup.monitor_mode == "max" else "min", tensorboard=tensorboard,
        config={"recipe": recipe, **setup.config}, log_every=min(max(total // 100, 1), 10),
        layers_every=min(max(total // 60, 1), 100),
    )  # fmt: skip


def _closing(history: Any, folder: Path) -> str:
    parts = []
    for name, label in {
        "val_accuracy": "test accuracy",
        "val_loss": "validation loss",
        "val_perplexity": "perplexity",
    }.items():
        value = history.last(name)
        if value is not None and math.isfinite(value):
            parts.append(f"{label} {value:.2%}" if "accuracy" in name else f"{label} {value:.4f}")
    interrupted = history.stopped == "interrupted"
    said = ", ".join(parts) or ("interrupted" if interrupted else "done")
    further = "; the same command with --resume goes on" if interrupted else ""
    return f"{said}; {history.steps} steps; kept in {folder}{further}"


def _report(setup: Setup, folder: Path) -> None:
    """The page of the run; the run is kept whatever becomes of it."""
    try:
        page = write_report(
            folder, samples=None if "vocabulary" in setup.config else setup.validation.dataset
        )[0]
    except (ValueError, OSError) as error:
        click.echo(f"the report was not written: {error}", err=True)
    else:
        click.echo(f"report: {page}")


def _verify() -> None:
    """The gradients of what the networks for images are made of."""
    names = {"conv2d", "max_pool2d", "relu", "flatten", "linear", "cross_entropy"}
    verdicts = list(verify_pairs(subject for subject in library_subjects() if subject.name in names))
    wrong = [verdict.name for verdict in verdicts if not verdict.passed]
    if wrong:
        raise click.ClickException(f"wrong gradients: {', '.join(wrong)}")
    cases = sum(verdict.cases for verdict in verdicts)
    click.echo(f"gradients of {', '.join(v.name for v in verdicts)}: right in {cases} cases, numerically")
