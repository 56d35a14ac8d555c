"""Tables with words in them: what becomes of each kind of column, and reading another file alike."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from extensor import data

MIXED = "size,town,garden,price\n90,Oslo,yes,5.5\n40,Bergen,,2.5\n60.5,Oslo,no,3\n"


def csv(folder: Path, text: str, name: str = "table.csv") -> Path:
    (folder / name).write_text(text)
    return folder / name


def test_words_become_columns_of_zeros_and_ones(tmp_path: Path) -> None:
    table = data.read_csv(csv(tmp_path, MIXED))
    assert table.columns == ("size", "town=Bergen", "town=Oslo", "garden=", "garden=no", "garden=yes")
    assert table.inputs.dtype == np.float32
    assert table.inputs.tolist() == [[90, 0, 1, 0, 0, 1], [40, 1, 0, 1, 0, 0], [60.5, 0, 1, 0, 1, 0]]
    assert table.targets is not None
    assert table.targets.tolist() == [5.5, 2.5, 3]
    assert (table.filled, table.unseen) == ({}, {})


def test_another_file_is_read_alike(tmp_path: Path) -> None:
    table = data.read_csv(csv(tmp_path, MIXED), target="town", ignore=["price"])
    assert table.classes == ("Bergen", "Oslo")
    kept = json.loads(json.dumps(table.encoding))
    other = csv(
        tmp_path,
        "garden,remark,size,town\nno,?,1,Oslo\nmaybe,,2,Bergen\nperhaps,,3,Oslo\nmaybe,,4,Oslo\n",
        "other.csv",
    )
    again = data.read_csv(other, encoding=kept)
    assert again.columns == table.columns == ("size", "garden=", "garden=no", "garden=yes")
    assert again.inputs.tolist() == [[1, 0, 1, 0], [2, 0, 0, 0], [3, 0, 0, 0], [4, 0, 0, 0]]
    assert again.targets is not None
    assert again.targets.tolist() == [1, 0, 1, 1]
    assert again.unseen == {"garden": ["maybe", "perhaps"]}
    for text in ("garden,size\nno,1\n", "garden,size,town\nno,1,\nno,1,Oslo\n"):
        assert data.read_csv(csv(tmp_path, text), encoding=kept).targets is None


def test_another_file_without_names(tmp_path: Path) -> None:
    table = data.read_csv(csv(tmp_path, "1,a,x\n2,b,y\n3,a,y\n"))
    assert table.columns == ("column 0", "column 1=a", "column 1=b")
    again = data.read_csv(csv(tmp_path, "7,b\n"), encoding=table.encoding)
    assert again.inputs.tolist() == [[7, 0, 1]]
    with pytest.raises(ValueError, match="has no column 'column 1'"):
        data.read_csv(csv(tmp_path, "7\n"), encoding=table.encoding)


@pytest.mark.parametrize(
    ("text", "target", "names"),
    [
        ("colour,shape,fruit\nred,round,apple\nyellow,long,banana\nred,long,apple\n", -1, ("colour=red", "colour=yellow")),
        ("red,round,apple\nyellow,long,banana\nred,long,apple\n", -1, ("column 0=red", "column 0=yellow")),
        ("1,apple,kind\n2,pear,a\n", "kind", ("1", "apple=pear")),
    ],
)  # fmt: skip
def test_whether_the_first_line_has_names(
    tmp_path: Path, text: str, target: Any, names: tuple[str, ...]
) -> None:
    assert data.read_csv(csv(tmp_path, text), target=target).columns[:2] == names


def test_empty_cells_among_numbers_are_filled_if_asked(tmp_path: Path) -> None:
    file = csv(tmp_path, "a,b,y\n1,x,0\n,x,1\nNA,z,0\n5,?,1\n")
    with pytest.raises(ValueError, match=r"line 3, 'a': the cell is empty; .*fill=True"):
        data.read_csv(file)
    table = data.read_csv(file, fill=True)
    assert table.inputs[:, 0].tolist() == [1, 3, 3, 5]
    assert table.filled == {"a": 2}
    assert table.columns == ("a", "b=?", "b=x", "b=z")
    again = data.read_csv(csv(tmp_path, "b,a\nx,\n"), fill=True, encoding=table.encoding)
    assert again.inputs.tolist() == [[3, 0, 1, 0]]
    with pytest.raises(ValueError, match=r"line 2, 'a': the cell is empty"):
        data.read_csv(tmp_path / "table.csv", encoding=table.encoding)


def test_the_mean_of_a_table_of_numbers_is_kept_too(tmp_path: Path) -> None:
    table = data.read_csv(csv(tmp_path, "a,y\n1,0\n4,1\n"))
    assert data.read_csv(csv(tmp_path, "a\nnull\n"), fill=True, encoding=table.encoding).inputs.tolist() == [
        [2.5]
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "a,y\n" + "".join(f"w{i},0\n" for i in range(101)),
            "text with more than 100 different values, too many to tell apart: a; leave",
        ),
        ("a,b,y\n" + "".join(f"w{i},v{i},0\n" for i in range(101)), "too many to tell apart: a, b; leave"),
        ("a,y\n1,0\nl2,0\n3,0\n", "line 3, 'a': 'l2' is no finite number"),
        ("a,b,y\n1,,0\n3,,0\n", "every cell of 'b' is empty"),
    ],
)
def test_columns_that_cannot_be_used(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=rf"^\[read_csv\] .*{message}"):
        data.read_csv(csv(tmp_path, text), fill=True)


def test_columns_that_are_left_out_may_hold_anything(tmp_path: Path) -> None:
    file = csv(tmp_path, "a,b,c,y\n1,,7,0\nl2,,8,1\n3,,9,0\n")
    assert data.read_csv(file, ignore=["a", 1]).columns == ("c",)
    assert data.read_csv(file, columns=["c", "b"], ignore=["b"]).columns == ("c",)
    with pytest.raises(ValueError, match=r"ignore: .* has no column 'd'"):
        data.read_csv(file, ignore=["d"])


def test_a_hundred_values_are_not_too_many(tmp_path: Path) -> None:
    text = "a,y\n" + "".join(f"w{i},0\n" for i in range(100))
    assert data.read_csv(csv(tmp_path, text)).inputs.sum() == 100


def test_names_that_come_twice_are_told_apart(tmp_path: Path) -> None:
    table = data.read_csv(csv(tmp_path, "a,a,y\n1,2,0\n"))
    assert table.columns == ("a", "a.1")
    assert data.read_csv(tmp_path / "table.csv", encoding=table.encoding).inputs.tolist() == [[1, 2]]


@pytest.mark.parametrize(
    "encoding",
    [{}, 3, {"columns": [], "header": True, "target": None, "classes": None}, {"columns": [{"name": "a"}], "header": True},
     {"columns": [{"name": "a", "values": ["x"] * 101}], "header": True, "target": None, "classes": None}],
)  # fmt: skip
def test_what_is_no_encoding_is_refused(tmp_path: Path, encoding: Any) -> None:
    with pytest.raises(ValueError, match=r"^\[read_csv\] encoding must be the encoding of a table"):
        data.read_csv(csv(tmp_path, "a\n1\n"), encoding=encoding)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,kind\nx,1\n", "line 2, 'a': 'x' is no finite number"),
        ("b,kind\n1,1\n", "has no column 'a', which the encoding needs; it has b, kind"),
        ("a,kind\n1,7\n", "the target 'kind' has '7', which is none of the classes 0, 1"),
        ("a,kind\n", "has no rows"),
        ("a,kind\n1\n", "line 2: 1 cells"),
    ],
)
def test_another_file_that_does_not_fit(tmp_path: Path, text: str, message: str) -> None:
    table = data.read_csv(csv(tmp_path, "a,kind\n1,0\n2,1\n"))
    with pytest.raises(ValueError, match=rf"^\[read_csv\] .*{message}"):
        data.read_csv(csv(tmp_path, text), encoding=table.encoding)
