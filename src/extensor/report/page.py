"""The page: one HTML file that needs no other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from html import escape
from importlib import resources
from statistics import median

from .._numerals import duration, is_share, shown
from ..version import __version__
from .chart import Chart, Heat
from .contents import Contents
from .curves import metric_names, points_of
from .evaluation import Classification, Regression
from .palette import PALETTE
from .panels import (
    configuration_html,
    confusion_html,
    errors_html,
    examples_html,
    filters_html,
    summary_html,
    text_html,
    weights_html,
)
from .run_record import RunRecord, number
from .svg import chart_data, chart_html, heat_data, heat_html, script_json

__all__ = ["document", "key_numbers", "page", "section", "settings_of"]


def page(contents: Contents) -> str:
    """The whole report as HTML."""
    return document(contents.run.name, _header(contents), "".join(_sections(contents)), contents.charts())


def document(name: str, header: str, body: str, charts: Sequence[Chart | Heat]) -> str:
    """An HTML file that holds its style, its script and the numbers of its charts."""
    files = resources.files(__package__)
    style = _palette_css() + files.joinpath("page.css").read_text(encoding="utf-8")
    script = files.joinpath("page.js").read_text(encoding="utf-8")
    data = {c.key: heat_data(c) if isinstance(c, Heat) else chart_data(c) for c in charts}
    title = escape(f"{name} · ExTensor")
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<link rel="icon" href="data:,">\n<style>\n{style}</style>\n</head>\n<body>\n'
        f"{header}\n<main>\n{body}</main>\n{_footer()}\n"
        f'<script type="application/json" id="data">{script_json(data)}</script>\n<script>\n{script}</script>\n'
        "</body>\n</html>\n"
    )


def _palette_css() -> str:
    light, dark = (
        "".join(f"--{name}:{colours[mode]};" for name, colours in PALETTE.items()) for mode in (0, 1)
    )
    return f":root{{{light}}}\n@media (prefers-color-scheme:dark){{:root{{{dark}}}}}\n"


# The top


def _header(contents: Contents) -> str:
    run = contents.run
    model = run.config.get("model")
    name = model.get("name") if isinstance(model, dict) else None
    source = run.config.get("data")
    facts = [
        str(name) if name else "",
        f"recipe {run.config['recipe']}" if "recipe" in run.config else "",
        f"trained on {source}"
        if source
        else "trained on the embedded digits"
        if "recipe" in run.config
        else "",
        _day(run),
    ]
    line = "\u00a0· ".join(escape(fact) for fact in facts if fact)
    notes = "".join(f"<li>{escape(note)}</li>" for note in run.notes)
    notes = f'<ul class="notes">{notes}</ul>' if notes else ""
    return (
        f'<header><p class="over">ExTensor run</p><div class="title"><h1>{escape(run.name)}</h1>'
        f'<span class="status {run.status.state}">{escape(run.status.text)}</span></div>'
        f'<p class="facts">{line}</p>{notes}{_figures(contents)}</header>'
    )


def _day(run: RunRecord) -> str:
    """When the run was last written to."""
    times = [r["at"] for r in run.records if isinstance(r.get("at"), str)]
    try:
        return f"{datetime.fromisoformat(times[-1]):%-d %B %Y, %H:%M} UTC" if times else ""
    except ValueError:
        return ""


def _figures(contents: Contents) -> str:
    tiles = "".join(
        f"<div><dt>{escape(label)}</dt><dd>{_value(value)}</dd><dd class=small>{escape(about)}</dd></div>"
        for label, value, about in key_numbers(contents)
    )
    return f'<dl class="figures">{tiles}</dl>' if tiles else ""


def _value(text: str) -> str:
    """A number, with what follows it in smaller letters."""
    first, _, rest = text.partition(" ")
    return escape(first) + (f"<small> {escape(rest)}</small>" if rest else "")


def key_numbers(contents: Contents) -> Iterator[tuple[str, str, str]]:
    """What the run is judged by: a label, a number, a remark."""
    run = contents.run
    yield from _test_numbers(contents)
    judged = run.of_kind("epoch", "validation")
    for name in [*metric_names(run), "loss"]:
        points = [(x, y) for x, y in points_of(judged, f"val_{name}") if y is not None]
        if not points:
            continue
        fraction = is_share(name)
        step, value = (max if fraction else min)(points, key=lambda point: point[1])
        label = f"validation {name.replace('_', ' ')}"
        about = f"best, at step {step:,.0f}" if len(points) > 1 else f"at step {step:,.0f}"
        yield label, shown(value, "percent" if fraction else "number"), about
    losses = [y for _, y in points_of(run.of_kind("epoch") or run.of_kind("step"), "loss") if y is not None]
    if losses:
        yield "training loss", shown(losses[-1]), "at the end" if run.status.state == "finished" else "so far"
    if contents.summary is not None:
        yield "parameters", f"{contents.summary.parameters:,}", f"in {len(contents.summary.rows)} layers"
    if run.last_step():
        total = run.total_steps()
        yield "steps", f"{run.last_step():,}", f"of {total:,}" if total else ""
    speeds = [y for _, y in points_of(run.of_kind("step", "epoch"), "samples_per_second") if y is not None]
    pace = f"{median(speeds):,.0f} samples/s" if speeds else ""
    ends = [number(r, "seconds") for r in run.of_kind("end")]
    if len(ends) == 1 and ends[0] is not None and not run.of_kind("resume"):
        yield "time", duration(ends[0]), pace
    elif speeds:
        yield "speed", f"{median(speeds):,.0f}", "samples per second"


def _test_numbers(contents: Contents) -> Iterator[tuple[str, str, str]]:
    """How good the best weights are on samples that took no part in the training."""
    found = contents.evaluation
    if isinstance(found, Classification):
        right = found.total - found.wrong
        yield "test accuracy", shown(right / found.total, "percent"), f"{right:,} of {found.total:,} samples"
    elif isinstance(found, Regression):
        yield "test RMSE", shown(found.error), f"of {len(found.targets) // found.per_sample:,} samples"
        if found.explained is not None:
            yield "test R2", shown(found.explained), "1 is perfect, 0 no better than the mean"


# The sections


def _sections(contents: Contents) -> Iterator[str]:
    if contents.curves:
        yield section("Learning", [chart_html(c) for c in contents.curves])
    if isinstance(contents.evaluation, Classification):
        yield section("Mistakes", [confusion_html(contents.evaluation), examples_html(contents.evaluation)])
    if isinstance(contents.evaluation, Regression) and contents.predictions is not None:
        yield section("Predictions", [chart_html(contents.predictions), errors_html(contents.evaluation)])
    if contents.text is not None:
        prompt, text = contents.text
        yield section("Text", [text_html(text, prompt)])
    if contents.layers:
        charts = [heat_html(c) if isinstance(c, Heat) else chart_html(c) for c in contents.layers]
        yield section("Layers over time", charts)
    if contents.filters is not None:
        yield section("Filters", [filters_html(contents.filters)])
    if contents.summary is not None:
        yield section("Model", [summary_html(contents.summary)])
    elif contents.weights is not None:
        yield section("Model", [weights_html({name: t.shape for name, t in contents.weights.items()})])
    settings = settings_of(contents.run)
    if settings:
        yield section("Configuration", [configuration_html(settings)])


def section(title: str, panels: Sequence[str]) -> str:
    """Panels under a heading, two in a row."""
    odd = " odd" if len(panels) % 2 else ""
    return f'<section><h2>{escape(title)}</h2><div class="grid{odd}">{"".join(panels)}</div></section>\n'


def settings_of(run: RunRecord) -> dict[str, object]:
    """The configuration, and what the log says of how the run was made."""
    framing = {"kind", "step", "epoch", "at"}
    return {**run.config, **{k: v for k, v in run.beginning().items() if k not in framing}}


def _footer() -> str:
    return f"<footer>Made by extensor report, version {escape(__version__)}. This page needs no other file.</footer>"
