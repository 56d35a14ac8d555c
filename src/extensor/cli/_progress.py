"""How far reading, predicting and verifying are, while a command runs."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import Any

from .._printable import printable
from .._progress import Listener, ProgressLines, Stage, listening
from . import _output

__all__ = ["showing_progress"]

_PATIENCE = 0.5  # seconds that something may take before a bar is worth it


class _Bar:
    """One line at the bottom of the terminal, which goes when the work is done."""

    def __init__(self) -> None:
        self._status: Any = None
        self._what = ""
        self._began = 0.0

    def on_stage(self, stage: Stage) -> None:
        now = time.monotonic()
        if stage.what != self._what:
            self._what, self._began = stage.what, now
        if _output.quiet or now - self._began < _PATIENCE:
            return
        from rich.console import Console  # takes longer to import than most commands to run
        from rich.text import Text

        if self._status is None:
            self._status = Console(stderr=True, highlight=False).status("")
            self._status.start()
        self._status.update(Text(printable(str(stage))))

    def on_stage_end(self) -> None:
        if self._status is not None:
            self._status.stop()
        self._status, self._what = None, ""


@contextlib.contextmanager
def showing_progress() -> Iterator[None]:
    """In this block long loops are shown on stderr: a line that changes in a terminal, lines now and then elsewhere."""
    in_terminal = sys.stderr is not None and sys.stderr.isatty()
    shown: Listener = _Bar() if in_terminal else ProgressLines(lambda text: _output.say(text, err=True))
    with listening(shown):
        yield
