"""How far a long loop is, for whoever wants to show it: a library is quiet, a command and a trainer listen."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, Protocol, TypeVar

__all__ = ["EVERY", "Listener", "ProgressLines", "Stage", "listening", "watched"]

EVERY = 10.0  # seconds between two lines about the same thing, where the output is no terminal
_PAUSE = 0.1  # seconds between two calls of a listener: rows of a table come faster than anyone looks

T = TypeVar("T")


class Stage(NamedTuple):
    """What is being done and how much of it: ``"reading flights.csv"``, 120000 of None, ``"rows"``."""

    what: str
    done: int
    total: int | None
    unit: str

    def __str__(self) -> str:
        count = f"{self.done:,}" + (f" of {self.total:,}" if self.total else "")
        return f"{self.what}: {count} {self.unit}"


class Listener(Protocol):
    """Hears how far a loop is, a few times a second at most; it decides what of that to show."""

    def on_stage(self, stage: Stage) -> None:
        """So much is done."""

    def on_stage_end(self) -> None:
        """The loop is over."""


_listener: ContextVar[Listener | None] = ContextVar("extensor_progress", default=None)


@contextmanager
def listening(listener: Listener | None) -> Iterator[None]:
    """In this block ``listener`` hears of long loops; None for nobody."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def watched(
    items: Iterable[T], what: str, unit: str = "batches", total: int | None = None, each: int = 1
) -> Iterable[T]:
    """The items; while they are taken, the listener of the moment hears how many of them. Without one, nothing is counted.

    Args:
        total: how many there are; their length if they have one.
        each: how many units one item is.

    Example:
        >>> from extensor._progress import watched
        >>> list(watched([1, 2], "counting"))
        [1, 2]
    """
    listener = _listener.get()
    if listener is None:
        return items
    if total is None:
        total = _length(items)
        total = None if total is None else total * each
    return _told(items, listener, what, unit, total, each)


def _length(items: Any) -> int | None:
    try:
        return len(items)
    except TypeError:  # a generator
        return None


def _told(
    items: Iterable[T], listener: Listener, what: str, unit: str, total: int | None, each: int
) -> Iterator[T]:
    done, heard = 0, -_PAUSE
    try:
        for item in items:
            now = time.monotonic()
            if now - heard >= _PAUSE:
                heard = now
                listener.on_stage(Stage(what, done if total is None else min(done, total), total, unit))
            yield item
            done += each
    finally:
        listener.on_stage_end()


class ProgressLines:
    """Shows stages as lines of text, one every so many seconds; what is done sooner leaves none."""

    every = EVERY

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._what = ""
        self._began = self._last = time.monotonic()

    def on_stage(self, stage: Stage) -> None:
        now = time.monotonic()
        if stage.what != self._what:
            self._what, self._began, self._last = stage.what, now, now
        if now - self._last >= self.every:
            self._last = now
            self._say(f"{stage}, {now - self._began:.0f} s")

    def on_stage_end(self) -> None:
        self._what = ""
