"""The state of a thread: whether it records, and who watches its calls.

``this_thread`` is one object with the state of whichever thread asks: ``recording``; ``observer``, which sees every op call;
``trace``, the list that kernel calls are noted in; ``reader``, called with a tensor whose elements are looked at outside of
ops; ``values_read``, whether elements were looked at; ``walk``, what walks back in place of the engine's own
class; ``mode``, the dtype of autocast. Setting an attribute is no call, so no interrupt comes between it and the ``try`` that
restores it; the blocks below are native for the same reason.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol

from .._core import StateBlock, next_sequence, this_thread

__all__ = [
    "StateBlock",
    "levels",
    "next_sequence",
    "no_grad",
    "observe",
    "set_recording",
    "this_thread",
    "walking",
]


class Observer(Protocol):
    """Sees every op call of this thread; returns what the call returns."""

    def __call__(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any: ...


class _Levels(threading.local):
    """The vmaps that run in this thread, outermost first (see autograd.batching)."""

    def __init__(self) -> None:
        self.running: list[Any] = []


levels = _Levels()


def set_recording(on: bool) -> StateBlock:
    """A context with recording on or off in this thread."""
    return StateBlock("recording", bool(on))


def no_grad() -> StateBlock:
    """A context in which nothing is recorded.

    Example:
        >>> import extensor as et
        >>> x = et.tensor([1.0], requires_grad=True)
        >>> with et.no_grad():
        ...     (x * 2).requires_grad
        False
    """
    return StateBlock("recording", False)


def observe(observer: Observer | None) -> StateBlock:
    """A context in which every op call of this thread goes through ``observer``."""
    return StateBlock("observer", observer)


def walking(walk: Callable[..., Any]) -> StateBlock:
    """A context in which the backward passes of this thread are ``walk``, a kind of :class:`extensor.autograd.engine.Walk`."""
    return StateBlock("walk", walk)
