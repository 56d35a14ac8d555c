"""Metrics against scikit-learn's, loggers, the best weights restored, and Ctrl-C."""

from __future__ import annotations

import csv
import math
import os
import signal
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn import metrics as theirs

import extensor as et
from extensor import data, nn, optim, train
from extensor.train import scores

RNG = np.random.default_rng(0)


def filled(metric: train.Metric, outputs: np.ndarray, targets: np.ndarray, parts: int = 3) -> Any:
    """The value over several batches, some of them counted apart and merged."""
    other = type(metric)(**({"average": metric.average} if hasattr(metric, "average") else {}))
    for i, (x, y) in enumerate(zip(np.array_split(outputs, parts), np.array_split(targets, parts))):
        (other if i == 1 else metric).update(et.asarray(x), et.asarray(y), 0.0)
    metric.merge(other.state_dict())
    return metric.value()


@pytest.mark.parametrize("average", ["auto", "macro", "micro", "weighted"])
@pytest.mark.parametrize("classes", [2, 5])
def test_metrics_of_classes_are_scikit_learns(average: Any, classes: int) -> None:
    outputs, labels = RNG.normal(size=(90, classes)).astype(np.float32), RNG.integers(0, classes, 90)
    name = ("binary" if classes == 2 else "macro") if average == "auto" else average
    for ours, other in (
        (train.F1, theirs.f1_score),
        (train.Precision, theirs.precision_score),
        (train.Recall, theirs.recall_score),
    ):
        expected = other(labels, outputs.argmax(1), average=name, zero_division=0)
        assert filled(ours(average), outputs, labels) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("classes", [1, 2, 4])
def test_roc_auc_is_scikit_learns(classes: int) -> None:
    outputs = RNG.normal(size=(80, classes)).round(1 if classes < 3 else 9)  # with ties
    labels = RNG.integers(0, max(classes, 2), 80)
    if classes == 1:
        expected = theirs.roc_auc_score(labels, outputs[:, 0])
    elif classes == 2:
        expected = theirs.roc_auc_score(labels, outputs[:, 1] - outputs[:, 0])
    else:
        likely = np.exp(outputs) / np.exp(outputs).sum(1, keepdims=True)
        expected = theirs.roc_auc_score(labels, likely, multi_class="ovr")
    assert filled(train.ROCAUC(), outputs, labels) == pytest.approx(expected, abs=1e-12)
    assert math.isnan(train.ROCAUC().value())


@pytest.mark.parametrize("shape", [(60,), (60, 1), (60, 3)])
def test_metrics_of_quantities_are_scikit_learns(shape: tuple[int, ...]) -> None:
    found, wanted = RNG.normal(size=shape), RNG.normal(2, 3, size=shape)
    pairs = (
        (train.MAE, theirs.mean_absolute_error), (train.MSE, theirs.mean_squared_error), (train.RMSE, theirs.root_mean_squared_error),
        (train.R2, theirs.r2_score),
    )  # fmt: skip
    for ours, other in pairs:
        expected = other(wanted.ravel(), found.ravel())
        assert filled(ours(), found, wanted) == pytest.approx(expected, rel=1e-9)


def test_names() -> None:
    made = scores.metrics_named(["accuracy", "top-5", "ROC-AUC", "F1", "r2"])
    assert {name: type(m).__name__ for name, m in made.items()} == {
        "accuracy": "Accuracy",
        "top_5": "Accuracy",
        "roc_auc": "ROCAUC",
        "f1": "F1",
        "r2": "R2",
    }
    assert made["top_5"].top_k == 5
    with pytest.raises(
        ValueError, match=r"\[Trainer\] there is no metric str 'f2'; there are accuracy, f1, mae"
    ):
        train.metric_named("f2")
    with pytest.raises(
        ValueError, match=r"\[F1\] is a metric of classes; the targets are quantities such as 0.5"
    ):
        train.F1().update(et.ones(2), et.tensor([0.5, 1.0]), 0.0)


X, Y = RNG.normal(size=(60, 4)), RNG.integers(0, 3, 60)


def trainer(**options: Any) -> train.Trainer:
    model = nn.Linear(4, 3, rng=0)
    return train.Trainer(
        model, optim.Adam(model.parameters(), lr=0.1), et.cross_entropy, display="off", **options
    )


def loader() -> data.DataLoader:
    return data.DataLoader(data.Dataset(X, Y), 20, shuffle=True, rng=0)


def test_a_trainer_takes_names() -> None:
    history = trainer(metrics=["accuracy", "f1", "roc_auc"]).fit(loader(), epochs=2, validation=loader())
    assert {"f1", "val_f1", "val_roc_auc", "accuracy"} <= set(history.records[-1])


def test_early_stopping_restores_the_best(tmp_path: Path) -> None:
    seen: list[dict[str, Any]] = []

    class Keep(train.Callback):
        def on_validation_end(self, trainer: Any, record: dict[str, Any]) -> None:
            seen.append({"loss": record["val_loss"], "weights": trainer.model.state_dict()})

    subject = trainer(callbacks=[Keep(), train.EarlyStopping(patience=2, restore_best=True)], folder=tmp_path)
    subject.optimizer.lr = 3.0  # it becomes worse soon
    subject.fit(loader(), epochs=12, validation=loader())
    best = min(seen, key=lambda record: record["loss"])
    assert best is not seen[-1]
    for name, value in subject.model.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), best["weights"][name].numpy())
    np.testing.assert_array_equal(
        train.load_weights(tmp_path / "model.safetensors")[0]["weight"].numpy(),
        best["weights"]["weight"].numpy(),
    )


class Interrupt(train.Callback):
    def on_step_end(self, trainer: Any, loss: float) -> None:
        if trainer.step == 2:
            os.kill(os.getpid(), signal.SIGINT)


def test_an_interrupt_is_raised_after_the_checkpoint(tmp_path: Path) -> None:
    whole = trainer()
    whole.fit(loader(), epochs=2)
    with pytest.raises(KeyboardInterrupt):
        trainer(callbacks=[Interrupt()], folder=tmp_path / "a").fit(loader(), epochs=2)
    again = trainer(callbacks=[train.Callback()], folder=tmp_path / "a")
    again.fit(loader(), epochs=2, resume=True)
    np.testing.assert_array_equal(
        again.model.state_dict()["weight"].numpy(), whole.model.state_dict()["weight"].numpy()
    )
    history = trainer(callbacks=[Interrupt()]).fit(loader(), epochs=2, interrupt="return")
    assert history.stopped == "interrupted"
    with pytest.raises(ValueError, match=r"\[fit\] interrupt must be 'raise' or 'return', got str 'no'"):
        trainer().fit(loader(), epochs=1, interrupt="no")  # type: ignore[arg-type]


def test_csv_logger_goes_on_with_a_resumed_run(tmp_path: Path) -> None:
    def subject(*more: train.Callback) -> train.Trainer:
        return trainer(
            metrics=["accuracy"],
            callbacks=[train.CSVLogger(tmp_path / "h.csv"), *more],
            folder=tmp_path / "run",
        )

    class Stop(train.Callback):
        def on_step_end(self, trainer: Any, loss: float) -> None:
            if trainer.step == 7:
                os.kill(os.getpid(), signal.SIGINT)

    subject(Stop()).fit(loader(), epochs=3, interrupt="return")
    subject(train.Callback()).fit(loader(), epochs=3, resume=True)
    rows = list(csv.DictReader((tmp_path / "h.csv").read_text().splitlines()))
    assert [row["epoch"] for row in rows] == ["1", "2", "3"]
    assert {"loss", "accuracy", "lr"} <= set(rows[0])


def test_loggers_of_other_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ImportError, match=r"\[WandbLogger\] needs wandb: pip install wandb"):
        monkeypatch.setitem(sys.modules, "wandb", None)
        train.WandbLogger()
    said: list[Any] = []
    mlflow: Any = types.ModuleType("mlflow")
    mlflow.start_run = lambda: said.append("start")
    mlflow.end_run = lambda: said.append("end")
    mlflow.log_params = lambda params: said.append(params)
    mlflow.log_metrics = lambda record, step: said.append((sorted(record)[:2], step))
    wandb: Any = types.ModuleType("wandb")
    run = types.SimpleNamespace(
        log=lambda record, step: said.append(step), finish=lambda: said.append("finish")
    )
    wandb.init = lambda **options: said.append(options) or run
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    trainer(callbacks=[train.MLflowLogger({"lr": 0.1}), train.WandbLogger(project="p")]).fit(
        loader(), epochs=1
    )
    assert said == ["start", {"lr": 0.1}, {"project": "p"}, (["epoch", "loss"], 3), 3, "end", "finish"]
