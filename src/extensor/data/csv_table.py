"""Tables in CSV files."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._spelling import did_you_mean
from ..errors import describe
from ._cells import DATE_ORDERS
from ._columns import MOST_VALUES, Column, Row, encode, input_names, read_numbers, survey
from ._files import DamagedFileError
from ._targets import Targets, known_targets, read_targets
from .csv_file import CsvFile, column_names
from .dataset import Dataset
from .frames import open_table

__all__ = ["Table", "read_csv", "read_csv_to_learn"]


class Table(Dataset):
    """A dataset that came from a CSV file: it knows the names of its columns and how its cells became numbers.

    Attributes:
        columns: the names of the columns of ``inputs``; a column of text has one for each value: ``"city=Oslo"``.
        target: the name of the target column, or None.
        classes: the names of the classes; None where the targets are quantities.
        encoding: how cells became numbers, in dicts, lists, text and numbers; another file is read alike with it.
        filled: how many empty cells of a column were replaced by its mean, by its name.
        unseen: the values of text columns that the encoding does not know, by column; all their inputs are 0.
        left_out: how many rows were left out because their target is empty.
        source: the encoding of the file and its delimiter, in words.

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
    left_out: int
    source: str


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
    dtype: Any = np.float32,
) -> Table:
    """A dataset from a CSV file; from a Parquet, Excel or JSON lines file or a frame of pandas, polars or pyarrow as well.

    A column whose cells are mostly words is text: each of its values, 100 at most, becomes a column of 0 and 1, and
    an empty cell is a value too, whose column is ``"city="``. Dates become the number of days since 1970 and sine and
    cosine of the time of the year, the week and, where times are given, the day. All other columns are numbers, with
    the decimal mark that fits their cells, with or without separators of thousands, currency or percent signs.

    Args:
        path: the file, gzipped or not, in UTF-8, UTF-16 with its byte order mark, or else Latin-1.
        target: the column to predict, by name or number (negative counts from the end); None for a table without.
        columns: the columns that are inputs; by default all but the target.
        header: whether the first line has the names of the columns; by default it does if it has the name that
            ``target`` gives, or a cell of it is no number while the cell below it is, or all its cells are words that
            do not come again below.
        classes: whether the targets are classes; by default they are if most are words, or if they are whole numbers
            with at most 100 different values, each twice on average where they are more than 10. Numbers are the same
            class however they are written: 1, 1.0 and 01.
        delimiter: what separates cells; by default the one of ``, ; tab |`` that the first line has most of.
        fill: whether an empty cell (or NA, nan, null, none, ?) among numbers becomes the mean of its column; without,
            it is an error.
        encoding: the ``encoding`` of another table, whose columns, values and classes are taken over. Columns are found
            by name. A target that is missing, or empty in some row, is left out. ``target``, ``columns``, ``header``,
            ``classes`` and ``ignore`` have no meaning then.
        ignore: columns to leave out, by name or number.
        dtype: of the inputs, float32 or float64; float32 cannot tell numbers apart that differ in their eighth digit.

    Returns:
        The table: inputs (rows, columns); rows whose target is empty are left out; targets int64 for classes, numbered in sorted order with their names
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
    lines = open_table(path, delimiter)
    file = lines.file
    kind = np.dtype(dtype)
    if kind not in (np.float32, np.float64):
        raise TypeError(f"[read_csv] dtype must be float32 or float64, got {describe(dtype)}")
    try:
        if encoding is not None:
            return _table_like(lines, _checked(encoding), fill, kind)
        return _new_table(lines, target, columns, header, classes, fill, ignore, kind, None)
    except csv.Error as error:
        raise DamagedFileError(f"[read_csv] {file} is no CSV file: {error}") from None


def read_csv_to_learn(
    path: Any,
    target: str | int,
    ignore: Sequence[str | int],
    classes: bool | None,
    choose: Callable[[int, np.ndarray | None], np.ndarray],
) -> Table:
    """A table in float64 whose means and lists of words come from some of its rows alone.

    Args:
        path, target, ignore, classes: see :func:`read_csv`.
        choose: called with the number of rows and the class numbers, if there are classes; returns the numbers of the
            rows to learn from.
    """
    lines = open_table(path)
    file = lines.file
    try:
        return _new_table(lines, target, None, None, classes, True, ignore, np.dtype(np.float64), choose)
    except csv.Error as error:
        raise DamagedFileError(f"[read_csv] {file} is no CSV file: {error}") from None


# A table of its own


def _new_table(
    lines: CsvFile,
    target: str | int | None,
    columns: Sequence[str | int] | None,
    header: bool | None,
    classes: bool | None,
    fill: bool,
    ignore: Sequence[str | int],
    dtype: np.dtype[Any],
    choose: Callable[[int, np.ndarray | None], np.ndarray] | None,
) -> Table:
    file, first = lines.file, lines.first()
    if header is None:
        header = lines.has_header(first, target)
    names = column_names(first, header)
    goal = None if target is None else _place(file, "target", target, names)
    chosen = _chosen(file, names, goal, columns, ignore)
    decimal = "," if lines.delimiter == ";" else "."  # as spreadsheets write them, where no cell tells
    targets = Targets(None, None, None, ".")
    cells: list[tuple[int, str]] = []
    if goal is not None:
        cells = [(line, row[goal]) for line, row in lines.data(header, len(names))]
        targets = read_targets(file, names[goal], cells, classes, decimal)

    def rows() -> Iterator[Row]:
        every = lines.data(header, len(names))
        return (row for row, kept in zip(every, targets.kept) if kept) if targets.kept is not None else every

    inputs = read_numbers(rows(), chosen)
    count = sum(1 for _ in rows()) if inputs is None else len(inputs)
    if not count:
        missing = " with a target" if goal is not None and len(targets.kept or ()) else ""
        raise DamagedFileError(f"[read_csv] {file} has a header but no rows{missing}")
    learn = None
    if choose is not None:
        learn = np.zeros(count, bool)
        learn[choose(count, None if targets.classes is None else targets.values)] = True
    filled: dict[str, int] = {}
    unseen: dict[str, list[str]] = {}
    if inputs is None:
        found = survey(file, rows(), chosen, names, fill, decimal, learn)
        inputs, filled, unseen = encode(file, rows(), chosen, found, fill)
    else:
        means = (inputs if learn is None else inputs[learn]).mean(0)
        found = [{"name": names[i], "mean": float(mean)} for i, mean in zip(chosen, means)]
    encoding = {
        "header": header,
        "columns": found,
        "target": None if goal is None else names[goal],
        "classes": targets.classes,
        "decimal": targets.decimal,
    }
    table = _table(lines, inputs.astype(dtype, copy=False), targets.values, encoding, filled, unseen)
    table.left_out = 0 if targets.kept is None else len(targets.kept) - count
    if goal is not None:
        kept = np.ones(count, bool) if targets.kept is None else np.array(targets.kept, bool)
        table.places = np.array([line for line, _ in cells], np.int64)[kept]
    return table


def _chosen(
    file: Path,
    names: list[str],
    goal: int | None,
    columns: Sequence[str | int] | None,
    ignore: Sequence[str | int],
) -> list[int]:
    """The places of the inputs."""
    left_out = {_place(file, "ignore", column, names) for column in ignore}
    if columns is None:
        chosen = [i for i in range(len(names)) if i != goal and i not in left_out]
    else:
        wanted = [_place(file, "columns", column, names) for column in columns]
        chosen = [i for i in wanted if i not in left_out]
    if not chosen:
        raise ValueError(f"[read_csv] {file} has no column left for the inputs")
    return chosen


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


# A table like another


def _table_like(lines: CsvFile, encoding: dict[str, Any], fill: bool, dtype: np.dtype[Any]) -> Table:
    """The table of a file that is read as another one was."""
    file, first, header = lines.file, lines.first(), encoding["header"]
    names = column_names(first, header)
    place_of = {name: i for i, name in enumerate(names)}
    missing = [column["name"] for column in encoding["columns"] if column["name"] not in place_of]
    if missing:
        raise ValueError(
            f"[read_csv] {file} has no column {missing[0]!r}, which the encoding needs; it has {', '.join(names[:20])}"
        )
    places = [place_of[column["name"]] for column in encoding["columns"]]
    inputs, filled, unseen = encode(file, lines.data(header, len(names)), places, encoding["columns"], fill)
    if not len(inputs):
        raise DamagedFileError(f"[read_csv] {file} has no rows")
    targets, cells = None, list[tuple[int, str]]()
    goal = place_of.get(encoding["target"])
    if goal is not None:
        cells = [(line, row[goal]) for line, row in lines.data(header, len(names))]
        if all(cell for _, cell in cells):
            targets = known_targets(file, encoding, cells)
    table = _table(lines, inputs.astype(dtype, copy=False), targets, encoding, filled, unseen)
    table.places = np.array([line for line, _ in cells], np.int64) if cells else None
    return table


def _table(
    lines: CsvFile,
    inputs: np.ndarray,
    targets: np.ndarray | None,
    encoding: dict[str, Any],
    filled: dict[str, int],
    unseen: dict[str, list[str]],
) -> Table:
    if targets is not None and encoding["classes"] is None:
        targets = targets.astype(inputs.dtype)
    table = Table(inputs, targets, classes=encoding["classes"])
    table.columns = tuple(name for column in encoding["columns"] for name in input_names(column))
    table.target, table.encoding, table.filled, table.unseen = encoding["target"], encoding, filled, unseen
    table.left_out, table.source = 0, lines.source
    return table


def _checked(encoding: Any) -> dict[str, Any]:
    """An encoding that may come from a file."""
    try:
        columns = [_checked_column(c) for c in encoding["columns"]]
        classes = encoding["classes"]
        found = {
            "header": bool(encoding["header"]),
            "columns": columns,
            "target": encoding["target"],
            "classes": None if classes is None else [str(name) for name in classes],
            "decimal": "," if encoding.get("decimal") == "," else ".",
        }
        if not isinstance(found["target"], str | None):
            raise TypeError
    except (AttributeError, KeyError, TypeError, ValueError):
        columns = []
    if not columns or any(len(c.get("values", ())) > MOST_VALUES for c in columns):
        raise ValueError(f"[read_csv] encoding must be the encoding of a table, got {describe(encoding)}")
    return found


def _checked_column(column: Any) -> Column:
    found: Column = {"name": str(column["name"])}
    if "values" in column:
        return found | {"values": [str(value) for value in column["values"]]}
    found["mean"] = float(column["mean"])
    if "date" in column:
        if column["date"] not in DATE_ORDERS:
            raise ValueError
        return found | {"date": column["date"], "time": bool(column["time"])}
    return found | ({"decimal": ","} if column.get("decimal") == "," else {})
