"""What a run was made with, in words and numbers for its log."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from ..config import get_num_threads
from ..optim import LRScheduler, Optimizer
from ..version import __version__

__all__ = ["settings_of", "time_of_day"]


def time_of_day() -> str:
    """Now, to the second, in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def settings_of(
    optimizer: Optimizer, loss: Callable[..., Any], schedule: LRScheduler | None
) -> dict[str, Any]:
    """The optimiser with its options, the loss and the schedule by name, the version, and the number of threads."""
    options = {name: value for name, value in optimizer.param_groups[0].items() if _is_plain(value)}
    found: dict[str, Any] = {"optimizer": {"name": type(optimizer).__name__, **options}}
    found["loss"] = getattr(loss, "__name__", type(loss).__name__).strip("_")
    if schedule is not None:
        found["schedule"] = type(schedule).__name__
    return found | {"version": __version__, "threads": get_num_threads()}


def _is_plain(value: Any) -> bool:
    """Whether JSON can hold it: the parameters of a group, for one, are no option."""
    if isinstance(value, (tuple, list)):
        return all(isinstance(item, (bool, int, float, str)) for item in value)
    return value is None or isinstance(value, (bool, int, float, str))
