"""The columns of a table as numbers: numbers stay what they are, words become a column of 0 and 1 each, dates several."""

from __future__ import annotations

import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ._cells import EMPTY, LARGEST, Cell, parse_date, parse_number, read_cell

__all__ = ["MOST_VALUES", "Column", "Row", "encode", "input_names", "read_numbers", "survey"]

MOST_VALUES = 100  # a column of words with more different ones than this is no category

Row: TypeAlias = tuple[int, list[str]]  # the number of the line and its cells
# As JSON can keep it: {"name": ..., "mean": m} for numbers, with "decimal": "," where that is the mark;
# {"name": ..., "values": [...]} for words; {"name": ..., "date": order, "time": bool, "mean": days} for dates
Column: TypeAlias = dict[str, Any]


def read_numbers(rows: Iterable[Row], places: list[int]) -> np.ndarray | None:
    """The cells at ``places`` if all of them are finite numbers without any decoration, in one quick pass; else None."""
    cells = array.array("d")
    for _, row in rows:
        try:
            cells.extend([float(row[i]) for i in places])
        except ValueError:
            return None
    found = np.frombuffer(cells, np.float64).reshape(-1, len(places)) if cells else np.empty((0, len(places)))
    return found if (np.abs(found) <= LARGEST).all() else None


# What kind of column it is


class _Survey:
    """What the cells of one column are."""

    def __init__(self) -> None:
        self.cells = 0  # that are not empty
        self.numbers = {".": 0, ",": 0}  # cells that are numbers with this decimal mark
        self.totals = {".": 0.0, ",": 0.0}  # of the rows to learn from, and how many they are
        self.counts = {".": 0, ",": 0}
        self.dates = {"ymd": 0, "dmy": 0, "mdy": 0}
        self.days: dict[str, list[float]] = {"ymd": [0.0, 0], "dmy": [0.0, 0], "mdy": [0.0, 0]}  # sum, count
        self.times = False
        self.commas = False  # whether one stands in a number
        self.differs = False  # whether the decimal mark makes a difference
        self.words = 0
        self.values: set[str] = set()  # of the rows to learn from, a few more than are allowed at most
        self.first_word: tuple[int, str] | None = None
        self.first_empty: int | None = None

    def add(self, line: int, text: str, learn: bool) -> None:
        if learn and len(self.values) <= MOST_VALUES:
            self.values.add(text)
        cell = read_cell(text)
        if cell.empty:
            self.first_empty = self.first_empty or line
            return
        self.cells += 1
        if cell.dot is not None or cell.comma is not None:
            self._add_number(cell, text, learn)
        elif cell.dates:
            for order in cell.dates:
                self.dates[order] += 1
                if learn:
                    self.days[order][0] += parse_date(text, order) or 0.0
                    self.days[order][1] += 1
            self.times |= cell.has_time
        else:
            self.words += 1
            self.first_word = self.first_word or (line, text)

    def _add_number(self, cell: Cell, text: str, learn: bool) -> None:
        self.commas |= "," in text
        self.differs |= cell.dot != cell.comma
        for mark, value in ((".", cell.dot), (",", cell.comma)):
            if value is not None:
                self.numbers[mark] += 1
                if learn:
                    self.totals[mark] += value
                    self.counts[mark] += 1

    @property
    def is_text(self) -> bool:
        """Whether most of it is words; a word among numbers is a mistake."""
        return self.words > self.cells - self.words

    @property
    def is_date(self) -> bool:
        return not self.is_text and max(self.dates.values()) > max(self.numbers.values())

    def decimal(self) -> str | None:
        """The decimal mark that reads most cells; None where both read as many."""
        if self.numbers["."] == self.numbers[","]:
            return None
        return max(".,", key=self.numbers.__getitem__)

    def column(self, file: Path, name: str, fill: bool, others: str | None, habit: str) -> Column:
        """The column this is, or what is wrong with it.

        Where its cells do not tell the decimal mark, the ``others`` decide, or the ``habit`` for numbers with commas.
        """
        if self.is_text:
            return {"name": name, "values": sorted(self.values)}
        if self.first_word is not None:
            line, cell = self.first_word
            what = "date" if self.is_date else "finite number"
            raise ValueError(
                f"[read_csv] {file}, line {line}, {name!r}: {cell!r} is no {what}; correct the cell, empty it, "
                "or leave the column out with ignore"
            )
        if not self.cells:
            raise ValueError(
                f"[read_csv] {file}: every cell of {name!r} is empty; leave the column out with ignore"
            )
        if self.first_empty is not None and not fill:
            raise _is_empty(file, self.first_empty, name)
        if self.is_date:
            first = "dmy" if (others or habit) == "," else "mdy"  # where both read every cell
            order = max(("ymd", first, "dmy", "mdy"), key=self.dates.__getitem__)
            total, count = self.days[order]
            return {"name": name, "date": order, "time": self.times, "mean": total / max(count, 1)}
        mark = self.decimal() or others or (habit if self.commas else ".")
        mean = self.totals[mark] / self.counts[mark] if self.counts[mark] else 0.0
        return {"name": name, "mean": mean} | ({"decimal": ","} if mark == "," and self.differs else {})


def _is_empty(file: Path, line: int, name: str) -> ValueError:
    return ValueError(
        f"[read_csv] {file}, line {line}, {name!r}: the cell is empty; fill it, pass fill=True to put the mean of the "
        "column there, or leave the column out with ignore"
    )


def survey(
    file: Path,
    rows: Iterable[Row],
    places: list[int],
    names: list[str],
    fill: bool,
    decimal: str,
    learn: np.ndarray | None,
) -> list[Column]:
    """What the columns at ``places`` hold.

    Args:
        decimal: the mark to assume in numbers with commas where nothing tells.
        learn: which rows the means and the lists of words come from; None for all. Kinds come from every row.
    """
    found = [_Survey() for _ in places]
    for number, (line, row) in enumerate(rows):
        learned = learn is None or bool(learn[number])
        for column, i in zip(found, places):
            column.add(line, row[i], learned)
    crowded = [names[i] for c, i in zip(found, places) if c.is_text and len(c.values) > MOST_VALUES]
    if crowded:
        raise ValueError(
            f"[read_csv] {file}: text with more than {MOST_VALUES} different values, too many to tell apart: "
            f"{', '.join(crowded)}; leave the column out with ignore, or replace it by numbers"
        )
    told = {mark for c in found if not c.is_text and (mark := c.decimal()) is not None}
    others = told.pop() if len(told) == 1 else None
    return [column.column(file, names[i], fill, others, decimal) for column, i in zip(found, places)]


# Cells as numbers


def input_names(column: Column) -> list[str]:
    """The names of the inputs that a column becomes."""
    name = column["name"]
    if "values" in column:
        return [f"{name}={value}" for value in column["values"]]
    if "date" in column:
        cycles = ("year", "week", "day") if column["time"] else ("year", "week")
        return [name, *(f"{name}:{cycle} {wave}" for cycle in cycles for wave in ("sin", "cos"))]
    return [name]


def encode(
    file: Path, rows: Iterable[Row], places: list[int], columns: list[Column], fill: bool
) -> tuple[np.ndarray, dict[str, int], dict[str, list[str]]]:
    """The inputs; how many empty cells were filled, and which words were not among the values, by column."""
    numbers = [
        {value: i for i, value in enumerate(column["values"])} if "values" in column else None
        for column in columns
    ]
    cells: list[array.array[Any]] = [array.array("d" if known is None else "i") for known in numbers]
    filled: dict[str, int] = {}
    unseen: dict[str, dict[str, None]] = {}
    for line, row in rows:
        for column, known, found, i in zip(columns, numbers, cells, places):
            cell, name = row[i], column["name"]
            if known is not None:
                place = known.get(cell, -1)
                found.append(place)
                if place < 0:
                    unseen.setdefault(name, {})[cell] = None
            elif cell.lower() in EMPTY and fill:
                found.append(column["mean"])
                filled[name] = filled.get(name, 0) + 1
            elif cell.lower() in EMPTY:
                raise _is_empty(file, line, name)
            else:
                found.append(_value(file, line, column, cell))
    inputs = np.concatenate(list(_blocks(columns, cells)), axis=1)
    return inputs, filled, {name: list(words) for name, words in unseen.items()}


def _value(file: Path, line: int, column: Column, cell: str) -> float:
    if "date" in column:
        value, what = parse_date(cell, column["date"]), f"date in the order {column['date']}"
    else:
        value, what = parse_number(cell, column.get("decimal", ".")), "finite number"
    if value is None:
        raise ValueError(f"[read_csv] {file}, line {line}, {column['name']!r}: {cell!r} is no {what}")
    return value


_YEAR, _WEEK, _DAY = 365.2425, 7.0, 1.0


def _blocks(columns: list[Column], cells: list[array.array[Any]]) -> Iterator[np.ndarray]:
    """Each column as a block of one or several."""
    for column, found in zip(columns, cells):
        values = np.frombuffer(found, np.dtype(found.typecode)).reshape(-1, 1)
        if "values" in column:
            yield (values == np.arange(len(column["values"]))).astype(np.float64)
        elif "date" in column:
            periods = np.array([_YEAR, _WEEK, _DAY] if column["time"] else [_YEAR, _WEEK])
            angles = 2 * np.pi * values / periods
            waves = np.stack([np.sin(angles), np.cos(angles)], axis=2).reshape(len(values), 2 * len(periods))
            yield np.concatenate([values, waves], axis=1)
        else:
            yield values
