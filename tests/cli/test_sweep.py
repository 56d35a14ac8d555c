"""extensor sweep: combinations, draws, seeds, and a table of what came of them."""

from __future__ import annotations

import csv
from pathlib import Path

from click.testing import CliRunner

from extensor.cli import main


def test_a_grid_with_seeds(tmp_path: Path) -> None:
    sweep = [
        "sweep",
        "mlp",
        "--epochs",
        "2",
        "--grid",
        "lr=0.00001,0.003",
        "--grid",
        "hidden=16",
        "--seeds",
        "2",
        "--out",
        str(tmp_path),
    ]
    outcome = CliRunner().invoke(main, sweep)
    assert outcome.exit_code == 0, outcome.output
    rows = list(csv.DictReader((tmp_path / "sweep.csv").read_text().splitlines()))
    assert [row["lr"] for row in rows] == ["0.003", "0.00001"]  # the best first
    assert float(rows[0]["val_accuracy"]) > float(rows[1]["val_accuracy"])
    assert len(rows[0]["folders"].split(" ")) == 2
    assert "2 settings compared" in (tmp_path / "sweep.html").read_text()
    weights = [path.stat().st_mtime_ns for path in tmp_path.glob("*/model.safetensors")]
    assert CliRunner().invoke(main, sweep).exit_code == 0
    assert [path.stat().st_mtime_ns for path in tmp_path.glob("*/model.safetensors")] == weights  # not again


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    for options, message in (
        (["--grid", "speed=1"], "there is no setting 'speed'; there are lr, batch_size"),
        (["--grid", "lr"], "a setting is NAME=VALUES, got 'lr'"),
        (["--range", "lr=0:1", "--random", "2"], "--range lr needs 0 < LOW < HIGH"),
        (["--range", "lr=0.1:1"], "--range needs --random N"),
    ):
        outcome = CliRunner().invoke(main, ["sweep", "mlp", "--out", str(tmp_path), *options])
        assert outcome.exit_code == 2
        assert message in outcome.output
    outcome = CliRunner().invoke(
        main, ["sweep", "nonsense", "--random", "1", "--range", "lr=0.001:0.1", "--out", str(tmp_path)]
    )
    assert "failed:" in outcome.output
