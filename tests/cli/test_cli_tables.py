"""A newcomer's own CSV file: from the table to predictions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from extensor.cli import main
from extensor.train.splits import split_rows


def call(*args: Any) -> Result:
    return CliRunner().invoke(main, [str(a) for a in args])


@pytest.fixture(scope="module")
def homes(tmp_path_factory: Any) -> Path:
    """Prices that follow from size, town and garden; empty cells, a key, and the target in the middle."""
    rng = np.random.default_rng(0)
    towns = {"Oslo": 1.6, "Bergen": 1.1, "Tromsø": 0.8}
    rows = ["id,town,price,size,garden"]
    for i in range(400):
        town, size, garden = rng.choice(list(towns)), rng.uniform(30, 150), rng.choice(["yes", "no", ""])
        price = 50_000 * size * towns[town] + 400_000 * (garden == "yes")
        rows.append(f"H-{i},{town},{price:.0f},{'' if i % 100 == 7 else round(size, 1)},{garden}")
    folder = tmp_path_factory.mktemp("homes")
    (folder / "homes.csv").write_text("\n".join(rows), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def prices(homes: Path) -> tuple[Path, Result]:
    run = homes / "prices"
    options = ["--target", "price", "--ignore", "id", "--out", run]
    result = call("train", "mlp", "--data", homes / "homes.csv", *options)
    assert result.exit_code == 0, result.output
    return run, result


def test_training_says_what_it_did_with_empty_cells(prices: tuple[Path, Result]) -> None:
    run, result = prices
    assert "size: 4 empty cells count as the mean of the column" in result.stderr
    empty = sum(line.endswith(",") for line in (run.parent / "homes.csv").read_text("utf-8").splitlines())
    assert f"garden: {empty} empty cells count as one more word" in result.stderr
    assert "town:" not in result.stderr
    assert "homes.csv: 400 rows, UTF-8, separated by ','" in result.stderr
    assert "town    words, 3 different: Bergen, Oslo, Tromsø" in result.stderr
    assert "price   to predict: a quantity" in result.stderr
    assert "280 samples to train, 40 to validate, 80 to test" in result.stderr
    columns = json.loads((run / "config.json").read_text())["table"]["encoding"]["columns"]
    assert [column["name"] for column in columns] == ["town", "size", "garden"]


def test_quantities_are_predicted_in_their_own_units(prices: tuple[Path, Result]) -> None:
    result = call("predict", prices[0], "--out", prices[0] / "all.csv")
    assert result.exit_code == 0, result.output
    rows = np.array(
        [line.split(",")[1:] for line in (prices[0] / "all.csv").read_text().splitlines()[1:]], float
    )
    assert rows.shape == (80, 2)
    assert np.corrcoef(rows.T)[0, 1] > 0.98
    assert rows[:, 1].min() > 1e6
    assert np.abs(rows[:, 0] - rows[:, 1]).mean() < 0.2 * np.abs(rows[:, 1] - rows[:, 1].mean()).mean()
    assert "e+" not in (prices[0] / "all.csv").read_text()
    assert "on average of 80 samples" in result.output


def test_every_row_of_a_new_file_in_its_order(prices: tuple[Path, Result], tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text(
        "size,garden,town\n40,no,Bergen\n140,yes,Oslo\n90,,Stavanger\n,no,Oslo\n"
    )
    result = call("predict", prices[0], "--data", tmp_path / "new.csv")
    assert result.exit_code == 0, result.output
    found = [float(line.split(",")[1]) for line in result.stdout.splitlines()[1:]]
    assert len(found) == 4
    assert found[0] == pytest.approx(2_200_000, rel=0.2)
    assert found[1] == pytest.approx(11_600_000, rel=0.2)
    assert found[3] == pytest.approx(50_000 * 90 * 1.6, rel=0.2)
    assert "town: not there in training, taken for none of the values known: Stavanger" in result.stderr
    assert "size: an empty cell counts as the mean of the column" in result.stderr
    assert "garden: an empty cell counts as one more word" in result.stderr
    assert "average" not in result.output


def test_a_class_that_only_test_rows_have(tmp_path: Path) -> None:
    kinds = ["a"] * 52 + ["m"] + ["z"] * 47  # the one in the middle is held out, see split_rows
    assert 52 in split_rows(100, np.unique(kinds, return_inverse=True)[1]).test
    rows = [f"{kind == 'a'},{'xy'[kind == 'z']},{kind}" for kind in kinds]
    (tmp_path / "t.csv").write_text("\n".join(["n,w,kind", *rows]))
    result = call("train", "mlp", "--data", tmp_path / "t.csv", "--epochs", "3", "--out", tmp_path / "run")
    assert result.exit_code == 0, result.output
    assert "accuracy 95.00 % of 20 samples" in call("predict", tmp_path / "run").stdout


@pytest.mark.parametrize(
    ("args", "code", "text"),
    [
        (["mlp", "--data", "homes.csv"], 1, "too many to tell apart: id; leave the column out with ignore"),
        (["mlp", "--data", "homes.csv", "--target", "prize"], 1, "has no column 'prize'; it has id, town"),
        (["mlp", "--data", "homes.csv", "--target", "prize"], 1, "; did you mean 'price'?"),
        (["mlp", "--target", "price"], 1, "only a table (.csv) has columns to name"),
        (["lenet", "--data", "homes.csv", "--target", "price"], 2, "lenet learns from none; use mlp"),
        (["lenet", "--data", "homes.csv"], 1, "nor, for mlp, a .csv file"),
    ],
)
def test_mistakes(homes: Path, monkeypatch: Any, args: list[str], code: int, text: str) -> None:
    monkeypatch.chdir(homes)
    result = call("train", *args, "--out", "never")
    assert result.exit_code == code
    assert text in result.stderr


def test_a_target_by_number(homes: Path, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("\n".join(f"{'hot' if i % 2 else 'cold'},{i % 2},{i}" for i in range(40)))
    assert (
        call(
            "train", "mlp", "--data", tmp_path / "t.csv", "--target", "0", "--out", tmp_path / "run"
        ).exit_code
        == 0
    )
    assert "accuracy 100.00 % of 8 samples" in call("predict", tmp_path / "run").stdout


def test_predict_refuses_what_does_not_fit(prices: tuple[Path, Result], tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("size,town\n40,Oslo\n")
    result = call("predict", prices[0], "--data", tmp_path / "new.csv")
    assert (result.exit_code, "has no column 'garden'" in result.stderr) == (1, True)
    np.savez(tmp_path / "a.npz", x=np.ones((2, 3)), y=np.ones(2))
    assert (
        "the run learned from a table (.csv)"
        in call("predict", prices[0], "--data", tmp_path / "a.npz").stderr
    )
    config = json.loads((prices[0] / "config.json").read_text())
    config["table"]["encoding"] = 3
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "best.safetensors").write_bytes((prices[0] / "best.safetensors").read_bytes())
    damaged = call("predict", tmp_path, "--data", tmp_path / "new.csv")
    assert (damaged.exit_code, "encoding must be" in damaged.stderr) == (1, True)


def test_classes_without_names(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3)).astype(np.float32)
    x[:, 0] += 0.3 * np.sign(x[:, 0])
    np.savez(tmp_path / "a.npz", x=x, y=(x[:, 0] > 0).astype(np.int64))
    assert call("train", "mlp", "--data", tmp_path / "a.npz", "--out", tmp_path / "run").exit_code == 0
    predicted = call("predict", tmp_path / "run")
    assert predicted.exit_code == 0, predicted.output
    assert "accuracy 100.00 % of 40 samples" in predicted.stdout


def test_predictions_keep_the_columns(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    (tmp_path / "t.csv").write_text(
        "\n".join(["name,x,kind", *(f"n{i},{v},{'hi' if v > 0 else 'lo'}" for i, v in enumerate(x))])
    )
    options = ["--ignore", "name", "--epochs", 2, "--out", tmp_path / "run"]
    assert call("train", "mlp", "--data", tmp_path / "t.csv", *options).exit_code == 0
    result = call("predict", tmp_path / "run", "--data", tmp_path / "t.csv", "--out", tmp_path / "p.csv")
    assert result.exit_code == 0, result.output
    lines = [line.split(",") for line in (tmp_path / "p.csv").read_text().splitlines()]
    assert lines[0] == ["name", "x", "kind", "predicted", "p(hi)", "p(lo)"]
    assert [row[0] for row in lines[1:]] == [f"n{i}" for i in range(60)]
    assert all(float(row[4]) + float(row[5]) == pytest.approx(1, abs=1e-5) for row in lines[1:])
    assert all(len(text) <= len("0.123456") for row in lines[1:] for text in row[4:])


def test_predictions_of_a_table_without_names(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(60, 2))
    (tmp_path / "t.csv").write_text("\n".join(f"{a},{b},{a + b}" for a, b in x))
    options = ["--epochs", 1, "--out", tmp_path / "run"]
    assert call("train", "mlp", "--data", tmp_path / "t.csv", *options).exit_code == 0
    result = call("predict", tmp_path / "run", "--data", tmp_path / "t.csv", "--out", tmp_path / "p.csv")
    assert result.exit_code == 0, result.output
    lines = (tmp_path / "p.csv").read_text().splitlines()
    assert lines[0] == "column 0,column 1,column 2,predicted"
    assert len(lines) == 61
