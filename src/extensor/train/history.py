"""What came of a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["History"]


@dataclass
class History:
    """What came of a run.

    Attributes:
        records: the epoch and validation records, in order, as they are in the log.
        steps: how many optimiser steps were made in all.
        stopped: why the run ended: ``"finished"``, ``"interrupted"``, or the reason a callback gave.
    """

    records: list[dict[str, Any]] = field(default_factory=list)
    steps: int = 0
    stopped: str = "finished"

    def last(self, name: str) -> Any:
        """The newest value of a metric; None if there is none."""
        return next((record[name] for record in reversed(self.records) if name in record), None)
