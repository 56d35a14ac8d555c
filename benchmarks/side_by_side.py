"""Timing two or more contestants in one process: short rounds in turn, the minimum of each.

This machine's other work slows a round down, never speeds it up; so minima compare, and rounds in turn give every
contestant the same quiet moments.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any


def best_times(
    contestants: dict[str, Callable[[], Any]], rounds: int = 60, seconds: float = 0.004
) -> dict[str, float]:
    """Seconds per call of each contestant: the minimum over ``rounds`` rounds of about ``seconds`` each."""
    counts = {name: _calls_for(run, seconds) for name, run in contestants.items()}
    best = dict.fromkeys(contestants, float("inf"))
    enabled = gc.isenabled()
    gc.disable()
    try:
        for _ in range(rounds):
            for name, run in contestants.items():
                count = counts[name]
                start = time.perf_counter()
                for _ in range(count):
                    run()
                best[name] = min(best[name], (time.perf_counter() - start) / count)
    finally:
        if enabled:
            gc.enable()
    return best


def _calls_for(run: Callable[[], Any], seconds: float) -> int:
    run()
    start = time.perf_counter()
    run()
    once = max(time.perf_counter() - start, 1e-7)
    return max(1, int(seconds / once))


def table(rows: list[tuple[str, ...]]) -> str:
    """Rows under a header as a Markdown table, padded for terminals; numbers to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        "| "
        + " | ".join(
            cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths))
        )
        + " |"
        for row in rows
    ]
    lines.insert(
        1,
        "|" + "|".join("-" * (w + 2) if i == 0 else "-" * (w + 1) + ":" for i, w in enumerate(widths)) + "|",
    )
    return "\n".join(lines)
