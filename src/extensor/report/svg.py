"""Charts as HTML with inline SVG.

The lines are drawn in a square of 1000 x 1000 that stretches to whatever room there is, with strokes that do not stretch;
the words around it are HTML in places given in percent. So a chart fills a phone and a wide screen with the same letters.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape

import numpy as np

from .._numerals import plain, shown, ticks
from .._scale import Scale
from .chart import Chart, Heat, Point, Series, thinned
from .palette import HEAT, between, blended, css_colour
from .png import data_address

__all__ = ["chart_data", "chart_html", "heat_data", "heat_html", "script_json"]

_SIDE = 1000  # of the square the lines are drawn in


def chart_html(chart: Chart) -> str:
    """A figure: title, legend, axes, lines, note."""
    x, y = chart.x_scale(), chart.y_scale()
    y_ticks = [(y.place(v), text) for v, text in zip(y.ticks(), ticks(y.ticks(), chart.kind))]
    grid = "".join(f'<path class="grid" d="M0 {_down(place)}H{_SIDE}"/>' for place, _ in y_ticks)
    marks = "".join(
        f'<path class="mark" d="M{_across(x.place(step))} 0V{_SIDE}"><title>{escape(text)}</title></path>'
        for step, text in chart.marks
        if x.low <= step <= x.high
    )
    lines = "".join(_line(series, x, y) for series in chart.series)
    words = f"{chart.title}: " + "; ".join(
        f"{s.name} ends at {shown(s.known()[-1][1], chart.kind)}" for s in chart.series
    )
    box = (
        f'<svg viewBox="0 0 {_SIDE} {_SIDE}" preserveAspectRatio="none" role="img" aria-label="{escape(words)}" '
        f'data-x="{plain(x.low)} {plain(x.high)}" data-y="{y.low!r} {y.high!r}">'
        f"{grid}{marks}{lines}{_best_mark(chart, x, y)}</svg>"
    )
    note = f"<p class=about>{escape(chart.note)}</p>" if chart.note else ""
    labels = "".join(f'<span style="bottom:{100 * p:.2f}%">{t}</span>' for p, t in y_ticks)
    logarithmic = "<span class=scale>log scale</span>" if chart.logarithmic else ""
    logarithmic += "<span class=scale>stretched towards 100 %</span>" if y.toward_one else ""
    return (
        f'<figure class="card chart" id="{escape(chart.key)}"><figcaption><h3>{escape(chart.title)}{logarithmic}</h3>'
        f"{_legend(chart)}{note}</figcaption>"
        f'<div class="plot" data-chart="{escape(chart.key)}"><div class="ys">{labels}</div>{box}'
        f"{_x_ticks(chart.axis.unit, x)}</div><p class=axis>{escape(chart.axis.label)}</p></figure>"
    )


def _across(place: float) -> str:
    return f"{_SIDE * place:.5g}"


def _down(place: float) -> str:
    return f"{_SIDE * (1 - place):.5g}"


def _line(series: Series, x: Scale, y: Scale) -> str:
    """The path of a series; a point between two gaps is a dot."""
    parts, run = [], list[str]()
    for step, value in [*thinned(series.points), (0.0, None)]:
        if value is not None:
            run.append(f"{_across(x.place(step))} {_down(y.place(value))}")
            continue
        if series.style == "dots":
            parts += [f"M{point}h0" for point in run]
        elif run:
            parts.append(f"M{run[0]}" + ("L" + "L".join(run[1:]) if len(run) > 1 else "h0"))
        run = []
    single = " dots" if len(series.known()) == 1 else ""
    colour, name = css_colour(series.colour), escape(series.name)
    return f'<path class="{series.style}{single}" data-series="{name}" style="--c:{colour}" d="{"".join(parts)}"/>'


def _best_mark(chart: Chart, x: Scale, y: Scale) -> str:
    if chart.best is None:
        return ""
    name, (step, value) = chart.best
    colour = next((css_colour(s.colour) for s in chart.series if s.name == name), "currentColor")
    at = f"M{_across(x.place(step))} {_down(y.place(value))}h0"
    return f'<path class="halo" d="{at}"/><path class="best" style="--c:{colour}" d="{at}"/>'


def _legend(chart: Chart) -> str:
    """The names of the series with their last values, and the best one."""
    if len(chart.series) == 1 and chart.best is None and not chart.marks:
        return ""
    entries = []
    for series in chart.series if len(chart.series) > 1 else ():
        last = (
            ""
            if series.style != "line" or len(chart.series) > 4
            else f" <b>{shown(series.known()[-1][1], chart.kind)}</b>"
        )
        sign = f'<i class="{series.style}" style="--c:{css_colour(series.colour)}"></i>'
        entries.append(f"<li>{sign}{escape(series.name)}{last}</li>")
    if chart.best is not None:
        step, value = chart.best[1]
        at = f"{chart.axis.label} {shown(step / chart.axis.unit)}"
        entries.append(f'<li><i class="ring"></i>best <b>{shown(value, chart.kind)}</b> at {at}</li>')
    if chart.marks:
        more = f" and {len(chart.marks) - 1} more" if len(chart.marks) > 1 else ""
        entries.append(f'<li><i class="dash"></i>{escape(chart.marks[0][1])}{more}</li>')
    return f"<ul class=legend>{''.join(entries)}</ul>"


def _x_ticks(unit: float, x: Scale) -> str:
    in_units = Scale(x.low / unit, x.high / unit)
    values = in_units.ticks()
    labels = "".join(
        f'<span style="left:{100 * in_units.place(v):.2f}%">{text}</span>'
        for v, text in zip(values, ticks(values))
    )
    return f'<div class="xs">{labels}</div>'


def _rounded(points: Sequence[Point]) -> list[list[float | None]]:
    return [[float(plain(x)), None if y is None else float(f"{y:.7g}")] for x, y in points]


def chart_data(chart: Chart) -> dict[str, object]:
    """What the script of the page shows when one points at the chart."""
    x, y = chart.x_scale(), chart.y_scale()
    series = [
        {"name": s.name, "colour": css_colour(s.colour), "points": _rounded(thinned(s.points))}
        for s in chart.series
    ]
    return {
        "x": [x.low, x.high], "y": [y.low, y.high], "log": y.logarithmic, "one": y.toward_one, "kind": chart.kind, "label": chart.axis.label,
        "unit": chart.axis.unit, "series": series,
    }  # fmt: skip


# Many layers: rows of colours


def _heat_pixels(heat: Heat) -> np.ndarray:
    scale = heat.scale()
    places = np.array([[scale.place(v) if v else 0.0 for v in row] for row in heat.values])
    pixels = blended(HEAT, places)
    pixels[np.array([[not v for v in row] for row in heat.values])] = 128
    return pixels


def heat_html(heat: Heat) -> str:
    """A figure: title, one row of colours for each layer, and what the colours mean."""
    scale = heat.scale()
    rows = "".join(f"<span>{escape(row)}</span>" for row in heat.rows)
    stops = ",".join(between(HEAT, i / 10) for i in range(11))
    key = (
        f'<div class="key"><span>{shown(scale.low)}</span>'
        f'<i style="background:linear-gradient(90deg,{stops})"></i><span>{shown(scale.high)}</span></div>'
    )
    steps = Scale(heat.steps[0], heat.steps[-1])
    note = f"<p class=about>{escape(heat.note)}</p>" if heat.note else ""
    return (
        f'<figure class="card chart heat" id="{escape(heat.key)}"><figcaption>'
        f"<h3>{escape(heat.title)}<span class=scale>log scale</span></h3>{key}{note}</figcaption>"
        f'<div class="rows" style="--rows:{len(heat.rows)}"><div class="names">{rows}</div>'
        f'<div class="plot" data-heat="{escape(heat.key)}"><img alt="{escape(heat.title)}, one row for each layer" '
        f'src="{data_address(_heat_pixels(heat))}">{_x_ticks(heat.axis.unit, steps)}</div></div>'
        f"<p class=axis>{escape(heat.axis.label)}</p></figure>"
    )


def heat_data(heat: Heat) -> dict[str, object]:
    """What the script of the page shows when one points at the rows."""
    rows = [[None if v is None else float(f"{v:.4g}") for v in row] for row in heat.values]
    return {
        "rows": list(heat.rows), "steps": list(heat.steps), "values": rows, "label": heat.axis.label,
        "unit": heat.axis.unit,
    }  # fmt: skip


def script_json(data: object) -> str:
    """JSON that cannot end the script element it stands in."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c").replace("&", "\\u0026")
