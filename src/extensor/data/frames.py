"""Tables that are no CSV: frames of pandas, polars and pyarrow, and Parquet, Excel and JSON lines, as rows of cells.

Cells become the text they would be in a CSV file, so that one reader decides what columns are.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ..errors import describe
from ._columns import Row
from ._files import DamagedFileError, as_file, read_all
from .csv_file import CsvFile

__all__ = ["TABLE_SUFFIXES", "is_frame", "open_table"]

_EXTRA = "pip install polars (the extra 'tables' of ExTensor)"


class FrameRows(CsvFile):
    """The rows of a table that has columns with names; line 1 is the header."""

    def __init__(
        self, file: Any, columns: Sequence[str], cells: Sequence[Sequence[str]], source: str
    ) -> None:
        self.file, self.source = file, source
        self.delimiter = ","
        self._columns, self._cells = list(columns), cells
        lengths = {len(column) for column in cells}
        if len(lengths) > 1:
            raise DamagedFileError(f"[read_table] {file}: columns have different lengths: {sorted(lengths)}")

    def all(self) -> Iterator[Row]:
        yield 1, self._columns
        for line, row in enumerate(zip(*self._cells), 2):
            yield line, list(row)

    def has_header(self, first: list[str], target: Any) -> bool:
        return True


def is_frame(value: Any) -> bool:
    """Whether a value is a frame of pandas, polars or pyarrow."""
    module = type(value).__module__.partition(".")[0]
    return module in ("pandas", "polars", "pyarrow") and (
        hasattr(type(value), "columns") or hasattr(value, "column_names")
    )


def open_table(source: Any, delimiter: str | None = None) -> CsvFile:
    """The rows of a file or of a frame."""
    if is_frame(source):
        return _from_frame(
            source, f"{type(source).__module__.partition('.')[0]} {type(source).__name__}", "the frame"
        )
    file = as_file("read_table", source)
    reader = _READERS.get(file.suffix.lower())
    return CsvFile(file, delimiter) if reader is None else reader(file)


def _from_frame(frame: Any, source: str, file: Any) -> FrameRows:
    if hasattr(frame, "column_names"):  # pyarrow
        names = list(frame.column_names)
        columns = [frame.column(i).to_pylist() for i in range(len(names))]
    elif type(frame).__module__.startswith("pandas"):
        names = list(frame.columns)
        columns = [frame.iloc[:, i].tolist() for i in range(len(names))]
    else:
        frame = frame.collect() if hasattr(frame, "collect") else frame
        names = list(frame.columns)
        columns = [frame[name].to_list() for name in names]
    if not names:
        raise ValueError(f"[read_table] {file} has no columns")
    return FrameRows(
        file, [str(name) for name in names], [[_cell(v) for v in column] for column in columns], source
    )


def _cell(value: Any) -> str:
    """The text of a value; nothing for one that is missing."""
    if value is None or value != value or str(value) in ("<NA>", "NaT"):
        return ""
    if isinstance(value, float):
        return repr(value)
    if hasattr(value, "isoformat"):
        text = str(
            value.isoformat(" ") if hasattr(value, "hour") and hasattr(value, "year") else value.isoformat()
        )
        return text.removesuffix(" 00:00:00")
    return str(value).strip()


def _parquet(file: Path) -> FrameRows:
    return _from_frame(
        _read_with(
            file, (("polars", "read_parquet"), ("pyarrow.parquet", "read_table"), ("pandas", "read_parquet"))
        ),
        "Parquet",
        file,
    )


def _excel(file: Path) -> FrameRows:
    return _from_frame(_read_with(file, (("pandas", "read_excel"), ("polars", "read_excel"))), "Excel", file)


def _read_with(file: Path, readers: Sequence[tuple[str, str]]) -> Any:
    for module, name in readers:
        try:
            read: Callable[..., Any] = getattr(importlib.import_module(module), name)
        except ImportError:
            continue
        try:
            return read(file)
        except ImportError:  # the library reads this kind of file with another one
            continue
        except Exception as error:  # each library has its own
            raise DamagedFileError(f"[read_table] {file} cannot be read by {module}: {error}") from None
    needs = "pandas and openpyxl" if file.suffix.lower() == ".xlsx" else "polars, pyarrow or pandas"
    raise ImportError(f"[read_table] {file} needs {needs}: {_EXTRA}")


def _json_lines(file: Path) -> FrameRows:
    text = bytes(read_all("read_table", file)).decode("utf-8-sig", errors="replace")
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DamagedFileError(f"[read_table] {file}, line {number} is no JSON: {error}") from None
        if not isinstance(row, dict):
            raise DamagedFileError(
                f"[read_table] {file}, line {number} is no JSON object, got {describe(row)}"
            )
        rows.append(row)
    names = list(dict.fromkeys(name for row in rows for name in row))
    if not names:
        raise DamagedFileError(f"[read_table] {file} is empty")
    return FrameRows(file, names, [[_cell(row.get(name)) for row in rows] for name in names], "JSON lines")


_READERS: dict[str, Callable[[Path], FrameRows]] = {
    ".parquet": _parquet, ".xlsx": _excel, ".jsonl": _json_lines, ".ndjson": _json_lines,
}  # fmt: skip
TABLE_SUFFIXES = (".csv", ".tsv", ".txt", ".data", ".dat", ".gz", *_READERS)
