"""Several runs on one page: what came of each, their curves in one chart, and the settings in which they differ."""

from __future__ import annotations

import os
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from .._numerals import is_share
from ..data._files import as_path
from ..train.whole_files import write_whole
from .chart import Axis, Chart, Point, Series
from .contents import Contents, gather
from .curves import axis_of, metric_names, points_of
from .page import document, key_numbers, section, settings_of
from .palette import RUNS, css_colour
from .panels import card, flat_settings
from .run_record import read_run
from .svg import chart_html

__all__ = ["write_comparison"]

_NO_NUMBERS = ("steps", "speed")  # of a run that are said elsewhere


def write_comparison(folders: Sequence[Any], out: Any = None) -> Path:
    """Write one page that compares the runs of several folders.

    Args:
        folders: of runs, two at least.
        out: the file; ``comparison.html`` in the folder that holds all of them if None.

    Returns:
        The file.

    Raises:
        FileNotFoundError: a folder is not that of a run.
        ValueError: there are fewer than two, or nothing in a log can be read.

    Example:
        >>> from extensor.report import write_comparison
        >>> write_comparison(["runs/a"])
        Traceback (most recent call last):
        ValueError: [report] a comparison needs two runs at least, got 1
    """
    places = [as_path("report", folder) for folder in folders]
    if len(places) < 2:
        raise ValueError(f"[report] a comparison needs two runs at least, got {len(places)}")
    runs = [gather(read_run(place), None, None, None) for place in places]
    names = _names(places)
    charts = list(_charts(runs, names))
    body = section("Results", [_results(runs, names)])
    if charts:
        body += section("Curves", [chart_html(chart) for chart in charts])
    body += section("Settings", [_differences(runs, names)])
    notes = [f"{name}: {note}" for name, found in zip(names, runs) for note in found.run.notes]
    page = document(f"{len(runs)} runs", _header(names, notes), body, charts)
    file = _common_folder(places) / "comparison.html" if out is None else as_path("report", out)
    write_whole("report", file, [page.encode("utf-8")])
    return file


def _common_folder(places: Sequence[Path]) -> Path:
    """The innermost folder that holds all the runs; that of the first where they share only the root."""
    parents = [place.resolve().parent for place in places]
    common = Path(os.path.commonpath(parents))
    return parents[0] if common == Path(common.anchor) else common


def _names(places: Sequence[Path]) -> list[str]:
    """The names of the folders, with those around them as far as they are needed to be different."""
    full = [place.resolve().parts for place in places]
    for length in range(1, max(map(len, full)) + 1):
        names = ["/".join(parts[-length:]) for parts in full]
        if len(set(names)) == len(names):
            return names
    return [f"{'/'.join(parts[-1:])} ({i})" for i, parts in enumerate(full, 1)]  # the same run twice


def _header(names: Sequence[str], notes: Sequence[str]) -> str:
    told = "".join(f"<li>{escape(note)}</li>" for note in notes)
    told = f'<ul class="notes">{told}</ul>' if told else ""
    return (
        f'<header><p class="over">ExTensor runs</p><div class="title"><h1>{len(names)} runs compared</h1></div>'
        f'<p class="facts">{escape(", ".join(names))}</p>{told}</header>'
    )


def _mark(number: int) -> str:
    colour = css_colour(RUNS[number % len(RUNS)])
    return f'<i class="swatch" style="background:{colour}"></i>'


# What came of them


def _results(runs: Sequence[Contents], names: Sequence[str]) -> str:
    """A row for each run; the best of a column is set in bold."""
    numbers = [
        {label: value for label, value, _ in key_numbers(found) if label not in _NO_NUMBERS} for found in runs
    ]
    labels = list(dict.fromkeys(label for row in numbers for label in row))
    best = {label: _best_of(label, [row.get(label) for row in numbers]) for label in labels}
    head = "".join(f"<th class=n>{escape(label)}</th>" for label in labels)
    rows = []
    for i, (name, found, row) in enumerate(zip(names, runs, numbers)):
        cells = "".join(
            f"<td class=n>{'<b>' if best[label] == i else ''}{escape(row.get(label, '–'))}{'</b>' if best[label] == i else ''}</td>"
            for label in labels
        )
        rows.append(
            f"<tr><td>{_mark(i)}{escape(name)}</td><td>{escape(found.run.status.state)}</td>{cells}</tr>"
        )
    table = (
        f"<div class=scroll><table class=data><thead><tr><th>run</th><th>status</th>{head}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )
    return card("What came of them", table, "results", "The best of a column is bold.")


def _best_of(label: str, texts: Sequence[str | None]) -> int | None:
    """Which run is best, where more or less of something is better and all have it in one form."""
    higher = is_share(label) or "R2" in label
    if not higher and not any(word in label for word in ("loss", "RMSE", "perplexity")):
        return None
    values = [(_value(text), i) for i, text in enumerate(texts) if text is not None]
    if len(values) < 2 or len({value for value, _ in values}) == 1:
        return None
    return (max if higher else min)(values, key=lambda pair: pair[0])[1]


def _value(text: str) -> float:
    """The number of a text that :func:`extensor._numerals.shown` wrote."""
    digits, _, power = text.removesuffix(" %").replace(",", "").replace("−", "-").partition("·10")
    raised = power.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")) or "0"
    return float(digits) * 10.0 ** int(raised)


# Their curves


def _charts(runs: Sequence[Contents], names: Sequence[str]) -> list[Chart]:
    """Loss, metrics and learning rate, a line for each run."""
    metrics = list(dict.fromkeys(name for found in runs for name in metric_names(found.run)))
    by_epochs = all(axis_of(found.run).label == "epoch" for found in runs)
    wanted = [("val_loss", "Validation loss"), ("loss", "Training loss")]
    wanted += [(f"val_{name}", f"Validation {name.replace('_', ' ')}") for name in metrics]
    charts = []
    for key, title in [*wanted, ("lr", "Learning rate")]:
        series = []
        for i, (name, found) in enumerate(zip(names, runs)):
            records = found.run.of_kind("step") if key == "lr" else found.run.of_kind("epoch", "validation")
            unit = axis_of(found.run).unit if by_epochs else 1.0
            points: list[Point] = [(x / unit, y) for x, y in points_of(records, key)]
            series.append(Series(name, points, RUNS[i % len(RUNS)]))
        shown = [s for s in series if s.known()]
        if not any(len(s.known()) >= 2 for s in shown):
            continue
        values = [y for s in shown for _, y in s.known()]
        steep = key in ("loss", "val_loss") and min(values) > 0 and max(values) / min(values) > 20
        charts.append(
            Chart(
                key,
                title,
                shown,
                axis=Axis("epoch" if by_epochs else "step"),
                logarithmic=steep,
                with_zero=key == "lr",
                kind="percent" if is_share(key) else "number",
                until=max(x for s in shown for x, _ in s.known()),
            )
        )
    return charts


# Their settings


def _differences(runs: Sequence[Contents], names: Sequence[str]) -> str:
    """The settings that are not the same in all runs."""
    each = [dict(flat_settings(settings_of(found.run))) for found in runs]
    labels = list(dict.fromkeys(label for row in each for label in row))
    differ = [label for label in labels if len({row.get(label) for row in each}) > 1]
    if not differ:
        return card("Where they differ", "<p class=about>All settings are the same.</p>", "differences")
    head = "".join(f"<th>{_mark(i)}{escape(name)}</th>" for i, name in enumerate(names))
    rows = "".join(
        f"<tr><td>{escape(label)}</td>{''.join(f'<td>{_short(row.get(label))}</td>' for row in each)}</tr>"
        for label in differ
    )
    same = len(labels) - len(differ)
    table = (
        f"<div class=scroll><table class=data><thead><tr><th>setting</th>{head}</tr></thead>"
        f"<tbody>{rows}</tbody></table></div>"
    )
    return card("Where they differ", table, "differences", f"{same} more settings are the same in all.")


def _short(text: str | None) -> str:
    if text is None:
        return "–"
    if len(text) <= 60:
        return escape(text)
    return f'<span title="{escape(text)}">{escape(text[:57])} …</span>'
