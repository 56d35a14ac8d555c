"""Samples to learn from, in three parts, from whatever holds them; and all samples of a file, to predict."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .. import data
from .array_samples import read_array_samples
from .recipe import Task
from .splits import VALIDATION, Rows, hold_out, split_rows
from .table_samples import is_table, read_table

__all__ = ["Parts", "load_parts"]


@dataclass
class Parts:
    """Samples for training, validation and testing.

    Attributes:
        table: how a table was read, for its config; None for other data.
        notes: what a person should know about how the data was read.
    """

    train: data.Dataset
    validation: data.Dataset
    test: data.Dataset
    table: dict[str, Any] | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def counts(self) -> str:
        numbers = (len(self.train), len(self.validation), len(self.test))
        return "{:,} samples to train, {:,} to validate, {:,} to test".format(*numbers)


def load_parts(
    path: Path | None,
    task: Task = "auto",
    target: str | None = None,
    ignore: tuple[str, ...] = (),
    tables: bool = False,
) -> Parts:
    """The embedded digits; a folder of MNIST or CIFAR-10 files; a .npz file; with ``tables``, a table too."""
    if tables and is_table(path):
        assert path is not None
        table = read_table(path, target, ignore, task)
        parts = _parts(table.samples, table.rows, table.notes)
        parts.table = table.description
    elif target is not None or ignore:
        raise ValueError(f"[train] {path or 'the embedded digits'}: only a table (.csv) has columns to name")
    elif path is not None and path.is_dir():
        parts = _with_test_files(path)
    elif path is None:
        parts = _split(data.digits(), ["the digits that come with ExTensor"])
    elif path.suffix == ".npz":
        parts = _split(*read_array_samples(path, task))
    else:
        raise ValueError(
            f"[load_samples] {path} is neither a folder of MNIST or CIFAR-10 files nor a .npz file nor, for mlp, a .csv file"
        )
    parts.notes.append(parts.counts)
    return parts


def _with_test_files(path: Path) -> Parts:
    """Data sets that bring their test samples along."""
    train, test = data.cifar10(path) if any(path.glob("data_batch_*")) else data.mnist(path)
    fraction = VALIDATION / (1 - VALIDATION)
    learned, held_out = hold_out(np.arange(len(train)), _labels(train), fraction, seed=1)
    return Parts(subset(train, learned), subset(train, held_out), test, notes=[f"{path}: {test!r} to test"])


def _split(samples: data.Dataset, notes: list[str]) -> Parts:
    return _parts(samples, split_rows(len(samples), _labels(samples)), notes)


def _parts(samples: data.Dataset, rows: Rows, notes: list[str]) -> Parts:
    train, validation, test = (subset(samples, part) for part in rows)
    return Parts(train, validation, test, notes=notes)


def _labels(samples: data.Dataset) -> np.ndarray | None:
    targets = samples.targets
    return targets if targets is not None and targets.dtype.kind in "iu" and targets.ndim == 1 else None


def subset(samples: data.Dataset, rows: np.ndarray) -> data.Dataset:
    """Some of the samples."""
    return data.Dataset(*samples.gather(rows), samples.transforms, samples.classes)
