"""A small chart of metrics over the steps of a run, as SVG that stands alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .._html import escaped
from .._numerals import is_share, shown, ticks
from .._scale import Scale, linear_scale, log_scale, share_scale

__all__ = ["TRAINING", "VALIDATION", "Curve", "curve_svg"]

TRAINING, VALIDATION = "#3f7bd8", "#e0752f"  # to be told apart on white and on black
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 380, 190, 50, 12, 30, 24


class Curve(NamedTuple):
    """A line: its name, its colour, its points, and whether it is drawn faintly."""

    name: str
    colour: str
    points: Sequence[tuple[float, float]]
    faint: bool = False


def curve_svg(title: str, curves: Sequence[Curve], label: str, end: float | None = None) -> str:
    """Lines with their axes and a legend of their last values; nothing where there are fewer than two points.

    Args:
        title: the metric; one in percent has an axis in percent.
        label: what runs along the bottom.
        end: how far the bottom goes at least.
    """
    kept = [c for c in curves if c.points]
    xs = [x for c in kept for x, _ in c.points]
    ys = [y for c in kept for _, y in c.points]
    if len(set(xs)) < 2:
        return ""
    kind = "percent" if is_share(title) else "number"
    x, y = Scale(min(xs), max(*xs, end or 0.0)), _y_scale(ys, kind)
    marks = zip(y.ticks(4), ticks(y.ticks(4), kind))
    grid = "".join(
        f'<path d="M{_LEFT} {_down(y, v):.1f}H{_WIDTH - _RIGHT}" stroke="currentColor" stroke-opacity=".14"/>'
        f'<text x="{_LEFT - 7}" y="{_down(y, v) + 4:.1f}" text-anchor="end" class="t">{text}</text>'
        for v, text in marks
    )
    below = "".join(
        f'<text x="{_across(x, v):.1f}" y="{_HEIGHT - 7}" text-anchor="middle" class="t">{text}</text>'
        for v, text in zip(x.ticks(5), ticks(x.ticks(5)))
        if x.place(v) < 0.88  # there stands the label
    )
    lines = "".join(_line(c, x, y) for c in kept)
    names = "".join(
        f'<tspan fill="{c.colour}" dx="10">{escaped(c.name)} {shown(c.points[-1][1], kind)}</tspan>'
        for c in kept
        if not c.faint
    )
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" style="max-width:100%" '
        f'role="img" aria-label="{escaped(title)} over the {escaped(label)}s"><style>.t{{font-size:11px;fill:currentColor;'
        "fill-opacity:.6}</style>"
        f'<text x="{_LEFT}" y="16" font-size="12.5" font-weight="600" fill="currentColor">{escaped(_spoken(title))}'
        f'<tspan font-weight="400" font-size="11.5">{names}</tspan></text>{grid}{below}'
        f'<text x="{_WIDTH - _RIGHT}" y="{_HEIGHT - 7}" text-anchor="end" class="t">{escaped(label)}</text>{lines}</svg>'
    )


def _spoken(name: str) -> str:
    return name.replace("_", " ")


def _y_scale(ys: Sequence[float], kind: str) -> Scale:
    if kind == "percent":
        return share_scale(ys)
    if min(ys) > 0 and max(ys) / min(ys) > 20:  # most of the story would be flat on an even axis
        return log_scale(ys)
    return linear_scale(ys, lowest=0.0 if min(ys) >= 0 else None)


def _across(x: Scale, value: float) -> float:
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * x.place(value)


def _down(y: Scale, value: float) -> float:
    return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * y.place(value)


def _line(curve: Curve, x: Scale, y: Scale) -> str:
    points = [f"{_across(x, a):.1f} {_down(y, b):.1f}" for a, b in curve.points]
    if len(points) == 1:
        at, high = points[0].split(" ")
        return f'<circle cx="{at}" cy="{high}" r="3" fill="{curve.colour}"/>'
    style = 'stroke-opacity=".4" stroke-width="1.2"' if curve.faint else 'stroke-width="2"'
    return (
        f'<path d="M{"L".join(points)}" fill="none" stroke="{curve.colour}" stroke-linejoin="round" {style}/>'
    )
