"""The page of every kind of run: all its panels, true to the log, and whole in itself."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from html_checks import Page
from png_reader import read_png

import extensor as et
from extensor import data, nn, optim, report, train
from extensor.cli import main


def page_of(folder: Path) -> Page:
    page = Page((folder / "report.html").read_text(encoding="utf-8"))
    assert not page.problems
    assert "http" not in (folder / "report.html").read_text(encoding="utf-8")
    return page


CURVES = {"loss", "learning_rate", "speed"}
LAYERS = {"gradient_norms", "update_ratios"}
REST = {"model", "configuration", "data"}


def test_images(digits_run: Path) -> None:
    page = page_of(digits_run)
    assert page.ids() == CURVES | LAYERS | REST | {"accuracy", "confusion", "examples", "filters"}
    assert {path.name for path in (digits_run / "pictures").iterdir()} == {"filters.png", "most_confused.png"}
    assert len(page.of("img", alt="weights of unit 5")) == 1
    samples = [a for a in page.of("img") if a["alt"].startswith("a sample of")]
    assert len(samples) == 24
    assert "61,706 parameters" in page.text
    assert "AdamW" in page.text
    assert "CosineAnnealingLR" in page.text
    assert read_png((digits_run / "pictures" / "filters.png").read_bytes()).ndim == 3


def test_the_loss_is_drawn_as_it_was_logged(digits_run: Path) -> None:
    html = (digits_run / "report.html").read_text(encoding="utf-8")
    figure = html[html.index('id="loss"') :]
    (box,) = re.findall(r'data-x="(\S+) (\S+)" data-y="(\S+) (\S+)"', figure)[:1]
    left, right, low, high = map(float, box)
    logarithmic = "log scale" in figure[: figure.index("</figure>")]
    records = train.read_log(digits_run / "log.jsonl")
    wanted = {
        "training, step by step": [(r["step"], r["loss"]) for r in records if r["kind"] == "step"],
        "training": [(r["step"], r["loss"]) for r in records if r["kind"] == "epoch"],
        "validation": [(r["step"], r["val_loss"]) for r in records if r["kind"] == "epoch"],
    }
    for name, points in wanted.items():
        (path,) = re.findall(rf'data-series="{name}"[^>]* d="([^"]*)"', figure)[:1]
        drawn = np.array(re.findall(r"(-?[\d.]+) (-?[\d.]+)", path), float)
        assert len(drawn) == len(points) >= 3
        height = 1 - drawn[:, 1] / 1000
        values = low * (high / low) ** height if logarithmic else low + height * (high - low)
        np.testing.assert_allclose(
            left + drawn[:, 0] / 1000 * (right - left), [x for x, _ in points], atol=0.02
        )
        np.testing.assert_allclose(values, [y for _, y in points], rtol=2e-3)


def test_the_confusion_matrix_is_that_of_the_best_weights(digits_run: Path) -> None:
    page = page_of(digits_run)
    cells = [a["title"] for _, a in page.elements if a.get("class") in ("right", "wrong")]
    counts = [int(title.split(": ")[1].split(" ")[0]) for title in cells]
    assert sum(counts) == 359
    right = sum(count for title, count in zip(cells, counts) if "read right" in title)
    best = max(r["val_accuracy"] for r in train.read_log(digits_run / "log.jsonl") if r["kind"] == "epoch")
    predicted = CliRunner().invoke(main, ["predict", str(digits_run)])
    assert f"accuracy {100 * right / 359:.2f} % of 359 samples" in predicted.output
    assert f"{right} of 359 test samples right" in page.text
    assert f"test accuracy{100 * right / 359:.2f} %{right} of 359 samples" in "".join(page.text.split("\n"))
    assert f"{100 * best:.2f} %" in page.text


def test_a_single_epoch(short_run: Path) -> None:
    page = page_of(short_run)
    assert {"loss", "accuracy", "learning_rate", "confusion", "filters"} <= page.ids()
    assert "the mean of the epoch so far" in page.text
    assert "128 units, 8 × 8" in page.text


def test_a_table_with_classes(classes_run: Path) -> None:
    page = page_of(classes_run)
    assert page.ids() == CURVES | LAYERS | REST | {"accuracy", "confusion", "examples"}
    hostile, plain = json.loads((classes_run / "config.json").read_text())["classes"]
    assert (hostile, plain) == ('<b onclick="x">&"', "low")
    assert hostile in page.text
    assert "a <run> & more" in page.text
    assert not page.of("b", onclick="x")
    assert not (classes_run / "pictures").exists()


def test_a_table_with_quantities(quantities_run: Path) -> None:
    page = page_of(quantities_run)
    text = page.text
    assert text.index("test RMSE") < text.index("test R2") < text.index("validation loss")
    assert page.ids() == CURVES | LAYERS | REST | {"predictions", "errors"}
    assert "of the variance explained" in page.text
    assert "40 test samples" in page.text
    (cloud,) = page.of("path", **{"data-series": "predicted"})
    assert cloud["d"].count("M") == 40
    points = json.loads(page.scripts[0])["predictions"]["series"][1]["points"]
    x = np.random.default_rng(0).normal(size=(200, 3))[:, 0]
    for wanted, _ in points:  # in the units of the table
        assert np.abs(3 * x + 0.5 - wanted).min() < 1e-4


def test_a_language_model(text_run: Path) -> None:
    page = page_of(text_run)
    assert page.ids() == CURVES | LAYERS | REST | {"gradient_norm", "text"}
    assert "validation perplexity" in page.text
    assert "What it writes" in page.text
    text = (
        (text_run / "report.html")
        .read_text(encoding="utf-8")
        .partition("<pre class=text>")[2]
        .partition("</pre>")[0]
    )
    assert 21 <= len(text) <= 201  # a line break and what follows, as far as the time reached
    assert set(text) <= set("the quick brown fox jumps over the lazy dog.\n")
    assert (text_run.name == "chargpt") == bool(page.of("div", **{"data-heat": "gradient_norms"}))


def test_the_script_has_its_data(digits_run: Path) -> None:
    page = page_of(digits_run)
    charts = json.loads(page.scripts[0])
    plots = {a["data-chart"] for a in page.of("div") if "data-chart" in a}
    assert set(charts) == plots == CURVES | LAYERS | {"accuracy"}
    last = charts["loss"]["series"][2]["points"][-1]
    record = [r for r in train.read_log(digits_run / "log.jsonl") if r["kind"] == "epoch"][-1]
    assert last == [record["step"], pytest.approx(record["val_loss"], rel=1e-6)]


# Runs that are not whole


def copied(run: Path, place: Path) -> Path:
    return Path(
        shutil.copytree(run, place / "copy", ignore=shutil.ignore_patterns("report.html", "pictures"))
    )


def test_without_its_weights_or_its_log(digits_run: Path, tmp_path: Path) -> None:
    folder = copied(digits_run, tmp_path)
    for name in ("best.safetensors", "model.safetensors"):
        (folder / name).unlink()
    (folder / "log.jsonl").write_text("")
    report.write_report(folder)
    page = page_of(folder)
    assert page.ids() == {"configuration", "data"}
    assert "has no weights yet" in page.text
    assert "no step yet" in page.text


def test_without_its_data(classes_run: Path, tmp_path: Path) -> None:
    folder = copied(classes_run, tmp_path)
    whole = page_of(classes_run).text
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "data": str(tmp_path / "gone.csv")}))
    report.write_report(folder)
    page = page_of(folder)
    assert page.ids() == CURVES | LAYERS | REST | {"accuracy"}
    assert "gone.csv is not there; extensor report --data says where it is now" in page.text
    report.write_report(folder, data=config["data"])
    assert "confusion" in page_of(folder).ids()
    assert "of 40 test samples right" in page_of(folder).text  # and not those it was trained on
    assert "of 40 test samples right" in whole


def test_damaged_weights(digits_run: Path, tmp_path: Path) -> None:
    folder = copied(digits_run, tmp_path)
    (folder / "best.safetensors").write_bytes(b"\xff" * 100)
    report.write_report(folder)
    page = page_of(folder)
    assert "There are no weights to show" in page.text
    assert "loss" in page.ids()


@pytest.mark.parametrize(
    "config",
    [{}, {"model": {"name": "GPT"}}, {"model": 3, "recipe": [1], "seed": "x"}, {"vocabulary": "ab", "length": "x"},
     {"model": {"name": "MLP", "args": {"sizes": [10**13, 10]}}}],
)  # fmt: skip
def test_a_configuration_that_describes_no_model(
    digits_run: Path, tmp_path: Path, config: dict[str, object]
) -> None:
    folder = copied(digits_run, tmp_path)
    (folder / "config.json").write_text(json.dumps(config))
    report.write_report(folder)
    page = page_of(folder)
    assert {"loss", "filters", "model"} <= page.ids()
    assert "numbers in 10 tensors" in page.text


def test_a_resumed_run(tmp_path: Path) -> None:
    def fit(epochs: int, resume: bool) -> None:
        model = nn.Sequential(nn.Flatten(), nn.Dropout(0.1), nn.Linear(64, 10, rng=0))
        loader = data.DataLoader(data.digits(), 256, shuffle=True, rng=0)
        trainer = train.Trainer(
            model,
            optim.Adam(model.parameters()),
            et.cross_entropy,
            folder=tmp_path,
            log_every=1,
            display="off",
        )
        trainer.fit(loader, epochs=epochs, resume=resume)
        report.write_report(tmp_path, model=model, samples=data.digits())
        assert model.training

    fit(1, resume=False)
    fit(3, resume=True)
    page = page_of(tmp_path)
    assert "resumed at step 8" in page.text
    assert "finished" in page.text
    assert {"loss", "confusion", "filters", "model"} <= page.ids()  # of a model no recipe knows


def test_a_run_that_failed(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 10, rng=0))
    trainer = train.Trainer(
        model,
        optim.SGD(model.parameters(), lr=0.1),
        lambda outputs, targets: et.cross_entropy(outputs, targets) * float("inf"),
        folder=tmp_path,
        display="off",
    )
    with pytest.raises(FloatingPointError):
        trainer.fit(data.DataLoader(data.digits(), 256, rng=0), epochs=3)
    report.write_report(tmp_path)
    assert "[Trainer] the loss is" in page_of(tmp_path).text


def test_a_log_of_anything(tmp_path: Path) -> None:
    values = [
        None,
        True,
        "x",
        -1,
        0,
        1e99,
        1e308,
        1e-308,
        10**400,
        [1],
        {"a": "b"},
        {"x": 1e90, "y": 0.0},
        "<b>",
    ]
    rng = np.random.default_rng(0)
    kinds = ["begin", "step", "epoch", "validation", "layers", "resume", "end", ["x"], None]
    names = ["step", "epoch", "loss", "val_loss", "lr", "grad_norm", "update_ratio", "accuracy", "at", "stopped", "seconds",
             "total_steps", "epoch_so_far", "samples_per_second", "val_odd"]  # fmt: skip
    for _ in range(150):
        records = [
            {"kind": kinds[rng.integers(len(kinds))], "step": int(rng.integers(3)),
             **{str(n): values[rng.integers(len(values))] for n in rng.choice(names, 6)}}
            for _ in range(12)
        ]  # fmt: skip
        (tmp_path / "log.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
        report.write_report(tmp_path)
        page_of(tmp_path)


@pytest.mark.parametrize("folder", [None, 3, b"run", ""])
def test_a_folder_that_is_no_path_is_refused(folder: object) -> None:
    with pytest.raises(TypeError, match=r"^\[report\] path must be a str"):
        report.write_report(folder)
