"""A table of one's own: read and scaled for training, and read alike again for predictions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..data import Dataset, Table, read_csv
from ..errors import describe

__all__ = ["is_table", "notes_on", "read_again", "read_table", "unscaled"]


def is_table(path: Path | None) -> bool:
    """Whether a path leads to a table, by its name."""
    suffixes = (".csv", ".tsv", ".txt", ".data", ".dat", ".gz")
    return path is not None and path.suffix in suffixes and not path.is_dir()


def read_table(
    path: Path, target: str | None = None, ignore: Sequence[str] = ()
) -> tuple[Table, Dataset, dict[str, Any]]:
    """The table as it is, its samples scaled, and how to read another file alike.

    Numbers and quantities to predict get the mean 0 and the standard deviation 1: a network learns little from
    thousands beside thousandths. Columns that stand for words stay 0 and 1.

    Args:
        path: a CSV file.
        target: the column to predict, by name or number; the last without it.
        ignore: columns to leave out, by name or number.
    """
    table = read_csv(
        path, -1 if target is None else _column(target), ignore=[_column(c) for c in ignore], fill=True
    )
    numeric = np.repeat(*_kinds(table.encoding)).astype(bool)
    description: dict[str, Any] = {
        "encoding": table.encoding,
        "inputs": _scale(table.inputs, numeric),
        "target": None,
    }
    if table.targets is not None and table.classes is None:
        description["target"] = _scale(table.targets[:, None], np.array([True]))
    return table, _scaled(table, description), description


def read_again(path: Path, description: Any) -> tuple[Table, Dataset]:
    """Every row of a file, read and scaled as the table was that :func:`read_table` described."""
    try:
        table = read_csv(path, fill=True, encoding=description["encoding"])
        return table, _scaled(table, description)
    except (KeyError, TypeError) as error:
        raise ValueError(
            f"the run's table is described as {describe(description)}, which no table is: {error}"
        ) from None


def unscaled(values: np.ndarray, description: Mapping[str, Any] | None) -> np.ndarray:
    """Quantities in the units of the table; as they are where there was none."""
    scale = None if description is None else description["target"]
    return values if scale is None else values * scale["spread"][0] + scale["mean"][0]


def notes_on(table: Table) -> list[str]:
    """What a person should know about how the cells were read, a line each."""
    notes = [f"{name}: {_empty(count)} as the mean of the column" for name, count in table.filled.items()]
    for name in (c["name"] for c in table.encoding["columns"] if "" in c.get("values", ())):
        count = int(table.inputs[:, table.columns.index(f"{name}=")].sum())
        if count:
            notes.append(f"{name}: {_empty(count)} as one more word")
    for name, values in table.unseen.items():
        shown = ", ".join(value or "(empty)" for value in values[:5]) + (", ..." if len(values) > 5 else "")
        notes.append(f"{name}: not there in training, taken for none of the values known: {shown}")
    return notes


def _empty(count: int) -> str:
    return "an empty cell counts" if count == 1 else f"{count} empty cells count"


def _column(text: str) -> str | int:
    return int(text) if re.fullmatch(r"-?\d+", text) else text


def _kinds(encoding: Mapping[str, Any]) -> tuple[list[bool], list[int]]:
    """For each column whether it holds numbers, and how many inputs it makes."""
    columns = encoding["columns"]
    return ["mean" in c for c in columns], [1 if "mean" in c else len(c["values"]) for c in columns]


def _scale(values: np.ndarray, scaled: np.ndarray) -> dict[str, list[float]]:
    wide = values.astype(np.float64)
    spread = wide.std(0)
    return {
        "mean": np.where(scaled, wide.mean(0), 0.0).tolist(),
        "spread": np.where(scaled & (spread > 0), spread, 1.0).tolist(),
    }


def _scaled(table: Table, description: Mapping[str, Any]) -> Dataset:
    def applied(values: np.ndarray, scale: Mapping[str, Any]) -> np.ndarray:
        mean, spread = (np.array(scale[part], np.float64) for part in ("mean", "spread"))
        return ((values.astype(np.float64) - mean) / spread).astype(np.float32)

    targets = table.targets
    if targets is not None and description["target"] is not None:
        targets = applied(targets[:, None], description["target"])[:, 0]
    return Dataset(applied(table.inputs, description["inputs"]), targets, classes=table.classes)
