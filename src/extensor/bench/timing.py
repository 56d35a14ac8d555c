"""Timing contestants in one process: short rounds in turn, the minimum of each, and how much the rounds differ.

Other work on a machine slows a round down and never speeds it up; so minima compare. Rounds in turn give every contestant
the same quiet moments.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

__all__ = ["Timing", "best_times", "compare", "table"]


class Timing(NamedTuple):
    """Seconds per call: the minimum, and the quartiles over the rounds."""

    best: float
    low: float
    high: float


def compare(
    contestants: dict[str, Callable[[], Any]], rounds: int = 60, seconds: float = 0.004, pause: float = 0.0
) -> dict[str, Timing]:
    """Time every contestant in ``rounds`` rounds of about ``seconds`` each, in turn.

    Before each turn nothing runs for ``pause`` seconds: the threads of the one before may still be waiting for work.
    """
    counts = {name: _calls_for(run, seconds) for name, run in contestants.items()}
    times: dict[str, list[float]] = {name: [] for name in contestants}
    enabled = gc.isenabled()
    gc.disable()
    try:
        for _ in range(rounds):
            for name, run in contestants.items():
                count = counts[name]
                time.sleep(pause)
                start = time.perf_counter()
                for _ in range(count):
                    run()
                times[name].append((time.perf_counter() - start) / count)
    finally:
        if enabled:
            gc.enable()
    return {name: _summary(values) for name, values in times.items()}


def best_times(
    contestants: dict[str, Callable[[], Any]], rounds: int = 60, seconds: float = 0.004
) -> dict[str, float]:
    """Only the minima of :func:`compare`."""
    return {name: timing.best for name, timing in compare(contestants, rounds, seconds).items()}


def _summary(values: list[float]) -> Timing:
    low, _, high = (
        statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else (values[0],) * 3
    )
    return Timing(min(values), low, high)


def _calls_for(run: Callable[[], Any], seconds: float) -> int:
    run()
    run()  # the second call of a kind makes its plan; the third is like all that follow
    start = time.perf_counter()
    run()
    once = max(time.perf_counter() - start, 1e-7)
    return max(1, int(seconds / once))


def table(rows: Sequence[tuple[str, ...]]) -> str:
    """Rows under a header as a Markdown table that also reads well in a terminal; numbers to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]

    def line(row: tuple[str, ...]) -> str:
        cells = [cell.rjust(w) if i else cell.ljust(w) for i, (cell, w) in enumerate(zip(row, widths))]
        return f"| {' | '.join(cells)} |"

    rule = "|" + "|".join("-" * (w + 1) + (":" if i else "-") for i, w in enumerate(widths)) + "|"
    return "\n".join([line(rows[0]), rule, *map(line, rows[1:])])
