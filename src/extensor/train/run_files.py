"""The files of a run folder, opened without following links: a folder may come from someone else."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from ..data import DamagedFileError

__all__ = ["check_own", "open_own", "read_own"]


def open_own(function: str, path: Path, flags: int) -> int:
    """A descriptor of a regular file of the folder, made if ``flags`` say so.

    Raises:
        DamagedFileError: the path is a link, a pipe or something else that is no regular file.
    """
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise _not_own(function, path) from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _not_own(function, path)
    return descriptor


def read_own(function: str, path: Path) -> bytes:
    """The content of a regular file of the folder."""
    with os.fdopen(open_own(function, path, os.O_RDONLY), "rb") as file:
        return file.read()


def check_own(function: str, path: Path) -> None:
    """Raise if there is something at ``path`` that is neither a regular file nor a folder itself."""
    try:
        mode = path.lstat().st_mode
    except OSError:
        return  # nothing, or nothing one may look at
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise _not_own(function, path)


def _not_own(function: str, path: Path) -> DamagedFileError:
    return DamagedFileError(
        f"[{function}] {path} is a link or no regular file; the folder of a run holds its own files"
    )
