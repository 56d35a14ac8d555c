"""The target column of a table: classes or quantities."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ._cells import EMPTY, parse_number, read_cell

__all__ = ["Targets", "known_targets", "read_targets"]

MOST_CLASSES = 100  # whole numbers with more different values than this are quantities, not classes
FEW_CLASSES = 10  # up to so many values are classes however short the table is


class Targets(NamedTuple):
    """The targets of a table.

    Attributes:
        values: class numbers, int64, or quantities, float64; of the rows that are kept.
        classes: the names of the classes; None for quantities.
        kept: for each row whether it has a target; None for a table without.
        decimal: the decimal mark of quantities.
    """

    values: np.ndarray | None
    classes: list[str] | None
    kept: list[bool] | None
    decimal: str


def read_targets(
    file: Path, name: str, cells: Iterable[tuple[int, str]], classes: bool | None, decimal: str
) -> Targets:
    """Decide what the cells are and read them.

    Most cells decide whether the column is text; a cell among numbers that is none is an error, not a class.
    """
    every = list(cells)
    known = [(line, cell, read_cell(cell)) for line, cell in every]
    numbers = {
        ".": sum(found.dot is not None for _, _, found in known),
        ",": sum(found.comma is not None for _, _, found in known),
    }
    given = sum(not found.empty for _, _, found in known)
    if numbers["."] != numbers[","]:
        decimal = max(".,", key=numbers.__getitem__)
    elif not any("," in cell for _, cell in every):
        decimal = "."
    numeric = 2 * numbers[decimal] >= given > 0
    if numeric and classes and numbers[decimal] < given:
        numeric = False  # words are wanted
    empty = EMPTY if numeric else frozenset([""])
    kept = [cell.lower() not in empty for _, cell in every]
    left = [item for item, keep in zip(every, kept) if keep]
    if not numeric:
        if classes is False and left:
            line, cell = next((li, c) for li, c in left if parse_number(c, decimal) is None)
            raise _no_number(file, line, name, cell)
        words = sorted({cell for _, cell in left})
        if classes is None and len(words) > MOST_CLASSES and 2 * len(words) > len(left):
            raise ValueError(
                f"[read_csv] {file}: the target {name!r} holds {len(words)} different texts in {len(left)} rows, too many for "
                "classes; name another target, or take them as classes all the same (classes=True, --task classification)"
            )
        place = {word: i for i, word in enumerate(words)}
        return Targets(np.array([place[cell] for _, cell in left], np.int64), words, kept, ".")
    values = _quantities(file, name, left, decimal)
    distinct = np.unique(values)
    if classes is None:
        few = len(distinct) <= FEW_CLASSES or (
            len(distinct) <= MOST_CLASSES and 2 * len(distinct) <= len(values)
        )
        classes = few and bool((distinct == np.floor(distinct)).all())
    if not classes:
        return Targets(values, None, kept, decimal)
    names = [_class_name(value) for value in distinct.tolist()]
    return Targets(np.searchsorted(distinct, values).astype(np.int64), names, kept, decimal)


def known_targets(file: Path, encoding: dict[str, Any], cells: list[tuple[int, str]]) -> np.ndarray:
    """The targets of another file, read as the encoding says."""
    classes, name, decimal = encoding["classes"], encoding["target"], encoding["decimal"]
    if classes is None:
        return _quantities(file, name, cells, decimal)
    place = {word: i for i, word in enumerate(classes)}
    by_value = {value: i for i, word in enumerate(classes) if (value := parse_number(word)) is not None}
    found = np.empty(len(cells), np.int64)
    for row, (line, cell) in enumerate(cells):
        number = place.get(cell)
        if number is None:
            value = parse_number(cell, decimal)
            number = None if value is None else by_value.get(value)
        if number is None:
            raise ValueError(
                f"[read_csv] {file}, line {line}: the target {name!r} has {cell!r}, which is none of the classes "
                f"{', '.join(classes[:20])}"
            )
        found[row] = number
    return found


def _quantities(file: Path, name: str, cells: list[tuple[int, str]], decimal: str) -> np.ndarray:
    values = np.empty(len(cells), np.float64)
    for row, (line, cell) in enumerate(cells):
        value = parse_number(cell, decimal)
        if value is None:
            raise _no_number(file, line, name, cell)
        values[row] = value
    return values


def _no_number(file: Path, line: int, name: str, cell: str) -> ValueError:
    return ValueError(
        f"[read_csv] {file}, line {line}: the target {name!r} has {cell!r}, which is no finite number; correct the cell, "
        "empty it to leave the row out, or take all values as classes (classes=True, --task classification)"
    )


def _class_name(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)
