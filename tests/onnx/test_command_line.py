"""``extensor export`` and ``extensor onnx``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner

import extensor as et
from extensor.cli import main
from extensor.onnx.runtime import run_in_runtime
from extensor.train.recipes import RECIPES
from extensor.train.saved_run import held_out_samples, read_config

RUNNER = CliRunner()


def run(*words: str | Path) -> str:
    found = RUNNER.invoke(main, [str(w) for w in words], catch_exceptions=False)
    assert found.exit_code == 0, found.output
    return found.output


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table, and runs on it, on digits and on a text."""
    place = tmp_path_factory.mktemp("runs")
    rng = np.random.default_rng(0)
    rows = ["size,age,kind,price"]
    for _ in range(80):
        size, age, kind = rng.uniform(20, 200), rng.uniform(0, 0.01), rng.choice(["flat", "house"])
        rows.append(f"{size},{age},{kind},{1000 * size - 4000 * age + (kind == 'house') * 5e4}")
    (place / "homes.csv").write_text("\n".join(rows))
    (place / "text.txt").write_text("to be or not to be that is the question " * 60)
    for name in (*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"):
        images = rng.integers(0, 256, (8, 3073), np.uint8)
        images[:, 0] %= 10
        (place / "photographs").mkdir(exist_ok=True)
        (place / "photographs" / name).write_bytes(images.tobytes())
    run(
        "train",
        "resnet20",
        "--data",
        place / "photographs",
        "--epochs",
        "1",
        "--batch-size",
        "8",
        "--out",
        place / "resnet20",
    )
    run("train", "mlp", "--data", place / "homes.csv", "--epochs", "2", "--out", place / "homes")
    run(
        "train",
        "mlp",
        "--data",
        place / "homes.csv",
        "--target",
        "kind",
        "--epochs",
        "2",
        "--out",
        place / "kinds",
    )
    run("train", "lenet", "--epochs", "1", "--out", place / "digits")
    run("train", "lstm", "--data", place / "text.txt", "--steps", "2", "--out", place / "lstm")
    run("train", "chargpt", "--data", place / "text.txt", "--steps", "2", "--out", place / "gpt")
    return place


def test_a_table_goes_out_in_its_own_units(folder: Path) -> None:
    file = folder / "homes.onnx"
    assert "largest difference to ONNX Runtime" in run("export", folder / "homes", "--to", file)
    predicted = run("predict", folder / "homes", "--data", folder / "homes.csv").splitlines()[1]
    size, age, kind, _ = (folder / "homes.csv").read_text().splitlines()[1].split(",")
    row = np.array([[float(size), float(age), kind == "flat", kind == "house"]], np.float32)
    found = run_in_runtime(file, {"x": row})[0]
    np.testing.assert_allclose(found[0, 0], float(predicted.split(",")[1]), rtol=1e-4)
    assert json.loads({p.key: p.value for p in onnx.load(file).metadata_props}["columns"])[2]["values"] == [
        "flat",
        "house",
    ]


def test_digits_go_out_with_their_scaling_and_names(folder: Path) -> None:
    file = folder / "digits.onnx"
    run("export", folder / "digits", "--to", file, "--opset", "17")
    samples = held_out_samples(read_config(folder / "digits"))
    found = run_in_runtime(file, {"x": samples.inputs[:10]})[0]
    np.testing.assert_allclose(found.sum(1), 1, rtol=1e-5)
    lines = run("predict", folder / "digits").splitlines()[1:11]
    assert [str(k) for k in found.argmax(1)] == [line.split(",")[1] for line in lines]
    assert json.loads({p.key: p.value for p in onnx.load(file).metadata_props}["classes"]) == list(
        "0123456789"
    )


def test_photographs_go_out_as_they_are_stored(folder: Path) -> None:
    file = folder / "resnet20.onnx"
    run("export", folder / "resnet20", "--to", file)
    samples = held_out_samples(read_config(folder / "resnet20"))
    assert samples.inputs.dtype == np.uint8
    found = run_in_runtime(file, {"x": samples.inputs[:4]})[0]
    lines = [line.split(",") for line in run("predict", folder / "resnet20").splitlines()[1:5]]
    names = json.loads({p.key: p.value for p in onnx.load(file).metadata_props}["classes"])
    assert [names[k] for k in found.argmax(1)] == [line[1] for line in lines]


def test_a_table_of_classes_gives_their_probabilities(folder: Path) -> None:
    file = folder / "kinds.onnx"
    run("export", folder / "kinds", "--to", file)
    about = {p.key: json.loads(p.value) for p in onnx.load(file).metadata_props if p.key != "recipe"}
    assert about["classes"] == ["flat", "house"]
    rows = [line.split(",") for line in (folder / "homes.csv").read_text().splitlines()[1:6]]
    found = run_in_runtime(
        file, {"x": np.array([[float(r[i]) for i in (0, 1, 3)] for r in rows], np.float32)}
    )[0]
    lines = run("predict", folder / "kinds", "--data", folder / "homes.csv").splitlines()[1:6]
    assert [about["classes"][k] for k in found.argmax(1)] == [line.split(",")[1] for line in lines]
    np.testing.assert_allclose(found.sum(1), 1, rtol=1e-6)


def test_data_that_were_moved(folder: Path, tmp_path: Path) -> None:
    """A table is not needed again; images are, and may be elsewhere."""
    rows, photographs = tmp_path / "homes.csv", tmp_path / "photographs"
    (folder / "homes.csv").rename(rows)
    (folder / "photographs").rename(photographs)
    try:
        run("export", folder / "homes", "--to", tmp_path / "homes.onnx")
        found = RUNNER.invoke(main, ["export", str(folder / "resnet20"), "--to", str(tmp_path / "r.onnx")])
        assert found.exit_code == 1
        assert "--data" in found.output
        run("export", folder / "resnet20", "--to", tmp_path / "r.onnx", "--data", photographs)
    finally:
        rows.rename(folder / "homes.csv")
        photographs.rename(folder / "photographs")


def test_every_recipe_goes_out(folder: Path) -> None:
    recipes = {read_config(run.parent)["recipe"] for run in folder.glob("*/config.json")}
    assert recipes == set(RECIPES)


def test_ties_of_a_pooling_are_no_wrong_gradient(folder: Path) -> None:
    """After relu whole windows are 0: the check steps off them, and so little that none changes its largest element."""
    file = folder / "verified.onnx"
    run("export", folder / "digits", "--to", file)
    row = next(line for line in run("onnx", file, "--verify").splitlines() if line.startswith("max_pool2d"))
    assert float(row.split()[-1]) < 1e-4


@pytest.mark.parametrize("name", ["lstm", "gpt"])
def test_language_models_take_any_length(name: str, folder: Path) -> None:
    file = folder / f"{name}.onnx"
    run("export", folder / name, "--to", file)
    count = len({p.key: p.value for p in onnx.load(file).metadata_props}["vocabulary"])
    tokens = np.arange(33).reshape((3, 11)) % count
    assert run_in_runtime(file, {"tokens": tokens})[0].shape == (3, 11, count)


def test_onnx_shows_compares_and_checks(folder: Path) -> None:
    file = folder / "shown.onnx"
    et.onnx.export(et.nn.Linear(3, 2, rng=0), file, et.ones((1, 3)))
    text = run("onnx", file)
    assert "1 nodes: 1 Gemm" in text
    assert "8 parameters" in text
    assert "largest difference to ONNX Runtime" in text
    assert "gradient along a random direction" in text
    assert run("onnx", file, "--source").startswith("from extensor import linear\n")


@pytest.mark.parametrize("size", ["0", "-3"])
def test_a_size_that_is_none(size: str, classifier: Path) -> None:
    found = RUNNER.invoke(main, ["onnx", str(classifier), "--size", size])
    assert found.exit_code == 2
    assert "--size" in found.output


def test_a_damaged_file(tmp_path: Path) -> None:
    (tmp_path / "x.onnx").write_bytes(b"nothing of the kind")
    found = RUNNER.invoke(main, ["onnx", str(tmp_path / "x.onnx")])
    assert found.exit_code == 1
    assert "is no ONNX model" in found.output


def test_a_wrong_gradient_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "x.onnx"
    et.onnx.export(et.nn.Linear(3, 2, rng=0), file, et.ones((1, 3)))
    monkeypatch.setattr(et.ExTensor, "backward", lambda self: None)
    for parameter in et.onnx.load(file).parameters():
        assert parameter.grad is None
    found = RUNNER.invoke(main, ["onnx", str(file)])
    assert found.exit_code == 1
    assert "the gradient of the network is wrong" in found.output


@pytest.fixture
def classifier(tmp_path: Path) -> Path:
    """A small network of images with convolutions, pooling, normalisation and softmax."""
    net = et.nn.Sequential(
        et.nn.Conv2d(1, 4, 3, padding=1, rng=0), et.nn.BatchNorm2d(4), et.nn.ReLU(), et.nn.MaxPool2d(2), et.nn.Flatten(),
        et.nn.Linear(4 * 4 * 4, 2, rng=0),
    )  # fmt: skip
    et.onnx.export(net, tmp_path / "net.onnx", et.ones((1, 1, 8, 8)))
    return tmp_path / "net.onnx"


def test_every_operation_is_verified_at_its_shapes(classifier: Path) -> None:
    text = run("onnx", classifier, "--verify", "--size", "3")
    rows = {line.split()[0]: line for line in text.splitlines() if line.strip()}
    assert "(3, 1, 8, 8) (4, 1, 3, 3)" in rows["conv2d"]
    assert {"conv2d", "relu", "max_pool2d", "linear"} <= set(rows)
    assert all(float(rows[name].split()[-1]) < 1e-4 for name in ("conv2d", "max_pool2d", "linear"))


def test_a_wrong_gradient_of_one_operation_is_named(
    classifier: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = et.relu_backward.fn
    monkeypatch.setattr(et.relu_backward, "fn", lambda g, x: right(g * 1.5, x))
    found = RUNNER.invoke(main, ["onnx", str(classifier), "--verify"])
    assert found.exit_code == 1
    assert "the gradient of" in found.output


def test_fine_tuning_and_a_new_file(classifier: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 120)
    x = (rng.normal(size=(120, 1, 8, 8)) + 2.0 * y[:, None, None, None]).astype(np.float32)
    np.savez(tmp_path / "mine.npz", x=x, y=y)
    text = run(
        "onnx",
        classifier,
        "--train",
        tmp_path / "mine.npz",
        "--epochs",
        "8",
        "--lr",
        "0.01",
        "--to",
        tmp_path / "tuned.onnx",
    )
    before, after = (line for line in text.splitlines() if line.startswith(("before:", "after:")))
    assert "on 24 examples held out" in before
    assert [line.split(":")[0] for line in text.splitlines() if line.startswith("epoch")] == [
        f"epoch {i} of 8" for i in range(1, 9)
    ]
    assert float(after.split("loss ")[1].split(",")[0]) < 0.5 * float(before.split("loss ")[1].split(",")[0])
    assert float(text.split("tuned.onnx: operator set 20, largest difference to ONNX Runtime ")[1]) < 1e-5
    logits = run_in_runtime(tmp_path / "tuned.onnx", {"x": x})[0]
    assert (logits.argmax(1) == y).mean() > 0.95


def test_fine_tuning_on_a_table(tmp_path: Path) -> None:
    et.onnx.export(et.nn.Linear(2, 1, rng=0), tmp_path / "line.onnx", et.ones((1, 2)))
    rows = np.random.default_rng(0).normal(size=(60, 2))
    lines = [f"{a},{b},{a - 2 * b + 1}" for a, b in rows]
    (tmp_path / "mine.csv").write_text("a,b,c\n" + "\n".join(lines))
    text = run(
        "onnx",
        tmp_path / "line.onnx",
        "--train",
        tmp_path / "mine.csv",
        "--epochs",
        "60",
        "--lr",
        "0.1",
        "--batch",
        "8",
        "--target",
        "c",
    )
    assert float(text.split("after:  loss ")[1].split()[0]) < 1e-3


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": np.zeros((4, 1, 8, 8))}, "no array 'y'"),
        ({"x": np.zeros((4, 1, 8, 7)), "y": np.zeros(4, int)}, "has the shape"),
        ({"x": np.zeros((4, 1, 8, 8)), "y": np.zeros(3, int)}, "3 targets"),
        ({"x": np.zeros((4, 1, 8, 8)), "y": -np.ones(4, int)}, "classes from 0"),
        ({"y": np.zeros(4, int)}, "no array for the input 'x'"),
    ],
)
def test_data_that_do_not_fit(
    classifier: Path, tmp_path: Path, arrays: dict[str, np.ndarray], message: str
) -> None:
    np.savez(tmp_path / "mine.npz", **arrays)
    found = RUNNER.invoke(main, ["onnx", str(classifier), "--train", str(tmp_path / "mine.npz")])
    assert found.exit_code == 1
    assert message in found.output
