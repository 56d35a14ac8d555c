"""Ctrl-C as a wish to stop, not as an exception in the middle of a step."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

__all__ = ["Interrupts", "noticing_interrupts"]


class Interrupts:
    """Whether the run was asked to stop, and by what."""

    def __init__(self) -> None:
        self.received: str | None = None


@contextlib.contextmanager
def noticing_interrupts() -> Iterator[Interrupts]:
    """In this block SIGINT (Ctrl-C) and SIGTERM are only noted; a second one does what it always did.

    Outside the main thread signals cannot be noted, and nothing changes.
    """
    noted = Interrupts()
    if threading.current_thread() is not threading.main_thread():
        yield noted
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def note(number: int, frame: FrameType | None) -> None:
        noted.received = signal.Signals(number).name
        restore()

    def restore() -> None:
        for number, handler in before.items():
            if handler is not None:  # None: set by other code than Python, which Python cannot put back
                signal.signal(number, handler)

    for number, handler in before.items():
        if handler is not None:
            signal.signal(number, note)
    try:
        yield noted
    finally:
        restore()
