"""extensor train: settings, files of options, tasks, the parts of the data, and what --verify looks at."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from extensor.cli import main
from extensor.train.functions_used import functions_used
from extensor.train.recipes import RECIPES, Order


def call(*args: Any) -> Result:
    return CliRunner().invoke(main, [str(a) for a in args])


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    rows = [f"{a:.4f},{b:.4f},{i % 5}" for i, (a, b) in enumerate(rng.normal(size=(60, 2)))]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,grade", *rows]))
    return tmp_path / "t.csv"


def shown(result: Result) -> dict[str, Any]:
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_a_recipe_is_built_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    build = RECIPES["mlp"].build

    def counted(*args: Any) -> Any:
        calls.append(args)
        return build(*args)

    monkeypatch.setitem(vars(RECIPES["mlp"]), "build", counted)
    assert call("train", "mlp", "--epochs", "1", "--out", tmp_path / "run").exit_code == 0
    assert len(calls) == 1


def test_verify_checks_what_the_run_used(tmp_path: Path) -> None:
    result = call("train", "mlp", "--epochs", "1", "--out", tmp_path / "run", "--verify")
    assert result.exit_code == 0, result.output
    told, names = result.output.split("checked numerically, ")[1].splitlines()[:2]
    assert re.fullmatch(r"right in \d+ cases: the gradients of", told)
    assert "conv2d" not in names
    assert {"linear", "relu", "cross_entropy"} <= set(names.strip().split(", "))


@pytest.mark.parametrize(
    ("recipe", "used"),
    [("lenet", {"conv2d", "max_pool2d", "cross_entropy"}), ("resnet20", {"conv2d", "batch_norm", "relu"})],
)
def test_a_watched_step_changes_nothing(recipe: str, used: set[str]) -> None:
    setup = RECIPES[recipe].set_up(Order())
    before = {name: value.numpy().tobytes() for name, value in setup.model.state_dict().items()}
    assert used <= set(functions_used(setup))
    assert {name: value.numpy().tobytes() for name, value in setup.model.state_dict().items()} == before
    assert setup.train.position == 0


def test_settings_reach_the_run(table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    options = [
        "--lr",
        "0.05",
        "--batch-size",
        "7",
        "--hidden",
        "8,4",
        "--optimizer",
        "sgd",
        "--schedule",
        "constant",
    ]
    found = shown(call("train", "mlp", "--data", table, *options, "--set", "momentum=0.5", "--show-config"))
    assert found["model"]["args"]["sizes"] == [2, 8, 4, 5]
    assert (found["lr"], found["batch_size"], found["optimizer"]) == (0.05, 7, "sgd")
    assert found["momentum"] == 0.5
    assert not Path("runs").exists()
    run = tmp_path / "run"
    trained = call("train", "mlp", "--data", table, *options, "--epochs", "2", "--out", run)
    assert trained.exit_code == 0, trained.output
    first = json.loads((run / "log.jsonl").read_text().splitlines()[0])
    assert first["optimizer"]["name"] == "SGD"
    assert first["optimizer"]["lr"] == 0.05
    assert "schedule" not in first


def test_patience_ends_a_run(table: Path, tmp_path: Path) -> None:
    options = ["--lr", "1e-9", "--patience", "2", "--epochs", "30", "--out", tmp_path / "run"]
    result = call("train", "mlp", "--data", table, *options)
    assert "has not become better" in result.output


def test_a_file_of_options(table: Path, tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text(
        'recipe = "mlp"\ndata = "t.csv"\nepochs = 3\nlr = 0.1\nhidden = [6]\ntask = "regression"\n'
    )
    found = shown(call("train", "--config", file, "--lr", "0.2", "--steps", "9", "--show-config"))
    assert (found["recipe"], found["lr"], found["steps"]) == ("mlp", 0.2, 9)
    assert "epochs" not in found
    assert found["model"]["args"]["sizes"] == [2, 6, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lr = \n", "is no TOML file"),
        ("lrr = 1\n", "there is no option 'lrr'"),
        ('recipe = "nothing"\n', "recipe must be one of"),
        ("epochs = 0\n", "epochs must be at least 1"),
        ("epochs = true\n", "epochs cannot be True"),
    ],
)
def test_a_bad_file_of_options(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "run.toml").write_text(text)
    result = call("train", "--config", tmp_path / "run.toml", "--show-config")
    assert result.exit_code == 2
    assert message in result.stderr


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--lr", "fast"], 1, "lr must be a number, got str 'fast'"),
        (["--lr", "0"], 1, "lr must be more than 0"),
        (["--lr", "nan"], 1, "lr must be a number"),
        (["--batch-size", "1.5"], 1, "batch_size must be a whole number"),
        (["--hidden", "8,-1"], 1, "hidden must be widths of at least 1"),
        (["--set", "speed=3"], 1, "there is no setting 'speed'"),
        (["--set", "speed"], 2, "--set needs name=value"),
        (["--threads", "257"], 2, "257 is not in the range 1<=x<=256"),
    ],
)
def test_settings_that_make_no_sense(options: list[str], code: int, message: str) -> None:
    result = call("train", "mlp", *options, "--show-config")
    assert result.exit_code == code
    assert message in result.stderr


def test_the_task_can_be_said(table: Path) -> None:
    auto = call("train", "mlp", "--data", table, "--show-config")
    assert shown(auto)["classes"] == ["0", "1", "2", "3", "4"]
    assert "grade  to predict: 5 classes: 0, 1, 2, 3, 4" in auto.stderr
    told = call("train", "mlp", "--data", table, "--task", "regression", "--show-config")
    assert "classes" not in shown(told)
    assert "grade  to predict: a quantity" in told.stderr


def test_the_test_samples_do_not_choose_the_weights(table: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    result = call("train", "mlp", "--data", table, "--epochs", "2", "--out", run)
    assert "test accuracy" in result.stdout
    assert "validation accuracy" in result.stdout
    assert "42 samples to train, 6 to validate, 12 to test" in result.stderr
    assert "of 12 samples" in call("predict", run).output


def test_parts_in_files_of_their_own(table: Path, tmp_path: Path) -> None:
    lines = table.read_text().splitlines()
    for name, rows in (("v.csv", lines[1:6]), ("t.csv", lines[6:16]), ("all.csv", lines[16:])):
        (tmp_path / name).write_text("\n".join([lines[0], *rows]))
    run, files = tmp_path / "run", ["--validation", tmp_path / "v.csv", "--test", tmp_path / "t.csv"]
    result = call("train", "mlp", "--data", tmp_path / "all.csv", *files, "--epochs", "1", "--out", run)
    assert result.exit_code == 0, result.output
    assert "45 samples to train, 5 to validate, 10 to test" in result.stderr
    predicted = call("predict", run, "--out", tmp_path / "p.csv")
    assert "of 10 samples" in predicted.output
    wanted = [line.split(",")[3] for line in (tmp_path / "p.csv").read_text().splitlines()[1:]]
    assert wanted == [line.split(",")[2] for line in lines[6:16]]
    assert (
        call("train", "mlp", "--epochs", "2", "--out", run, "--resume").exit_code == 0
    )  # the run knows them
    (tmp_path / "v.csv").write_text("\n".join(lines[:4]))
    changed = call("train", "mlp", "--epochs", "3", "--out", run, "--resume")
    assert "another validation file" in changed.stderr
    (tmp_path / "v.csv").write_text("a,b\n1,2\n")
    refused = call("train", "mlp", "--data", tmp_path / "all.csv", *files, "--out", tmp_path / "other")
    assert "v.csv has no targets" in refused.stderr
    assert "files of their own" in call("train", "lenet", *files, "--out", tmp_path / "other").stderr


def test_a_part_of_arrays_in_a_file_of_its_own(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(30, 3))
    np.savez(tmp_path / "a.npz", x=x, y=np.arange(30) % 3)
    np.savez(tmp_path / "t.npz", x=x[:4], y=np.array([2, 2, 0, 0]))
    files = ["--data", tmp_path / "a.npz", "--test", tmp_path / "t.npz"]
    result = call("train", "mlp", *files, "--epochs", "1", "--out", tmp_path / "run")
    assert "27 samples to train, 3 to validate, 4 to test" in result.stderr
    assert "of 4 samples" in call("predict", tmp_path / "run").output


def test_folds(table: Path, tmp_path: Path) -> None:
    options = ["--data", table, "--epochs", "1", "--out", tmp_path / "run", "--folds", "3"]
    result = call("train", "mlp", *options)
    assert result.exit_code == 0, result.output
    accuracies = []
    for k in (1, 2, 3):
        shown = call("predict", tmp_path / "run" / f"fold-{k}").output
        assert "of 20 samples" in shown
        accuracies.append(float(shown.split("accuracy ")[1].split("%")[0]))
    mean, spread = np.mean(accuracies), np.std(accuracies, ddof=1)
    assert f"test accuracy {mean:.2f} % ± {spread:.2f} % over 3 folds" in result.stdout
    again = call("train", "mlp", *options, "--resume")
    assert again.stdout.splitlines()[-1] == result.stdout.splitlines()[-1]
    assert "not both" in call("train", "mlp", *options, "--test", table).stderr


def test_resume_goes_on_with_the_seed_and_the_length_it_began_with(table: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert call("train", "mlp", "--data", table, "--epochs", "3", "--seed", "4", "--out", run).exit_code == 0
    weights = (run / "model.safetensors").read_bytes()
    again = call("train", "mlp", "--out", run, "--resume")
    assert again.exit_code == 0, again.output
    assert "planned anew" not in again.output
    assert (run / "model.safetensors").read_bytes() == weights


def test_the_configuration_of_folds_is_shown_once(table: Path) -> None:
    assert shown(call("train", "mlp", "--data", table, "--folds", "4", "--show-config"))["fold"] == [1, 4]
