"""The state of a thread: whether it records, and who watches its calls.

``this_thread`` is one object with the state of whichever thread asks: ``recording``; ``observer``, which sees every op call;
``trace``, the list that kernel calls are noted in; ``reader``, called with a tensor whose elements are looked at outside of
ops; ``values_read``, whether elements were looked at; ``mode``, the dtype of autocast. Setting an attribute is no call, so no
interrupt comes between it and the ``try`` that restores it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from .._pure import Blocks

try:
    from .._native import RecordingBlock, next_sequence, this_thread
except ModuleNotFoundError:
    from .._pure import RecordingBlock, next_sequence, this_thread  # type: ignore[assignment]

__all__ = ["Blocks", "levels", "next_sequence", "no_grad", "observe", "set_recording", "this_thread"]


class Observer(Protocol):
    """Sees every op call of this thread; returns what the call returns."""

    def __call__(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any: ...


class _Levels(threading.local):
    """The vmaps that run in this thread, outermost first (see autograd.batching)."""

    def __init__(self) -> None:
        self.running: list[Any] = []


levels = _Levels()


class set_recording(RecordingBlock):
    """Recording on or off in this thread, for the length of a ``with`` block.

    Blocks may be entered again and left in any order (generators do that): the last one to be left restores what was before
    the first.
    """

    __slots__ = ()


def no_grad() -> set_recording:
    """A context in which nothing is recorded.

    Example:
        >>> import extensor as et
        >>> x = et.tensor([1.0], requires_grad=True)
        >>> with et.no_grad():
        ...     (x * 2).requires_grad
        False
    """
    return set_recording(False)


@contextmanager
def observe(observer: Observer | None) -> Iterator[None]:
    """Route every op call of this thread through ``observer``."""
    before = this_thread.observer
    try:
        this_thread.observer = observer
        yield
    finally:
        this_thread.observer = before
