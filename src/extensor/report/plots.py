"""The charts of a report as PNG files, drawn by matplotlib."""

from __future__ import annotations

import importlib.util
import io
from typing import Any

import numpy as np

from .._numerals import ticks
from .._scale import Scale
from .chart import Chart, Heat
from .contents import Contents
from .evaluation import Classification
from .palette import HEAT, PALETTE, between

__all__ = ["chart_files", "matplotlib_is_there"]

_INK, _SOFT, _LINE = "#1c1d20", "#6d6e75", "#e6e4df"


def matplotlib_is_there() -> bool:
    """Whether charts can be drawn as PNG files; looks without importing it."""
    return importlib.util.find_spec("matplotlib") is not None


def chart_files(contents: Contents) -> dict[str, bytes]:
    """Each chart as a PNG file, and the confusion matrix."""
    files = {f"{c.key}.png": _heat(c) if isinstance(c, Heat) else _chart(c) for c in contents.charts()}
    if isinstance(contents.evaluation, Classification):
        files["confusion.png"] = _confusion(contents.evaluation)
    return files


def _figure(width: float, height: float, title: str) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure: Any = Figure((width, height), dpi=160, layout="constrained")
    figure.get_layout_engine().set(w_pad=0.15, h_pad=0.15)
    axes = figure.add_subplot()
    axes.set_title(title, loc="left", color=_INK, fontsize=12, fontweight="bold", pad=10)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(_LINE)
    axes.tick_params(colors=_SOFT, length=0, labelsize=9)
    return figure, axes


def _saved(figure: Any) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format="png", facecolor="white", metadata={"Software": None})
    return file.getvalue()


def _colour(colour: str) -> str:
    return PALETTE[colour][0] if colour in PALETTE else colour


def _chart(chart: Chart) -> bytes:
    figure, axes = _figure(6.4, 3.6, chart.title)
    x, y = chart.x_scale(), chart.y_scale()
    for series in chart.series:
        xs = [step / chart.axis.unit for step, _ in series.points]
        ys = [np.nan if value is None else value for _, value in series.points]
        look: dict[str, Any] = {"color": _colour(series.colour), "linewidth": 1.8, "solid_capstyle": "round"}
        if series.style == "faint":
            look |= {"alpha": 0.35, "linewidth": 1.0}
        if series.style == "dots" or len(series.known()) == 1:
            look |= {"linestyle": "none", "marker": "o", "markersize": 4 if len(xs) < 100 else 2}
        axes.plot(xs, ys, label=series.name, **look)
    if chart.best is not None:
        step, value = chart.best[1]
        axes.plot(
            [step / chart.axis.unit],
            [value],
            "o",
            markersize=7,
            markerfacecolor="white",
            markeredgecolor=_INK,
        )
    for step, text in chart.marks:
        axes.axvline(step / chart.axis.unit, color=_SOFT, linewidth=0.8, linestyle=(0, (3, 3)), label=text)
    if y.logarithmic:
        axes.set_yscale("log")
    if y.toward_one:
        axes.set_yscale("function", functions=(_placed(y), _valued(y)))
    axes.set_xlim(x.low / chart.axis.unit, x.high / chart.axis.unit)
    axes.set_ylim(y.low, y.high)
    axes.set_yticks(y.ticks(), ticks(y.ticks(), chart.kind))
    axes.set_yticks([], minor=True)
    in_units = Scale(x.low / chart.axis.unit, x.high / chart.axis.unit)
    axes.set_xticks(in_units.ticks(), ticks(in_units.ticks()))
    axes.grid(axis="y", color=_LINE, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.set_xlabel(chart.axis.label, color=_SOFT, fontsize=9)
    if len(chart.series) > 1:
        axes.legend(frameon=False, fontsize=8.5, labelcolor=_SOFT, ncols=1 if len(chart.series) < 5 else 2)
    return _saved(figure)


def _placed(scale: Scale) -> Any:
    """From shares to places on an axis that is stretched towards 1."""
    return lambda values: np.log((1 - scale.low) / (1 - np.minimum(values, scale.high)))


def _valued(scale: Scale) -> Any:
    return lambda places: 1 - (1 - scale.low) * np.exp(-places)


def _heat(heat: Heat) -> bytes:
    from matplotlib.colors import LinearSegmentedColormap, LogNorm

    figure, axes = _figure(6.4, 1.2 + 0.17 * len(heat.rows), heat.title)
    scale = heat.scale()
    values = np.array([[v or np.nan for v in row] for row in heat.values], np.float64)
    colours = LinearSegmentedColormap.from_list("heat", [between(HEAT, i / 10) for i in range(11)])
    extent = (heat.steps[0] / heat.axis.unit, heat.steps[-1] / heat.axis.unit, len(heat.rows) - 0.5, -0.5)
    image = axes.imshow(
        values, aspect="auto", cmap=colours, norm=LogNorm(scale.low, scale.high), extent=extent,
        interpolation="nearest",
    )  # fmt: skip
    axes.set_yticks(range(len(heat.rows)), list(heat.rows), fontsize=7)
    axes.set_xlabel(heat.axis.label, color=_SOFT, fontsize=9)
    bar = figure.colorbar(image, ax=axes, pad=0.02)
    bar.outline.set_visible(False)
    bar.ax.tick_params(colors=_SOFT, labelsize=8)
    return _saved(figure)


def _confusion(found: Classification) -> bytes:
    count = len(found.classes)
    figure, axes = _figure(2 + 0.42 * min(count, 30), 1.6 + 0.42 * min(count, 30), "Confusion matrix")
    shares = np.sqrt(found.matrix / np.maximum(found.matrix.sum(1, keepdims=True), 1))
    axes.pcolormesh(shares, cmap="Blues", vmin=0, vmax=1, edgecolors="white", linewidth=2)
    axes.set_aspect("equal")
    axes.invert_yaxis()
    if count <= 20:
        for i, j in zip(*np.nonzero(found.matrix)):
            colour = "white" if shares[i, j] > 0.6 else _INK
            axes.text(
                j + 0.5, i + 0.5, f"{found.matrix[i, j]}", ha="center", va="center", color=colour, fontsize=8
            )
        middles = [i + 0.5 for i in range(count)]
        turned = 90 if max(map(len, found.classes)) > 3 else 0
        axes.set_xticks(middles, list(found.classes), rotation=turned)
        axes.set_yticks(middles, list(found.classes))
    axes.set_xlabel("taken for", color=_SOFT, fontsize=9)
    axes.set_ylabel("is", color=_SOFT, fontsize=9)
    return _saved(figure)
