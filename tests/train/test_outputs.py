"""Metrics, the log, TensorBoard's files and the display."""

from __future__ import annotations

import io
import math
import re
import struct
import threading
from pathlib import Path

import numpy as np
import pytest
import small_run

import extensor as et
from extensor import train
from extensor.data import DamagedFileError
from extensor.train.display import display_for
from extensor.train.tensorboard import crc32c

# Metrics


@pytest.mark.parametrize("top_k", [1, 2, 5])
@pytest.mark.parametrize("shape", [(50,), (5, 10)])
def test_accuracy(top_k: int, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    outputs, targets = rng.standard_normal((*shape, 8)).astype(np.float32), rng.integers(0, 8, shape)
    metric = train.Accuracy(top_k)
    for part in (slice(0, 3), slice(3, None)):
        metric.update(et.tensor(outputs[part]), et.tensor(targets[part]), 0.0)
    best = np.argsort(-outputs, axis=-1)[..., :top_k]
    assert metric.value() == (best == targets[..., None]).any(-1).mean()
    metric.reset()
    assert math.isnan(metric.value())


def test_accuracy_of_ties_and_nans() -> None:
    metric = train.Accuracy()
    metric.update(et.tensor([[1.0, 1.0], [1.0, 1.0], [math.nan, math.nan]]), et.tensor([0, 1, 0]), 0.0)
    assert metric.counts == {"right": 1, "all": 3}


def test_confusion_matrix() -> None:
    rng = np.random.default_rng(1)
    outputs, targets = rng.standard_normal((40, 3)), rng.integers(0, 3, 40)
    metric = train.ConfusionMatrix(3)
    metric.update(et.tensor(outputs[:15]), et.tensor(targets[:15]), 0.0)
    middle = metric.state_dict()
    metric.update(et.tensor(outputs[15:]), et.tensor(targets[15:]), 0.0)
    expected = [[int(((targets == i) & (outputs.argmax(1) == j)).sum()) for j in range(3)] for i in range(3)]
    assert metric.value() == expected
    metric.load_state_dict(middle)
    metric.update(et.tensor(outputs[15:]), et.tensor(targets[15:]), 0.0)
    assert metric.value() == expected
    assert middle["matrix"].sum() == 15
    with pytest.raises(ValueError, match=r"\[ConfusionMatrix\] labels must be from 0 to 2"):
        metric.update(et.tensor(outputs), et.tensor(targets + 1), 0.0)


def test_perplexity_weighs_batches_by_their_size() -> None:
    metric = train.Perplexity()
    metric.update(et.zeros((3, 2)), et.zeros(3), 1.0)
    metric.update(et.zeros((1, 2)), et.zeros(1), 3.0)
    assert metric.value() == pytest.approx(math.exp(1.5))
    metric.update(et.zeros((1, 2)), et.zeros(1), 1e9)
    assert metric.value() == math.inf


@pytest.mark.parametrize("metric", [train.Accuracy(), train.ConfusionMatrix(2)])
@pytest.mark.parametrize(
    ("outputs", "targets"),
    [
        (et.zeros(3), et.tensor([1, 0, 1])),
        (et.zeros((3, 2)), et.zeros(3)),
        (et.zeros((3, 2)), et.tensor([1, 0])),
    ],
)
def test_metrics_of_something_else(metric: train.Metric, outputs: et.ExTensor, targets: et.ExTensor) -> None:
    with pytest.raises(ValueError, match=r"needs outputs \(\.\.\., classes\)"):
        metric.update(outputs, targets, 0.0)
    with pytest.raises(ValueError, match=r"load_state_dict\] state must have"):
        metric.load_state_dict({"something": 1})


# The log


def test_log_is_cut_back_and_goes_on(tmp_path: Path) -> None:
    log = train.Log(tmp_path / "log.jsonl")
    log.write({"kind": "step", "loss": math.nan, "nested": [math.inf, {"a": 1}]})
    length = log.sync()
    log.write({"kind": "late"})
    log.close()
    again = train.Log(tmp_path / "log.jsonl", length)
    again.write({"kind": "next"})
    again.close()
    assert train.read_log(tmp_path / "log.jsonl") == [
        {"kind": "step", "loss": None, "nested": [None, {"a": 1}]},
        {"kind": "next"},
    ]


def test_an_unfinished_line_is_left_out_and_a_bad_one_named(tmp_path: Path) -> None:
    (tmp_path / "log").write_text('{"a":1}\n{"b":')
    assert train.read_log(tmp_path / "log") == [{"a": 1}]
    for text in ('{"a":1}\n{"b":\n', '{"a":1}\n[]\n', '{"a":1}\n' + "[" * 100_000 + "\n"):
        (tmp_path / "log").write_text(text)
        with pytest.raises(DamagedFileError, match="line 2"):
            train.read_log(tmp_path / "log")


# TensorBoard


def test_crc32c() -> None:
    assert crc32c(b"123456789") == 0xE3069283  # the check value of the polynomial
    assert crc32c(bytes(32)) == 0x8A9136AA  # RFC 3720, B.4


def masked(data: bytes) -> int:
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(path: Path) -> list[bytes]:
    content, found = path.read_bytes(), []
    while content:
        (length,) = struct.unpack("<Q", content[:8])
        assert struct.unpack("<I", content[8:12])[0] == masked(content[:8])
        body = content[12 : 12 + length]
        assert struct.unpack("<I", content[12 + length : 16 + length])[0] == masked(body)
        found.append(body)
        content = content[16 + length :]
    return found


def fields(message: bytes) -> list[tuple[int, object]]:
    """Numbers and values of a protocol buffer."""
    found: list[tuple[int, object]] = []

    def varint() -> int:
        nonlocal message
        number, shift = 0, 0
        while True:
            byte, message = message[0], message[1:]
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
            shift += 7

    while message:
        key = varint()
        kind = key & 7
        if kind == 0:
            found.append((key >> 3, varint()))
            continue
        length = {1: 8, 5: 4}.get(kind) or varint()
        part, message = message[:length], message[length:]
        value = struct.unpack("<d" if kind == 1 else "<f", part)[0] if kind in (1, 5) else part
        found.append((key >> 3, value))
    return found


def test_event_files(tmp_path: Path) -> None:
    writer = train.EventWriter(tmp_path, first_step=300)
    writer.scalars(1_000_000, {"loss": 0.5, "grad/0.weight": -2.0})
    writer.close()
    version, session, scalars = map(fields, records(writer.path))
    assert version[1:] == [(2, 0), (3, b"brain.Event:2")]
    assert session[1:] == [(2, 300), (7, b"\x08\x01")]
    assert scalars[1] == (2, 1_000_000)
    assert scalars[0][0] == 1
    assert abs(float(scalars[0][1]) - writer.path.stat().st_mtime) < 60  # type: ignore[arg-type]
    values = [dict(fields(value)) for _, value in fields(scalars[2][1])]  # type: ignore[arg-type]
    assert values == [{1: b"loss", 2: 0.5}, {1: b"grad/0.weight", 2: -2.0}]


# The display


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_auto_is_live_in_a_terminal_alone() -> None:
    assert type(display_for("auto", Terminal()).shown).__name__ == "LiveDisplay"
    assert type(display_for("auto", io.StringIO()).shown).__name__ == "PlainDisplay"


def test_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    small_run.fit(None, display="plain", validate_every=None)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == small_run.EPOCHS
    assert lines[0].startswith("epoch 1/3  loss ")
    assert all(word in lines[0] for word in ("accuracy ", " %", "val loss ", "lr ", "samples/s", " s"))
    assert "confusion" not in lines[0]


def test_live_display(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "150")
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    small_run.fit(None, display="auto", validate_every=None)
    shown = terminal.getvalue()
    assert "epoch 3/3" in shown
    assert "100%" in shown
    assert "val accuracy" in shown
    assert "samples/s" in shown


def test_live_table_fits_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    small_run.fit(None, display="live", validate_every=None)
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.getvalue()).replace("\r", "\n").splitlines()
    (head,) = [line for line in lines if "val accuracy" in line]
    rows = [line for line in lines if re.match(r" *\d/3 ", line)]
    assert head.split() == ["epoch", "loss", "accuracy", "val", "loss", "val", "accuracy", "time"]
    assert [row.split()[0] for row in rows] == ["1/3", "2/3", "3/3"]
    assert {len(line) for line in (head, *rows)} == {len(head)}
    assert len(head) <= 80
    assert all(row.index("%") + 1 == head.index("accuracy") + len("accuracy") for row in rows)


def test_a_run_in_another_thread_needs_no_signals() -> None:
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(small_run.fit(None)[1].stopped))
    thread.start()
    thread.join(60)
    assert found == ["finished"]


def test_a_stream_that_fails_ends_the_display_and_a_mistake_of_ours_does_not() -> None:
    closed = io.StringIO()
    quiet = display_for("plain", closed)
    closed.close()
    quiet.message("to nobody")
    quiet.message("again")

    class Full(io.StringIO):
        def flush(self) -> None:
            raise OSError(28, "No space left on device")

    class Mistaken(io.StringIO):
        def write(self, text: str) -> int:
            raise ValueError("a mistake")

    display_for("plain", Full()).message("no room")
    with pytest.raises(ValueError, match="a mistake"):
        display_for("plain", Mistaken()).message("this must be seen")
