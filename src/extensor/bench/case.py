"""One row of the benchmark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["Case", "Run"]

Run = Callable[[], Any]


@dataclass(frozen=True)
class Case:
    """One row: a group, a name, a size, and a way to make the call for each library (None: it has no such function).

    ``bytes_moved`` and ``operations`` put the time beside the machine's own limits.
    """

    group: str
    name: str
    size: str
    make: Callable[[], dict[str, Run]]
    bytes_moved: float = 0.0
    operations: float = 0.0
