"""Training in half precision: the weights stay float32, overflowing steps are skipped, and a resumed run has the same bits."""

from __future__ import annotations

import json
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small_run
from click.testing import CliRunner

import extensor as et
from extensor import data, nn, optim, train
from extensor.cli import main
from extensor.graph import get_autocast
from extensor.report import write_report
from extensor.train import mixed_precision
from extensor.train.mixed_precision import MixedPrecision

pytestmark = pytest.mark.filterwarnings("ignore:.*will not be faster than float32:UserWarning")


class LargeScale(train.Callback):
    """Starts a run with a scale that is too large for its gradients, which grows again soon."""

    def on_fit_start(self, trainer: Any) -> None:
        if trainer.step == 0:
            trainer.scaler.load_state_dict(
                trainer.scaler.state_dict() | {"scale": 2.0**24, "growth_interval": 3}
            )


class Crash(train.Callback):
    def __init__(self, step: int) -> None:
        self.step = step

    def on_step_end(self, trainer: Any, loss: float) -> None:
        if trainer.step == self.step:
            raise ConnectionError("the power went out")


def records(folder: Path, kind: str) -> list[dict[str, Any]]:
    return [record for record in train.read_log(folder / "log.jsonl") if record["kind"] == kind]


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_weights_are_float32_and_learn(precision: Any) -> None:
    model, history = small_run.fit(None, precision=precision)
    assert {p.dtype for p in model.parameters()} == {et.float32}
    exact, exact_history = small_run.fit(None)
    assert small_run.bits(model) != small_run.bits(exact)
    assert history.last("val_loss") == pytest.approx(exact_history.last("val_loss"), rel=0.05)


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
@pytest.mark.parametrize("step", [1, 3, 4, 7, 8, 12])
def test_crash_and_resume(tmp_path: Path, precision: Any, step: int) -> None:
    more = [LargeScale()] if precision == "float16" else []
    undisturbed, _ = small_run.fit(tmp_path / "left_alone", precision=precision, callbacks=[*more, Crash(-1)])
    with pytest.raises(ConnectionError):
        small_run.fit(tmp_path / "run", precision=precision, callbacks=[*more, Crash(step)])
    resumed, _ = small_run.fit(
        tmp_path / "run", resume=True, precision=precision, callbacks=[*more, Crash(-1)]
    )
    assert small_run.bits(resumed) == small_run.bits(undisturbed)
    scales = [[(r["step"], r.get("loss_scale"), r.get("skipped_steps"), r["loss"]) for r in records(folder, "step")]
              for folder in (tmp_path / "left_alone", tmp_path / "run")]  # fmt: skip
    assert scales[0] == scales[1]
    if precision == "float16":
        assert scales[0][-1][2] >= 2


def test_overflowing_steps_are_skipped_and_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    weights: list[bytes] = []

    class Watch(train.Callback):
        def on_step_end(self, trainer: Any, loss: float) -> None:
            weights.append(trainer.model.state_dict()["1.weight"].numpy().tobytes())

    small_run.fit(
        tmp_path, precision="float16", callbacks=[LargeScale(), Watch()], log_every=1, display="plain"
    )
    found = records(tmp_path, "step")
    counts = [record["skipped_steps"] for record in found]
    scales = [record["loss_scale"] for record in found]
    assert counts[0] == 1
    assert counts[-1] < len(counts)
    for i in range(1, len(found)):
        was_skipped = counts[i] > counts[i - 1]
        assert was_skipped == (weights[i] == weights[i - 1])
        if was_skipped:
            assert scales[i] == scales[i - 1] / 2
            assert "grad_norm" not in found[i]
    assert records(tmp_path, "begin")[0]["precision"] == "float16"
    page = write_report(tmp_path)[0].read_text()
    assert "Loss scale" in page
    assert f"{counts[-1]} steps skipped" in page
    assert f"Skipped {counts[-1]} steps, whose gradients overflowed" in capsys.readouterr().out


class Fragile(nn.Module):
    """Gives infinite outputs at chosen calls."""

    def __init__(self, bad: set[int]) -> None:
        super().__init__()
        self.layer, self.norm = nn.Linear(2, 2, rng=0), nn.BatchNorm1d(2)
        self.calls, self.bad = 0, bad

    def forward(self, x: et.ExTensor) -> et.ExTensor:
        self.calls += 1
        y = self.norm(self.layer(x))
        return y * math.inf if self.calls in self.bad else y


def fit_fragile(
    bad: set[int], precision: Any, steps: int = 6
) -> tuple[train.Trainer, Fragile, train.History]:
    rng = np.random.default_rng(0)
    samples = data.Dataset(
        rng.normal(size=(24, 2)).astype(np.float32), rng.normal(size=(24, 2)).astype(np.float32)
    )
    model = Fragile(bad)
    trainer = train.Trainer(
        model,
        optim.SGD(model.parameters(), lr=0.1),
        et.mean_squared_error,
        precision=precision,
        display="off",
    )
    return trainer, model, trainer.fit(data.DataLoader(samples, 8), steps=steps)


def test_infinite_loss_is_skipped_with_a_scaler() -> None:
    usual, _, _ = fit_fragile(set(), "float16")
    trainer, model, history = fit_fragile({2, 5}, "float16")
    assert trainer.scaler is not None
    assert usual.scaler is not None
    assert (trainer.scaler.skipped, history.steps) == (usual.scaler.skipped + 2, 6)
    assert all(np.isfinite(value.numpy()).all() for value in model.state_dict().values())
    last = history.last("loss")
    assert last is not None
    assert math.isfinite(last)
    for precision in ("float32", "bfloat16"):
        with pytest.raises(FloatingPointError, match="the loss is inf"):
            fit_fragile({2}, precision)


def test_hopeless_loss_ends_the_run() -> None:
    with pytest.raises(FloatingPointError, match="even at the scale"):
        fit_fragile(set(range(1000)), "float16", steps=100)


def test_accumulated_micro_batches_share_the_half_copies() -> None:
    copies = []

    def loss(outputs: Any, targets: Any) -> et.ExTensor:
        copies.append(outputs._node.saved[1]._data)
        return et.mean_squared_error(outputs, targets)

    model = nn.Linear(3, 5, rng=0)
    trainer = train.Trainer(
        model,
        optim.SGD(model.parameters(), lr=0.1),
        loss,
        precision="bfloat16",
        accumulate=4,
        compile=False,  # or the loss is not called again
        display="off",
    )
    samples = data.Dataset(np.ones((16, 3), np.float32), np.ones((16, 5), np.float32))
    trainer.fit(data.DataLoader(samples, 2), steps=2)
    assert [copy.dtype for copy in copies] == [et.bfloat16] * 8
    assert all(copy is copies[0] for copy in copies[:4])
    assert all(copy is copies[4] for copy in copies[4:])
    assert copies[4] is not copies[0]


# The choice


def test_auto_takes_what_is_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    def slower_in(dtype: Any) -> None:
        nonlocal now
        now += 1.0 + (get_autocast() == dtype)

    monkeypatch.setattr(mixed_precision, "perf_counter", lambda: now)
    for slow, fast in ((et.float32, "bfloat16"), (et.bfloat16, "float32")):
        precision = MixedPrecision("Trainer", "auto")
        assert precision.name == "auto"
        precision.choose(lambda slow=slow: slower_in(slow))
        assert precision.name == fast
        assert precision.reason is not None
        assert f"precision: {fast}, because a step takes" in precision.reason


@pytest.mark.parametrize("chosen", ["float32", "bfloat16"])
def test_auto_changes_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chosen: Any) -> None:
    """Whatever is measured, the run is the one of that precision to the bit; and it goes on in it."""
    monkeypatch.setattr(mixed_precision, "_WORTH_IT", 0.0 if chosen == "float32" else math.inf)
    right, _ = small_run.fit(None, precision=chosen)
    found, _ = small_run.fit(tmp_path, precision="auto")
    assert small_run.bits(found) == small_run.bits(right)
    begin = records(tmp_path, "begin")[0]
    assert begin["precision"] == chosen
    assert begin["precision_reason"].startswith(f"precision: {chosen}, because")
    with pytest.raises(ConnectionError):
        small_run.fit(tmp_path / "run", precision="auto", callbacks=[Crash(4)])
    monkeypatch.setattr(mixed_precision, "_WORTH_IT", math.inf if chosen == "float32" else 0.0)
    resumed, _ = small_run.fit(tmp_path / "run", resume=True, precision="auto", callbacks=[Crash(-1)])
    assert small_run.bits(resumed) == small_run.bits(right)


def test_a_run_goes_on_in_its_precision(tmp_path: Path) -> None:
    with pytest.raises(ConnectionError):
        small_run.fit(tmp_path, precision="bfloat16", callbacks=[Crash(4)])
    with pytest.raises(ValueError, match="its precision is bfloat16, the trainer's float32"):
        small_run.fit(tmp_path, resume=True, callbacks=[Crash(-1)])


def test_precision_must_be_known() -> None:
    model = nn.Linear(2, 2, rng=0)
    with pytest.raises(ValueError, match=r"\[Trainer\] precision must be one of float32, bfloat16"):
        train.Trainer(model, optim.SGD(model.parameters(), lr=0.1), et.mean_squared_error, precision="half")  # type: ignore[arg-type]


def test_warning_where_it_cannot_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    def told(precision: str, unit: bool) -> list[str]:
        monkeypatch.setattr(mixed_precision, "_native", type("core", (), {"has_bf16_unit": lambda: unit}))
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            MixedPrecision("Trainer", precision)
        return [str(warning.message) for warning in found]

    assert told("float32", False) == told("auto", False) == told("bfloat16", True) == []
    (text,) = told("bfloat16", False)
    assert "precision='bfloat16' will not be faster than float32" in text
    assert len(told("float16", True)) == 1


# The command line


def test_command_line(tmp_path: Path) -> None:
    def call(*args: Any) -> Any:
        return CliRunner().invoke(main, [str(a) for a in args])

    folder = tmp_path / "run"
    done = call("train", "lenet", "--steps", 3, "--precision", "float16", "--out", folder)
    assert done.exit_code == 0, done.output
    assert "will not be faster than float32" in done.stderr
    assert json.loads((folder / "config.json").read_text())["precision"] == "float16"
    assert records(folder, "step")[-1]["loss_scale"] == 65536.0
    page = (folder / "report.html").read_text()
    assert "float16" in page
    again = call("train", "lenet", "--steps", 5, "--resume", "--out", folder)
    assert again.exit_code == 0, again.output
    other = call("train", "lenet", "--steps", 6, "--resume", "--precision", "bfloat16", "--out", folder)
    assert other.exit_code != 0
    assert "another precision (float16, now bfloat16)" in other.output
    assert call("train", "lenet", "--precision", "half").exit_code == 2


def test_older_runs_are_float32(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert CliRunner().invoke(main, ["train", "lenet", "--steps", "2", "--out", str(folder)]).exit_code == 0
    config = json.loads((folder / "config.json").read_text())
    del config["precision"]
    (folder / "config.json").write_text(json.dumps(config))
    again = CliRunner().invoke(main, ["train", "lenet", "--steps", "3", "--resume", "--out", str(folder)])
    assert again.exit_code == 0, again.output
