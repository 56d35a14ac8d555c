"""The state of a thread: whether it records, and who watches its calls."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

try:
    from .._native import (
        exchange_mode,
        exchange_observer,
        exchange_recording,
        get_observer,
        is_recording,
        next_sequence,
    )
except ModuleNotFoundError:
    from .._pure import (
        exchange_mode,
        exchange_observer,
        exchange_recording,
        get_observer,
        is_recording,
        next_sequence,
    )

__all__ = [
    "Blocks", "exchange_mode", "exchange_observer", "exchange_recording", "get_observer", "is_recording", "next_sequence", "no_grad",
    "observe", "set_recording",
]  # fmt: skip


class Observer(Protocol):
    """Sees every op call of this thread; returns what the call returns."""

    def __call__(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any: ...


class Blocks(threading.local):
    """The blocks of one kind that this thread is in, as [block, what was before it]; the innermost comes last.

    Blocks may be entered again and left in any order (generators do that): the last one to be left restores what was before
    the first.
    """

    def __init__(self) -> None:
        self.blocks: list[list[Any]] = []

    def enter(self, block: object, before: Any) -> None:
        """This thread has entered a block, before which something was so."""
        self.blocks.append([block, before])

    def leave(self, block: object, exchange: Callable[[Any], Any]) -> None:
        """This thread leaves a block: what was before it is restored, now or when the block inside it is left."""
        blocks = self.blocks
        place = len(blocks) - 1
        while blocks[place][0] is not block:
            place -= 1
        _, before = blocks.pop(place)
        if place == len(blocks):
            exchange(before)
        else:
            blocks[place][1] = before


_recording = Blocks()


class set_recording:
    """Recording on or off in this thread, for the length of a ``with`` block."""

    __slots__ = ("on",)

    def __init__(self, on: bool) -> None:
        self.on = on

    def __enter__(self) -> None:
        _recording.enter(self, exchange_recording(self.on))

    def __exit__(self, *exception: object) -> None:
        _recording.leave(self, exchange_recording)


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
    before = exchange_observer(observer)
    try:
        yield
    finally:
        exchange_observer(before)
