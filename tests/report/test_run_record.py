"""The folder of a run in every state it can be in, and its log as curves."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from extensor.report.chart import Chart, Heat
from extensor.report.curves import curves
from extensor.report.layers import layer_charts
from extensor.report.run_record import number, read_run
from extensor.train.lock import is_locked, locked


def run_folder(folder: Path, *records: Any, config: str | None = "{}") -> Path:
    (folder / "log.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    if config is not None:
        (folder / "config.json").write_text(config)
    return folder


BEGIN = {"kind": "begin", "step": 0, "epoch": 0, "total_steps": 40, "at": "2026-01-02T03:04:05+00:00"}
STEPS = [{"kind": "step", "step": s, "loss": 1 / s, "lr": 0.1} for s in (10, 20)]


def end(reason: str) -> dict[str, Any]:
    return {"kind": "end", "step": 20, "epoch": 1, "stopped": reason, "seconds": 1.0}


@pytest.mark.parametrize(
    ("records", "state", "text"),
    [
        ([BEGIN, *STEPS, end("finished")], "finished", "finished"),
        ([BEGIN, *STEPS, end("interrupted")], "interrupted", "interrupted at step 20; --resume goes on"),
        ([BEGIN, *STEPS, end("val_loss is no better")], "stopped", "stopped early at step 20: val_loss is no better"),
        ([BEGIN, *STEPS, end("[Trainer] the loss is nan")], "failed", "failed after step 20: [Trainer] the loss is nan"),
        ([BEGIN, *STEPS], "unfinished", "broken off after step 20; --resume goes on from the last checkpoint"),
        ([BEGIN, *STEPS, end("interrupted"), {"kind": "resume", "step": 20}], "unfinished", "broken off after step 20"),
        ([], "unfinished", "broken off after step 0"),
    ],
)  # fmt: skip
def test_states(tmp_path: Path, records: list[dict[str, Any]], state: str, text: str) -> None:
    run = read_run(run_folder(tmp_path, *records))
    assert run.status.state == state
    assert run.status.text.startswith(text)


def test_a_run_in_progress(tmp_path: Path) -> None:
    run_folder(tmp_path, BEGIN, *STEPS)
    assert not is_locked(tmp_path)
    with locked("fit", tmp_path):
        assert is_locked(tmp_path)
        status = read_run(tmp_path).status
        with (tmp_path / "log.jsonl").open("a") as log:
            log.write('{"kind": "step", "st')  # being written at this moment
        assert read_run(tmp_path).notes == []
    assert (status.state, status.text) == ("running", "in progress, step 20 of 40")
    assert read_run(tmp_path).status.state == "unfinished"


def test_no_run_and_nothing_readable(tmp_path: Path) -> None:
    with pytest.raises(
        FileNotFoundError, match=r"\[report\] .* is not the folder of a run: it has no log.jsonl"
    ):
        read_run(tmp_path)
    (tmp_path / "log.jsonl").write_bytes(b"\x00\xff\n\x01\n")
    with pytest.raises(ValueError, match=r"\[report\] no line of the log can be read: .*line 1 is no JSON"):
        read_run(tmp_path)


def test_damage_is_told_and_the_rest_is_kept(tmp_path: Path) -> None:
    run_folder(tmp_path, *STEPS, config="{")
    log = tmp_path / "log.jsonl"
    log.write_text("[1]\n" + log.read_text() + '{"kind":\n')
    run = read_run(tmp_path)
    assert len(run.records) == 2
    assert "line 1 is no record, and 1 more" in run.notes[0]
    assert "config.json is damaged" in run.notes[1]


@pytest.mark.parametrize("config", [None, "[]"])
def test_a_missing_configuration_is_told(tmp_path: Path, config: str | None) -> None:
    assert (
        "panels that need the model or the data are left out"
        in read_run(run_folder(tmp_path, *STEPS, config=config)).notes[0]
    )


def test_numbers() -> None:
    record = {
        "a": 1,
        "b": 2.5,
        "c": True,
        "d": "3",
        "e": None,
        "f": math.inf,
        "g": 10**400,
        "h": 1e-200,
        "i": math.nan,
    }
    assert [number(record, name) for name in "abcdefghij"] == [1.0, 2.5, *[None] * 5, 0.0, None, None]


# Curves


def charts(folder: Path, *records: Any) -> dict[str, Chart]:
    return {chart.key: chart for chart in curves(read_run(run_folder(folder, *records)))}


def epoch(number: int, **values: Any) -> dict[str, Any]:
    return {"kind": "epoch", "epoch": number, "step": 20 * number, "loss": 1 / number, **values}


def test_curves_are_the_log(tmp_path: Path) -> None:
    found = charts(
        tmp_path, BEGIN, *STEPS, epoch(1, val_loss=0.9, accuracy=0.5, val_accuracy=0.6, confusion=[[1]]),
        {"kind": "resume", "step": 20}, epoch(2, val_loss=0.7, accuracy=0.8, val_accuracy=0.9), epoch(3, val_loss=None, accuracy=0.9, val_accuracy=0.8),
    )  # fmt: skip
    assert list(found) == ["loss", "accuracy", "learning_rate"]
    loss, accuracy = found["loss"], found["accuracy"]
    assert [(s.name, s.style, list(s.points)) for s in loss.series] == [
        ("training, step by step", "faint", [(10.0, 0.1), (20.0, 0.05)]),
        ("training", "line", [(20.0, 1.0), (40.0, 0.5), (60.0, 1 / 3)]),
        ("validation", "line", [(20.0, 0.9), (40.0, 0.7), (60.0, None)]),
    ]
    assert loss.best == ("validation", (40.0, 0.7))
    assert accuracy.best == ("validation", (40.0, 0.9))
    assert accuracy.kind == "percent"
    assert (loss.axis.label, loss.axis.unit) == ("epoch", 20.0)
    assert loss.marks == [(20, "resumed at step 20")]
    assert loss.x_scale().high == 60.0


def test_a_single_epoch_shows_the_accuracy_so_far(tmp_path: Path) -> None:
    steps = [{**step, "epoch_so_far": {"accuracy": 0.1 * i, "step": "x"}} for i, step in enumerate(STEPS, 1)]
    found = charts(tmp_path, *steps, epoch(1, accuracy=0.2, val_accuracy=0.3))
    assert found["accuracy"].axis.label == "step"
    training, validation = found["accuracy"].series
    assert list(training.points) == [(10.0, 0.1), (20.0, 0.2)]
    assert list(validation.points) == [(20.0, 0.3)]


def test_validations_between_epochs(tmp_path: Path) -> None:
    later = [{"kind": "validation", "step": s, "val_loss": 2.0, "val_perplexity": s} for s in (10, 20)]
    found = charts(tmp_path, *STEPS, *later)
    assert [s.name for s in found["loss"].series] == ["training", "validation"]
    assert found["perplexity"].best == ("validation", (10.0, 10.0))


def test_any_name_of_a_metric_may_name_a_file(tmp_path: Path) -> None:
    odd = {"val_../../x": 1.0, "val_loss_": 2.0, "val_speed": 3.0, "val_": 4.0, "val_é": 5.0}
    rates = [{**step, "samples_per_second": 5.0} for step in STEPS]
    found = charts(tmp_path, *rates, epoch(1, **odd), epoch(2, **odd))
    assert len(found) == 8
    assert all(key.replace("_", "").isalnum() or not key.strip("_") for key in found)


# Layers


def layers(step: int, gradients: dict[str, Any], ratios: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "layers", "step": step, "grad_norm": gradients, "update_ratio": ratios}


def test_layers_are_lines(tmp_path: Path) -> None:
    gradients, ratios = {"fc.weight": 3.0, "fc.bias": 4.0, "scale": 2.0}, {"fc.weight": 1e-3, "fc.bias": 0.5}
    run = read_run(
        run_folder(
            tmp_path, layers(5, gradients, ratios), layers(10, {"fc.weight": 1.0}, {"fc.weight": None})
        )
    )
    norms, moves = layer_charts(run)[0], layer_charts(run)[1:]
    assert isinstance(norms, Chart)
    assert [(s.name, list(s.points)) for s in norms.series] == [
        ("fc", [(5.0, 5.0), (10.0, 1.0)]), ("scale", [(5.0, 2.0), (10.0, None)]),
    ]  # fmt: skip
    assert norms.logarithmic
    assert [(c.key, [s.name for s in c.series]) for c in moves if isinstance(c, Chart)] == [
        ("update_ratios", ["fc"])
    ]


def test_many_layers_are_rows_of_colours(tmp_path: Path) -> None:
    many = {f"h.{i}.weight": 10.0**-i for i in range(12)}
    records = [layers(step, many, many) for step in range(1, 500)]
    found = layer_charts(read_run(run_folder(tmp_path, *records)))
    assert [type(c) for c in found] == [Heat, Heat]
    heat = found[0]
    assert isinstance(heat, Heat)
    assert list(heat.rows) == [f"h.{i}" for i in range(12)]
    assert len(heat.steps) == len(heat.values[0]) <= 240
    assert (heat.scale().low, heat.scale().high) == (1e-11, 1.0)


@pytest.mark.parametrize(
    "records",
    [
        [],
        [layers(5, {"a": 1.0}, {})],
        [layers(5, {"a": 0.0}, {}), {"kind": "layers", "step": 6, "grad_norm": 3}],
    ],
)
def test_too_little_for_a_chart_of_layers(tmp_path: Path, records: list[Any]) -> None:
    assert layer_charts(read_run(run_folder(tmp_path, *records))) == []
