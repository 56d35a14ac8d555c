"""``extensor predict``: what a trained model says about samples."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import click
import numpy as np

from .. import data as datasets
from .._numerals import shown as shown_number
from .._printable import printable
from ..ops.softmax import softmax
from ..tensor import asarray
from ..train.passes import outputs_on
from ..train.saved import SavedRun, columns_of
from ..train.saved_run import held_out_samples, new_samples
from ..train.table_samples import unscaled
from ..train.whole_files import write_whole
from ._output import say
from ._saved_run import open_run

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
    A table is read as the run's was: columns are found by name in any order, the target may be missing; with --out, its columns
    are kept, and the predicted class has the probability of every class beside it.

    \b
    Examples:
      extensor predict runs/lenet               its own test samples
      extensor predict runs/mlp --data new.csv  every row of another table
    """
    config, model = open_run(run)
    recipe = config.get("recipe")
    if recipe not in ("mlp", "lenet", "resnet20"):
        raise click.ClickException(f"the recipe {recipe!r} writes text; use extensor sample {run}")
    try:
        samples = _samples(config, data)
        outputs = outputs_on(model, samples)
    except (ValueError, TypeError, OSError, MemoryError) as error:
        raise click.ClickException(str(error)) from None
    if outputs.shape[1] == 1 and config.get("classes") is None:
        rows, closing = _quantities(outputs[:, 0], samples.targets, config.get("table"))
    else:
        names = config.get("classes") or [str(i) for i in range(outputs.shape[1])]
        if len(names) != outputs.shape[1] or (
            samples.targets is not None and samples.targets.dtype.kind == "f"
        ):
            raise click.ClickException(f"{run}: its classes are not those of its model or its data")
        rows, closing = _labels(outputs, samples.targets, names)
    if out is not None and data is not None and "table" in config:  # beside the columns they were made from
        found = SavedRun(run).judged(outputs, samples, columns_of(data, config["table"])).as_columns()
        rows = [list(found), *map(list, zip(*found.values()))]
    _show(rows, out)
    if closing is not None:
        click.echo(closing)


def _samples(config: dict[str, Any], path: Path | None) -> datasets.Dataset:
    """What to predict; what is strange about it is said."""
    if path is None:
        return held_out_samples(config)
    samples, notes = new_samples(config, path)
    for note in notes:
        say(note, err=True)
    return samples


def _labels(
    outputs: np.ndarray, targets: np.ndarray | None, names: list[str]
) -> tuple[list[list[Any]], str | None]:
    """The likeliest class of each sample, and how many are right."""
    likely = softmax(asarray(outputs)).numpy()
    best = likely.argmax(1)
    known = [""] * len(best) if targets is None else [names[int(k)] for k in targets]
    rows = [[i, names[k], f"{likely[i, k]:.4f}", known[i]] for i, k in enumerate(best)]
    closing = None
    if targets is not None:
        closing = (
            f"accuracy {shown_number(float(np.mean(best == targets)), 'percent')} of {len(best)} samples"
        )
    return [["sample", "predicted", "probability", "target"], *rows], closing


def _quantities(
    outputs: np.ndarray, targets: np.ndarray | None, table: Any
) -> tuple[list[list[Any]], str | None]:
    """The estimates in the units of the table, and how far they are off."""
    found = unscaled(outputs.astype(np.float64), table)
    known = None if targets is None else unscaled(targets.astype(np.float64), table)
    rows = [[i, _number(v), "" if known is None else _number(known[i])] for i, v in enumerate(found)]
    closing = None
    if known is not None:
        off = float(np.abs(found - known).mean())
        naive = float(np.abs(known - known.mean()).mean())
        closing = (
            f"off by {off:.4g} on average of {len(found)} samples; their mean would be off by {naive:.4g}"
        )
    return [["sample", "predicted", "target"], *rows], closing


def _number(value: float) -> str:
    """As many digits as float32 has, and no exponent where people write none."""
    return f"{value:.0f}" if 1e6 <= abs(value) < 1e15 else f"{value:.7g}"


def _show(rows: list[list[Any]], out: Path | None) -> None:
    """All rows into a file, or the first of them on the screen."""
    count = len(rows) - 1
    if out is not None:
        written = io.StringIO()
        csv.writer(written, lineterminator="\n").writerows(rows)
        try:
            write_whole("predict", out, [written.getvalue().encode("utf-8")])
        except OSError as error:
            raise click.ClickException(error.strerror or str(error)) from None
        say(f"{count} predictions written to {out}")
        return
    shown = io.StringIO()
    csv.writer(shown, lineterminator="\n").writerows(rows[: SHOWN + 1])
    click.echo(printable(shown.getvalue()), nl=False)
    if count > SHOWN:
        click.echo(f"{count - SHOWN} more; --out FILE writes them all", err=True)
