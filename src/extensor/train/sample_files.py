"""Samples to learn from, in three parts, from whatever holds them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .. import data
from ..data.pictures import has_pictures
from .array_samples import read_array_samples
from .recipe import Order
from .splits import VALIDATION, Rows, Split, hold_out, split_rows
from .table_samples import is_table, read_again, read_table

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


def load_parts(order: Order, tables: bool = False, image_size: Any = 32) -> Parts:
    """The embedded digits; a folder of MNIST or CIFAR-10 files or of pictures; a .npz file; with ``tables``, a table too."""
    path = order.data
    if tables and path is not None and is_table(path):
        parts = _table_parts(order, path)
    elif order.target is not None or order.ignore:
        raise ValueError(f"[train] {path or 'the embedded digits'}: only a table (.csv) has columns to name")
    elif path is not None and path.suffix == ".npz" and not path.is_dir():
        parts = _array_parts(order, path)
    elif order.validation is not None or order.test is not None:
        raise ValueError("[train] only a table (.csv) or a .npz file has its parts in files of their own")
    elif path is None:
        samples = data.digits()
        rows = split_rows(len(samples), _labels(samples), _split(order))
        parts = _parts(samples, rows, (None, None), ["the digits that come with ExTensor"])
    elif has_pictures(path):
        samples = data.image_folder(path, image_size)
        rows = split_rows(len(samples), _labels(samples), _split(order))
        height, width = samples.inputs.shape[2:]
        note = f"{path}: {len(samples):,} pictures of {len(samples.classes or ())} classes, shown as {height} x {width} pixels"
        parts = _parts(samples, rows, (None, None), [note])
    elif path.is_dir():
        if order.fold is not None:
            raise ValueError(f"[train] {path} brings its test samples along; folds are for other data")
        parts = _with_test_files(path)
    else:
        raise ValueError(
            f"[load_samples] {path} is neither a folder of MNIST or CIFAR-10 files nor a .npz file nor, for mlp, a .csv file"
        )
    parts.notes.append(parts.counts)
    return parts


def _split(order: Order) -> Split:
    return Split(order.validation is None, order.test is None, order.fold)


def _table_parts(order: Order, path: Path) -> Parts:
    table = read_table(path, order.target, order.ignore, order.task, _split(order))

    def other(file: Path | None) -> data.Dataset | None:
        return None if file is None else _with_targets(file, read_again(file, table.description)[1])

    parts = _parts(table.samples, table.rows, (other(order.validation), other(order.test)), table.notes)
    parts.table = table.description
    return parts


def _array_parts(order: Order, path: Path) -> Parts:
    samples, notes = read_array_samples(path, order.task)
    rows = split_rows(len(samples), _labels(samples), _split(order))
    classes = None if samples.classes is None else list(samples.classes)
    task: Any = "regression" if classes is None else "classification"

    def other(file: Path | None) -> data.Dataset | None:
        return None if file is None else read_array_samples(file, task, classes)[0]

    return _parts(samples, rows, (other(order.validation), other(order.test)), notes)


def _with_test_files(path: Path) -> Parts:
    """Data sets that bring their test samples along."""
    train, test = data.cifar10(path) if any(path.glob("data_batch_*")) else data.mnist(path)
    learned, held_out = hold_out(np.arange(len(train)), _labels(train), VALIDATION, seed=1)
    return Parts(_subset(train, learned), _subset(train, held_out), test, notes=[f"{path}: {test!r} to test"])


def _parts(
    samples: data.Dataset,
    rows: Rows,
    others: tuple[data.Dataset | None, data.Dataset | None],
    notes: list[str],
) -> Parts:
    """The rows of each part; validation and test from elsewhere where they are given."""
    validation, test = (
        _subset(samples, part) if other is None else other for part, other in zip(rows[1:], others)
    )
    return Parts(_subset(samples, rows.train), validation, test, notes=notes)


def _with_targets(file: Path, samples: data.Dataset) -> data.Dataset:
    if samples.targets is None:
        raise ValueError(
            f"[train] {file} has no targets, or not in every row; they are needed to see how good the model is"
        )
    return samples


def _labels(samples: data.Dataset) -> np.ndarray | None:
    targets = samples.targets
    return targets if targets is not None and targets.dtype.kind in "iu" and targets.ndim == 1 else None


def _subset(samples: data.Dataset, rows: np.ndarray) -> data.Dataset:
    return samples.subset(rows)
