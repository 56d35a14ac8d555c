"""Files and streams that wish us ill: commands refuse them with a message, or go on."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import extensor as et
from extensor import train
from extensor._printable import printable
from extensor.cli import main
from extensor.train import model_config
from extensor.train.saved_run import load_model

ESCAPE = "\x1b]8;;http://example.org\x1b\\click\x1b[2J"


def call(*args: Any) -> Result:
    result = CliRunner().invoke(main, [str(a) for a in args])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def test_printable_text_cannot_command_a_terminal() -> None:
    assert printable("plain ø 漢\n\t") == "plain ø 漢\n\t"
    assert printable(ESCAPE) == "\\x1b]8;;http://example.org\\x1b\\click\\x1b[2J"
    assert printable("\x9b31m \u202e \u2066 \x7f \r \ud800") == "\\x9b31m \\u202e \\u2066 \\x7f \\r \\ud800"
    assert printable("a\nb", keep="") == "a\\nb"


@pytest.mark.parametrize(
    "text", [ESCAPE, "[bold]x[/nothing]", "[link=http://example.org]x[/link]", "[/]", "a\nb"]
)
def test_inspect_shows_what_a_file_says_and_obeys_none_of_it(tmp_path: Path, text: str) -> None:
    file = tmp_path / "w.safetensors"
    train.save_weights(file, {text: et.ones(2)}, {"note" + text: "value" + text})
    shown = call("inspect", file)
    assert shown.exit_code == 0
    assert "\x1b" not in shown.output
    assert printable(text, keep="")[:10] in shown.output
    content = file.read_bytes()
    file.write_bytes(content[:-1])
    assert "\x1b" not in call("inspect", file).output


def test_errors_and_predictions_are_escaped_too(tmp_path: Path) -> None:
    rows = "".join(f"{i},{'ab'[i % 2]}{ESCAPE}\n" for i in range(30))
    (tmp_path / "t.csv").write_text("n,y\n" + rows)
    wrong = call("train", "mlp", "--data", tmp_path / "t.csv", "--target", "z" + ESCAPE)
    assert wrong.exit_code == 1
    assert "\x1b" not in wrong.output
    run = tmp_path / "run"
    done = call("train", "mlp", "--data", tmp_path / "t.csv", "--epochs", "1", "--out", run)
    assert done.exit_code == 0
    assert "\x1b" not in done.output
    assert "\x1b" not in call("predict", run).output
    call("predict", run, "--out", tmp_path / "p.csv")
    assert "\x1b" in (tmp_path / "p.csv").read_text()  # a file holds what it is


@pytest.mark.parametrize("text", ["", "[]", '{"results": [3]}', "[" * 100_000])
def test_bench_against_something_else(tmp_path: Path, text: str) -> None:
    (tmp_path / "old.json").write_text(text)
    result = call("bench", "--only", "relu", "--against", tmp_path / "old.json")
    assert result.exit_code == 1
    assert "is not a run written by extensor bench" in result.stderr
    assert call("bench", "--threads", "257").exit_code == 2


# Streams that take nothing any more


@pytest.mark.parametrize("stream", ["closed", "full"])
def test_a_training_goes_on_when_nobody_can_see_it(tmp_path: Path, stream: str) -> None:
    command = [
        sys.executable,
        "-m",
        "extensor.cli",
        "train",
        "mlp",
        "--epochs",
        "3",
        "--out",
        str(tmp_path / "run"),
    ]
    if stream == "full":
        with open("/dev/full", "w") as full:
            process = subprocess.Popen(command, stdout=full, stderr=subprocess.PIPE)
    else:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.close()
    _, said = process.communicate(timeout=120)
    assert b"Traceback" not in said
    assert b"Exception ignored" not in said
    assert process.returncode == 0
    assert {"model.safetensors", "report.html"} <= {path.name for path in (tmp_path / "run").iterdir()}


# Runs of all kinds, and configurations that are damaged


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("runs")
    rng = np.random.default_rng(0)
    rows = [f"{a:.3f},{'uvw'[i % 3]},{a + i % 3:.3f}" for i, a in enumerate(rng.normal(size=40))]
    (folder / "t.csv").write_text("\n".join(["a,w,y", *rows]))
    (folder / "t.txt").write_text("the quick brown fox jumps over the lazy dog. " * 20)
    for name, recipe, data, length in (
        ("table", "mlp", "t.csv", ("--epochs", 1)),
        ("text", "lstm", "t.txt", ("--steps", 1)),
    ):
        result = call("train", recipe, "--data", folder / data, *length, "--out", folder / name)
        assert result.exit_code == 0, result.output
    return {name: folder / name for name in ("table", "text")}


_JUNK = [None, 3, -1, 10**30, 1.5, True, "x", "", [], [1], {}, {"name": "MLP"}, "\x00", ["a", "a"]]


@pytest.mark.parametrize("name", ["table", "text"])
def test_damaged_configurations_are_refused(runs: dict[str, Path], name: str) -> None:
    run = runs[name]
    file = run / "config.json"
    whole = json.loads(file.read_text())
    commands = [("predict", run), ("sample", run, "--tokens", 1), ("report", run)]
    places = [(key,) for key in whole] + [("model", "args"), ("model", "name"), ("table", "encoding")]
    places += [("table", "inputs"), ("table", "target"), ("table", "encoding", "columns")]
    try:
        for number, place in enumerate(places):
            if place[0] not in whole:
                continue
            for junk in _JUNK[number % 3 :: 3]:
                config = copy.deepcopy(whole)
                inside = config
                for key in place[:-1]:
                    inside = inside[key]
                inside[place[-1]] = junk
                file.write_text(json.dumps(config))
                for command in commands:
                    result = call(*command)
                    assert result.exit_code in (0, 1), (place, junk, command)
        for text in ("", "{", "[]", "null", "3", "[" * 100_000, '{"model": {"name": []}}'):
            file.write_text(text)
            for command in commands[:2]:
                assert call(*command).exit_code == 1, (text[:20], command)
            assert call("report", run).exit_code == 0  # it says so on the page
    finally:
        file.write_text(json.dumps(whole))


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("table", {"name": "MLP", "args": {"sizes": [4, 60_000, 60_000, 1]}, "flatten": True}),
        ("table", {"name": "MLP", "args": {"sizes": [4] * 200_000 + [1]}, "flatten": True}),
        (
            "table",
            {"name": "GPT", "args": {"vocab_size": 9, "block_size": 64, "n_layer": 10**7, "n_embd": 4}},
        ),
        ("text", {"name": "LSTMLanguageModel", "args": {"vocab_size": 27, "hidden_size": 50_000}}),
        ("text", {"name": "ResNet20", "args": {"num_classes": 10**7}}),
    ],
)
def test_a_model_larger_than_its_weights_is_not_made(
    runs: dict[str, Path], monkeypatch: pytest.MonkeyPatch, name: str, model: dict[str, Any]
) -> None:
    def made(**args: Any) -> None:
        raise AssertionError(f"made with {args}")

    for kind in model_config._KINDS:
        monkeypatch.setitem(model_config._KINDS, kind, made)
    config = json.loads((runs[name] / "config.json").read_text())
    with pytest.raises(ValueError, match="parameters or more, and there are weights for"):
        load_model(runs[name], config | {"model": model})


def test_a_vocabulary_without_a_new_line(runs: dict[str, Path]) -> None:
    result = call("sample", runs["text"], "--tokens", "5")
    assert result.exit_code == 0, result.output
    assert len(result.output) == 1 + 5 + 1
    assert call("sample", runs["text"], "--prompt", "\n").exit_code == 1


def test_predictions_into_a_folder_that_is_not_there_yet(runs: dict[str, Path], tmp_path: Path) -> None:
    result = call("predict", runs["table"], "--out", tmp_path / "nodir" / "x.csv")
    assert result.exit_code == 0
    assert len((tmp_path / "nodir" / "x.csv").read_text().splitlines()) == 9
    (tmp_path / "file").write_text("")
    refused = call("predict", runs["table"], "--out", tmp_path / "file" / "x.csv")
    assert refused.exit_code == 1
    assert "was not written" in refused.stderr


def test_data_is_where_it_was_and_what_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place, shift in (("here", 0), ("there", 50)):
        (tmp_path / place).mkdir()
        rows = [f"{i},{i + shift + 0.5}" for i in range(40)]
        (tmp_path / place / "t.csv").write_text("\n".join(["a,y", *rows]))
    monkeypatch.chdir(tmp_path / "here")
    assert call("train", "mlp", "--data", "t.csv", "--epochs", "1", "--out", tmp_path / "run").exit_code == 0
    own = call("predict", tmp_path / "run").output
    monkeypatch.chdir(tmp_path / "there")
    assert call("predict", tmp_path / "run").output == own
    (tmp_path / "here" / "t.csv").write_text("a,y\n1,2.5\n")
    changed = call("predict", tmp_path / "run")
    assert changed.exit_code == 1
    assert "is not what the run learned from" in changed.stderr
    (tmp_path / "here" / "t.csv").unlink()
    assert "is not there; --data says where" in call("predict", tmp_path / "run").stderr


# Arrays


@pytest.fixture
def arrays(tmp_path: Path) -> tuple[np.ndarray, np.ndarray, Path]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 4)).astype(np.float32)
    x[:, 0] += np.sign(x[:, 0])
    return x, x[:, 0] > 0, tmp_path


@pytest.mark.parametrize("kind", ["bool", "int", "float", "one-hot", "column", "minus"])
def test_labels_of_any_kind(arrays: tuple[np.ndarray, np.ndarray, Path], kind: str) -> None:
    x, high, folder = arrays
    labels = {
        "bool": high, "int": high.astype(np.int32), "float": high.astype(float), "column": high[:, None].astype(int),
        "one-hot": np.stack([~high, high], 1).astype(np.float32), "minus": np.where(high, 1, -1),
    }[kind]  # fmt: skip
    np.savez(folder / "a.npz", x=x, y=labels)
    result = call("train", "mlp", "--data", folder / "a.npz", "--epochs", "20", "--out", folder / "run")
    assert result.exit_code == 0, result.output
    assert "2 classes" in result.stderr
    assert ("is taken as" in result.stderr or "they are taken as" in result.stderr) == (
        kind in ("float", "one-hot", "column")
    )
    predicted = call("predict", folder / "run", "--data", folder / "a.npz")
    assert "of 60 samples" in predicted.output


def test_predict_takes_every_row_of_an_array_in_order(arrays: tuple[np.ndarray, np.ndarray, Path]) -> None:
    x, high, folder = arrays
    np.savez(folder / "a.npz", x=x, y=high.astype(np.int64))
    call("train", "mlp", "--data", folder / "a.npz", "--epochs", "30", "--out", folder / "run")
    np.savez(folder / "new.npz", x=x[::-1])
    result = call("predict", folder / "run", "--data", folder / "new.npz", "--out", folder / "p.csv")
    assert result.exit_code == 0, result.output
    rows = [line.split(",") for line in (folder / "p.csv").read_text().splitlines()[1:]]
    assert [row[0] for row in rows] == [str(i) for i in range(60)]
    assert np.mean([int(row[1]) for row in rows] == high[::-1]) > 0.9
    assert {row[3] for row in rows} == {""}


def test_images_with_their_channels_last(tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (12, 28, 28, 3), dtype=np.uint8)
    np.savez(tmp_path / "a.npz", x=images, y=np.arange(12) % 2)
    result = call("train", "lenet", "--data", tmp_path / "a.npz", "--epochs", "1", "--out", tmp_path / "run")
    assert result.exit_code == 0, result.output
    assert "channels last" in result.stderr
    assert json.loads((tmp_path / "run" / "config.json").read_text())["model"]["args"]["in_channels"] == 3
