"""Several runs on one page."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from html_checks import Page

from extensor import report
from extensor.cli import main
from extensor.report.comparison import _value


def compared(*arguments: object) -> str:
    result = CliRunner().invoke(main, ["report", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.output


def trained(folder: Path, *arguments: object) -> Path:
    result = CliRunner().invoke(main, ["train", *map(str, arguments), "--out", str(folder)])
    assert result.exit_code == 0, result.output
    return folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    place = tmp_path_factory.mktemp("compared")
    slow = trained(place / "slow", "mlp", "--epochs", 2, "--lr", "0.0001")
    return [slow, trained(place / "fast", "mlp", "--epochs", 3, "--lr", "0.01")]


def test_runs_on_one_page(runs: list[Path]) -> None:
    assert compared(*runs) == f"comparison of 2 runs: {runs[0].parent}/comparison.html\n"
    text = (runs[0].parent / "comparison.html").read_text()
    page = Page(text)
    for part in ("2 runs compared", "slow", "fast", "test accuracy", "Validation loss", "Learning rate"):
        assert part in page.text, part
    assert text.count("<b>") >= 3  # the better of accuracy and losses, in the row of the faster run
    row = text[text.index("</i>fast</td>") :]
    assert "<b>" in row[: row.index("</tr>")]
    settings = text[text.index("Where they differ") :]
    assert "<td>lr</td><td>0.0001</td><td>0.01</td>" in settings
    assert "<td>seed</td>" not in settings


def test_the_page_goes_where_it_is_wanted(runs: list[Path], tmp_path: Path) -> None:
    again = tmp_path / "fast"
    shutil.copytree(runs[1], again)
    page = report.write_comparison([runs[1], again], tmp_path / "both.html")
    assert page == tmp_path / "both.html"
    text = page.read_text()
    assert f"{runs[1].parent.name}/fast" in text  # two runs of one name
    assert "All settings are the same." in text


def test_wrong_calls(runs: list[Path], tmp_path: Path) -> None:
    invoke = CliRunner().invoke
    assert (
        "--data belongs to a single run"
        in invoke(main, ["report", *map(str, runs), "--data", str(tmp_path)]).output
    )
    assert "--out belongs to several runs" in invoke(main, ["report", str(runs[0]), "--out", "x.html"]).output
    assert "it has no log.jsonl" in invoke(main, ["report", str(runs[0]), str(tmp_path)]).output
    with pytest.raises(ValueError, match="needs two runs at least, got 1"):
        report.write_comparison(runs[:1])


@pytest.mark.parametrize(
    ("text", "value"), [("97.49 %", 97.49), ("−1,234", -1234.0), ("2·10⁻⁵", 2e-5), ("0.0136", 0.0136)]
)
def test_numbers_are_read_back(text: str, value: float) -> None:
    assert _value(text) == pytest.approx(value)
