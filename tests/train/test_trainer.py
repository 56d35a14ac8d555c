"""The loop does what its options say."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import extensor as et
from extensor import data, nn, optim, train


def points(count: int = 24) -> data.Dataset:
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((count, 3)).astype(np.float32)
    return data.Dataset(inputs, (inputs.sum(1) > 0).astype(np.int64))


def network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(3, 4, rng=0), nn.Tanh(), nn.Linear(4, 2, rng=1))


def trainer(model: nn.Module | None = None, lr: float = 0.1, **options: Any) -> train.Trainer:
    model = network() if model is None else model
    return train.Trainer(
        model, optim.SGD(model.parameters(), lr=lr), et.cross_entropy, display="off", **options
    )


def weights(model: nn.Module) -> np.ndarray:
    return np.concatenate([p.numpy().ravel() for p in model.parameters()])


def by_hand(dataset: data.Dataset, batch_size: int, epochs: int, lr: float = 0.1) -> np.ndarray:
    """The same training, written out."""
    model = network()
    for _ in range(epochs):
        for start in range(0, len(dataset), batch_size):
            x, y = dataset.batch(np.arange(start, min(start + batch_size, len(dataset))))
            model.zero_grad()
            et.cross_entropy(model(x), y).backward()
            for p in model.parameters():
                p.assign(p - lr * p.grad)
    return weights(model)


def test_epochs_are_plain_training() -> None:
    subject = trainer()
    history = subject.fit(data.DataLoader(points(), 10), epochs=3)
    np.testing.assert_allclose(weights(subject.model), by_hand(points(), 10, 3), rtol=1e-6, atol=1e-7)
    assert (history.steps, subject.step, subject.epoch, history.stopped) == (9, 9, 3, "finished")
    assert [record["epoch"] for record in history.records] == [1, 2, 3]


def test_steps_end_in_the_middle_of_an_epoch() -> None:
    subject = trainer()
    history = subject.fit(data.DataLoader(points(), 10), steps=7)
    assert (history.steps, subject.epoch, len(history.records)) == (7, 2, 2)
    longer = trainer()
    longer.fit(data.DataLoader(points(), 10), epochs=2)
    longer.fit(data.DataLoader(points(), 10), steps=1)
    assert np.array_equal(weights(subject.model), weights(longer.model))


def test_accumulated_batches_are_one_large_batch() -> None:
    small, large = trainer(accumulate=3), trainer()
    small.fit(data.DataLoader(points(), 4), epochs=3)
    large.fit(data.DataLoader(points(), 12), epochs=3)
    assert small.step == large.step == 6
    np.testing.assert_allclose(weights(small.model), weights(large.model), rtol=1e-5, atol=1e-6)
    rest = trainer(accumulate=4)  # 6 batches: a group of 4 and one of 2, which counts in full
    rest.fit(data.DataLoader(points(), 4), epochs=1)
    uneven = network()
    for chosen in (np.arange(16), np.arange(16, 24)):
        x, y = points().batch(chosen)
        uneven.zero_grad()
        et.cross_entropy(uneven(x), y).backward()
        for p in uneven.parameters():
            p.assign(p - 0.1 * p.grad)
    np.testing.assert_allclose(weights(rest.model), weights(uneven), rtol=1e-5, atol=1e-6)


def moved(subject: train.Trainer) -> np.ndarray:
    before = weights(subject.model)
    subject.fit(data.DataLoader(points(), 24), steps=1)
    return weights(subject.model) - before


def test_clipping() -> None:
    plain = moved(trainer(lr=1.0))
    by_norm = moved(trainer(lr=1.0, clip_norm=0.01))
    by_value = moved(trainer(lr=1.0, clip_value=0.02))
    assert np.linalg.norm(plain) > 0.1
    np.testing.assert_allclose(by_norm, plain * 0.01 / np.linalg.norm(plain), rtol=1e-3, atol=1e-7)
    np.testing.assert_allclose(by_value, np.clip(plain, -0.02, 0.02), atol=1e-6)


@pytest.mark.parametrize(("every", "steps"), [("step", 6), ("epoch", 2)])
def test_schedules(every: Any, steps: int) -> None:
    model = network()
    optimizer = optim.SGD(model.parameters(), lr=1.0)
    schedule = optim.ExponentialLR(optimizer, 0.5)
    subject = train.Trainer(
        model, optimizer, et.cross_entropy, schedule=schedule, schedule_every=every, display="off"
    )
    subject.fit(data.DataLoader(points(), 8), epochs=2)
    assert schedule.get_last_lr() == [0.5**steps]


def test_plateau_steps_with_the_validation_loss() -> None:
    model = network()
    optimizer = optim.SGD(model.parameters(), lr=0.0)
    optimizer.param_groups[0]["lr"] = 1e-30  # nothing becomes better
    schedule = optim.ReduceLROnPlateau(optimizer, factor=0.5, patience=1, min_lr=0.0, eps=0.0)
    subject = train.Trainer(model, optimizer, et.cross_entropy, schedule=schedule, display="off")
    subject.fit(data.DataLoader(points(), 8), epochs=5, validation=data.DataLoader(points(), 8))
    assert optimizer.param_groups[0]["lr"] == 1e-30 / 4


def test_early_stopping() -> None:
    stopping = train.EarlyStopping(patience=3)
    subject = trainer(lr=1e-30, callbacks=[stopping])
    history = subject.fit(data.DataLoader(points(), 8), epochs=50, validation=data.DataLoader(points(), 8))
    assert subject.epoch == 4
    assert "val_loss has not become better" in history.stopped
    with pytest.raises(ValueError, match="there is no metric 'val_f1'"):
        trainer(callbacks=[train.EarlyStopping("val_f1")]).fit(
            data.DataLoader(points(), 8), epochs=1, validation=data.DataLoader(points(), 8)
        )


@pytest.mark.parametrize(
    ("mode", "min_delta", "values", "stops_at"),
    [
        ("min", 0.0, [3, 2, 1, 1, 1], 4), ("max", 0.0, [1, 2, 3, 3, 2], 4), ("min", 0.5, [3, 2.9, 2.8, 2.7], 2),
        ("min", 0.0, [float("nan")] * 3, 1), ("min", 0.0, [3, 4, 2, 5, 1, 6], None),
    ],
)  # fmt: skip
def test_early_stopping_counts(
    mode: Any, min_delta: float, values: list[float], stops_at: int | None
) -> None:
    stopping = train.EarlyStopping("m", patience=2, min_delta=min_delta, mode=mode)
    run = trainer()
    stopped = []
    for value in values:
        stopping.on_validation_end(run, {"m": value})
        stopped.append(run.progress.stop_reason is not None)
    assert (stopped.index(True) if True in stopped else None) == stops_at


def test_a_loss_that_is_not_finite_stops_before_the_step() -> None:
    model = network()
    before = weights(model)
    bad = data.Dataset(np.full((4, 3), np.inf, np.float32), np.zeros(4, np.int64))
    with pytest.raises(FloatingPointError, match=r"^\[Trainer\] the loss is nan at step 1"):
        trainer(model).fit(data.DataLoader(bad, 4), epochs=1)
    assert np.array_equal(weights(model), before)


def test_evaluate_changes_nothing() -> None:
    et.seed(0)
    model = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 2))
    model[1].eval()  # frozen on purpose
    subject = trainer(model, metrics={"accuracy": train.Accuracy()})
    modes = [module.training for module in model.modules()]
    before, random = {n: v.tolist() for n, v in model.state_dict().items()}, nn._random.get_state()
    first = subject.evaluate(data.DataLoader(points(), 7))
    assert first == subject.evaluate(data.DataLoader(points(), 7))
    assert {n: v.tolist() for n, v in model.state_dict().items()} == before
    assert nn._random.get_state() == random
    assert [module.training for module in model.modules()] == modes
    logits = model.eval()(et.tensor(points().inputs))
    assert first["loss"] == pytest.approx(
        et.cross_entropy(logits, et.tensor(points().targets)).item(), rel=1e-6
    )
    with pytest.raises(ValueError, match="no batches"):
        subject.evaluate([])


def test_a_batch_without_targets_is_its_own_target() -> None:
    model = nn.Linear(3, 3, rng=0)
    subject = train.Trainer(
        model, optim.Adam(model.parameters(), lr=0.05), et.mean_squared_error, display="off"
    )
    history = subject.fit(data.DataLoader(data.Dataset(points().inputs), 8), epochs=30)
    assert history.records[-1]["loss"] < 0.1 * history.records[0]["loss"]


class Recorder(train.Callback):
    def __init__(self) -> None:
        self.calls: list[str] = []

    def on_fit_start(self, trainer: Any) -> None:
        self.calls.append("start")

    def on_step_end(self, trainer: Any, loss: float) -> None:
        assert math.isfinite(loss)
        self.calls.append(f"step {trainer.step}")

    def on_validation_end(self, trainer: Any, record: dict[str, Any]) -> None:
        self.calls.append(f"validation {sorted(record)}")

    def on_epoch_end(self, trainer: Any, record: dict[str, Any]) -> None:
        self.calls.append(f"epoch {record['epoch']}")

    def on_fit_end(self, trainer: Any) -> None:
        self.calls.append("end")


def test_callbacks_are_called_in_order() -> None:
    recorder = Recorder()
    trainer(callbacks=[recorder], metrics={"accuracy": train.Accuracy()}).fit(
        data.DataLoader(points(), 12), epochs=1, validation=[points().batch(np.arange(5))]
    )
    validation = "validation ['val_accuracy', 'val_loss']"
    assert recorder.calls == ["start", "step 1", "step 2", validation, "epoch 1", "end"]


def test_what_a_folder_holds(tmp_path: Path) -> None:
    subject = trainer(
        folder=tmp_path,
        log_every=2,
        layers_every=3,
        keep=2,
        tensorboard=True,
        config={"width": 4},
        clip_norm=1.0,
    )
    loader, validation = data.DataLoader(points(), 8), data.DataLoader(points(), 8)
    subject.fit(loader, epochs=3, validation=validation)
    records = train.read_log(tmp_path / "log.jsonl")
    steps = [r for r in records if r["kind"] == "step"]
    assert [r["step"] for r in steps] == [2, 4, 6, 8]
    assert set(steps[0]) == {"kind", "step", "epoch", "loss", "lr", "grad_norm", "samples_per_second"}
    assert [r["step"] for r in records if r["kind"] == "layers"] == [3, 6, 9]
    assert (records[0]["kind"], records[-1]["kind"], records[-1]["stopped"]) == ("begin", "end", "finished")
    assert records[0]["total_steps"] == 9
    assert records[0]["optimizer"]["name"] == "SGD"
    assert records[0]["loss"] == "cross_entropy"
    assert [r["val_loss"] for r in records if r["kind"] == "epoch"]
    assert [p.name for p in train.Checkpoints(tmp_path / "checkpoints").files()] == [
        "step-000000009.safetensors",
        "step-000000006.safetensors",
    ]
    tensors, metadata = train.load_weights(tmp_path / "model.safetensors")
    assert np.array_equal(
        np.concatenate([t.numpy().ravel() for t in tensors.values()]), weights(subject.model)
    )
    assert metadata == {"step": "9", "epoch": "3", "config": '{"width": 4}'}
    assert (tmp_path / "config.json").read_text() == '{\n  "width": 4\n}'
    assert len(list((tmp_path / "events").iterdir())) == 1


def test_best_weights_are_those_of_the_best_validation(tmp_path: Path) -> None:
    class Spoil(train.Callback):
        def on_epoch_end(self, trainer: Any, record: dict[str, Any]) -> None:
            kept.append((record["val_loss"], weights(trainer.model)))
            if record["epoch"] == 2:
                for p in trainer.model.parameters():
                    p.assign(-10 * p)

    kept: list[tuple[float, np.ndarray]] = []
    validation = data.DataLoader(points(), 24)
    trainer(folder=tmp_path, callbacks=[Spoil()]).fit(
        data.DataLoader(points(), 8), epochs=3, validation=validation
    )
    assert min(range(3), key=lambda i: kept[i][0]) == 1
    tensors, metadata = train.load_weights(tmp_path / "best.safetensors")
    assert np.array_equal(np.concatenate([t.numpy().ravel() for t in tensors.values()]), kept[1][1])
    assert float(metadata["val_loss"]) == kept[1][0]


def test_layer_statistics_are_true(tmp_path: Path) -> None:
    model = network()
    before = {name: p.numpy().astype(np.float64) for name, p in model.named_parameters()}
    x, y = points().batch(np.arange(24))
    et.cross_entropy(model(x), y).backward()
    grads = {name: p.grad.numpy().astype(np.float64) for name, p in model.named_parameters()}  # type: ignore[union-attr]
    model.zero_grad()
    trainer(model, folder=tmp_path, layers_every=1).fit(data.DataLoader(points(), 24), steps=1)
    (record,) = [r for r in train.read_log(tmp_path / "log.jsonl") if r["kind"] == "layers"]
    for name, grad in grads.items():
        assert record["grad_norm"][name] == pytest.approx(np.linalg.norm(grad), rel=1e-5)
        expected = 0.1 * np.linalg.norm(grad) / np.linalg.norm(before[name])
        assert record["update_ratio"][name] == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"accumulate": 0}, ValueError), ({"keep": 0}, ValueError), ({"log_every": 0}, ValueError),
        ({"validate_every": 0}, ValueError), ({"schedule_every": "day"}, ValueError), ({"monitor_mode": "low"}, ValueError),
        ({"callbacks": [print]}, TypeError), ({"metrics": {"accuracy": 1}}, TypeError), ({"schedule": 1}, TypeError),
        ({"clip_norm": "1"}, TypeError), ({"layers_every": 1.5}, TypeError),
    ],
)  # fmt: skip
def test_bad_options(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error, match=r"^\[Trainer\] "):
        trainer(**options)


def test_bad_fits(tmp_path: Path) -> None:
    loader = data.DataLoader(points(), 8)
    for options in (
        {},
        {"epochs": 1, "steps": 1},
        {"epochs": 0},
        {"steps": -1},
        {"epochs": 1, "resume": True},
    ):
        with pytest.raises(ValueError, match=r"^\[(fit|Trainer)\] "):
            trainer().fit(loader, **options)  # type: ignore[arg-type]
    with pytest.raises(
        TypeError, match=r"^\[Trainer\] needs a DataLoader, a Dataset or an iterable of batches"
    ):
        trainer().fit(3, epochs=1)
    with pytest.raises(ValueError, match="display must be"):
        subject = trainer()
        subject.display = "loud"  # type: ignore[assignment]
        subject.fit(loader, epochs=1)
    with pytest.raises(ValueError, match="there is no metric 'val_f1'"):
        trainer(monitor="val_f1").fit(loader, epochs=1, validation=loader)


def test_accumulated_batches_weigh_by_their_samples() -> None:
    """A ragged last batch: the gradients are those of one batch that holds all samples."""
    rng = np.random.default_rng(3)
    points = data.Dataset(rng.normal(size=(10, 3)).astype(np.float32), rng.integers(0, 2, 10))

    def fitted(batch: int, accumulate: int) -> tuple[nn.Module, float]:
        model = nn.Linear(3, 2, rng=0)
        trainer = train.Trainer(
            model,
            optim.SGD(model.parameters(), lr=1.0),
            et.cross_entropy,
            accumulate=accumulate,
            display="off",
        )
        return model, trainer.fit(data.DataLoader(points, batch), epochs=1).last("loss")

    (whole, whole_loss), (parts, parts_loss) = fitted(10, 1), fitted(4, 3)  # 4 + 4 + 2
    np.testing.assert_allclose(parts.weight.numpy(), whole.weight.numpy(), rtol=1e-5, atol=1e-7)
    assert parts_loss == pytest.approx(whole_loss, rel=1e-6)


def test_after_a_loss_that_is_not_finite_the_running_statistics_are_those_before() -> None:
    inputs = np.ones((8, 2), np.float32)
    inputs[4:] = np.inf
    model = nn.Sequential(nn.BatchNorm1d(2), nn.Linear(2, 2, rng=0))
    trainer = train.Trainer(
        model, optim.SGD(model.parameters(), lr=0.1), et.cross_entropy, accumulate=2, display="off"
    )
    before = {name: value.numpy().tobytes() for name, value in model.state_dict().items()}
    loader = data.DataLoader(data.Dataset(inputs, np.zeros(8, np.int64)), 4)  # one good batch and a bad one
    with np.errstate(all="ignore"), pytest.raises(FloatingPointError, match="at step 1"):
        trainer.fit(loader, epochs=1)
    assert {name: value.numpy().tobytes() for name, value in model.state_dict().items()} == before


def test_of_equally_accurate_weights_those_with_the_lower_loss_are_best(tmp_path: Path) -> None:
    """A few samples are soon all right; what follows is better still."""
    points = data.Dataset(np.array([[1.0, 0.0], [0.0, 1.0]], np.float32), np.array([0, 1]))
    model = nn.Linear(2, 2, rng=0)
    trainer = train.Trainer(
        model, optim.SGD(model.parameters(), lr=0.5), et.cross_entropy, metrics={"accuracy": train.Accuracy()},
        monitor="val_accuracy", monitor_mode="max", folder=tmp_path, display="off",
    )  # fmt: skip
    history = trainer.fit(data.DataLoader(points, 2), epochs=20, validation=data.DataLoader(points, 2))
    assert [r["val_accuracy"] for r in history.records][-5:] == [1.0] * 5
    assert train.load_weights(tmp_path / "best.safetensors")[1]["epoch"] == "20"
