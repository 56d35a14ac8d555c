"""``extensor sweep``: the same training with many settings, in processes of their own, and one table of what came of them."""

from __future__ import annotations

import csv
import io
import itertools
import math
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from html import escape
from pathlib import Path
from typing import Any

import click
import numpy as np

from ..train.saved import load_run
from ..train.whole_files import write_whole
from ._output import say
from ._train_options import SETTINGS

__all__ = ["command"]


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--grid",
    "grids",
    multiple=True,
    metavar="NAME=A,B,...",
    help="Try these values of a setting; with others, all combinations.",
)
@click.option(
    "--range",
    "ranges",
    multiple=True,
    metavar="NAME=LOW:HIGH",
    help="Draw a setting between two numbers, evenly in its logarithm.",
)
@click.option(
    "--random",
    "draws",
    type=click.IntRange(1),
    metavar="N",
    help="How many settings to draw, from ranges and grids.",
)
@click.option(
    "--seeds",
    type=click.IntRange(1),
    metavar="N",
    default=1,
    show_default=True,
    help="Train each with so many seeds.",
)
@click.option(
    "--jobs", type=click.IntRange(1), metavar="N", default=1, show_default=True, help="Processes at a time."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("runs/sweep"),
    show_default=True,
    help="The folder of the runs.",
)
def command(
    arguments: tuple[str, ...],
    grids: tuple[str, ...],
    ranges: tuple[str, ...],
    draws: int | None,
    seeds: int,
    jobs: int,
    out: Path,
) -> None:
    """Train with many settings and compare the runs. ARGUMENTS are those of extensor train: a recipe, --data, --epochs.

    Every run is a folder of its own; sweep.csv and sweep.html compare them, the best first. What is there already is not
    trained again, so that an interrupted sweep goes on.

    \b
    Examples:
      extensor sweep mlp --data iris.csv --grid lr=0.001,0.01 --seeds 3
      extensor sweep mlp --range lr=0.0001:0.1 --random 20 --jobs 2
    """
    settings = list(_settings(grids, ranges, draws))
    if draws is None and ranges:
        raise click.UsageError("--range needs --random N: how many settings to draw")
    out.mkdir(parents=True, exist_ok=True)
    orders = [(chosen, seed) for chosen in settings for seed in range(seeds)]
    say(f"{len(settings)} settings x {seeds} seeds = {len(orders)} runs, {jobs} at a time, in {out}")
    with ThreadPoolExecutor(jobs) as pool:
        found = list(pool.map(lambda order: _run(arguments, order[0], order[1], out), orders))
    rows = _compared(settings, found, seeds)
    _write(out, rows)
    for row in rows[:10]:
        say("  ".join(f"{name} {value}" for name, value in row.items() if name != "folders"))
    say(f"compared in {out / 'sweep.html'} and {out / 'sweep.csv'}")


def _settings(grids: tuple[str, ...], ranges: tuple[str, ...], draws: int | None) -> Iterator[dict[str, str]]:
    """The settings to try, by name."""
    lists = {name: text.split(",") for name, text in map(_assigned, grids)}
    spans = {name: _span(name, text) for name, text in map(_assigned, ranges)}
    unknown = [name for name in (*lists, *spans) if name not in SETTINGS]
    if unknown:
        raise click.UsageError(f"there is no setting {unknown[0]!r}; there are {', '.join(SETTINGS)}")
    if draws is None:
        for values in itertools.product(*lists.values()):
            yield dict(zip(lists, values))
        return
    rng = np.random.default_rng(0)
    for _ in range(draws):
        drawn = {name: values[int(rng.integers(len(values)))] for name, values in lists.items()}
        yield drawn | {
            name: f"{math.exp(rng.uniform(math.log(a), math.log(b))):.4g}" for name, (a, b) in spans.items()
        }


def _assigned(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not value:
        raise click.UsageError(f"a setting is NAME=VALUES, got {text!r}")
    return name.strip().replace("-", "_"), value


def _span(name: str, text: str) -> tuple[float, float]:
    try:
        low, high = map(float, text.split(":"))
    except ValueError:
        raise click.UsageError(f"--range {name} is LOW:HIGH, got {text!r}") from None
    if not 0 < low < high:
        raise click.UsageError(f"--range {name} needs 0 < LOW < HIGH, got {text!r}")
    return low, high


def _run(arguments: tuple[str, ...], chosen: dict[str, str], seed: int, out: Path) -> dict[str, Any]:
    """Train once, unless it was; the best validation of the run."""
    name = "-".join([*(f"{key}={value}" for key, value in chosen.items()), f"seed={seed}"]).replace("/", "_")
    folder = out / name
    if not (folder / "model.safetensors").exists():
        again = ["--resume"] if (folder / "config.json").exists() else []
        sets = [part for key, value in chosen.items() for part in ("--set", f"{key}={value}")]
        made = [
            sys.executable,
            "-m",
            "extensor.cli",
            "train",
            *arguments,
            *sets,
            "--seed",
            str(seed),
            "--out",
            str(folder),
            *again,
        ]
        done = subprocess.run(made, capture_output=True, text=True, check=False)
        if done.returncode:
            last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
            say(f"{name} failed: {' '.join(last)}", err=True)
            return {"folder": folder, "value": math.nan, "metric": "val_loss"}
    history = load_run(folder).history
    metric = "val_accuracy" if history.values("val_accuracy") else "val_loss"
    values = history.values(metric)
    best = (max if metric == "val_accuracy" else min)(values, default=math.nan)
    say(f"{name}: {metric} {best:.4g}")
    return {"folder": folder, "value": best, "metric": metric}


def _compared(
    settings: list[dict[str, str]], found: list[dict[str, Any]], seeds: int
) -> list[dict[str, Any]]:
    """A row for each setting: the mean over its seeds and their spread, the best first."""
    rows = []
    for i, chosen in enumerate(settings):
        own = found[i * seeds : (i + 1) * seeds]
        values = np.array([run["value"] for run in own])
        rows.append((float(values.mean()), {
            **chosen, own[0]["metric"]: f"{values.mean():.4g}", "spread": f"{values.std():.2g}",
            "folders": " ".join(str(run["folder"]) for run in own),
        }))  # fmt: skip
    sign = -1 if found[0]["metric"] == "val_accuracy" else 1
    return [row for _, row in sorted(rows, key=lambda pair: (math.isnan(pair[0]), sign * pair[0]))]


def _write(out: Path, rows: list[dict[str, Any]]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_whole("sweep", out / "sweep.csv", [text.getvalue().encode("utf-8")])
    head = "".join(f"<th>{escape(name)}</th>" for name in rows[0])
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(str(value))}</td>" for value in row.values()) + "</tr>" for row in rows
    )
    page = (
        '<!doctype html><meta charset="utf-8"><title>Sweep</title><style>body{font:15px/1.5 system-ui;margin:2rem}'
        "table{border-collapse:collapse}td,th{padding:.3rem .8rem;text-align:left;border-bottom:1px solid #ddd}"
        f"tr:first-child td{{font-weight:600}}</style><h1>{len(rows)} settings compared</h1><table><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table>"
    )
    write_whole("sweep", out / "sweep.html", [page.encode("utf-8")])
