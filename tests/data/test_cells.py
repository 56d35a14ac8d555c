"""Numbers and dates as people write them in tables."""

from __future__ import annotations

import math
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from extensor import data
from extensor.data._cells import parse_date, parse_number
from extensor.data.csv_file import column_names


@pytest.mark.parametrize(
    ("cell", "decimal", "value"),
    [
        ("3.5", ".", 3.5), ("1,234.5", ".", 1234.5), ("1,234", ".", 1234), ("1.234,5", ",", 1234.5), ("3,5", ",", 3.5),
        ("1.234", ",", 1234), ("$3.20", ".", 3.2), ("-$3.20", ".", -3.2), ("$-3.20", ".", -3.2), ("3,20 €", ",", 3.2),
        ("12 %", ".", 12), ("12%", ".", 12), ("(1,200)", ".", -1200), ("1 234 567", ".", 1234567), ("1'234.5", ".", 1234.5),
        ("1e3", ".", 1000), ("1,5e3", ",", 1500), ("−4", ".", -4), (".5", ".", 0.5), ("USD 12", ".", 12), ("12 EUR", ".", 12),
        ("+7", ".", 7), ("2\u00a0500,75", ",", 2500.75),
    ],
)  # fmt: skip
def test_numbers(cell: str, decimal: str, value: float) -> None:
    assert parse_number(cell, decimal) == value


@pytest.mark.parametrize(
    "cell", ["", "x", "1_000", "inf", "nan", "1e400", "1e39", "12,34,5.6", "1.2.3", "--4", "$", "%", "- -4", "1,2345", "e5"]
)  # fmt: skip
def test_what_is_no_number(cell: str) -> None:
    assert parse_number(cell, ".") is None


@pytest.mark.parametrize(
    ("cell", "order", "day"),
    [
        ("2024-02-29", "ymd", date(2024, 2, 29)), ("2024/2/9", "ymd", date(2024, 2, 9)), ("29.02.2024", "dmy", date(2024, 2, 29)),
        ("2/29/2024", "mdy", date(2024, 2, 29)),
    ],
)  # fmt: skip
def test_dates(cell: str, order: str, day: date) -> None:
    assert parse_date(cell, order) == (day - date(1970, 1, 1)).days
    assert parse_date(cell + " 06:00", order) == (day - date(1970, 1, 1)).days + 0.25


@pytest.mark.parametrize(
    "cell", ["2023-02-29", "2024-13-01", "2024-1/2", "1.2.3", "20240229", "2024-02-29 25:00x"]
)
def test_what_is_no_date(cell: str) -> None:
    assert parse_date(cell, "ymd") is None


def read(tmp_path: Path, text: str | bytes, **options: object) -> data.Table:
    file = tmp_path / "t.csv"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return data.read_csv(file, **options)  # type: ignore[arg-type]


def test_decimal_commas_are_seen(tmp_path: Path) -> None:
    table = read(tmp_path, "a;b;y\n3,5;1.200;0,5\n4,25;2.400;1,5\n5,0;1.000;2,5\n")
    assert table.columns == ("a", "b")
    assert table.inputs.tolist() == [[3.5, 1200], [4.25, 2400], [5, 1000]]
    assert table.targets is not None
    assert table.targets.tolist() == [0.5, 1.5, 2.5]
    quoted = read(tmp_path, 'a,y\n"3,5",x\n"4,5",y\n')
    assert quoted.inputs.tolist() == [[3.5], [4.5]]
    again = read(tmp_path, "b;a\n3.000;1,5\n", encoding=table.encoding)
    assert again.inputs.tolist() == [[1.5, 3000]]


def test_other_columns_tell_the_decimal_mark(tmp_path: Path) -> None:
    assert read(tmp_path, 'a,b,y\n"1,234","3,5",x\n"2,345","4,5",z\n', dtype=float).inputs.tolist() == [
        [1.234, 3.5],
        [2.345, 4.5],
    ]
    assert read(tmp_path, 'a,b,y\n"1,234",$3.5,x\n"2,345",$4.5,z\n').inputs.tolist() == [
        [1234, 3.5],
        [2345, 4.5],
    ]


def test_dates_become_days_and_waves(tmp_path: Path) -> None:
    table = read(tmp_path, "when,y\n01/02/2024,0\n14/02/2024,1\n15/02/2024,1\n", dtype=np.float64)
    assert table.columns == ("when", "when:year sin", "when:year cos", "when:week sin", "when:week cos")
    assert np.diff(table.inputs[:, 0]).tolist() == [13, 1]  # the 14th cannot be a month: days come first
    assert table.inputs[0, 1] == pytest.approx(math.sin(2 * math.pi * table.inputs[0, 0] / 365.2425))
    timed = read(tmp_path, "when,y\n2024-01-01 12:00,0\n2024-01-02 00:00,1\n", dtype=np.float64)
    assert timed.columns[-2:] == ("when:day sin", "when:day cos")
    with pytest.raises(ValueError, match=r"'soon' is no date"):
        read(tmp_path, "when,y\n2024-01-01,0\nsoon,1\n2024-01-03,1\n")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    table = read(tmp_path, "größe,art\n1,schön\n2,übel\n".encode(encoding))
    assert (table.columns, table.classes) == (("größe",), ("schön", "übel"))
    assert table.source.startswith({"utf-16": "UTF-16", "latin-1": "Latin-1"}.get(encoding, "UTF-8"))


def test_rows_without_a_target_are_left_out(tmp_path: Path) -> None:
    table = read(tmp_path, "a,y\n1,2.5\n2,NA\n3,?\n4,\n5,3.5\n")
    assert table.inputs.tolist() == [[1], [5]]
    assert table.left_out == 3
    words = read(tmp_path, "a,y\n1,none\n2,mild\n3,\n", header=True)
    assert words.classes == ("mild", "none")  # a word is a class; an empty cell is none
    assert words.left_out == 1


@pytest.mark.parametrize("cell", ["inf", "1e400", "x"])
def test_one_bad_cell_does_not_make_a_classifier(tmp_path: Path, cell: str) -> None:
    rows = "".join(f"{i},{i + 0.5}\n" for i in range(200))
    with pytest.raises(
        ValueError, match=rf"line 202: the target 'y' has '{cell}', which is no finite number"
    ):
        read(tmp_path, f"a,y\n{rows}7,{cell}\n")


def test_one_number_is_one_class_however_it_is_written(tmp_path: Path) -> None:
    table = read(tmp_path, "a,y\n1,1\n2,1.0\n3,01\n4,2\n")
    assert table.classes == ("1", "2")
    assert table.targets is not None
    assert table.targets.tolist() == [0, 0, 0, 1]
    again = read(tmp_path, "a,y\n1,2.0\n2,001\n", encoding=table.encoding)
    assert again.targets is not None
    assert again.targets.tolist() == [1, 0]


def test_names_that_come_twice(tmp_path: Path) -> None:
    table = read(tmp_path, "a,a,a.1,y\n1,2,3,0.5\n4,5,6,1.5\n")
    assert table.columns == ("a", "a.2", "a.1")
    again = read(tmp_path, "a,a,a.1,y\n1,2,3,0.5\n", encoding=table.encoding)
    assert again.inputs.tolist() == [[1, 2, 3]]


def test_many_columns_take_time_in_proportion(tmp_path: Path) -> None:
    """4,000 names, each twice: a search among those before each would compare millions."""
    comparisons = 0

    class Name(str):
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            nonlocal comparisons
            comparisons += 1
            return str.__eq__(self, other)

    names = [Name(f"c{i % 2000}") for i in range(4_000)]
    assert len(set(column_names(names, True))) == 4_000
    assert comparisons < 40_000


def test_many_classes_of_words(tmp_path: Path) -> None:
    rows = [f"{i},w{i % 150}" for i in range(450)]
    assert len(read(tmp_path, "\n".join(["a,y", *rows])).classes or ()) == 150
    names = "\n".join(["a,y", *(f"{i},w{i}" for i in range(150))])
    with pytest.raises(ValueError, match="holds 150 different texts in 150 rows"):
        read(tmp_path, names)
    assert len(read(tmp_path, names, classes=True).classes or ()) == 150
