"""The log of a run: one JSON object per line, which can be cut back to what a checkpoint knew."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

from ..data import DamagedFileError
from .run_files import open_own, read_own
from .whole_files import clear_errors

__all__ = ["Log", "read_log", "scan_log"]


def _finite(value: Any) -> Any:
    """JSON has no nan and no inf: they become null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, (list, tuple)) else value


class Log:
    """Writes records to a file, one JSON object per line.

    Args:
        path: the file.
        length: how much of an earlier log to keep, in bytes; a run that goes on from a checkpoint keeps what stood there
            when the checkpoint was written.

    Example:
        >>> import tempfile, pathlib
        >>> from extensor.train import Log, read_log
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     log = Log(pathlib.Path(folder, "log.jsonl"))
        ...     log.write({"kind": "step", "step": 1, "loss": 0.5})
        ...     log.close()
        ...     read_log(log.path)
        [{'kind': 'step', 'step': 1, 'loss': 0.5}]
    """

    def __init__(self, path: Path, length: int = 0) -> None:
        self.path = Path(path)
        with clear_errors("Log", self.path):
            descriptor = open_own("Log", self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            self._file = os.fdopen(descriptor, "ab")
            self._file.truncate(min(length, os.fstat(descriptor).st_size))
            self._file.seek(0, os.SEEK_END)

    def write(self, record: dict[str, Any]) -> None:
        """Add one record."""
        with clear_errors("Log", self.path):
            self._file.write(json.dumps(_finite(record), separators=(",", ":")).encode() + b"\n")

    def sync(self) -> int:
        """Bring everything to the disk; returns the length of the log in bytes."""
        with clear_errors("Log", self.path):
            self._file.flush()
            os.fsync(self._file.fileno())
            return self._file.tell()

    def flush(self) -> None:
        """Let others read what was written so far."""
        with clear_errors("Log", self.path):
            self._file.flush()

    def close(self) -> None:
        """End the log."""
        with clear_errors("Log", self.path):
            self._file.close()


def scan_log(path: Any) -> tuple[list[dict[str, Any]], list[str]]:
    """The records of a log that can be read, and a sentence about each line that cannot.

    A last line that was not finished (a run that was killed, or that is being written) is neither.

    Raises:
        FileNotFoundError: there is no such file.
    """
    try:
        lines = read_own("read_log", Path(path)).split(b"\n")
    except FileNotFoundError:
        raise FileNotFoundError(f"[read_log] there is no file {path}") from None
    records, problems = [], []
    for number, line in enumerate(lines[:-1], start=1):  # what follows the last newline is not finished
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            problems.append(f"{path}, line {number} is no JSON: {error}")
            continue
        if isinstance(record, dict):
            records.append(record)
        else:
            problems.append(f"{path}, line {number} is no record")
    return records, problems


def read_log(path: Any) -> list[dict[str, Any]]:
    """The records of a log. A last line that was not finished (a run that was killed) is left out.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: a line before the last is no record.

    Example:
        >>> from extensor.train import read_log
        >>> read_log("log.jsonl")
        Traceback (most recent call last):
        FileNotFoundError: [read_log] there is no file log.jsonl
    """
    records, problems = scan_log(path)
    if problems:
        raise DamagedFileError(f"[read_log] {problems[0]}")
    return records
