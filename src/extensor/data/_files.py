"""Reading files that may be damaged or lie about themselves: the size is known before memory is asked for."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from ..errors import describe

CHUNK = 1 << 20
# What a compressed file may unpack to: real data rarely shrinks a hundredfold unless it is small.
ALWAYS_ALLOWED = 64 << 20
LARGEST_RATIO = 100


def as_path(function: str, path: object) -> Path:
    """The argument as a path."""
    if not isinstance(path, (str, os.PathLike)) or not str(path) or "\0" in str(path):
        raise TypeError(f"[{function}] path must be a str or a pathlib.Path, got {describe(path)}")
    return Path(path)


def as_file(function: str, path: object) -> Path:
    """The path of a file that is there."""
    found = as_path(function, path)
    if found.is_dir():
        raise IsADirectoryError(f"[{function}] {found} is a folder, not a file")
    if not found.exists():
        raise FileNotFoundError(f"[{function}] there is no file {found}")
    return found


def as_folder(function: str, path: object) -> Path:
    """The path of a folder that is there."""
    found = as_path(function, path)
    if found.is_dir():
        return found
    if found.exists():
        raise NotADirectoryError(f"[{function}] {found} is a file; pass the folder it is in")
    raise FileNotFoundError(f"[{function}] there is no folder {found}")


class DamagedFileError(ValueError):
    """A file that is truncated, changed, or not what it says it is."""


@contextmanager
def opened(function: str, path: Path) -> Iterator[tuple[BinaryIO, int]]:
    """The file, unpacked while it is read if it is gzipped, and the most bytes it may turn out to hold.

    What goes wrong while it is unpacked is reported as damage of this file.
    """
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        if not packed:
            yield file, size
            return
        with gzip.GzipFile(fileobj=file) as unpacked:
            try:
                yield unpacked, max(ALWAYS_ALLOWED, LARGEST_RATIO * size)  # type: ignore[misc]
            except (gzip.BadGzipFile, EOFError, zlib.error) as error:
                raise DamagedFileError(f"[{function}] {path} is damaged: {error}") from None


def read_exactly(function: str, path: Path, file: BinaryIO, count: int, what: str) -> bytearray:
    """The next ``count`` bytes; memory grows with what is really there, not with ``count``."""
    found = bytearray()
    while len(found) < count:
        chunk = file.read(min(CHUNK, count - len(found)))
        if not chunk:
            raise DamagedFileError(
                f"[{function}] {path} is truncated: {what} needs {count} bytes but {len(found)} are there"
            )
        found += chunk
    return found


def read_all(function: str, path: Path) -> bytearray:
    """The whole file, unpacked if it is gzipped."""
    found = bytearray()
    with opened(function, path) as (file, limit):
        while chunk := file.read(CHUNK):
            found += chunk
            if len(found) > limit:
                raise DamagedFileError(
                    f"[{function}] {path} unpacks to more than {limit} bytes; unpack it yourself first"
                )
    return found


def read_text(function: str, path: Path) -> str:
    """The whole file as UTF-8 text, its lines ending in a newline alone."""
    try:
        text = read_all(function, path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DamagedFileError(
            f"[{function}] {path} is not UTF-8 text: byte {error.start} is {error.object[error.start]:#04x}"
        ) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")
