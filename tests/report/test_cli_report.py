"""extensor report, as a person types it."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from extensor.cli import main
from extensor.report import plots


def call(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["report", *map(str, arguments)])


def test_without_matplotlib(digits_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("extensor.cli.report.matplotlib_is_there", lambda: False)
    before = (digits_run / "report.html").read_bytes()
    result = call(digits_run)
    assert result.exit_code == 0, result.output
    assert result.output.splitlines() == [
        f"report: {digits_run}/report.html",
        f"pictures: 2 PNG files in {digits_run}/pictures",
        "The charts are in the page; for PNG files of them too: pip install matplotlib",
    ]
    assert (digits_run / "report.html").read_bytes() == before  # the same as at the end of training


def test_charts_as_pictures(quantities_run: Path, classes_run: Path, text_run: Path, tmp_path: Path) -> None:
    if not plots.matplotlib_is_there():
        pytest.skip("matplotlib is not installed")
    for original in (quantities_run, classes_run, text_run):
        run = Path(shutil.copytree(original, tmp_path / original.name))
        result = call(run)
        assert result.exit_code == 0, result.output
        assert "matplotlib" not in result.output
        for name in ("loss", "learning_rate", "gradient_norms", "update_ratios"):
            assert (run / "pictures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / classes_run.name / "pictures" / "confusion.png").exists()
    assert (tmp_path / quantities_run.name / "pictures" / "predictions.png").exists()


def test_matplotlib_is_looked_for_and_not_imported() -> None:
    assert plots.matplotlib_is_there() == (importlib.util.find_spec("matplotlib") is not None)


def test_mistakes_get_a_clear_answer(tmp_path: Path) -> None:
    empty = call(tmp_path)
    assert empty.exit_code == 1
    assert "[report]" in empty.output
    assert "has no log.jsonl" in empty.output
    (tmp_path / "log.jsonl").write_bytes(b"\x00\n")
    damaged = call(tmp_path)
    assert damaged.exit_code == 1
    assert "[report] no line of the log can be read" in damaged.output
    assert (tmp_path / "log.jsonl").read_bytes() == b"\x00\n"
    assert call(tmp_path / "nowhere").exit_code == 2


def test_a_page_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text("")
    (tmp_path / "report.html").mkdir()
    result = call(tmp_path)
    assert result.exit_code == 1
    assert "[report]" in result.output
    assert "report.html was not written" in result.output


def test_help() -> None:
    assert "extensor report runs/lenet" in call("--help").output
