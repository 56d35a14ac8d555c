"""A run in a notebook: a bar, curves and a table that change while it goes on."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import extensor as et
from extensor import data, nn, optim, train
from extensor._progress import Stage
from extensor.train.curve_svg import Curve, curve_svg
from extensor.train.display import display_for
from extensor.train.notebook import NotebookDisplay


class Cell:
    """The output of a cell: what it showed, one after the other."""

    def __init__(self) -> None:
        self.pages: list[str] = []

    def __call__(self, data: dict[str, str], raw: bool, display_id: bool) -> Any:
        assert raw
        assert display_id
        self.pages.append(data["text/html"])
        return SimpleNamespace(update=lambda data, raw: self.pages.append(data["text/html"]))


def fitted(display: Any, folder: Path | None = None, epochs: int = 3, **options: Any) -> train.History:
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 10, rng=0))
    trainer = train.Trainer(
        model, optim.Adam(model.parameters(), lr=0.01), et.cross_entropy, metrics=["accuracy"], display=display, folder=folder,
    )  # fmt: skip
    loader = data.DataLoader(data.digits(), 256, shuffle=True, rng=0)
    return trainer.fit(loader, epochs=epochs, validation=loader, **options)


def test_a_run_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = Cell()
    shell = SimpleNamespace(kernel=object())
    ipython = SimpleNamespace(get_ipython=lambda: shell, display=SimpleNamespace(display=cell))
    monkeypatch.setitem(sys.modules, "IPython", ipython)  # type: ignore[arg-type]
    monkeypatch.setattr(NotebookDisplay, "every", 0.0)
    fitted("auto")
    assert any("epoch 2/3" in page and "left" in page for page in cell.pages)
    assert any("validating: " in page for page in cell.pages)
    last = cell.pages[-1]
    assert "finished after 24 steps" in last
    assert "width:100.0%" in last
    assert last.count("<svg") == 2  # loss and accuracy
    assert last.count("<tr>") == 4


def test_plain_lines_stay_plain_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(
        sys.modules,
        "IPython",
        SimpleNamespace(get_ipython=lambda: shell, display=SimpleNamespace(display=None)),
    )  # type: ignore[arg-type]
    assert not isinstance(display_for("off"), NotebookDisplay)
    assert isinstance(display_for("plain"), train.display.TolerantDisplay)


def test_messages_and_stages_are_shown() -> None:
    cell = Cell()
    display = NotebookDisplay(cell)
    display.every = 0.0
    display.start(10, 0, None)
    display.message("a <b> word")
    display.on_stage(Stage("validating", 3, 9, "batches"))
    display.stop()
    assert "a &lt;b&gt; word" in cell.pages[-1]
    assert any("validating: 3 of 9 batches" in page for page in cell.pages)
    assert "ended after 0 steps" in cell.pages[-1]


def test_a_history_draws_its_curves() -> None:
    page = fitted("off", epochs=10)._repr_html_()
    assert "History · 80 steps · finished" in page
    assert "The last 8 of 10." in page
    assert page.count("<tr>") == 9
    assert page.count("<svg") == 2
    assert "&lt;b&gt;" in train.History([], 0, "<b>")._repr_html_()


def test_numbers_that_are_not_finite_are_no_points() -> None:
    records = [
        {"kind": "epoch", "epoch": i, "step": i, "loss": value}
        for i, value in enumerate([1.0, float("nan"), 2.0])
    ]
    page = train.History(records, 3)._repr_html_()
    assert "<path d=" in page
    assert "M50.0 nan" not in page


def test_a_curve_is_a_whole_picture() -> None:
    lines = [Curve("training", "#000", [(0, 0.3), (5, 0.99)]), Curve("validation", "#111", [(5, 0.97)])]
    root = ElementTree.fromstring(curve_svg("accuracy", lines, "step"))
    texts = ["".join(element.itertext()) for element in root.iter("text")]
    assert {"50 %", "95 %", "98 %", "step"} <= set(texts)
    assert len(list(root.iter("circle"))) == 1  # a line of one point
    assert curve_svg("loss", [Curve("training", "#000", [(1, 2.0)])], "step") == ""


def test_overwrite_begins_anew(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    fitted("off", folder, epochs=2)
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        fitted("off", folder)
    with pytest.raises(ValueError, match="choose one"):
        fitted("off", folder, resume=True, overwrite=True)
    history = fitted("off", folder, epochs=1, overwrite=True)
    assert history.steps == 8
    assert [p.name for p in (folder / "checkpoints").glob("*.safetensors")] == ["step-000000008.safetensors"]
    assert (folder / "notes.txt").read_text() == "mine"
    assert (
        fitted("off", tmp_path / "new", epochs=1, overwrite=True).steps == 8
    )  # nothing there: nothing to remove
