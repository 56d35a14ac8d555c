"""``extensor predict``: what a trained model says about samples."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Any

import click
import numpy as np

from .. import data as datasets
from ..graph import no_grad
from ..ops.softmax import softmax
from ..train.runs import samples_of
from ..train.tables import is_table, notes_on, read_again, unscaled
from ._runs import open_run

__all__ = ["command"]

SHOWN = 10  # rows, where they are not written to a file


@click.command()
@click.argument("run", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option(
    "--data",
    type=click.Path(path_type=Path, exists=True),
    help="Samples, of the kind the run learned from.  [default: its own test samples]",
)
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), help="Write all predictions there, as CSV."
)
def command(run: Path, data: Path | None, out: Path | None) -> None:
    """Predict with the best weights of RUN, a folder made by extensor train.

    Shows the predictions as CSV (the first ten, or with --out all), and where the samples have targets how good they are.
    A table is read as the run's was: columns are found by name in any order, the target may be missing.

    \b
    Examples:
      extensor predict runs/lenet                              its own test samples
      extensor predict runs/mlp --data new.csv --out out.csv   every row of another table
    """
    config, model = open_run(run)
    recipe = config.get("recipe")
    if recipe not in ("mlp", "lenet", "resnet20"):
        raise click.ClickException(f"the recipe {recipe!r} writes text; use extensor sample {run}")
    try:
        samples = _samples(config, data)
        outputs = _outputs(model, samples)
    except (ValueError, OSError) as error:
        raise click.ClickException(str(error)) from None
    classes = config.get("classes")
    if classes is None:
        rows, closing = _quantities(outputs, samples.targets, config.get("table"))
    else:
        rows, closing = _labels(outputs, samples.targets, classes)
    _show(rows, out)
    if closing:
        click.echo(closing)


def _samples(config: dict[str, Any], path: Path | None) -> datasets.Dataset:
    """What to predict; what is strange about a table is said."""
    if "table" not in config or path is None:
        return samples_of(config, path)
    if not is_table(path):
        raise ValueError(f"the run learned from a table (.csv); {path} is none")
    table, samples = read_again(path, config["table"])
    for note in notes_on(table):
        click.echo(note, err=True)
    return samples


def _outputs(model: Any, samples: datasets.Dataset) -> Any:
    with no_grad():
        return np.concatenate([model(x).numpy() for x, _ in datasets.DataLoader(samples, 500)])


def _labels(
    outputs: np.ndarray, targets: np.ndarray | None, classes: list[str]
) -> tuple[list[list[Any]], str | None]:
    with no_grad():
        likely = softmax(datasets.Dataset(outputs)[:]).numpy()
    best = likely.argmax(1)
