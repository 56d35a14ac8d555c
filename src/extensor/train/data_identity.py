"""Which data a run learned from: where it was, how long it is and its digest, so that other data is noticed."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

__all__ = ["check_data", "identify_data"]

_CHUNK = 1 << 20


def identify_data(path: Path | None, name: str = "data") -> dict[str, Any]:
    """``data`` (absolute path), ``data_bytes`` and ``data_sha256`` of a file, or of all files in a folder.

    ``name`` stands before the others: data has parts with files of their own.
    """
    if path is None:
        return {name: None}
    files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    digest, size = hashlib.sha256(), 0
    for file in files:
        if path.is_dir():
            digest.update(os.fsencode(file.relative_to(path)) + b"\0")
        with open(file, "rb") as content:
            while chunk := content.read(_CHUNK):
                digest.update(chunk)
                size += len(chunk)
    return {name: str(path.resolve()), f"{name}_bytes": size, f"{name}_sha256": digest.hexdigest()}


def check_data(config: dict[str, Any], path: Path | None, name: str = "data") -> None:
    """ValueError if ``path`` is not there any more, or does not hold what the run of ``config`` learned from."""
    if path is None:
        return
    if not path.exists():
        raise FileNotFoundError(
            f"{path}, which the run learned from, is not there; --data says where it is now"
        )
    if not path.is_file() and not path.is_dir():
        raise ValueError(f"{path} is neither a file nor a folder; --data names data")
    claimed = config.get(f"{name}_sha256")
    if claimed is None:
        return
    now = identify_data(path)
    if now["data_sha256"] != claimed:
        raise ValueError(
            f"{path} is not what the run learned from: it had {config.get(f'{name}_bytes')} bytes and the SHA-256 "
            f"{claimed[:12]}..., now {now['data_bytes']} and {now['data_sha256'][:12]}...; --data names data"
        )
