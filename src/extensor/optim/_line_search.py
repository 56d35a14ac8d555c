"""A step length that satisfies the strong Wolfe conditions (Nocedal and Wright, Numerical Optimization, section 3.5)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

_ENOUGH_FALL, _ENOUGH_FLATNESS, _MOST_TRIES = 1e-4, 0.9, 25


class Point(NamedTuple):
    """A point of the line: how far, the value there, the gradient, and the slope along the line."""

    length: float
    value: float
    gradient: Any
    slope: float


def strong_wolfe(
    evaluate: Callable[[float], Point], start: Point, length: float, shortest: float
) -> tuple[Point, int]:
    """A point where the value has fallen enough and the slope is flat enough, and how many were tried.

    Args:
        evaluate: gives the point at a length.
        start: the point at 0; its slope is negative.
        length: the first try.
        shortest: brackets that are shorter are not divided further.
    """
    before, tries = start, 0
    while tries < _MOST_TRIES:
        here = evaluate(length)
        tries += 1
        if not _fallen(here, start) or (tries > 1 and here.value >= before.value):
            return _zoom(evaluate, start, before, here, shortest, tries)
        if _flat(here, start):
            return here, tries
        if here.slope >= 0:
            return _zoom(evaluate, start, here, before, shortest, tries)
        reach = here.length - before.length
        length = _between(_cubic(before, here), here.length + 0.01 * reach, 10 * here.length)
        before = here
    return before, tries


def _zoom(
    evaluate: Callable[[float], Point], start: Point, low: Point, high: Point, shortest: float, tries: int
) -> tuple[Point, int]:
    """Between ``low``, the best so far, and ``high`` lies a point that satisfies both conditions."""
    while tries < _MOST_TRIES and abs(high.length - low.length) > shortest:
        left, right = sorted((low.length, high.length))
        margin = 0.1 * (right - left)  # not too near to an end, or the bracket hardly shrinks
        here = evaluate(_between(_cubic(low, high), left + margin, right - margin))
        tries += 1
        if not _fallen(here, start) or here.value >= low.value:
            high = here
            continue
        if _flat(here, start):
            return here, tries
        if here.slope * (high.length - low.length) >= 0:
            high = low
        low = here
    return low, tries


def _fallen(here: Point, start: Point) -> bool:
    return here.value <= start.value + _ENOUGH_FALL * here.length * start.slope  # false for nan


def _flat(here: Point, start: Point) -> bool:
    return abs(here.slope) <= -_ENOUGH_FLATNESS * start.slope


def _cubic(a: Point, b: Point) -> float:
    """The minimum of the cubic through both values and slopes; nan where it has none."""
    if not math.isfinite(a.value + b.value + a.slope + b.slope):
        return math.nan
    first = a.slope + b.slope - 3 * (a.value - b.value) / (a.length - b.length)
    square = first * first - a.slope * b.slope
    if square < 0:
        return math.nan
    second = math.copysign(math.sqrt(square), b.length - a.length)
    below = b.slope - a.slope + 2 * second
    return b.length - (b.length - a.length) * (b.slope + second - first) / below if below else math.nan


def _between(x: float, low: float, high: float) -> float:
    return (low + high) / 2 if math.isnan(x) else min(max(x, low), high)
