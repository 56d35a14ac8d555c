"""extensor train, predict, sample and inspect, as a person types them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from extensor.cli import main
from extensor.train import read_log
from extensor.train.lock import FolderInUseError, is_locked, locked


def call(*args):
    return CliRunner().invoke(main, [str(a) for a in args])


@pytest.fixture(scope="module")
def digits_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "digits"
    result = call("train", "mlp", "--epochs", "3", "--out", folder)
    assert result.exit_code == 0, result.output
    return folder, result.output


def test_train_on_digits_keeps_a_run(digits_run):
    folder, output = digits_run
    assert "test accuracy 8" in output or "test accuracy 9" in output
    assert {"config.json", "log.jsonl", "best.safetensors", "model.safetensors"} <= {
        p.name for p in folder.iterdir()
    }
    config = json.loads((folder / "config.json").read_text())
    assert config["recipe"] == "mlp"


def test_the_closing_line_speaks_of_the_best_weights(tmp_path):
    """Not of those of the last epoch, which neither the test nor ``predict`` uses."""
    result = call("train", "mlp", "--epochs", "12", "--lr", "0.05", "--out", tmp_path / "run")
    records = [r for r in read_log(tmp_path / "run" / "log.jsonl") if r["kind"] == "epoch"]
    best = max(records, key=lambda r: (r["val_accuracy"], -r["val_loss"]))
    assert best != records[-1]
    expected = f"validation accuracy {100 * best['val_accuracy']:.2f} %, validation loss {best['val_loss']:.4f}; best at epoch {best['epoch']}\n"
    assert expected in result.output
    assert f"\n{records[-1]['step']:,} steps; kept in {tmp_path / 'run'}\n" in result.output
    assert f"\nepoch: {best['epoch']}\n" in call("inspect", tmp_path / "run" / "best.safetensors").output
    tested = result.output.split("test accuracy ")[1].split(",")[0]
    assert f"accuracy {tested} of 359 samples" in call("predict", tmp_path / "run").output


def test_predict_says_how_good_it_is_and_writes_everything(digits_run, tmp_path):
    folder, _ = digits_run
    shown = call("predict", folder)
    assert shown.exit_code == 0, shown.output
    assert shown.output.startswith("sample,predicted,probability,target")
    assert "of 359 samples" in shown.output
    call("predict", folder, "--out", tmp_path / "p.csv")
    assert len((tmp_path / "p.csv").read_text().splitlines()) == 360


def test_inspect_lists_the_tensors(digits_run, tmp_path):
    shown = call("inspect", digits_run[0] / "best.safetensors")
    assert "1.layers.0.weight" in shown.output
    assert "(128, 64)" in shown.output
    (tmp_path / "bad.safetensors").write_bytes(b"not a header at all")
    damaged = call("inspect", tmp_path / "bad.safetensors")
    assert damaged.exit_code == 1
    assert "bad.safetensors" in damaged.output


def test_a_second_run_in_the_folder_is_refused_and_resume_ends_at_once(digits_run):
    folder, _ = digits_run
    refused = call("train", "mlp", "--epochs", "3", "--out", folder)
    assert refused.exit_code == 1
    assert "--resume" in refused.output
    weights = (folder / "model.safetensors").read_bytes()
    again = call("train", "mlp", "--epochs", "3", "--out", folder, "--resume")
    assert again.exit_code == 0, again.output
    assert (folder / "model.safetensors").read_bytes() == weights


@pytest.mark.parametrize("kind", ["classes", "quantities"])
def test_a_table_of_ones_own(tmp_path, kind):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3))
    y = (
        ["high" if a > 0 else "low" for a in x[:, 0]]
        if kind == "classes"
        else (3 * x[:, 0] + x[:, 1]).tolist()
    )
    rows = ["a,b,c,target", *(",".join([*map(str, row), str(t)]) for row, t in zip(x.tolist(), y))]
    (tmp_path / "table.csv").write_text("\n".join(rows))
    result = call(
        "train", "mlp", "--data", tmp_path / "table.csv", "--epochs", "15", "--out", tmp_path / "run"
    )
    assert result.exit_code == 0, result.output
    predicted = call("predict", tmp_path / "run")
    assert predicted.exit_code == 0, predicted.output
    assert ("accuracy 9" in predicted.output or "accuracy 100" in predicted.output) == (kind == "classes")


def test_resume_goes_on_with_the_same_data_and_with_no_other(tmp_path):
    rng = np.random.default_rng(1)
    table, other, run = tmp_path / "table.csv", tmp_path / "other.csv", tmp_path / "run"

    def write(path, scale):
        rows = [f"{scale * a},{b},{3 * a + b}" for a, b in rng.normal(size=(100, 2)).tolist()]
        path.write_text("\n".join(["a,b,target", *rows]))

    write(table, 1), write(other, 1000)
    assert call("train", "mlp", "--data", table, "--epochs", "2", "--out", run).exit_code == 0
    weights = (run / "model.safetensors").read_bytes()
    for options, what in (
        (("--data", other), "another data"),
        (("--seed", "3"), "another seed (0, now 3)"),
        (("--target", "a"), "another target (None, now a)"),
        (("--lr", "0.5"), "another lr (0.002, now 0.5)"),
    ):
        refused = call("train", "mlp", *options, "--epochs", "4", "--out", run, "--resume")
        assert refused.exit_code == 1
        assert what in refused.output
        assert "--out names a new folder" in refused.output
    kept = table.read_text()
    write(table, 7)  # the same place, but not what was there
    assert "another data" in call("train", "mlp", "--epochs", "4", "--out", run, "--resume").output
    assert (run / "model.safetensors").read_bytes() == weights
    table.write_text(kept)
    again = call("train", "mlp", "--epochs", "4", "--out", run, "--resume")  # config.json knows the data
    assert again.exit_code == 0, again.output
    assert (run / "model.safetensors").read_bytes() != weights


@pytest.mark.parametrize("recipe", ["chargpt", "lstm"])
def test_language_models_learn_and_write(tmp_path, recipe):
    (tmp_path / "text.txt").write_text("the quick brown fox jumps over the lazy dog. " * 60)
    run = tmp_path / "run"
    result = call("train", recipe, "--data", tmp_path / "text.txt", "--steps", "2", "--out", run)
    assert result.exit_code == 0, result.output
    assert "perplexity" in result.output
    first = call("sample", run, "--tokens", "20", "--prompt", "the ", "--seed", "1")
    assert first.exit_code == 0, first.output
    assert first.output.startswith("the ")
    assert len(first.output) == len("the ") + 20 + 1
    assert call("sample", run, "--tokens", "20", "--prompt", "the ", "--seed", "1").output == first.output
    assert "use extensor sample" in call("predict", run).output
    assert call("sample", run, "--prompt", "Ω").exit_code == 1
    hot = call("sample", run, "--prompt", "the ", "--temperature", "nan")
    assert hot.exit_code == 2
    assert "nan is no temperature" in hot.stderr


@pytest.mark.parametrize("length", [1, 3, 640])
def test_a_text_that_is_too_short(tmp_path, length):
    file = tmp_path / "text.txt"
    file.write_text("ab" * (length // 2) + "c" * (length % 2))
    result = call("train", "lstm", "--data", file, "--steps", "1", "--out", tmp_path / "run")
    assert result.exit_code == 1
    assert f"text.txt has a length of {length}, but 641 characters are the least" in result.stderr
    file.write_text("ab" * 320 + "c")
    assert call("train", "lstm", "--data", file, "--steps", "1", "--out", tmp_path / "run").exit_code == 0


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["train", "mlp", "--epochs", "1", "--steps", "1"], "not both"),
        (["train", "nothing"], "Invalid value"),
        (["train", "chargpt"], "pass --data FILE"),
        (["train", "mlp", "--data", "nowhere"], "does not exist"),
        (["predict", "."], "is not the folder of a run"),
    ],
)
def test_mistakes_get_a_clear_answer(args, text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = call(*args)
    assert result.exit_code != 0
    assert text in result.output


def test_every_command_has_help_to_learn_from():
    for command in ("train", "predict", "sample", "inspect", "verify", "bench"):
        result = call(command, "--help")
        assert result.exit_code == 0
        assert len(result.output.splitlines()) > 6
    assert "flowers.csv" in call("train", "--help").output


def test_the_folder_is_locked_until_the_report_is_written(tmp_path, monkeypatch):
    seen = []

    def write_page(setup, folder):
        seen.append(is_locked(folder))

    monkeypatch.setattr("extensor.cli.train.write_page", write_page)
    result = call("train", "mlp", "--steps", "2", "--out", tmp_path / "run")
    assert result.exit_code == 0, result.output
    assert seen == [True]
    assert not is_locked(tmp_path / "run")


def test_a_lock_is_lent_to_one_block_at_a_time(tmp_path):
    with locked("fit", tmp_path, lends=True):
        with locked("fit", tmp_path):
            with pytest.raises(FolderInUseError), locked("fit", tmp_path):
                pass
            assert is_locked(tmp_path)
        assert is_locked(tmp_path)
        with locked("fit", tmp_path):
            assert is_locked(tmp_path)
    with locked("fit", tmp_path):
        with pytest.raises(FolderInUseError), locked("fit", tmp_path):
            pass
    assert not is_locked(tmp_path)
