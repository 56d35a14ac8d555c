"""What a notebook shows of a run: its curves and its last epochs, with a bar while it goes on."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

from .._html import bar, displayer, escaped, fragment, html_table
from .._numerals import duration
from .._progress import Stage
from .curve_svg import TRAINING, VALIDATION, Curve, curve_svg
from .display_text import Display, metric_texts, pace, step_of, summary

__all__ = ["NotebookDisplay", "history_html", "in_notebook"]

_NO_CURVES = {"kind", "epoch", "step", "seconds", "samples_per_second", "lr"}
_MOST_CURVES, _MOST_ROWS = 4, 8


def in_notebook() -> bool:
    """Whether what is displayed is seen in a notebook."""
    return displayer() is not None


def history_html(records: Sequence[dict[str, Any]], facts: str) -> str:
    """The curves of a run, and a table of its last epochs."""
    return fragment(f'<p class="et-facts">{escaped(facts)}</p>', _curves(records, []), _table(records))


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _curves(
    records: Sequence[dict[str, Any]], running: Sequence[tuple[float, float]], end: float | None = None
) -> str:
    """A chart for each metric. ``running``: the mean loss of the epoch so far, over the steps."""
    names = dict.fromkeys(
        name.removeprefix("val_")
        for r in records
        for name, value in r.items()
        if name not in _NO_CURVES and _number(value)
    )
    if running:
        names = dict.fromkeys(["loss", *names])
    charts = []
    for name in list(names)[:_MOST_CURVES]:
        lines = [Curve("so far", TRAINING, running, faint=True)] if name == "loss" else []
        for label, key, colour in (("training", name, TRAINING), ("validation", f"val_{name}", VALIDATION)):
            points = [(float(r["step"]), float(r[key])) for r in records if _number(r.get(key))]
            lines.append(Curve(label, colour, points))
        charts.append(curve_svg(name, lines, "step", end))
    inner = "".join(charts)
    return (
        f'<div style="display:flex;flex-wrap:wrap;gap:4px 20px;margin-bottom:8px">{inner}</div>'
        if inner
        else ""
    )


def _table(records: Sequence[dict[str, Any]]) -> str:
    """The last epochs."""
    shown = records[-_MOST_ROWS:]
    rows = []
    for record in shown:
        place = (
            {"epoch": str(record.get("epoch", ""))}
            if record.get("kind") == "epoch"
            else {"step": str(record.get("step", ""))}
        )
        times = {"time": duration(record["seconds"])} if _number(record.get("seconds")) else {}
        rows.append({**place, **metric_texts(record), **times})
    names = list(dict.fromkeys(name for row in rows for name in row))
    if not names:
        return ""
    cells = [[row.get(name, "") for name in names] for row in rows]
    before = len(records) - len(shown)
    above = f'<p class="et-total">The last {len(shown)} of {len(records)}.</p>' if before else ""
    return above + html_table(names, cells)


class NotebookDisplay(Display):
    """A bar, the curves and the last epochs in the output of a cell, drawn anew as the run goes on."""

    every = 0.5  # seconds between two drawings

    def __init__(self, show: Any = None) -> None:
        self._show = displayer() if show is None else show
        self._handle: Any = None
        self._records: list[dict[str, Any]] = []
        self._running: list[tuple[float, float]] = []
        self._messages: list[str] = []
        self._epochs: int | None = None
        self._total = self._step = self._first = 0
        self._began = self._last = time.monotonic()
        self._line, self._stage = "", ""

    def start(self, total_steps: int, step: int, epochs: int | None) -> None:
        self._epochs, self._total, self._step, self._first = epochs, total_steps, step, step
        self._began = time.monotonic()
        self._draw("starting")

    def on_step(
        self, step: int, epoch: int, values: Callable[[], dict[str, Any]], samples_per_second: float
    ) -> None:
        self._step = step
        if time.monotonic() - self._last < self.every:
            return
        found = values()
        if _number(found.get("loss")):
            self._running.append((float(step), float(found["loss"])))
        if len(self._running) > 800:  # of a long run every other point will do
            self._running = self._running[::2]
        self._line = f"{summary(found)} · {samples_per_second:,.0f} samples/s"
        where = f"epoch {min(epoch + 1, self._epochs)}/{self._epochs} · " if self._epochs else ""
        self._draw(f"{where}{step_of(step, self._total)} · {self._line}{self._left()}")

    def _left(self) -> str:
        """The time left, by the pace so far."""
        made = self._step - self._first
        if not self._total or made <= 0:
            return ""
        seconds = (time.monotonic() - self._began) / made * (self._total - self._step)
        return f" · {duration(seconds)} left"

    def on_stage(self, stage: Stage) -> None:
        if time.monotonic() - self._last >= self.every:
            self._draw(str(stage))

    def on_record(self, record: dict[str, Any]) -> None:
        self._records.append(record)
        self._draw(f"{step_of(self._step, self._total)}{pace(record)}")

    def message(self, text: str) -> None:
        self._messages.append(text)
        self._draw("")

    def stop(self) -> None:
        took = duration(time.monotonic() - self._began)
        over = not self._total or self._step >= self._total
        self._running = [] if len(self._records) > 1 else self._running
        self._draw(f"{'finished' if over else 'ended'} after {self._step:,} steps, {took}")

    def _draw(self, line: str) -> None:
        self._last = time.monotonic()
        share = self._step / self._total if self._total else 0.0
        head = f'<p class="et-facts">{bar(share, 260)} {escaped(line)}</p>'
        told = "".join(f'<p class="et-total">{escaped(text)}</p>' for text in self._messages)
        charts = _curves(self._records, self._running, float(self._total) or None)
        page = fragment(head, charts, _table(self._records), told)
        data = {"text/html": page, "text/plain": line or "\n".join(self._messages)}
        if self._handle is None:
            self._handle = self._show(data, raw=True, display_id=True)
        elif self._handle is not None:
            self._handle.update(data, raw=True)
