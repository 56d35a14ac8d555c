"""Batches cut into shards, on one process: what each shard counts, and that a run can be resumed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shared_run import digest, fit, parts

import extensor as et
from extensor import data, nn, optim, train
from extensor.data.shards import shard_sizes


class Kept(train.Callback):
    """The gradients of every step."""

    def __init__(self) -> None:
        self.grads: list[list[np.ndarray]] = []

    def on_step_end(self, trainer: Any, loss: float) -> None:
        self.grads.append([p.grad.numpy() for p in trainer.model.parameters()])


@pytest.mark.parametrize(
    ("samples", "shards", "sizes"),
    [(8, 4, [2, 2, 2, 2]), (9, 4, [3, 3, 3, 0]), (10, 4, [3, 3, 3, 1]), (3, 4, [1, 1, 1, 0]), (1, 2, [1, 0])],
)
def test_shards_are_equal_and_the_last_one_smaller(samples: int, shards: int, sizes: list[int]) -> None:
    assert shard_sizes(samples, shards) == sizes


def small(
    shards: int | None, samples: int = 11, model: nn.Module | None = None, **options: Any
) -> tuple[nn.Module, Kept]:
    et.seed(3)
    model = model or nn.Linear(3, 2)
    rng = np.random.default_rng(1)
    loader = data.DataLoader(
        data.Dataset(rng.normal(size=(samples, 3)).astype(np.float32), np.arange(samples) % 2), samples
    )
    kept = Kept()
    trainer = train.Trainer(
        model, optim.SGD(model.parameters(), lr=0.1), et.cross_entropy, shards=shards, callbacks=[kept], display="off",
        **options,
    )  # fmt: skip
    trainer.fit(loader, steps=2)
    return model, kept


@pytest.mark.parametrize("shards", [1, 2, 3, 8, 16])
def test_shards_weigh_by_their_samples(shards: int) -> None:
    for whole, cut in zip(small(None)[1].grads[0], small(shards)[1].grads[0]):
        np.testing.assert_allclose(cut, whole, rtol=1e-5, atol=1e-7)


def test_streams_of_batches_are_cut_as_well() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(11, 3)).astype(np.float32), np.arange(11) % 2
    found = {}
    for kind in ("loader", "stream"):
        et.seed(3)
        model = nn.Linear(3, 2)
        batches = [(et.asarray(x), et.asarray(y))]
        given = data.DataLoader(data.Dataset(x, y), 11) if kind == "loader" else batches
        train.Trainer(
            model, optim.SGD(model.parameters(), lr=0.1), et.cross_entropy, shards=4, display="off"
        ).fit(given, epochs=2)
        found[kind] = model.weight.tolist()
    assert found["loader"] == found["stream"]


def test_gradients_are_added_along_the_tree() -> None:
    et.seed(3)
    layer = nn.Linear(3, 2)
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(11, 3)).astype(np.float32), np.arange(11) % 2
    rows = []
    for start in range(0, 11, 3):
        part = slice(start, start + 3)
        loss = et.cross_entropy(layer(et.asarray(x[part])), et.asarray(y[part])) * (len(y[part]) / 11)
        layer.zero_grad()
        loss.backward()
        rows.append(layer.weight.grad.numpy())
    found = small(4)[1].grads[0][0]
    np.testing.assert_array_equal(found, (rows[0] + rows[1]) + (rows[2] + rows[3]))


@pytest.mark.parametrize("momentum", [0.3, None])
def test_running_statistics_follow_the_shards_in_order(momentum: float | None) -> None:
    model, _ = small(
        3, samples=12, model=nn.Sequential(nn.BatchNorm1d(3, momentum=momentum), nn.Linear(3, 2, rng=0))
    )
    twin = nn.BatchNorm1d(3, momentum=momentum)
    x = np.random.default_rng(1).normal(size=(12, 3)).astype(np.float32)
    for _ in range(2):
        for start in range(0, 12, 4):
            twin(et.asarray(x[start : start + 4]))
    found = model.state_dict()
    np.testing.assert_allclose(
        found["0.running_mean"].numpy(), twin.running_mean.numpy(), rtol=1e-6, atol=1e-7
    )
    np.testing.assert_allclose(found["0.running_var"].numpy(), twin.running_var.numpy(), rtol=1e-6)
    assert found["0.num_batches_tracked"].item() == 6


class Counting(nn.Module):
    """A buffer of a user: how many samples it has seen."""

    def __init__(self) -> None:
        self.layer = nn.Linear(3, 2)
        self.register_buffer("seen", et.tensor(0))

    def forward(self, x: et.ExTensor) -> et.ExTensor:
        self.seen = et.tensor(self.seen.item() + len(x))
        return self.layer(x)


def test_changes_of_other_buffers_add_up() -> None:
    assert small(4, model=Counting())[0].seen.item() == 22


class Noise(nn.Module):
    def __init__(self) -> None:
        self.weight = nn.Parameter(et.ones(3))
        self.drop = nn.Dropout(0.5)
        self.masks: list[bytes] = []

    def forward(self, x: et.ExTensor) -> et.ExTensor:
        y = self.drop(x * 0 + self.weight)
        self.masks.append(y.numpy().tobytes())
        return y


def test_every_shard_of_every_step_has_random_numbers_of_its_own() -> None:
    model = Noise()
    model, _ = small(4, samples=24, model=model)
    assert len(set(model.masks)) == len(model.masks) == 8
    again, _ = small(4, samples=24, model=Noise())
    assert model.masks == again.masks


def test_metrics_count_every_shard_once() -> None:
    model, (learned, _) = parts("mlp")
    trainer = train.Trainer(
        model, optim.SGD(model.parameters(), lr=0.0), et.cross_entropy, shards=5, display="off", log_every=1000,
        metrics={"confusion": train.ConfusionMatrix(10)},
    )  # fmt: skip
    history = trainer.fit(data.DataLoader(learned, 38), epochs=1)
    assert np.sum(history.last("confusion")) == len(learned) == 148


def test_a_killed_run_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    whole = digest(*fit("mlp", None, tmp_path / "whole"))

    class Leave(train.Callback):
        def on_step_end(self, trainer: Any, loss: float) -> None:
            if trainer.step == 5:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit("mlp", None, tmp_path / "cut", callbacks=[Leave()])
    assert digest(*fit("mlp", None, tmp_path / "cut", callbacks=[train.Callback()], resume=True)) == whole


@pytest.mark.parametrize(("then", "now"), [(8, 4), (None, 2), (2, None)])
def test_the_number_of_shards_may_not_change(tmp_path: Path, then: int | None, now: int | None) -> None:
    fit("mlp", None, tmp_path, shards=then, steps=2)
    with pytest.raises(ValueError, match=f"a run goes on with shards={then}"):
        fit("mlp", None, tmp_path, shards=now, steps=3, resume=True)


def test_a_loss_that_is_not_finite_leaves_everything_as_it_was() -> None:
    model = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 2, rng=0))
    before = {name: value.numpy().tobytes() for name, value in model.state_dict().items()}
    rng = np.random.default_rng(1)
    x = rng.normal(size=(12, 3)).astype(np.float32)
    x[11] = np.nan
    trainer = train.Trainer(
        model, optim.SGD(model.parameters(), lr=0.1), et.cross_entropy, shards=3, display="off"
    )
    with pytest.raises(FloatingPointError, match="the loss is nan at step 1"):
        trainer.fit(data.DataLoader(data.Dataset(x, np.arange(12) % 2), 12), steps=1)
    assert {name: value.numpy().tobytes() for name, value in model.state_dict().items()} == before


@pytest.mark.parametrize("shards", [0, -1, 1.5, "8"])
def test_shards_must_be_a_number_of_them(shards: Any) -> None:
    with pytest.raises((ValueError, TypeError), match=r"\[Trainer\] shards"):
        small(shards)


def test_a_world_must_be_one() -> None:
    with pytest.raises(TypeError, match=r"\[Trainer\] world must be a World"):
        small(2, world=3)
