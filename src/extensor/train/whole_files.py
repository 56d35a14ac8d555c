"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path

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
        unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}{_UNFINISHED}")
        try:
            with open(unfinished, "xb") as file:
                for chunk in chunks:
                    file.write(chunk)
                file.flush()
                os.fsync(file.fileno())
            os.replace(unfinished, path)
        except BaseException:
            with contextlib.suppress(OSError):
                unfinished.unlink()
            raise
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_unfinished(folder: Path) -> None:
    """Remove what killed writers left; only for the one who holds the folder's lock."""
    for path in folder.glob(f".*{_UNFINISHED}"):
        with contextlib.suppress(OSError):
            path.unlink()
