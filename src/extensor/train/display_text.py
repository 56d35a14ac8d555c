"""What every display of a run says alike: its words, and the events it may show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._numerals import duration, is_share
from .._progress import Stage

__all__ = ["Display", "metric_texts", "pace", "step_of", "summary", "where"]


def _shown(name: str, value: float) -> str:
    """A metric as people write it."""
    if is_share(name):
        return f"{100 * value:.2f} %"
    return f"{value:.4g}" if "loss" not in name else f"{value:.4f}"


def metric_texts(record: dict[str, Any]) -> dict[str, str]:
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
    return "  ".join(f"{label} {text}" for label, text in metric_texts(record).items())


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

    def on_stage(self, stage: Stage) -> None:
        """How far something beside the steps is: a validation."""

    def on_stage_end(self) -> None:
        """That is over."""

    def message(self, text: str) -> None:
        """Something to tell."""

    def stop(self) -> None:
        """The run is over."""


def step_of(step: int, total: int) -> str:
    """The step, of how many if that is known."""
    return f"step {step}/{total}" if total else f"step {step}"


def where(record: dict[str, Any], epochs: int | None, total: int) -> str:
    if record["kind"] == "epoch":
        return f"epoch {record['epoch']}" + (f"/{epochs}" if epochs else "")
    return step_of(record["step"], total)


def pace(record: dict[str, Any]) -> str:
    text = f"  lr {record['lr']:.3g}" if "lr" in record else ""
    if "samples_per_second" in record:
        text += f"  {record['samples_per_second']:.0f} samples/s"
    return text + (f"  {duration(record['seconds'])}" if "seconds" in record else "")
