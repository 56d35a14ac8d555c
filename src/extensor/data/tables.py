"""Tables in CSV files."""

from __future__ import annotations

import array
import csv
import io
import itertools
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import describe
from ._files import DamagedFileError, as_file, read_text
from .dataset import Dataset

__all__ = ["Table", "read_csv"]

MOST_CLASSES = 100  # whole numbers with more different values than this are quantities, not classes


class Table(Dataset):
    """A dataset that came from a CSV file: it knows the names of its columns.

    Attributes:
        columns: the names of the columns of ``inputs``.
        target: the name of the target column, or None.
        classes: the names of the classes; None where the targets are quantities.

    Example:
        See :func:`read_csv`, which makes tables.

        >>> from extensor.data import Dataset, Table
        >>> issubclass(Table, Dataset)
        True
    """

    columns: tuple[str, ...]
    target: str | None


def read_csv(
    path: Any,
    target: str | int | None = -1,
    columns: Sequence[str | int] | None = None,
    header: bool | None = None,
    classes: bool | None = None,
    delimiter: str | None = None,
) -> Table:
    """A dataset from a CSV file.

    Args:
        path: the file, in UTF-8, gzipped or not.
        target: the column to predict, by name or number (negative counts from the end); None for a table without.
        columns: the columns that are inputs; by default all but the target.
        header: whether the first line has the names of the columns; by default it does if a cell of it is no number
            while the cells below it are.
        classes: whether the targets are classes; by default they are if they are words, or whole numbers with at most
            100 different values.
        delimiter: what separates cells; by default the one of ``, ; tab |`` that the first line has most of.

    Returns:
        The table: inputs (rows, columns), float32; targets int64 for classes, numbered in sorted order with their names
        in ``classes``, or float32 for quantities.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: a row is too short or too long, a cell is empty or no number. The text says which.

    Example:
        >>> import tempfile, pathlib
        >>> from extensor.data import read_csv
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder, "flowers.csv")
        ...     _ = file.write_text("length,width,kind\\n5.1,3.5,setosa\\n7.0,3.2,versicolor\\n")
        ...     table = read_csv(file, target="kind")
        >>> table.columns, table.classes, table.targets.tolist()
        (('length', 'width'), ('setosa', 'versicolor'), [0, 1])
    """
    file = as_file("read_csv", path)
    rows = _rows(file, delimiter)
    try:
        return _table(file, rows, target, columns, header, classes)
    except csv.Error as error:
        raise DamagedFileError(f"[read_csv] {file} is no CSV file: {error}") from None


def _rows(file: Path, delimiter: str | None) -> Iterator[tuple[int, list[str]]]:
    """Line numbers and cells of the rows that are not empty."""
    text = read_text("read_csv", file)
    if "\0" in text:
        raise DamagedFileError(f"[read_csv] {file} is no CSV file: it holds a zero byte")
    if delimiter is None:
        first = text.split("\n", 1)[0]
        delimiter = max(",;\t|", key=first.count)
    elif not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\n':
        raise ValueError(f"[read_csv] delimiter must be one character, got {describe(delimiter)}")
    reader = csv.reader(io.StringIO(text), delimiter=delimiter, skipinitialspace=True)
    return ((reader.line_num, [cell.strip() for cell in row]) for row in reader if any(map(str.strip, row)))


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _table(
    file: Path,
    rows: Iterator[tuple[int, list[str]]],
    target: str | int | None,
    columns: Sequence[str | int] | None,
    header: bool | None,
    classes: bool | None,
) -> Table:
    first, second = next(rows, None), next(rows, None)
    if first is None:
        raise DamagedFileError(f"[read_csv] {file} is empty")
    if header is None:
        below = second[1] if second is not None else []
        header = any(
            _number(name) is None and _number(cell) is not None for name, cell in zip(first[1], below)
        )
    names = first[1] if header else [f"column {i}" for i in range(len(first[1]))]
    data = [row for row in ((second,) if header else (first, second)) if row is not None]
    goal = None if target is None else _place(file, "target", target, names)
    if columns is None:
        chosen = [i for i in range(len(names)) if i != goal]
    else:
        chosen = [_place(file, "columns", column, names) for column in columns]
    if not chosen:
        raise ValueError(f"[read_csv] {file} has no column left for the inputs")

    cells, goals = array.array("f"), list[str]()
    for line, row in itertools.chain(data, rows):
        _take(file, line, row, names, chosen, goal, cells, goals)
    if not cells:
        raise DamagedFileError(f"[read_csv] {file} has a header but no rows")
    inputs = np.frombuffer(cells, np.float32).reshape(-1, len(chosen))
    targets, found_classes = (None, None) if goal is None else _targets(file, names[goal], goals, classes)
    table = Table(inputs, targets, classes=found_classes)
    table.columns = tuple(names[i] for i in chosen)
    table.target = None if goal is None else names[goal]
    return table


def _place(file: Path, argument: str, column: str | int, names: list[str]) -> int:
    """The number of a column that is named or counted."""
    if isinstance(column, str) and column in names:
        return names.index(column)
    if isinstance(column, int) and not isinstance(column, bool) and -len(names) <= column < len(names):
        return column % len(names)
    raise ValueError(
        f"[read_csv] {argument}: {file} has no column {column!r}; it has {', '.join(names[:20])}"
    )


def _take(
    file: Path, line: int, row: list[str], names: list[str], chosen: list[int], goal: int | None,
    cells: array.array[float], goals: list[str],
) -> None:  # fmt: skip
    """Put the cells of one row where they belong."""
    if len(row) != len(names):
        raise DamagedFileError(
            f"[read_csv] {file}, line {line}: {len(row)} cells, but the first line has {len(names)}"
        )
    for i in chosen:
        value = _number(row[i])
        if value is None or not abs(value) <= 3.4028235e38:
            what = f"{row[i]!r} is no finite number" if row[i] else "the cell is empty"
            raise ValueError(
                f"[read_csv] {file}, line {line}, {names[i]!r}: {what}; leave the column out with columns=..., or "
                "replace it by numbers"
            )
        cells.append(value)
    if goal is not None:
        if not row[goal]:
            raise ValueError(f"[read_csv] {file}, line {line}: the target {names[goal]!r} is empty")
        goals.append(row[goal])


def _targets(
    file: Path, name: str, cells: list[str], classes: bool | None
) -> tuple[np.ndarray, list[str] | None]:
    """The targets as numbers, and the names of the classes if they are classes."""
    values = [_number(cell) for cell in cells]
    numeric = all(value is not None and math.isfinite(value) for value in values)
    distinct = set(cells)
    if classes is None:
        whole = numeric and all(float(value or 0).is_integer() for value in values)
        classes = not numeric or (whole and len(distinct) <= MOST_CLASSES)
    if not classes:
        if not numeric:
            wrong = next(
                cell for cell, value in zip(cells, values) if value is None or not math.isfinite(value)
            )
            raise ValueError(
                f"[read_csv] {file}: the target {name!r} has {wrong!r}, which is no finite number"
            )
        return np.array(values, np.float32), None
    ordered = sorted(distinct, key=(lambda cell: (float(cell), cell)) if numeric else None)
    numbers = {cell: i for i, cell in enumerate(ordered)}
    return np.array([numbers[cell] for cell in cells], np.int64), ordered
