"""How a table was read, in lines for a person: rows, columns, missing cells, target."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..data import Table
from ..data._cells import parse_number

__all__ = ["strange_cells", "table_notes"]

_SHOWN_COLUMNS, _SHOWN_WORDS = 24, 5


def table_notes(path: Path, table: Table) -> list[str]:
    """How the table was read: a line about the file, one for each column, and one for the target."""
    columns = table.encoding["columns"]
    lines = [f"{path}: {len(table):,} rows, {table.source}"]
    if table.left_out:
        lines.append(f"  {_rows(table.left_out)} left out: the target is empty")
    shown = [*(column["name"] for column in columns[:_SHOWN_COLUMNS]), table.target or ""]
    width = min(max(map(len, shown)), 40)
    lines += [f"  {column['name']:{width}}  {_kind(column)}" for column in columns[:_SHOWN_COLUMNS]]
    if len(columns) > _SHOWN_COLUMNS:
        kinds = [_kind(column).split(":")[0].split(",")[0] for column in columns[_SHOWN_COLUMNS:]]
        rest = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
        lines.append(f"  and {len(kinds)} more columns: {rest}")
    if table.target is not None:
        lines.append(f"  {table.target:{width}}  to predict: {_target(table)}")
    return lines + strange_cells(table)


def strange_cells(table: Table) -> list[str]:
    """What a person should know about cells that are empty or hold unknown words, a line each."""
    notes = [f"{name}: {_empty(count)} as the mean of the column" for name, count in table.filled.items()]
    for name in (c["name"] for c in table.encoding["columns"] if "" in c.get("values", ())):
        count = int(table.inputs[:, table.columns.index(f"{name}=")].sum())
        if count:
            notes.append(f"{name}: {_empty(count)} as one more word")
    return notes + [
        f"{name}: not there in training, taken for none of the values known: {_some(values)}"
        for name, values in table.unseen.items()
    ]


def _kind(column: dict[str, Any]) -> str:
    if "values" in column:
        return f"words, {len(column['values'])} different: {_some(column['values'])}"
    if "date" in column:
        orders = {"ymd": "year-month-day", "dmy": "day-month-year", "mdy": "month-day-year"}
        return f"dates, {orders[column['date']]}" + (" and time" if column["time"] else "")
    return "numbers, with decimal commas" if column.get("decimal") == "," else "numbers"


def _target(table: Table) -> str:
    if table.classes is not None:
        numbers = all(parse_number(name) is not None for name in table.classes)
        hint = " (--task regression takes them as quantities)" if numbers else ""
        return f"{len(table.classes)} classes: {_some(table.classes)}{hint}"
    marks = ", with decimal commas" if table.encoding.get("decimal") == "," else ""
    return f"a quantity{marks}"


def _some(words: Any) -> str:
    shown = ", ".join(str(word) or "(empty)" for word in words[:_SHOWN_WORDS])
    return shown + (", ..." if len(words) > _SHOWN_WORDS else "")


def _empty(count: int) -> str:
    return "an empty cell counts" if count == 1 else f"{count} empty cells count"


def _rows(count: int) -> str:
    return "1 row is" if count == 1 else f"{count} rows are"
