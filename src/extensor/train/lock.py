"""One run per folder."""

from __future__ import annotations

import contextlib
import contextvars
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from .run_files import open_own
from .whole_files import clear_errors

__all__ = ["FolderInUseError", "is_locked", "locked", "writing_report"]

_RUN, _REPORT = ".lock", ".report.lock"

# The lock files that this thread holds and lends to one block inside, as (device, inode).
_lent: contextvars.ContextVar[frozenset[tuple[int, int]]] = contextvars.ContextVar(
    "lent", default=frozenset()
)


class FolderInUseError(RuntimeError):
    """Another run is writing to the folder."""


@contextlib.contextmanager
def locked(function: str, folder: Path, *, lends: bool = False) -> Iterator[None]:
    """The folder belongs to this block alone; another run gets a :class:`FolderInUseError`.

    The system holds the lock and lets go of it when the process ends, however it ends, so no lock is ever left behind.
    With ``lends`` one block at a time inside this one, in the same thread, shares the lock: a training in what goes on after it.
    """
    path = folder / _RUN
    with clear_errors(function, path):
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = open_own(function, path, os.O_RDWR | os.O_CREAT)
    lent = _lent.get()
    try:
        status = os.fstat(descriptor)
        file = (status.st_dev, status.st_ino)
        if file in lent:
            _lent.set(lent - {file})
            yield
            return
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.read(descriptor, 32).decode("ascii", "replace").strip() or "unknown"
            raise FolderInUseError(
                f"[{function}] another run (process {owner}) is writing to {folder}; wait for it or choose another folder"
            ) from None
        with clear_errors(function, path):
            os.ftruncate(descriptor, 0)
            os.write(descriptor, str(os.getpid()).encode())
        if lends:
            _lent.set(lent | {file})
        yield
    finally:
        _lent.set(lent)
        os.close(descriptor)


@contextlib.contextmanager
def writing_report(folder: Path) -> Iterator[None]:
    """In this block no other report is written into the folder; a run may go on meanwhile."""
    path = folder / _REPORT
    with clear_errors("report", path):
        descriptor = open_own("report", path, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)  # waits; a report takes a second or two
        yield
    finally:
        os.close(descriptor)


def is_locked(folder: Path) -> bool:
    """Whether a run is writing to the folder now."""
    try:
        descriptor = open_own("is_locked", folder / _RUN, os.O_RDONLY)
    except (OSError, ValueError):
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
