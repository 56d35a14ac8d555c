"""One run per folder."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from .whole_files import clear_errors

__all__ = ["FolderInUseError", "is_locked", "locked"]


class FolderInUseError(RuntimeError):
    """Another run is writing to the folder."""


@contextlib.contextmanager
def locked(function: str, folder: Path) -> Iterator[None]:
    """The folder belongs to this block alone; another run gets a :class:`FolderInUseError`.

    The system holds the lock and lets go of it when the process ends, however it ends, so no lock is ever left behind.
    """
    path = folder / ".lock"
    with clear_errors(function, path):
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
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
        yield
    finally:
        os.close(descriptor)


def is_locked(folder: Path) -> bool:
    """Whether a run is writing to the folder now."""
    try:
        descriptor = os.open(folder / ".lock", os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
