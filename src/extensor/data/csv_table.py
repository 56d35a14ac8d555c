"""Tables in CSV files."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._spelling import did_you_mean
from ..errors import describe
from ._columns import MOST_VALUES, Column, Row, encode, read_numbers, survey, to_number
from ._files import DamagedFileError, as_file, read_text
from .dataset import Dataset

__all__ = ["Table", "read_csv"]

MOST_CLASSES = 100  # whole numbers with more different values than this are quantities, not classes


class Table(Dataset):
    """A dataset that came from a CSV file: it knows the names of its columns and how its cells became numbers.

    Attributes:
        columns: the names of the columns of ``inputs``; a column of text has one for each value: ``"city=Oslo"``.
        target: the name of the target column, or None.
        classes: the names of the classes; None where the targets are quantities.
        encoding: how cells became numbers, in dicts, lists, text and numbers; another file is read alike with it.
        filled: how many empty cells of a column were replaced by its mean, by its name.
        unseen: the values of text columns that the encoding does not know, by column; all their inputs are 0.

    Example:
        See :func:`read_csv`, which makes tables.

        >>> from extensor.data import Dataset, Table
        >>> issubclass(Table, Dataset)
        True
    """

    columns: tuple[str, ...]
    target: str | None
    encoding: dict[str, Any]
    filled: dict[str, int]
    unseen: dict[str, list[str]]


def read_csv(
    path: Any,
    target: str | int | None = -1,
    columns: Sequence[str | int] | None = None,
    header: bool | None = None,
    classes: bool | None = None,
    delimiter: str | None = None,
    fill: bool = False,
    encoding: Mapping[str, Any] | None = None,
    ignore: Sequence[str | int] = (),
) -> Table:
    """A dataset from a CSV file.

    A column whose cells are mostly words is text: each of its values, 100 at most, becomes a column of 0 and 1, and
    an empty cell is a value too, whose column is ``"city="``. All other columns are numbers.

    Args:
        path: the file, in UTF-8, gzipped or not.
        target: the column to predict, by name or number (negative counts from the end); None for a table without.
        columns: the columns that are inputs; by default all but the target.
        header: whether the first line has the names of the columns; by default it does if it has the name that
            ``target`` gives, or a cell of it is no number while the cell below it is, or all its cells are words that
            do not come again below.
        classes: whether the targets are classes; by default they are if they are words, or whole numbers with at most
            100 different values.
        delimiter: what separates cells; by default the one of ``, ; tab |`` that the first line has most of.
        fill: whether an empty cell (or NA, nan, null, none, ?) among numbers becomes the mean of its column; without,
            it is an error.
        encoding: the ``encoding`` of another table, whose columns, values and classes are taken over. Columns are found
            by name. A target that is missing, or empty in some row, is left out. ``target``, ``columns``, ``header``,
            ``classes`` and ``ignore`` have no meaning then.
        ignore: columns to leave out, by name or number.

    Returns:
        The table: inputs (rows, columns), float32; targets int64 for classes, numbered in sorted order with their names
        in ``classes``, or float32 for quantities.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: a row is too short or too long, a cell is empty or no number, a text column has too many values. The
            text says which.

    Example:
        >>> import tempfile, pathlib
        >>> from extensor.data import read_csv
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder, "flowers.csv")
        ...     _ = file.write_text("length,soil,kind\\n5.1,clay,setosa\\n7.0,sand,versicolor\\n")
        ...     table = read_csv(file, target="kind")
        ...     _ = file.write_text("soil,length\\nsand,6.5\\n")
        ...     other = read_csv(file, encoding=table.encoding)
        >>> table.columns, table.classes, table.targets.tolist()
        (('length', 'soil=clay', 'soil=sand'), ('setosa', 'versicolor'), [0, 1])
        >>> other.inputs.tolist(), other.targets
        ([[6.5, 0.0, 1.0]], None)
    """
    file = as_file("read_csv", path)
    lines = _Lines(file, delimiter)
    try:
        if encoding is not None:
            return _table_like(lines, _checked(encoding), fill)
        return _new_table(lines, target, columns, header, classes, fill, ignore)
    except csv.Error as error:
        raise DamagedFileError(f"[read_csv] {file} is no CSV file: {error}") from None


class _Lines:
    """The rows of a file that are not empty; they are parsed anew each time, for cells are larger than the text."""

    def __init__(self, file: Path, delimiter: str | None) -> None:
        self.file = file
        self._text = read_text("read_csv", file)
        if "\0" in self._text:
            raise DamagedFileError(f"[read_csv] {file} is no CSV file: it holds a zero byte")
        if delimiter is None:
            first = self._text.split("\n", 1)[0]
            delimiter = max(",;\t|", key=first.count)
        elif not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\n':
            raise ValueError(f"[read_csv] delimiter must be one character, got {describe(delimiter)}")
        self._delimiter = delimiter

    def all(self) -> Iterator[Row]:
        """Line numbers and cells."""
        reader = csv.reader(io.StringIO(self._text), delimiter=self._delimiter, skipinitialspace=True)
        return (
            (reader.line_num, [cell.strip() for cell in row]) for row in reader if any(map(str.strip, row))
        )

    def first(self) -> list[str]:
        """The cells of the first row."""
        found = next(self.all(), None)
        if found is None:
            raise DamagedFileError(f"[read_csv] {self.file} is empty")
        return found[1]

    def data(self, header: bool, width: int) -> Iterator[Row]:
        """The rows below the header, each as wide as the first."""
        rows = self.all()
        if header:
            next(rows)
        for line, row in rows:
            if len(row) != width:
                raise DamagedFileError(
                    f"[read_csv] {self.file}, line {line}: {len(row)} cells, but the first line has {width}"
                )
            yield line, row


# A table of its own


def _new_table(
    lines: _Lines,
    target: str | int | None,
    columns: Sequence[str | int] | None,
    header: bool | None,
    classes: bool | None,
    fill: bool,
    ignore: Sequence[str | int],
) -> Table:
    file, first = lines.file, lines.first()
    if header is None:
        header = _has_header(lines, first, target)
    names = _names(first, header)
    goal = None if target is None else _place(file, "target", target, names)
    left_out = {_place(file, "ignore", column, names) for column in ignore}
    if columns is None:
        chosen = [i for i in range(len(names)) if i != goal and i not in left_out]
    else:
        wanted = [_place(file, "columns", column, names) for column in columns]
        chosen = [i for i in wanted if i not in left_out]
    if not chosen:
        raise ValueError(f"[read_csv] {file} has no column left for the inputs")

    def rows(goals: list[str] | None = None) -> Iterator[Row]:
        for line, row in lines.data(header, len(names)):
            if goals is not None and goal is not None:
                if not row[goal]:
                    raise ValueError(f"[read_csv] {file}, line {line}: the target {names[goal]!r} is empty")
                goals.append(row[goal])
            yield line, row

    goals: list[str] = []
    inputs = read_numbers(rows(goals), chosen)
    filled: dict[str, int] = {}
    if inputs is None:
        goals = []
        found = survey(file, rows(), chosen, names, fill)
        inputs, filled, _ = encode(file, rows(goals), chosen, found, fill)
    else:
        means = inputs.mean(0, dtype=np.float64) if len(inputs) else np.zeros(len(chosen))
        found = [{"name": names[i], "mean": float(mean)} for i, mean in zip(chosen, means)]
    if not len(inputs):
        raise DamagedFileError(f"[read_csv] {file} has a header but no rows")
    targets, kinds = (None, None) if goal is None else _targets(file, names[goal], goals, classes)
    encoding = {
        "header": header,
        "columns": found,
        "target": None if goal is None else names[goal],
        "classes": kinds,
    }
    return _table(inputs, targets, encoding, filled, {})


def _has_header(lines: _Lines, first: list[str], target: Any) -> bool:
    """Whether the first row looks like names."""
    if isinstance(target, str) and target in first:
        return True
    rows = lines.all()
    next(rows)
    below = next(rows, (0, []))[1]
    if any(to_number(name) is None and to_number(cell) is not None for name, cell in zip(first, below)):
        return True
    if not below or not all(first) or any(to_number(name) is not None for name in first):
        return False
    return not any(cell == name for _, row in lines.data(True, len(first)) for cell, name in zip(row, first))


def _names(first: list[str], header: bool) -> list[str]:
    """The names of the columns, each once."""
    if not header:
        return [f"column {i}" for i in range(len(first))]
    return [name if name not in first[:i] else f"{name}.{i}" for i, name in enumerate(first)]


def _place(file: Path, argument: str, column: str | int, names: list[str]) -> int:
    """The number of a column that is named or counted."""
    if isinstance(column, str) and column in names:
        return names.index(column)
    if isinstance(column, int) and not isinstance(column, bool) and -len(names) <= column < len(names):
        return column % len(names)
    raise ValueError(
        f"[read_csv] {argument}: {file} has no column {column!r}; it has {', '.join(names[:20])}"
        + did_you_mean(column, names)
    )


def _targets(
    file: Path, name: str, cells: list[str], classes: bool | None
) -> tuple[np.ndarray, list[str] | None]:
    """The targets as numbers, and the names of the classes if they are classes."""
    values = [to_number(cell) for cell in cells]
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


# A table like another


def _table_like(lines: _Lines, encoding: dict[str, Any], fill: bool) -> Table:
    """The table of a file that is read as another one was."""
    file, first, header = lines.file, lines.first(), encoding["header"]
    names = _names(first, header)
    missing = [column["name"] for column in encoding["columns"] if column["name"] not in names]
    if missing:
        raise ValueError(
            f"[read_csv] {file} has no column {missing[0]!r}, which the encoding needs; it has {', '.join(names[:20])}"
        )
    places = [names.index(column["name"]) for column in encoding["columns"]]
    goals: list[str] | None = [] if encoding["target"] in names else None

    def rows() -> Iterator[Row]:
        for line, row in lines.data(header, len(names)):
            if goals is not None:
                goals.append(row[names.index(encoding["target"])])
            yield line, row

    inputs, filled, unseen = encode(file, rows(), places, encoding["columns"], fill)
    if not len(inputs):
        raise DamagedFileError(f"[read_csv] {file} has no rows")
    targets = _known_targets(file, encoding, goals) if goals and all(goals) else None
    return _table(inputs, targets, encoding, filled, unseen)


def _known_targets(file: Path, encoding: dict[str, Any], cells: list[str]) -> np.ndarray:
    classes = encoding["classes"]
    if classes is None:
        return _targets(file, encoding["target"], cells, False)[0]
    numbers = {name: i for i, name in enumerate(classes)}
    unknown = sorted({cell for cell in cells if cell not in numbers})
    if unknown:
        raise ValueError(
            f"[read_csv] {file}: the target {encoding['target']!r} has {unknown[0]!r}, which is none of the classes "
            f"{', '.join(classes[:20])}"
        )
    return np.array([numbers[cell] for cell in cells], np.int64)


def _table(
    inputs: np.ndarray,
    targets: np.ndarray | None,
    encoding: dict[str, Any],
    filled: dict[str, int],
    unseen: dict[str, list[str]],
) -> Table:
    table = Table(inputs, targets, classes=encoding["classes"])
    table.columns = tuple(name for column in encoding["columns"] for name in _input_names(column))
    table.target, table.encoding, table.filled, table.unseen = encoding["target"], encoding, filled, unseen
    return table


def _input_names(column: Column) -> list[str]:
    if "mean" in column:
        return [column["name"]]
    return [f"{column['name']}={value}" for value in column["values"]]


def _checked(encoding: Any) -> dict[str, Any]:
    """An encoding that may come from a file."""
    try:
        columns: list[Column] = [
            {"name": str(c["name"]), "mean": float(c["mean"])}
            if "mean" in c
            else {"name": str(c["name"]), "values": [str(value) for value in c["values"]]}
            for c in encoding["columns"]
        ]
        classes = encoding["classes"]
        found = {
            "header": bool(encoding["header"]),
            "columns": columns,
            "target": encoding["target"],
            "classes": None if classes is None else [str(name) for name in classes],
        }
    except (KeyError, TypeError, ValueError):
        columns = []
    if not columns or any(len(c.get("values", ())) > MOST_VALUES for c in columns):
        raise ValueError(f"[read_csv] encoding must be the encoding of a table, got {describe(encoding)}")
    return found
