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
from ..train.recipes import RECIPES
from ._runs import open_run

__all__ = ["command"]


@click.command()
@click.argument("run", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option(
    "--data",
    type=click.Path(path_type=Path, exists=True),
    help="Samples; without it, the run's own test samples.",
)
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), help="Write all predictions there, as CSV."
)
def command(run: Path, data: Path | None, out: Path | None) -> None:
    """Predict with the best weights of RUN, a folder made by extensor train.

    Prints the accuracy where the samples have targets, and the predictions as CSV (the first ten, or all with --out).
    """
    config, model = open_run(run)
    recipe = config.get("recipe")
    if recipe not in ("mlp", "lenet", "resnet20"):
        raise click.ClickException(f"the recipe {recipe!r} writes text; use extensor sample {run}")
    path = data or (Path(config["data"]) if config.get("data") else None)
    try:
        samples = RECIPES[recipe].build(path, config.get("seed", 0), None).validation.dataset
        rows, right = _predictions(model, samples, config.get("classes"))
    except (ValueError, OSError) as error:
        raise click.ClickException(str(error)) from None
    header = (
        ["sample", "predicted", "probability", "target"]
        if config.get("classes")
        else ["sample", "predicted", "target"]
    )
    if out is not None:
        with out.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([header, *rows])
        click.echo(f"{len(rows)} predictions written to {out}")
    else:
        csv.writer(sys.stdout).writerows([header, *rows[:10]])
    if right is not None:
        click.echo(f"accuracy {right / len(rows):.2%} of {len(rows)} samples")


def _predictions(
    model: Any, samples: datasets.Dataset, classes: list[str] | None
) -> tuple[list[list[Any]], int | None]:
    rows: list[list[Any]] = []
    right = 0
    with no_grad():
        for inputs, targets in datasets.DataLoader(samples, 500):
            outputs = model(inputs)
            known = None if targets is None else targets.numpy()
            if classes is None:
                values = outputs.numpy().reshape(len(inputs))
                rows += [
                    [len(rows) + i, f"{v:.6g}", "" if known is None else f"{known[i]:.6g}"]
                    for i, v in enumerate(values)
                ]
                continue
            likely = softmax(outputs).numpy()
            best = likely.argmax(1)
            right += 0 if known is None else int(np.sum(best == known))
            start = len(rows)
            rows += [
                [
                    start + i,
                    classes[k],
                    f"{likely[i, k]:.4f}",
                    "" if known is None else classes[int(known[i])],
                ]
                for i, k in enumerate(best)
            ]
    return rows, right if classes is not None and samples.targets is not None else None
