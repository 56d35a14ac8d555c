"""Checkpoints: everything a run needs to go on, in one file that is whole or not there."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..checks import as_int
from ..data import DamagedFileError
from ..errors import describe
from ..state_trees import flatten_state, restore_state
from .run_files import check_own
from .weights import load_tensors, save_tensors

__all__ = ["Checkpoints", "latest_whole", "load_checkpoint", "save_checkpoint"]

_FORMAT = 1
_NAME = re.compile(r"step-(\d{1,18})\.safetensors")


def save_checkpoint(path: Any, state: Mapping[str, Any]) -> None:
    """Write a state to one ``.safetensors`` file, whole or not at all.

    Args:
        path: the file; what was there is replaced.
        state: dicts, lists, tuples, numbers, text and tensors, nested as they come. Tensors are stored under their paths
            (``model/conv1.weight``), everything else as JSON in the metadata.

    Raises:
        OSError: the file cannot be written (no space, no permission); what was there before is still there.

    Example:
        >>> import tempfile, pathlib, extensor as et
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder, "here.safetensors")
        ...     et.train.save_checkpoint(file, {"step": 3, "model": {"w": et.ones(2)}})
        ...     state = et.train.load_checkpoint(file)
        >>> state["step"], state["model"]["w"].tolist()
        (3, [1.0, 1.0])
    """
    if not isinstance(state, Mapping):
        raise TypeError(f"[save_checkpoint] state must be a dict, got {describe(state)}")
    tensors: dict[str, Any] = {}
    tree = flatten_state("save_checkpoint", dict(state), "", tensors)
    text = json.dumps({"kind": "checkpoint", "format": _FORMAT, "state": tree}, separators=(",", ":"))
    save_tensors("save_checkpoint", Path(path), tensors, {"extensor": text})


def load_checkpoint(path: Any) -> dict[str, Any]:
    """The state in a file that :func:`save_checkpoint` wrote.

    The file is checked to the last bit before anything is returned; nothing in it is executed.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is no checkpoint, or truncated, or changed since it was written.

    Example:
        >>> import extensor as et
        >>> et.train.load_checkpoint("step-7.safetensors")
        Traceback (most recent call last):
        FileNotFoundError: [load_checkpoint] there is no file step-7.safetensors
    """
    tensors, metadata = load_tensors("load_checkpoint", path, ours=True)
    try:
        content = json.loads(metadata["extensor"])
        if not isinstance(content, dict) or content.get("kind") != "checkpoint":
            raise ValueError("it holds weights alone")
        if content.get("format") != _FORMAT:
            raise ValueError(f"it has the format {content.get('format')!r}; this version reads {_FORMAT}")
        state = restore_state(content.get("state"), tensors)
        if not isinstance(state, dict):
            raise ValueError("it holds no state")
        return state
    except (ValueError, RecursionError) as error:
        raise DamagedFileError(f"[load_checkpoint] {path} is no checkpoint: {error}") from None


def checkpoint_files(folder: Path) -> list[Path]:
    """The files in a folder that are named as checkpoints, newest first."""
    found = {path: match for path in folder.iterdir() if (match := _NAME.fullmatch(path.name))}
    return sorted(found, key=lambda path: int(found[path][1]), reverse=True)


def latest_whole(folder: Any) -> Path | None:
    """The newest checkpoint in a folder that is whole; None if there is none. Damaged files are passed over.

    Example:
        >>> import tempfile, pathlib, extensor as et
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     checkpoints = et.train.Checkpoints(folder)
        ...     _ = checkpoints.save(10, {"step": 10})
        ...     _ = checkpoints.save(20, {"step": 20})
        ...     _ = pathlib.Path(folder, "step-000000030.safetensors").write_bytes(b"half of a fi")
        ...     et.train.latest_whole(folder).name
        'step-000000020.safetensors'
    """
    place = Path(folder)
    for path in checkpoint_files(place) if place.is_dir() else []:
        with contextlib.suppress(OSError, ValueError):
            check_own("latest_whole", path)
            load_checkpoint(path)
            return path
    return None


class Checkpoints:
    """The checkpoints of a run in a folder: ``step-000000120.safetensors`` and so on, the last few of them.

    Args:
        folder: where they are; it is made when the first one is written.
        keep: how many to keep, at least 1. An older one is removed after a newer one is safe on the disk.

    Example:
        >>> import tempfile, extensor as et
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     checkpoints = et.train.Checkpoints(folder, keep=2)
        ...     for step in (1, 2, 3):
        ...         _ = checkpoints.save(step, {"step": step})
        ...     [path.name for path in checkpoints.files()]
        ['step-000000003.safetensors', 'step-000000002.safetensors']
    """

    def __init__(self, folder: Any, keep: int = 3) -> None:
        self.folder = Path(folder)
        self.keep = as_int("Checkpoints", "keep", keep)
        if self.keep < 1:
            raise ValueError(f"[Checkpoints] keep must be at least 1, got {keep}")

    def save(self, step: int, state: Mapping[str, Any]) -> Path:
        """Write the checkpoint of a step, then remove the oldest ones."""
        check_own("Checkpoints", self.folder)
        path = self.folder / f"step-{step:09d}.safetensors"
        save_checkpoint(path, state)
        for old in self.files()[self.keep :]:
            with contextlib.suppress(OSError):  # it stays then; it does no harm
                old.unlink()
        return path

    def files(self) -> list[Path]:
        """The checkpoints there are, newest first, whole or not."""
        return checkpoint_files(self.folder) if self.folder.is_dir() else []

    def latest(self) -> Path | None:
        """The newest whole one, see :func:`latest_whole`."""
        return latest_whole(self.folder)
