"""What a person sees of a run: a live display in a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, Literal, TextIO

from .._printable import printable

__all__ = ["Display", "display_for"]

Kind = Literal["auto", "live", "plain", "off"]


def _duration(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes}:{rest:02d}" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"


def _shown(name: str, value: float) -> str:
    """A metric as people write it."""
    if "accuracy" in name or "top" in name:
        return f"{100 * value:.2f} %"
    return f"{value:.4g}" if "loss" not in name else f"{value:.4f}"


def _metrics(record: dict[str, Any]) -> dict[str, str]:
    """Label and text of the metrics of a record; when it was and how fast is said elsewhere."""
    skipped = {"kind", "epoch", "step", "seconds", "samples_per_second", "lr"}
    numbers = {
        name: value
        for name, value in record.items()
        if name not in skipped and isinstance(value, (int, float)) and not isinstance(value, bool)
    }
    return {
        name.replace("val_", "val ").replace("_", " "): _shown(name, value) for name, value in numbers.items()
    }


def summary(record: dict[str, Any]) -> str:
    """The metrics of a record in one line."""
    return "  ".join(f"{label} {text}" for label, text in _metrics(record).items())


class Display:
    """Shows nothing; the base of those that do."""

    def start(self, total_steps: int, step: int, epochs: int | None) -> None:
        """The run begins at ``step`` of ``total_steps``."""

    def on_step(
        self, step: int, epoch: int, values: Callable[[], dict[str, Any]], samples_per_second: float
    ) -> None:
        """A step was made; ``values()`` are the means of the epoch so far."""

    def on_record(self, record: dict[str, Any]) -> None:
        """An epoch or a validation ended."""

    def message(self, text: str) -> None:
        """Something to tell."""

    def stop(self) -> None:
        """The run is over."""


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

    def message(self, text: str) -> None:
        self._try(lambda: self.shown.message(text))

    def stop(self) -> None:
        self._try(self.shown.stop)


class PlainDisplay(Display):
    """Lines of text: one per epoch or validation, and one now and then in between."""

    every = 30.0  # seconds between two lines about steps

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
            self.message(f"{_of(step, self._total)}  {summary(values())}  {samples_per_second:.0f} samples/s")

    def on_record(self, record: dict[str, Any]) -> None:
        self._last = time.monotonic()
        self.message(f"{_where(record, self._epochs, self._total)}  {summary(record)}{_pace(record)}")

    def message(self, text: str) -> None:
        print(printable(text), file=self._stream, flush=True)


def _of(step: int, total: int) -> str:
    """The step, of how many if that is known."""
    return f"step {step}/{total}" if total else f"step {step}"


def _where(record: dict[str, Any], epochs: int | None, total: int) -> str:
    if record["kind"] == "epoch":
        return f"epoch {record['epoch']}" + (f"/{epochs}" if epochs else "")
    return _of(record["step"], total)


def _pace(record: dict[str, Any]) -> str:
    text = f"  lr {record['lr']:.3g}" if "lr" in record else ""
    if "samples_per_second" in record:
        text += f"  {record['samples_per_second']:.0f} samples/s"
    return text + (f"  {_duration(record['seconds'])}" if "seconds" in record else "")


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
        where = (
            f"epoch {min(epoch + 1, self._epochs)}/{self._epochs}" if self._epochs else _of(step, self._total)
        )
        self._progress.update(
            self._task,
            completed=step,
            description=where,
            metrics=summary(values()),
            speed=f"{samples_per_second:.0f} samples/s",
        )

    def on_record(self, record: dict[str, Any]) -> None:
        from rich.text import Text

        unit, place = _where(record, self._epochs, self._total).split(" ")
        metrics = _metrics(record)
        if "seconds" in record:
            metrics["time"] = _duration(record["seconds"])
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
    """The display a trainer was asked for; ``"auto"`` is live in a terminal and plain elsewhere.

    Example:
        >>> from extensor.train.display import display_for
        >>> display_for("plain").message("hello")
        hello
    """
    target = sys.stdout if stream is None else stream
    if kind == "auto":
        kind = "live" if target.isatty() else "plain"
    if kind == "off":
        return Display()
    if kind not in ("live", "plain"):
        raise ValueError(f"[Trainer] display must be 'auto', 'live', 'plain' or 'off', got {kind!r}")
    return TolerantDisplay(LiveDisplay(target) if kind == "live" else PlainDisplay(target), target)
