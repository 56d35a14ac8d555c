"""The columns of a table as numbers: numbers stay what they are, words become one column of 0 and 1 each."""

from __future__ import annotations

import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

__all__ = ["MOST_VALUES", "Column", "Row", "encode", "is_number", "read_numbers", "survey", "to_number"]

MOST_VALUES = 100  # a column of words with more different ones than this is no category
EMPTY = frozenset(["", "?", "na", "n/a", "nan", "none", "null"])  # what stands for no number, in any case
LARGEST = float(np.finfo(np.float32).max)

Row: TypeAlias = tuple[int, list[str]]  # the number of the line and its cells
# {"name": ..., "mean": m} for numbers, {"name": ..., "values": [...]} for words; as JSON can keep it
Column: TypeAlias = dict[str, Any]


def to_number(cell: str) -> float | None:
    """The number a cell holds, or None."""
    try:
        return float(cell)
    except ValueError:
        return None


def is_number(cell: str) -> bool:
    """Whether a cell holds a number that float32 can hold too."""
    value = to_number(cell)
    return value is not None and abs(value) <= LARGEST


def read_numbers(rows: Iterable[Row], places: list[int]) -> np.ndarray | None:
    """The cells at ``places`` if all of them are finite numbers, in one quick pass; else None."""
    cells = array.array("f")
    for _, row in rows:
        try:
            cells.extend([float(row[i]) for i in places])
        except ValueError:
            return None
    found = np.frombuffer(cells, np.float32).reshape(-1, len(places)) if cells else np.empty((0, len(places)))
    return found if np.isfinite(found).all() else None


# What kind of column it is


class _Survey:
    """What the cells of one column are."""

    def __init__(self) -> None:
        self.numbers = 0
        self.total = 0.0
        self.words = 0
        self.values: set[str] = set()  # of all cells, a few more than are allowed at most
        self.first_word: tuple[int, str] | None = None
        self.first_empty: int | None = None

    def add(self, line: int, cell: str) -> None:
        if len(self.values) <= MOST_VALUES:
            self.values.add(cell)
        if cell.lower() in EMPTY:
            self.first_empty = self.first_empty or line
        elif is_number(cell):
            self.numbers += 1
            self.total += float(cell)
        else:
            self.words += 1
            self.first_word = self.first_word or (line, cell)

    @property
    def is_text(self) -> bool:
        """Whether most of it is words; a word among numbers is a mistake."""
        return self.words > self.numbers

    def column(self, file: Path, name: str, fill: bool) -> Column:
        """The column this is, or what is wrong with it."""
        if self.is_text:
            return {"name": name, "values": sorted(self.values)}
        if self.first_word is not None:
            line, cell = self.first_word
            raise ValueError(
                f"[read_csv] {file}, line {line}, {name!r}: {cell!r} is no finite number; correct the cell, empty it, "
                "or leave the column out with ignore"
            )
        if not self.numbers:
            raise ValueError(
                f"[read_csv] {file}: every cell of {name!r} is empty; leave the column out with ignore"
            )
        if self.first_empty is not None and not fill:
            raise _is_empty(file, self.first_empty, name)
        return {"name": name, "mean": self.total / self.numbers}


def _is_empty(file: Path, line: int, name: str) -> ValueError:
    return ValueError(
        f"[read_csv] {file}, line {line}, {name!r}: the cell is empty; fill it, pass fill=True to put the mean of the "
        "column there, or leave the column out with ignore"
    )


def survey(file: Path, rows: Iterable[Row], places: list[int], names: list[str], fill: bool) -> list[Column]:
    """What the columns at ``places`` hold."""
    found = [_Survey() for _ in places]
    for line, row in rows:
        for column, i in zip(found, places):
            column.add(line, row[i])
    crowded = [names[i] for c, i in zip(found, places) if c.is_text and len(c.values) > MOST_VALUES]
    if crowded:
        raise ValueError(
            f"[read_csv] {file}: text with more than {MOST_VALUES} different values, too many to tell apart: "
            f"{', '.join(crowded)}; leave the column out with ignore, or replace it by numbers"
        )
    return [column.column(file, names[i], fill) for column, i in zip(found, places)]


# Cells as numbers


def encode(
    file: Path, rows: Iterable[Row], places: list[int], columns: list[Column], fill: bool
) -> tuple[np.ndarray, dict[str, int], dict[str, list[str]]]:
    """The inputs; how many empty cells were filled, and which words were not among the values, by column."""
    numbers = [
        None if "mean" in column else {value: i for i, value in enumerate(column["values"])}
        for column in columns
    ]
    cells: list[array.array[Any]] = [array.array("f" if known is None else "i") for known in numbers]
    filled: dict[str, int] = {}
    unseen: dict[str, list[str]] = {}
    for line, row in rows:
        for column, known, found, i in zip(columns, numbers, cells, places):
            cell, name = row[i], column["name"]
            if known is not None:
                found.append(known.get(cell, -1))
                if cell not in known and cell not in unseen.setdefault(name, []):
                    unseen[name].append(cell)
            elif cell.lower() in EMPTY and fill:
                found.append(column["mean"])
                filled[name] = filled.get(name, 0) + 1
            elif cell.lower() in EMPTY:
                raise _is_empty(file, line, name)
            elif is_number(cell):
                found.append(float(cell))
            else:
                raise ValueError(f"[read_csv] {file}, line {line}, {name!r}: {cell!r} is no finite number")
    return np.concatenate(list(_blocks(columns, cells)), axis=1), filled, unseen


def _blocks(columns: list[Column], cells: list[array.array[Any]]) -> Iterator[np.ndarray]:
    """Each column as a block of one or several."""
    for column, found in zip(columns, cells):
        if "mean" in column:
            yield np.frombuffer(found, np.float32).reshape(-1, 1)
        else:
            codes = np.frombuffer(found, np.dtype(found.typecode)).reshape(-1, 1)
            yield (codes == np.arange(len(column["values"]))).astype(np.float32)
