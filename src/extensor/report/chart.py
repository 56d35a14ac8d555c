"""What a chart shows, apart from how it is drawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from .._scale import Scale, linear_scale, log_scale, share_scale

__all__ = ["Axis", "Chart", "Heat", "Point", "Series", "thinned"]

Point: TypeAlias = tuple[float, float | None]  # x and y; None is a gap
Kind = Literal["number", "percent"]


@dataclass(frozen=True)
class Series:
    """A named line (or cloud) of points. ``colour`` is a name of :mod:`.palette` or a #rrggbb."""

    name: str
    points: Sequence[Point]
    colour: str
    style: Literal["line", "faint", "dots"] = "line"

    def known(self) -> list[tuple[float, float]]:
        """The points that are no gaps."""
        return [(x, y) for x, y in self.points if y is not None]


@dataclass(frozen=True)
class Axis:
    """What runs along the bottom: numbers called ``label``, ``unit`` steps each."""

    label: str = "step"
    unit: float = 1.0


@dataclass(frozen=True)
class Chart:
    """Lines over the steps of a run, or a cloud of points.

    Attributes:
        key: names the chart in the page and its picture file.
        kind: how y values are written.
        logarithmic: whether the y axis goes by powers of ten.
        marks: places along x worth a vertical line, and why.
        best: the series and the point in it that is marked.
        until: where x ends, beginning at 0; without it, x goes as far as the points.
        with_zero: whether y begins at 0.
    """

    key: str
    title: str
    series: Sequence[Series]
    note: str = ""
    kind: Kind = "number"
    logarithmic: bool = False
    axis: Axis = field(default_factory=Axis)
    marks: Sequence[tuple[float, str]] = ()
    best: tuple[str, tuple[float, float]] | None = None
    until: float | None = None
    with_zero: bool = False

    def values(self) -> Iterator[tuple[float, float]]:
        """All points of all series."""
        for series in self.series:
            yield from series.known()

    def x_scale(self) -> Scale:
        xs = [x for x, _ in self.values()]
        return linear_scale(xs) if self.until is None else Scale(0.0, max(1.0, self.until, *xs))

    def y_scale(self) -> Scale:
        ys = [y for _, y in self.values()]
        if self.logarithmic:
            return log_scale(ys)
        if self.kind == "percent":
            return share_scale(ys)
        if self.with_zero and max(ys) > 0:
            return linear_scale([0.0, *ys], lowest=0.0)
        return linear_scale(ys, lowest=0.0 if min(ys) >= 0 else None)


@dataclass(frozen=True)
class Heat:
    """A row of colours for each layer, over the steps of a run; the colours go by powers of ten."""

    key: str
    title: str
    rows: Sequence[str]
    steps: Sequence[float]
    values: Sequence[Sequence[float | None]]  # one row for each layer
    note: str = ""
    axis: Axis = field(default_factory=Axis)

    def scale(self) -> Scale:
        found = [v for row in self.values for v in row if v]
        return Scale(min(found), max(found) if max(found) > min(found) else 2 * min(found), logarithmic=True)


def thinned(points: Sequence[Point], most: int = 1200) -> list[Point]:
    """At most so many points, about; of neighbours the lowest and the highest stay, so that peaks are never lost."""
    if len(points) <= most:
        return list(points)
    size = 2 * len(points) / most
    kept = []
    for group in range(most // 2):
        part = range(round(group * size), min(round((group + 1) * size), len(points)))
        known = [i for i in part if points[i][1] is not None]
        ends = (
            {min(known, key=lambda i: points[i][1] or 0.0), max(known, key=lambda i: points[i][1] or 0.0)}
            if known
            else {part[0]}
        )
        kept += [points[i] for i in sorted(ends)]
    return [*kept, points[-1]] if kept[-1] != points[-1] else kept
