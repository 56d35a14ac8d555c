"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

__all__ = ["clear_errors", "remove_unfinished", "write_whole"]

_UNFINISHED = ".unfinished"


@contextlib.contextmanager
def clear_errors(function: str, path: Path) -> Iterator[None]:
    """What the system refuses, said in words; the exception keeps its class and its errno."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            reason = "there is no space left; free some, or write to another disk"
        elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            reason = "the folder cannot be written to; choose another one"
        elif error.errno in (errno.ENOTDIR, errno.EEXIST, errno.EISDIR):
            reason = f"something else is in the way ({error.strerror})"
        else:
            reason = error.strerror or str(error)
        told = type(error)(error.errno, f"[{function}] {path} was not written: {reason}")
        raise told from error


def write_whole(function: str, path: Path, chunks: Iterable[bytes | memoryview]) -> None:
    """Write a file so that at any moment there is either the whole new one or what was there before.

    The bytes go to another file in the same folder, which reaches the disk before it takes the name; then the folder
    itself is brought to the disk. If anything fails, the other file is removed and ``path`` is as it was.
    """
    with clear_errors(function, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished, file = _new_unfinished(path)
        try:
            with file:
                for chunk in chunks:
                    file.write(chunk)
                file.flush()
                os.fsync(file.fileno())
                os.replace(unfinished, path)  # while the file is locked
        except BaseException:
            with contextlib.suppress(OSError):
                unfinished.unlink()
            raise
        sync_folder(path.parent)


def _new_unfinished(path: Path) -> tuple[Path, BinaryIO]:
    """A new file beside ``path``, locked as long as it is open, so that :func:`remove_unfinished` knows it is written."""
    while True:
        unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}{_UNFINISHED}")
        file = open(unfinished, "xb")  # noqa: SIM115  (the caller closes it)
        with contextlib.suppress(OSError):  # not every file system has locks; then leftovers stay
            fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file.fileno()).st_nlink:
            return unfinished, file
        file.close()  # it was taken for a leftover before it was locked


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_unfinished(folder: Path) -> None:
    """Remove what killed writers left; a file whose writer lives is locked, and stays."""
    for path in folder.glob(f".*{_UNFINISHED}"):
        with contextlib.suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
            finally:
                os.close(descriptor)
