"""The rows and names of a CSV file, whatever its delimiter and encoding."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .._progress import watched
from ..errors import describe
from ._cells import parse_number
from ._columns import Row
from ._files import DamagedFileError, read_all

__all__ = ["CsvFile", "column_names"]


class CsvFile:
    """The rows of a file that are not empty; they are parsed anew each time, for cells are larger than the text.

    Attributes:
        charset: how bytes became characters: UTF-8, UTF-16 or Latin-1.
        delimiter: what separates cells.
        source: both in words.
    """

    def __init__(self, file: Path, delimiter: str | None) -> None:
        self.file = file
        self._text, self.charset = _decoded(file)
        if "\0" in self._text:
            raise DamagedFileError(f"[read_csv] {file} is no CSV file: it holds a zero byte")
        if delimiter is None:
            first = self._text.lstrip("\n").split("\n", 1)[0]
            delimiter = max(",;\t|", key=_outside_quotes(first).count)
        elif not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\n':
            raise ValueError(f"[read_csv] delimiter must be one character, got {describe(delimiter)}")
        self.delimiter = delimiter
        self.source = f"{self.charset}, separated by {_shown(delimiter)}"

    def all(self) -> Iterator[Row]:
        """Line numbers and cells."""
        reader = csv.reader(io.StringIO(self._text), delimiter=self.delimiter, skipinitialspace=True)
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
        for line, row in watched(rows, f"reading {getattr(self.file, 'name', self.file)}", "rows"):
            if len(row) != width:
                raise DamagedFileError(
                    f"[read_csv] {self.file}, line {line}: {len(row)} cells, but the first line has {width}"
                )
            yield line, row

    def has_header(self, first: list[str], target: Any) -> bool:
        """Whether the first row looks like names."""
        if isinstance(target, str) and target in first:
            return True
        rows = self.all()
        next(rows)
        below = next(rows, (0, []))[1]
        if any(_is_word(name) and not _is_word(cell) for name, cell in zip(first, below)):
            return True
        if not below or not all(first) or any(not _is_word(name) for name in first):
            return False
        return not any(
            cell == name for _, row in self.data(True, len(first)) for cell, name in zip(row, first)
        )


def _is_word(cell: str) -> bool:
    return parse_number(cell, ".") is None and parse_number(cell, ",") is None


def column_names(first: list[str], header: bool) -> list[str]:
    """The names of the columns, each once: a name that comes again gets the first number that makes it new."""
    if not header:
        return [f"column {i}" for i in range(len(first))]
    taken, used, numbers = set(first), set[str](), dict[str, int]()
    names = []
    for name in first:
        found = name
        if name in used:
            number = numbers.get(name, 1)
            while (found := f"{name}.{number}") in taken:
                number += 1
            numbers[name] = number + 1
            taken.add(found)
        used.add(found)
        names.append(found)
    return names


def _outside_quotes(line: str) -> str:
    return "".join(line.split('"')[::2])


def _decoded(file: Path) -> tuple[str, str]:
    """The text, its lines ending in a newline alone, and how it was encoded."""
    content = bytes(read_all("read_csv", file))
    charset = "UTF-8"
    try:
        if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
            charset = "UTF-16"
            text = content.decode("utf-16")
        else:
            text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if charset == "UTF-16" or _is_binary(content):
            raise DamagedFileError(
                f"[read_csv] {file} is not {charset} text: byte {error.start} is {content[error.start]:#04x}"
            ) from None
        charset = "Latin-1 (Windows-1252)"
        text = content.decode("cp1252", errors="replace")
    return text.replace("\r\n", "\n").replace("\r", "\n"), charset


def _is_binary(content: bytes) -> bool:
    """Whether bytes stand there that no text has."""
    return any(byte < 32 and byte not in (9, 10, 11, 12, 13) for byte in content[: 1 << 16])


def _shown(delimiter: str) -> str:
    return "tabs" if delimiter == "\t" else repr(delimiter)
