"""``extensor train``: a recipe from data to weights, in a folder that survives anything."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click

from .. import config
from ..nn import seed as seed_layers
from ..testing.verifier import library_subjects
from ..testing.verifier import verify as verify_pairs
from ..train import FolderInUseError, Trainer
from ..train.recipes import RECIPES, Setup

__all__ = ["command"]


@click.command(
    help=f"""Train RECIPE and keep everything in a folder: weights, log, checkpoints.

\b
Recipes:
{chr(10).join(f"  {name:9} {recipe.about}" for name, recipe in RECIPES.items())}

\b
Examples:
  extensor train lenet                                digits that come with ExTensor
  extensor train lenet --data mnist/ --epochs 10      a folder with the MNIST files
  extensor train mlp --data flowers.csv               your own table; the last column is predicted
  extensor train chargpt --data shakespeare.txt       then: extensor sample runs/chargpt
  extensor train lenet --resume                       go on after a crash, to the same bits
"""
)
@click.argument("recipe", type=click.Choice(list(RECIPES)), default="lenet", required=False)
@click.option(
    "--data",
    type=click.Path(path_type=Path, exists=True),
    help="A folder or file; without it, embedded digits.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="The run's folder.  [default: runs/RECIPE]",
)
@click.option("--epochs", type=click.IntRange(1), help="How many times to go through the data.")
@click.option("--steps", type=click.IntRange(1), help="How many optimiser steps, instead of epochs.")
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Of weights, shuffling and dropout."
)
@click.option("--threads", type=click.IntRange(1), help="Threads to compute with.")
@click.option("--resume", is_flag=True, help="Go on from the newest whole checkpoint in the folder.")
@click.option("--tensorboard", is_flag=True, help="Write TensorBoard's event files too.")
@click.option(
    "--verify", is_flag=True, help="Afterwards check the gradients of the functions that were used."
)
def command(
    recipe: str, data: Path | None, out: Path | None, epochs: int | None, steps: int | None, seed: int,
    threads: int | None, resume: bool, tensorboard: bool, verify: bool,
) -> None:  # fmt: skip
    """See the help above."""
    if epochs is not None and steps is not None:
        raise click.UsageError("give --epochs or --steps, not both")
    if threads is not None:
        config.set_num_threads(threads)
    folder = out or Path("runs") / recipe
    chosen = RECIPES[recipe]
    if epochs is None and steps is None:
        epochs, steps = chosen.epochs, chosen.steps
    try:
        seed_layers(seed)
        setup = _setup(recipe, data, seed, epochs, steps)
        history = _trainer(setup, folder, recipe, tensorboard).fit(
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


def _setup(recipe: str, path: Path | None, seed: int, epochs: int | None, steps: int | None) -> Setup:
    """The recipe, told how many steps its schedule has."""
    build = RECIPES[recipe].build
    if steps is None and epochs is not None:
        steps = epochs * len(build(path, seed, None).train)
    return build(path, seed, steps)


def _trainer(setup: Setup, folder: Path, recipe: str, tensorboard: bool) -> Trainer:
    return Trainer(
        setup.model, setup.optimizer, setup.loss, schedule=setup.schedule, metrics=setup.metrics, clip_norm=setup.clip_norm,
        validate_every=setup.validate_every, folder=folder, monitor=setup.monitor,
        monitor_mode="max" if setup.monitor_mode == "max" else "min", tensorboard=tensorboard,
        config={"recipe": recipe, **setup.config},
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
    return f"{', '.join(parts) or 'done'}; {history.steps} steps; kept in {folder}"


def _verify() -> None:
    """The gradients of what the networks for images are made of."""
    names = {"conv2d", "max_pool2d", "relu", "flatten", "linear", "cross_entropy"}
    verdicts = list(verify_pairs(subject for subject in library_subjects() if subject.name in names))
    wrong = [verdict.name for verdict in verdicts if not verdict.passed]
    if wrong:
        raise click.ClickException(f"wrong gradients: {', '.join(wrong)}")
    cases = sum(verdict.cases for verdict in verdicts)
    click.echo(f"gradients of {', '.join(v.name for v in verdicts)}: right in {cases} cases, numerically")
