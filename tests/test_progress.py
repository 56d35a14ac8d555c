"""How far long loops are: counted only where somebody listens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import extensor as et
from extensor import _progress, data, nn, optim, train
from extensor._progress import ProgressLines, Stage, listening, watched


class Ear:
    def __init__(self) -> None:
        self.heard: list[str] = []

    def on_stage(self, stage: Stage) -> None:
        self.heard.append(str(stage))

    def on_stage_end(self) -> None:
        self.heard.append("end")


@pytest.fixture
def ear(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ear]:
    monkeypatch.setattr(_progress, "_PAUSE", 0.0)
    listener = Ear()
    with listening(listener):
        yield listener


def test_nobody_listens() -> None:
    items = [1, 2]
    assert watched(items, "counting") is items


def test_items_are_counted(ear: Ear) -> None:
    assert list(watched("abc", "reading x", "rows")) == ["a", "b", "c"]
    assert ear.heard == [f"reading x: {n} of 3 rows" for n in range(3)] + ["end"]
    ear.heard.clear()
    list(watched(iter("ab"), "reading x", "rows", each=1000))
    assert ear.heard == ["reading x: 0 rows", "reading x: 1,000 rows", "end"]


def test_a_loop_that_breaks_off_ends(ear: Ear) -> None:
    for _ in watched(range(10), "counting"):
        break
    assert ear.heard[-1] == "end"


def test_tables_are_read_aloud(ear: Ear, tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("a,b\n" + "1.5,2.5\n" * 5)
    data.read_csv(table)
    assert "reading t.csv: 4 rows" in ear.heard


def trainer(**options: Any) -> train.Trainer:
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 10, rng=0))
    return train.Trainer(model, optim.SGD(model.parameters(), lr=0.1), et.cross_entropy, **options)


def test_validation_and_prediction_are_heard(ear: Ear) -> None:
    samples = data.DataLoader(data.digits(), 500)
    trainer(display="off").evaluate(samples)
    assert "validating: 3 of 4 batches" in ear.heard
    trainer(display="off").predict(samples)
    assert "predicting: 3 of 4 batches" in ear.heard


def test_a_plain_display_tells_of_a_long_validation(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(_progress, "_PAUSE", 0.0)
    monkeypatch.setattr(train.display.PlainDisplay, "every", 0.0)
    samples = data.DataLoader(data.digits(), 900)
    trainer(display="plain").fit(samples, epochs=1, validation=samples)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines] == [
        "step 1/2", "step 2/2", "validating: 0 of 2 batches", "validating: 1 of 2 batches", "epoch 1/1",
    ]  # fmt: skip


def test_lines_come_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(_progress.time, "monotonic", lambda: now[0])
    said: list[str] = []
    lines = ProgressLines(said.append)
    for second in range(25):
        now[0] = float(second)
        lines.on_stage(Stage("reading", second, None, "rows"))
    assert said == ["reading: 10 rows, 10 s", "reading: 20 rows, 20 s"]
    lines.on_stage_end()
    lines.on_stage(Stage("reading", 1, None, "rows"))  # another file: its time begins anew
    assert len(said) == 2
