"""A table of one's own: read, split and scaled for training, and read alike again for predictions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..data import Dataset, Table, read_csv
from ..data.csv_table import read_csv_to_learn
from ..data.frames import TABLE_SUFFIXES
from ..errors import describe
from .recipe import Task
from .splits import Rows, Split, split_rows
from .table_notes import table_notes

__all__ = ["TableSamples", "is_description", "is_table", "read_again", "read_table", "unscaled"]


@dataclass
class TableSamples:
    """A table made ready for training.

    Attributes:
        table: its rows as they are.
        samples: its rows scaled.
        rows: which of them are trained on, validated with and tested with.
        description: how to read another file alike, for the run's configuration.
        notes: how it was read, a line each.
    """

    table: Table
    samples: Dataset
    rows: Rows
    description: dict[str, Any]
    notes: list[str]


def is_table(path: Path | None) -> bool:
    """Whether a path leads to a table, by its name."""
    return path is not None and path.suffix.lower() in TABLE_SUFFIXES and not path.is_dir()


def read_table(
    path: Path,
    target: str | None = None,
    ignore: Sequence[str] = (),
    task: Task = "auto",
    split: Split | None = None,
) -> TableSamples:
    """Read a table, split its rows, and scale it by what the rows to train on show.

    Numbers and quantities to predict get the mean 0 and the standard deviation 1: a network learns little from
    thousands beside thousandths. Columns that stand for words stay 0 and 1.

    Args:
        path: a CSV file.
        target: the column to predict, by name or number; the last without it.
        ignore: columns to leave out, by name or number.
        task: whether the targets are classes or quantities.
        split: which rows are kept for validation and testing.
    """
    table = read_csv_to_learn(
        path,
        -1 if target is None else _column(target),
        [_column(c) for c in ignore],
        None if task == "auto" else task == "classification",
        lambda count, labels: split_rows(count, labels, split).train,
    )
    assert table.targets is not None
    rows = split_rows(len(table), None if table.classes is None else table.targets, split)
    scaled = np.repeat(*_scaled_inputs(table.encoding)).astype(bool)
    description: dict[str, Any] = {
        "encoding": table.encoding,
        "inputs": _scale(table.inputs[rows.train], scaled),
        "target": None,
    }
    if table.classes is None:
        description["target"] = _scale(table.targets[rows.train, None], np.array([True]))
    return TableSamples(table, _scaled(table, description), rows, description, table_notes(path, table))


def read_again(path: Any, description: Any) -> tuple[Table, Dataset]:
    """Every row of a file, read and scaled as the table was that :func:`read_table` described."""
    try:
        table = read_csv(path, fill=True, encoding=description["encoding"], dtype=np.float64)
        return table, _scaled(table, description)
    except (KeyError, TypeError, IndexError) as error:
        raise ValueError(
            f"the run's table is described as {describe(description)}, which no table is: {error}"
        ) from None


def is_description(value: Any) -> bool:
    """Whether a value from a file can be what :func:`read_table` describes a table with."""
    if not isinstance(value, dict) or not {"encoding", "inputs", "target"} <= set(value):
        return False
    target = value["target"]
    return _is_scale(value["inputs"]) and (
        target is None or (_is_scale(target) and len(target["mean"]) == len(target["spread"]) == 1)
    )


def _is_scale(value: Any) -> bool:
    if not isinstance(value, dict) or set(value) != {"mean", "spread"}:
        return False
    parts = value.values()
    return all(isinstance(part, list) and all(type(n) in (int, float) for n in part) for part in parts)


def unscaled(values: np.ndarray, description: Mapping[str, Any] | None) -> np.ndarray:
    """Quantities in the units of the table; as they are where there was none."""
    scale = None if description is None else description["target"]
    return values if scale is None else values * scale["spread"][0] + scale["mean"][0]


def _column(text: str) -> str | int:
    return int(text) if re.fullmatch(r"-?\d+", text) else text


def _scaled_inputs(encoding: Mapping[str, Any]) -> tuple[list[bool], list[int]]:
    """Runs of inputs: whether they are scaled, and how many there are."""
    flags, counts = list[bool](), list[int]()
    for column in encoding["columns"]:
        waves = 0 if "date" not in column else 6 if column["time"] else 4
        if "values" in column:
            flags, counts = [*flags, False], [*counts, len(column["values"])]
        else:
            flags, counts = [*flags, True, False], [*counts, 1, waves]
    return flags, counts


def _scale(values: np.ndarray, scaled: np.ndarray) -> dict[str, list[float]]:
    spread = values.std(0)
    return {
        "mean": np.where(scaled, values.mean(0), 0.0).tolist(),
        "spread": np.where(scaled & (spread > 0), spread, 1.0).tolist(),
    }


def _scaled(table: Table, description: Mapping[str, Any]) -> Dataset:
    def applied(values: np.ndarray, scale: Mapping[str, Any]) -> np.ndarray:
        mean, spread = (np.array(scale[part], np.float64) for part in ("mean", "spread"))
        return ((values.astype(np.float64) - mean) / spread).astype(np.float32)

    targets = table.targets
    if targets is not None and description["target"] is not None:
        targets = applied(targets[:, None], description["target"])[:, 0]
    scaled = Dataset(applied(table.inputs, description["inputs"]), targets, classes=table.classes)
    scaled.places = table.places
    return scaled
