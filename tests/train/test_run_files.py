"""A run folder that someone else made, and two processes that write into one."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small_run

import extensor as et
from extensor import data, nn, optim, report, train
from extensor.train.saved_run import read_config, weights_file
from extensor.train.whole_files import remove_unfinished, write_whole


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "run"
    small_run.fit(folder, config={"recipe": "mine"})
    return folder


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.parametrize("name", [".lock", "log.jsonl"])
@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_files_that_are_not_the_runs_own_are_not_written(
    run: Path, tmp_path: Path, name: str, kind: str
) -> None:
    outside = tmp_path / "precious"
    outside.write_text("precious")
    (run / name).unlink()
    if kind == "link":
        (run / name).symlink_to(outside)
    else:
        os.mkfifo(run / name)
    with pytest.raises(ValueError, match="is a link or no regular file"):
        small_run.fit(run, resume=True)
    assert outside.read_text() == "precious"


def test_links_to_nothing_make_nothing(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".lock").symlink_to(tmp_path / "made")
    with pytest.raises(ValueError, match="is a link"):
        small_run.fit(tmp_path / "run")
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("name", ["checkpoints", "events"])
def test_folders_that_lead_elsewhere(run: Path, tmp_path: Path, name: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    if (run / name).exists():
        shutil.move(run / name, elsewhere)
    else:
        elsewhere.mkdir()
    (run / name).symlink_to(elsewhere)
    before = sorted(elsewhere.iterdir())
    with pytest.raises(ValueError, match="is a link"):
        small_run.fit(run, resume=True, tensorboard=True)
    assert sorted(elsewhere.iterdir()) == before


def test_a_linked_checkpoint_is_passed_over(run: Path, tmp_path: Path) -> None:
    newest = train.Checkpoints(run / "checkpoints").files()[0]
    shutil.move(newest, tmp_path / "elsewhere")
    newest.symlink_to(tmp_path / "elsewhere")
    found = train.latest_whole(run / "checkpoints")
    assert found is not None
    assert found != newest


def test_nothing_outside_is_read(run: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text('{"recipe": "secret"}')
    (run / "config.json").unlink()
    (run / "config.json").symlink_to(secret)
    with pytest.raises(ValueError, match="is a link"):
        read_config(run)
    shutil.move(run / "best.safetensors", tmp_path / "w")
    (run / "best.safetensors").symlink_to(tmp_path / "w")
    with pytest.raises(ValueError, match="is a link"):
        weights_file(run)


def test_a_report_does_not_follow_its_folder_of_pictures(run: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (run / "pictures").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match="is a link"):
        report.write_report(run)
    assert not list((tmp_path / "elsewhere").iterdir())


# Two processes


def test_a_file_that_is_being_written_is_no_leftover(tmp_path: Path) -> None:
    def chunks() -> Any:
        yield b"half"
        remove_unfinished(tmp_path)  # another run begins meanwhile
        yield b" and half"

    (tmp_path / ".old.1234.unfinished").write_bytes(b"left by a killed writer")
    write_whole("test", tmp_path / "file", chunks())
    assert (tmp_path / "file").read_bytes() == b"half and half"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_refused_start_removes_nothing(run: Path) -> None:
    (run / ".report.html.12345678.unfinished").write_bytes(b"half")
    with pytest.raises(FileExistsError):
        small_run.fit(run)
    assert (run / ".report.html.12345678.unfinished").exists()


# What a checkpoint was made with


def trained(
    folder: Path, optimizer: Any, epochs: int, resume: bool = False, display: Any = "off", **options: Any
) -> Any:
    model = nn.Linear(2, 2, rng=0)
    made = optimizer(model.parameters())
    schedule = optim.CosineAnnealingLR(made, T_max=2 * epochs)
    trainer = train.Trainer(
        model, made, et.cross_entropy, schedule=schedule, folder=folder, display=display, **options
    )
    points = data.Dataset(np.ones((8, 2), np.float32), np.arange(8) % 2)
    trainer.fit(data.DataLoader(points, 4, shuffle=True), epochs=epochs, resume=resume)
    return trainer


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (lambda p: optim.SGD(p, lr=0.1), "its optimizer is AdamW, the trainer's SGD"),
        (lambda p: optim.AdamW(p, lr=0.5), r"AdamW has lr=0.1, initial_lr=0.1, the trainer's lr=0.5"),
        (lambda p: optim.AdamW(p, lr=0.1, betas=(0.8, 0.9)), r"AdamW has betas=\[0.9, 0.999\]"),
    ],
)
def test_another_optimiser_or_rate_is_not_taken_for_the_same(
    tmp_path: Path, other: Any, message: str
) -> None:
    trained(tmp_path, lambda p: optim.AdamW(p, lr=0.1), 1)
    with pytest.raises(ValueError, match=message):
        trained(tmp_path, other, 2, resume=True)


def test_a_longer_run_plans_its_schedule_anew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def adamw(parameters: Any) -> Any:
        return optim.AdamW(parameters, lr=0.1)

    trained(tmp_path / "a", adamw, 4)
    longer = trained(tmp_path / "a", adamw, 8, resume=True, display="plain")
    assert "planned for 8 steps, now for 16; the schedule is planned anew" in capsys.readouterr().out
    steps = [r for r in train.read_log(tmp_path / "a" / "log.jsonl") if r["kind"] == "epoch"]
    assert [round(r["lr"], 6) for r in steps[4:]] == [
        round(0.05 * (1 + np.cos(np.pi * t / 16)), 6) for t in (10, 12, 14, 16)
    ]
    assert longer.step == 16


def test_resuming_where_bits_may_differ_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def sgd(parameters: Any) -> Any:
        return optim.SGD(parameters, lr=0.1)

    trained(tmp_path, sgd, 2)
    trained(tmp_path, sgd, 2, resume=True, display="plain")
    assert "computed with" not in capsys.readouterr().out
    here = train.run_state.build_info()
    monkeypatch.setattr(train.run_state, "build_info", lambda: here | {"bfloat16 products": "other"})
    trained(tmp_path, sgd, 2, resume=True, display="plain")
    assert "computed with" not in capsys.readouterr().out  # a float32 run multiplies nothing of bfloat16
    monkeypatch.setattr(train.run_state, "build_info", lambda: here | {"arithmetic": "other"})
    trained(tmp_path, sgd, 2, resume=True, display="plain")
    said = capsys.readouterr().out
    assert f"the checkpoint was computed with arithmetic {here['arithmetic']}, here other" in said


def test_a_bfloat16_unit_counts_where_bfloat16_is_multiplied(monkeypatch: pytest.MonkeyPatch) -> None:
    here = train.run_state.build_info()
    monkeypatch.setattr(train.run_state, "build_info", lambda: here | {"bfloat16 products": "other"})
    weights = {"w": et.ones(2, dtype=et.bfloat16)}
    for state in ({"precision": {"name": "bfloat16"}, "model": {}}, {"model": weights}):
        said = train.run_state.other_build(state | {"build": here})
        assert (
            said
            == f"the checkpoint was computed with bfloat16 products {here['bfloat16 products']}, here other"
        )
    assert train.run_state.other_build({"model": {"w": et.ones(2)}, "build": here}) is None


def test_keys_that_are_alike_as_text(tmp_path: Path) -> None:
    file = tmp_path / "c.safetensors"
    state = {1: et.ones(2), "1": et.zeros(3), "$x": (1, 2), "plain": {2: "a", "2": "b"}}
    train.save_checkpoint(file, state)
    found = train.load_checkpoint(file)
    assert list(found) == [1, "1", "$x", "plain"]
    assert (found[1].tolist(), found["1"].tolist()) == ([1, 1], [0, 0, 0])
    assert (found["$x"], found["plain"]) == ((1, 2), {2: "a", "2": "b"})


# Labels that do not count


def test_metrics_leave_out_what_is_to_be_ignored() -> None:
    scores, labels = et.tensor([[0.1, 0.9], [0.2, 0.8], [0.7, 0.3]]), et.tensor([-1, 1, 1])
    for metric in (train.Accuracy(), train.ConfusionMatrix(2)):
        with pytest.raises(ValueError, match="labels must be from 0 to 1, one for each output, got -1 to 1"):
            metric.update(scores, labels, 0.0)
    accuracy, confusion = train.Accuracy(ignore_index=-1), train.ConfusionMatrix(2, ignore_index=-1)
    perplexity = train.Perplexity(ignore_index=-1)
    for metric in (accuracy, confusion, perplexity):
        metric.update(scores, labels, 2.0)
        metric.update(scores[:1], labels[:1], float("nan"))  # nothing counts, and the mean of nothing is nan
    assert accuracy.value() == 0.5
    assert confusion.value() == [[0, 0], [1, 1]]
    assert perplexity.value() == pytest.approx(np.exp(2.0))
