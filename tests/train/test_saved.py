"""A run from Python: load_run, predictions for files, frames and arrays, the history drawn."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.datasets import load_iris

from extensor.cli import main
from extensor.train import load_run


def trained(folder: Path, *options: str) -> None:
    outcome = CliRunner().invoke(main, ["train", "mlp", "--out", str(folder), "--epochs", "15", *options])
    assert outcome.exit_code == 0, outcome.output


@pytest.fixture(scope="module")
def iris(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("iris")
    flowers = load_iris()
    names = [name.partition(" (")[0] for name in flowers.feature_names]
    lines = [",".join([*names, "kind"])]
    lines += [",".join([*map(str, x), flowers.target_names[y]]) for x, y in zip(flowers.data, flowers.target)]
    (folder / "iris.csv").write_text("\n".join(lines))
    trained(folder / "run", "--data", str(folder / "iris.csv"))
    return folder


def test_a_table(iris: Path, tmp_path: Path) -> None:
    run = load_run(iris / "run")
    found = run.predict(iris / "iris.csv")
    assert len(found) == 150
    assert found.classes == ("setosa", "versicolor", "virginica") == run.classes
    assert found.probabilities is not None
    np.testing.assert_allclose(found.probabilities.sum(1), 1, rtol=1e-5)
    assert np.mean(found.values == found.targets) > 0.85
    columns = found.as_columns()
    assert list(columns) == [
        "sepal length",
        "sepal width",
        "petal length",
        "petal width",
        "kind",
        "predicted",
        "p(setosa)",
        "p(versicolor)",
        "p(virginica)",
    ]
    assert columns["sepal length"][:2] == ["5.1", "4.9"]
    found.to_csv(tmp_path / "out.csv")
    rows = list(csv.DictReader((tmp_path / "out.csv").read_text().splitlines()))
    assert [row["predicted"] for row in rows] == list(found)
    assert repr(found) == "Predictions(150 samples, 3 classes)"
    by_array = run.predict(load_iris().data)  # the columns of the table without its target
    assert list(by_array) == list(found)
    assert by_array.targets is None
    with pytest.raises(
        ValueError,
        match=r"\[predict\] the run's table has the columns sepal length, .*; got an array of shape \(2, 3\)",
    ):
        run.predict(np.ones((2, 3)))
    assert len(run.predict()) == 30  # its own test samples: a fifth


def test_a_frame_keeps_its_columns_and_rows(iris: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = (
        pandas.read_csv(iris / "iris.csv")
        .drop(columns="kind")
        .assign(id=range(150))
        .sample(40, random_state=0)
    )
    run = load_run(iris / "run")
    answer = run.predict(frame).to_frame()
    assert answer["id"].tolist() == frame["id"].tolist()
    every = list(run.predict(iris / "iris.csv"))
    assert answer["predicted"].tolist() == [every[i] for i in frame["id"]]


def test_history(iris: Path) -> None:
    run = load_run(iris / "run")
    assert len(run.history.values("loss")) == 15
    assert run.history.stopped == "finished"
    assert run.history.steps > 0
    pytest.importorskip("matplotlib").use("Agg")
    axes = run.history.plot("loss", "accuracy")
    assert [line.get_label() for line in axes.lines] == ["loss", "val_loss", "accuracy", "val_accuracy"]
    with pytest.raises(ValueError, match=r"\[plot\] there is no metric 'nothing'"):
        run.history.plot("nothing")


def test_quantities_in_the_units_of_the_table(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(200, 2))
    y = 1000 + 300 * x[:, 0]
    rows = "\n".join(["a,b,price", *(f"{p:.5f},{q:.5f},{r:.3f}" for (p, q), r in zip(x, y))])
    (tmp_path / "t.csv").write_text(rows)
    trained(tmp_path / "run", "--data", str(tmp_path / "t.csv"), "--epochs", "40")
    found = load_run(tmp_path / "run").predict(x)
    assert found.classes is None
    assert np.corrcoef(found.values, y)[0, 1] > 0.95
    assert abs(np.mean(found.values) - 1000) < 60


def test_images_as_an_array(tmp_path: Path) -> None:
    trained(tmp_path / "run", "--epochs", "2")
    run = load_run(tmp_path / "run")
    own: Any = run.predict()
    assert own.classes == tuple("0123456789")
    pixels = np.random.default_rng(0).integers(0, 255, (5, 1, 8, 8), dtype=np.uint8)
    assert run.predict(pixels).probabilities.shape == (5, 10)  # type: ignore[union-attr]
    assert run.model(np.zeros((1, 1, 8, 8), np.float32)).shape == (1, 10)
