"""A run that is stopped at any moment, in any way, and resumed ends with the same bits as one that was left alone."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small_run

import extensor as et
from extensor import data, nn, optim, train
from extensor.train.run_state import run_state


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("undisturbed")
    small_run.fit(folder)
    return folder


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def timeless(folder: Path) -> list[dict[str, Any]]:
    """The log without what may differ."""
    records = train.read_log(folder / "log.jsonl")
    ignored = {
        "at",
        "seconds",
        "samples_per_second",
        "threads",
    }  # those of the process, which another test may have set
    return [
        {name: value for name, value in record.items() if name not in ignored}
        for record in records
        if record["kind"] != "resume"
    ]


def assert_same_run(folder: Path, undisturbed: Path) -> None:
    for name in ("model.safetensors", "best.safetensors"):
        assert digest(folder / name) == digest(undisturbed / name), name
    assert timeless(folder) == timeless(undisturbed)


class Crash(train.Callback):
    def __init__(self, step: int) -> None:
        self.step = step

    def on_step_end(self, trainer: Any, loss: float) -> None:
        if trainer.step == self.step:
            raise ConnectionError("the power went out")


@pytest.mark.parametrize("step", range(1, small_run.STEPS + 1))
def test_crash_at_every_step(tmp_path: Path, undisturbed: Path, step: int) -> None:
    with pytest.raises(ConnectionError):
        small_run.fit(tmp_path, callbacks=[Crash(step)])
    _, history = small_run.fit(tmp_path, resume=True, callbacks=[Crash(-1)], prefetch=step % 3)
    assert (history.steps, history.stopped) == (small_run.STEPS, "finished")
    assert_same_run(tmp_path, undisturbed)
    kinds = [record["kind"] for record in history.records]
    assert kinds == ["epoch", "validation", "epoch", "validation", "epoch", "validation"]


class Interrupt(train.Callback):
    def __init__(self, step: int, number: signal.Signals) -> None:
        self.step, self.number = step, number

    def on_step_end(self, trainer: Any, loss: float) -> None:
        if trainer.step == self.step:
            signal.raise_signal(self.number)  # to this thread; the process may have others


@pytest.mark.parametrize(
    ("step", "number"),
    [(1, signal.SIGINT), (4, signal.SIGINT), (5, signal.SIGTERM), (8, signal.SIGINT), (11, signal.SIGTERM)],
)
def test_interrupt_ends_cleanly_with_a_checkpoint(
    tmp_path: Path, undisturbed: Path, step: int, number: signal.Signals
) -> None:
    handler = signal.getsignal(number)
    _, history = small_run.fit(tmp_path, callbacks=[Interrupt(step, number)])
    assert (history.stopped, history.steps) == ("interrupted", step)
    assert signal.getsignal(number) is handler
    latest = train.latest_whole(tmp_path / "checkpoints")
    assert latest is not None
    assert latest.name == f"step-{step:09d}.safetensors"
    assert not (tmp_path / "model.safetensors").exists()
    small_run.fit(tmp_path, resume=True, callbacks=[Crash(-1)])
    assert_same_run(tmp_path, undisturbed)


def test_a_second_interrupt_is_an_interrupt(tmp_path: Path) -> None:
    before = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # a job in the background ignores Ctrl-C
    try:
        with pytest.raises(KeyboardInterrupt):
            small_run.fit(tmp_path, callbacks=[Interrupt(4, signal.SIGINT), Interrupt(4, signal.SIGINT)])
    finally:
        signal.signal(signal.SIGINT, before)
    small_run.fit(tmp_path, resume=True, callbacks=[Crash(-1), Crash(-1)])


def test_killed_again_and_again(tmp_path: Path, undisturbed: Path) -> None:
    """SIGKILL, which no program can notice, at random moments of another process."""
    rng = random.Random(4)
    folder = tmp_path / "run"
    source = Path(et.__file__).parent.parent
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(source), os.environ.get("PYTHONPATH", "")])
    }

    def run(seconds: float) -> int:
        command = [sys.executable, small_run.__file__, str(folder), str(seconds)]
        return subprocess.run(command, env=environment, timeout=120).returncode

    kills = 0
    for _ in range(5):
        code = run(rng.uniform(0.02, 0.3))
        assert code in (0, -signal.SIGKILL)
        kills += code != 0
    assert kills >= 2
    assert run(0) == 0
    assert_same_run(folder, undisturbed)
    assert not list(folder.rglob("*unfinished"))


def test_a_disk_that_is_full_for_a_while(
    tmp_path: Path, undisturbed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full(train.Callback):
        def on_step_end(self, trainer: Any, loss: float) -> None:
            if trainer.step == 7:
                monkeypatch.setattr(os, "fsync", full)

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "full")

    with pytest.raises(OSError, match="there is no space left"):
        small_run.fit(tmp_path, callbacks=[Full()])
    monkeypatch.undo()
    latest = train.latest_whole(tmp_path / "checkpoints")
    assert latest is not None
    assert latest.name == "step-000000006.safetensors"
    small_run.fit(tmp_path, resume=True, callbacks=[Crash(-1)])
    assert_same_run(tmp_path, undisturbed)


def test_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(
        OSError, match=r"^\[Errno \d+\] \[fit\] .* was not written: something else is in the way"
    ):
        small_run.fit(tmp_path / "file" / "run")


def test_the_best_validation_is_remembered(tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "monitor_mode": "max",
        "validate_every": 2,
    }  # the loss falls, so the first is the highest
    small_run.fit(tmp_path / "whole", callbacks=[Crash(-1)], **options)
    with pytest.raises(ConnectionError):
        small_run.fit(tmp_path / "broken", callbacks=[Crash(10)], **options)
    small_run.fit(tmp_path / "broken", resume=True, callbacks=[Crash(-1)], **options)
    assert train.load_weights(tmp_path / "whole" / "best.safetensors")[1]["step"] == "2"
    assert_same_run(tmp_path / "broken", tmp_path / "whole")


def test_a_damaged_newest_checkpoint_is_passed_over(tmp_path: Path, undisturbed: Path) -> None:
    with pytest.raises(ConnectionError):
        small_run.fit(tmp_path, callbacks=[Crash(11)])
    newest, *_ = train.Checkpoints(tmp_path / "checkpoints").files()
    content = bytearray(newest.read_bytes())
    content[-5] ^= 1
    newest.write_bytes(content)
    small_run.fit(tmp_path, resume=True, callbacks=[Crash(-1)])
    assert_same_run(tmp_path, undisturbed)


def test_resuming_a_finished_run_changes_nothing(tmp_path: Path, undisturbed: Path) -> None:
    shutil.copytree(undisturbed, tmp_path / "run")
    model, history = small_run.fit(tmp_path / "run", resume=True)
    assert history.steps == small_run.STEPS
    assert_same_run(tmp_path / "run", undisturbed)
    kept, _ = train.load_weights(undisturbed / "model.safetensors")
    assert small_run.bits(model) == {name: value.numpy().tobytes() for name, value in kept.items()}


def test_resume_without_a_checkpoint_starts_from_the_beginning(tmp_path: Path, undisturbed: Path) -> None:
    with pytest.raises(ConnectionError):
        small_run.fit(tmp_path, callbacks=[Crash(2)])
    assert not train.Checkpoints(tmp_path / "checkpoints").files()
    small_run.fit(tmp_path, resume=True)
    assert_same_run(tmp_path, undisturbed)


class Stopper(train.Callback):
    def on_step_end(self, trainer: Any, loss: float) -> None:
        if trainer.step == 5:
            trainer.stop("enough")


def test_a_run_that_was_stopped_stays_stopped(tmp_path: Path) -> None:
    _, first = small_run.fit(tmp_path, callbacks=[Stopper()])
    before = digest(tmp_path / "model.safetensors")
    (tmp_path / "model.safetensors").unlink()
    _, second = small_run.fit(tmp_path, resume=True, callbacks=[Stopper()])
    assert (first.stopped, first.steps) == (second.stopped, second.steps) == ("enough", 5)
    assert digest(tmp_path / "model.safetensors") == before


# What is refused, and leaves everything as it was


def test_a_folder_with_a_run_is_not_overwritten(undisturbed: Path) -> None:
    before = digest(undisturbed / "log.jsonl")
    with pytest.raises(FileExistsError, match=r"holds a run already; pass resume=True"):
        small_run.fit(undisturbed)
    assert digest(undisturbed / "log.jsonl") == before


def test_only_damaged_checkpoints(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "step-000000003.safetensors").write_bytes(b"nothing")
    with pytest.raises(ValueError, match=r"every checkpoint in .* is damaged"):
        small_run.fit(tmp_path, resume=True)


class Second(train.Callback):
    """Starts another run in the same folder while the first is under way."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.error = folder, ""

    def on_step_end(self, trainer: Any, loss: float) -> None:
        if trainer.step == 4:
            with pytest.raises(train.FolderInUseError) as caught:
                small_run.fit(self.folder, resume=True)
            self.error = str(caught.value)


def test_two_runs_in_one_folder(tmp_path: Path, undisturbed: Path) -> None:
    second = Second(tmp_path)
    small_run.fit(tmp_path, callbacks=[second])
    assert f"[fit] another run (process {os.getpid()}) is writing to {tmp_path}" in second.error
    small_run.fit(tmp_path, resume=True, callbacks=[second])  # the lock was given back


@pytest.mark.parametrize("change", ["model", "schedule", "callbacks", "metrics", "batch size", "optimizer"])
def test_a_checkpoint_of_something_else_changes_nothing(tmp_path: Path, change: str) -> None:
    def trainer(changed: str = "") -> tuple[train.Trainer, data.DataLoader]:
        et.seed(len(changed))
        width = 5 if changed == "model" else 4
        model = nn.Sequential(nn.Linear(2, width), nn.Dropout(0.5), nn.Linear(width, 2))
        kind = optim.AdamW if changed == "optimizer" else optim.SGD
        groups = (
            [{"params": [p]} for p in model.parameters()]
            if changed == "optimizer"
            else list(model.parameters())
        )
        optimizer = kind(groups, lr=0.1)
        made = train.Trainer(
            model, optimizer, et.cross_entropy, folder=tmp_path, display="off",
            schedule=optim.ExponentialLR(optimizer, 0.9) if changed == "schedule" else None,
            callbacks=[train.EarlyStopping()] if changed == "callbacks" else [],
            metrics={"accuracy": train.Accuracy()} if changed == "metrics" else {},
        )  # fmt: skip
        points = data.Dataset(np.ones((8, 2), np.float32), np.arange(8) % 2)
        return made, data.DataLoader(points, 2 if changed == "batch size" else 4, shuffle=True)

    first, loader = trainer()
    first.fit(loader, epochs=2)
    other, other_loader = trainer(change)
    before = json.dumps([run_state(other, other_loader, None)], default=lambda x: x.tolist())
    with pytest.raises(ValueError, match=r"step-000000004\.safetensors does not fit this trainer"):
        other.fit(other_loader, epochs=3, resume=True)
    assert json.dumps([run_state(other, other_loader, None)], default=lambda x: x.tolist()) == before
