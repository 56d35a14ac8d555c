"""Frames, Parquet, Excel and JSON lines are read as the CSV file of the same cells is."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from extensor.data import DamagedFileError, read_csv

ROWS = [
    {"length": 5.1, "soil": "clay", "day": "2024-01-05", "kind": "setosa"},
    {"length": None, "soil": "sand", "day": "2024-02-05", "kind": "versicolor"},
    {"length": 6.5, "soil": "clay", "day": "2024-03-01", "kind": "setosa"},
    {"length": 4.0, "soil": "peat", "day": "2023-12-31", "kind": "versicolor"},
]
CSV = "\n".join(
    ["length,soil,day,kind", *(",".join("" if v is None else str(v) for v in row.values()) for row in ROWS)]
)


def expected(tmp_path: Path) -> Any:
    (tmp_path / "table.csv").write_text(CSV)
    return read_csv(tmp_path / "table.csv", target="kind", fill=True)


def same(ours: Any, theirs: Any) -> None:
    np.testing.assert_array_equal(ours.inputs, theirs.inputs)
    np.testing.assert_array_equal(ours.targets, theirs.targets)
    assert (ours.columns, ours.classes, ours.encoding, ours.filled) == (
        theirs.columns,
        theirs.classes,
        theirs.encoding,
        theirs.filled,
    )


def frames() -> list[Any]:
    return [("pandas", "DataFrame"), ("polars", "DataFrame"), ("polars", "LazyFrame"), ("pyarrow", "Table")]


@pytest.mark.parametrize(("library", "kind"), frames())
@pytest.mark.parametrize("dates", [False, True])
def test_frames(tmp_path: Path, library: str, kind: str, dates: bool) -> None:
    module = pytest.importorskip(library)
    columns: dict[str, list[Any]] = {name: [row[name] for row in ROWS] for name in ROWS[0]}
    if dates:
        columns["day"] = [np.datetime64(day).astype(object) for day in columns["day"]]
    frame = module.table(columns) if library == "pyarrow" else getattr(module, kind)(columns)
    same(read_csv(frame, target="kind", fill=True), expected(tmp_path))


@pytest.mark.parametrize("suffix", [".jsonl", ".ndjson"])
def test_json_lines(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"table{suffix}"
    file.write_text(
        "\n".join(json.dumps({k: v for k, v in row.items() if v is not None}) for row in ROWS) + "\n\n"
    )
    same(read_csv(file, target="kind", fill=True), expected(tmp_path))
    assert read_csv(file, target="kind", fill=True).source == "JSON lines"


def test_parquet_and_excel(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame(ROWS)
    frame.to_parquet(tmp_path / "table.parquet")
    same(read_csv(tmp_path / "table.parquet", target="kind", fill=True), expected(tmp_path))
    pytest.importorskip("openpyxl")
    frame.to_excel(tmp_path / "table.xlsx", index=False)
    same(read_csv(tmp_path / "table.xlsx", target="kind", fill=True), expected(tmp_path))


def test_what_is_missing_or_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bad.jsonl").write_text('{"a": 1}\n[1, 2]\n')
    with pytest.raises(DamagedFileError, match=r"bad\.jsonl, line 2 is no JSON object, got list"):
        read_csv(tmp_path / "bad.jsonl")
    (tmp_path / "bad.jsonl").write_text('{"a": 1}\n{"a"\n')
    with pytest.raises(DamagedFileError, match=r"line 2 is no JSON"):
        read_csv(tmp_path / "bad.jsonl")
    (tmp_path / "bad.parquet").write_bytes(b"no parquet")
    for name in ("polars", "pyarrow", "pyarrow.parquet", "pandas"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(
        ImportError, match=r"bad\.parquet needs polars, pyarrow or pandas: pip install polars"
    ):
        read_csv(tmp_path / "bad.parquet")
