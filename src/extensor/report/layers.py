"""Gradient norms and update ratios of the layers over time: lines for a few layers, colours for many."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from .chart import Chart, Heat, Series
from .curves import axis_of, resumes
from .palette import layer_colours
from .run_record import RunRecord, number

__all__ = ["layer_charts"]

_MOST_LINES = 10  # more cannot be told apart
_MOST_COLUMNS = 240

Table = dict[str, list[float | None]]  # for each layer its numbers, one for each record


def layer_charts(run: RunRecord) -> list[Chart | Heat]:
    """The charts of the layers, from the input to the output."""
    records = run.of_kind("layers")
    steps = [float(r["step"]) for r in records]
    gradients = _table(records, "grad_norm", _layer_norms)
    ratios = _table(records, "update_ratio", _weights_alone)
    found = [
        _drawn(run, "gradient_norms", "Gradient norms of the layers", steps, gradients,
               "Weight and bias of a layer together. Layers that are powers of ten apart have vanishing or exploding gradients."),
        _drawn(run, "update_ratios", "Update ratios of the layers", steps, ratios,
               "How far a step moves the weights, relative to their size; about 0.001 is usual."),
    ]  # fmt: skip
    return [chart for chart in found if chart is not None]


def _table(
    records: Sequence[dict[str, Any]], name: str, gather: Callable[[dict[str, float]], dict[str, float]]
) -> Table:
    found: Table = {}
    for place, record in enumerate(records):
        values = record.get(name)
        numbers = {key: number(values, key) for key in values} if isinstance(values, dict) else {}
        for layer, value in gather({key: v for key, v in numbers.items() if v is not None}).items():
            found.setdefault(layer, [None] * len(records))[place] = value
    return {layer: row for layer, row in found.items() if any(row)}  # a scale of powers has no 0


def _layer_norms(norms: dict[str, float]) -> dict[str, float]:
    """From parameters to layers: the norms of parts are the norm of the whole, squared and added."""
    squares: dict[str, float] = {}
    for parameter, norm in norms.items():
        layer = parameter.rpartition(".")[0] or parameter
        squares[layer] = squares.get(layer, 0.0) + norm * norm
    return {layer: math.sqrt(square) for layer, square in squares.items()}


def _weights_alone(ratios: dict[str, float]) -> dict[str, float]:
    """A bias starts at or near 0, so that its ratio says little; without weights, all there is."""
    weights = {n: r for n, r in ratios.items() if n.rpartition(".")[2].startswith("weight")}
    return {name.removesuffix(".weight"): ratio for name, ratio in (weights or ratios).items()}


def _drawn(
    run: RunRecord, key: str, title: str, steps: Sequence[float], table: Table, note: str
) -> Chart | Heat | None:
    if len(set(steps)) < 2 or not table:
        return None
    if len(table) > _MOST_LINES:
        every = math.ceil(len(steps) / _MOST_COLUMNS)
        rows = [row[::every] for row in table.values()]
        return Heat(key, title, list(table), steps[::every], rows, note, axis_of(run))
    colours = layer_colours(len(table))
    series = [
        Series(layer, [(step, value or None) for step, value in zip(steps, row)], colour)
        for (layer, row), colour in zip(table.items(), colours)
    ]
    return Chart(
        key,
        title,
        series,
        note,
        logarithmic=True,
        axis=axis_of(run),
        marks=resumes(run),
        until=run.last_step(),
    )
