"""What a person sees of a run: a live display in a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, Literal, TextIO

from .._numerals import duration
from .._printable import printable
from .._progress import EVERY, Stage
from .display_text import Display, metric_texts, pace, step_of, summary, where
from .notebook import NotebookDisplay, in_notebook

__all__ = ["Display", "display_for"]

Kind = Literal["auto", "live", "plain", "off"]


class TolerantDisplay(Display):
    """Another display, until its stream is closed or full: a run does not end because nobody can see it."""

    def __init__(self, shown: Display, stream: TextIO) -> None:
        self.shown = shown
        self._stream = stream

    def _try(self, show: Callable[[], None]) -> None:
        try:
            show()
        except OSError:  # a broken pipe, a full disk
            self.shown = Display()
        except ValueError:
            if not self._stream.closed:
                raise
            self.shown = Display()

    def start(self, total_steps: int, step: int, epochs: int | None) -> None:
        self._try(lambda: self.shown.start(total_steps, step, epochs))

    def on_step(
        self, step: int, epoch: int, values: Callable[[], dict[str, Any]], samples_per_second: float
    ) -> None:
        self._try(lambda: self.shown.on_step(step, epoch, values, samples_per_second))

    def on_record(self, record: dict[str, Any]) -> None:
        self._try(lambda: self.shown.on_record(record))

    def on_stage(self, stage: Stage) -> None:
        self._try(lambda: self.shown.on_stage(stage))

    def on_stage_end(self) -> None:
        self._try(self.shown.on_stage_end)

    def message(self, text: str) -> None:
        self._try(lambda: self.shown.message(text))

    def stop(self) -> None:
        self._try(self.shown.stop)


class PlainDisplay(Display):
    """Lines of text: one per epoch or validation, and one now and then in between."""

    every = EVERY

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._epochs: int | None = None
        self._total = 0
        self._last = time.monotonic()

    def start(self, total_steps: int, step: int, epochs: int | None) -> None:
        self._epochs, self._total, self._last = epochs, total_steps, time.monotonic()

    def on_step(
        self, step: int, epoch: int, values: Callable[[], dict[str, Any]], samples_per_second: float
    ) -> None:
        if time.monotonic() - self._last >= self.every:
            self._last = time.monotonic()
            self.message(
                f"{step_of(step, self._total)}  {summary(values())}  {samples_per_second:.0f} samples/s"
            )

    def on_stage(self, stage: Stage) -> None:
        if time.monotonic() - self._last >= self.every:
            self._last = time.monotonic()
            self.message(str(stage))

    def on_record(self, record: dict[str, Any]) -> None:
        self._last = time.monotonic()
        self.message(f"{where(record, self._epochs, self._total)}  {summary(record)}{pace(record)}")

    def message(self, text: str) -> None:
        print(printable(text), file=self._stream, flush=True)


class LiveDisplay(Display):
    """A progress bar with the loss, the speed and the time left; above it a table grows, one row for each epoch or
    validation."""

    every = 0.1  # seconds between two changes of the bar

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        self._console = Console(file=stream, highlight=False)
        self._progress = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=None, complete_style="cyan", finished_style="green"),
            TaskProgressColumn("{task.percentage:>3.0f}%"),
            TextColumn("{task.fields[metrics]}"),
            TextColumn("{task.fields[speed]}", style="dim"),
            TimeRemainingColumn(compact=True),
            TextColumn("left", style="dim"),
            console=self._console,
            transient=True,  # the lines of the epochs stay
            expand=True,
        )
        self._task: Any = None
        self._columns: list[str] = []  # of the table
        self._epochs: int | None = None
        self._total = 0
        self._last = 0.0

    def start(self, total_steps: int, step: int, epochs: int | None) -> None:
        self._epochs, self._total = epochs, total_steps
        self._task = self._progress.add_task(
            "training", total=total_steps or None, completed=step, metrics="", speed=""
        )
        self._progress.start()

    def on_step(
        self, step: int, epoch: int, values: Callable[[], dict[str, Any]], samples_per_second: float
    ) -> None:
        if time.monotonic() - self._last < self.every and (not self._total or step < self._total):
            return
        self._last = time.monotonic()
        place = (
            f"epoch {min(epoch + 1, self._epochs)}/{self._epochs}"
            if self._epochs
            else step_of(step, self._total)
        )
        self._progress.update(
            self._task,
            completed=step,
            description=place,
            metrics=summary(values()),
            speed=f"{samples_per_second:.0f} samples/s",
        )

    def on_stage(self, stage: Stage) -> None:
        if time.monotonic() - self._last >= self.every:
            self._last = time.monotonic()
            self._progress.update(self._task, description=str(stage), metrics="", speed="")

    def on_record(self, record: dict[str, Any]) -> None:
        from rich.text import Text

        unit, place = where(record, self._epochs, self._total).split(" ")
        metrics = metric_texts(record)
        if "seconds" in record:
            metrics["time"] = duration(record["seconds"])
        first = max(2 * len(str(self._epochs or self._total)) + 1, len(unit))
        widths = {label: max(len(label), 8) + 2 for label in metrics}
        if list(metrics) != self._columns:
            self._columns = list(metrics)
            head = unit.ljust(first) + "".join(label.rjust(width) for label, width in widths.items())
            self._console.print(Text(head, style="dim", no_wrap=True, overflow="crop"))
        line = Text(place.rjust(first), style="bold", no_wrap=True, overflow="crop")
        for label, width in widths.items():
            style = (
                "not bold dim"
                if label == "time"
                else "not bold cyan"
                if label.startswith("val ")
                else "not bold"
            )
            line.append(metrics[label].rjust(width), style=style)
        self._console.print(line)

    def message(self, text: str) -> None:
        from rich.text import Text

        self._console.print(Text(printable(text), style="yellow"))

    def stop(self) -> None:
        self._progress.stop()


def display_for(kind: Kind, stream: TextIO | None = None) -> Display:
    """The display a trainer was asked for; ``"auto"`` is live in a terminal and in a notebook, and plain elsewhere.

    Example:
        >>> from extensor.train.display import display_for
        >>> display_for("plain").message("hello")
        hello
    """
    target = sys.stdout if stream is None else stream
    noted = stream is None and in_notebook()
    if kind == "auto":
        kind = "live" if noted or target.isatty() else "plain"
    if kind == "off":
        return Display()
    if kind not in ("live", "plain"):
        raise ValueError(f"[Trainer] display must be 'auto', 'live', 'plain' or 'off', got {kind!r}")
    if kind == "plain":
        return TolerantDisplay(PlainDisplay(target), target)
    return NotebookDisplay() if noted else TolerantDisplay(LiveDisplay(target), target)
