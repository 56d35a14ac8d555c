"""Where a run writes to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .checkpoint import Checkpoints
from .display import Display
from .log import Log
from .tensorboard import EventWriter

__all__ = ["Outputs"]


class Outputs:
    """The display, the log, the event files and the checkpoints; each may be missing."""

    def __init__(self) -> None:
        self.display = Display()
        self.log: Log | None = None
        self.events: EventWriter | None = None
        self.checkpoints: Checkpoints | None = None
        self.saved_at: Any = None  # where the run stood when the last checkpoint was written

    def write(self, record: dict[str, Any]) -> None:
        if self.log is not None:
            self.log.write(record)
        if self.events is not None:
            self.events.scalars(record["step"], dict(_scalars(record)))

    def flush(self) -> None:
        if self.log is not None:
            self.log.flush()
        if self.events is not None:
            self.events.flush()

    def close(self) -> None:
        self.display.stop()
        for file in (self.log, self.events):
            if file is not None:
                file.close()


def _scalars(record: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    for name, value in record.items():
        if isinstance(value, dict):
            yield from _scalars(value, f"{prefix}{name}/")
        elif isinstance(value, (int, float)) and name not in ("step", "epoch"):
            kind = f"{record['kind']}/" if not prefix else ""
            yield f"{kind}{prefix}{name}", value
