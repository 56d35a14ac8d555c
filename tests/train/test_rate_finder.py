"""The learning rate finder: a sensible suggestion, and nothing is changed by it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import extensor as et
from extensor import data, nn, optim, train


def parts(optimizer: Any, **options: Any) -> tuple[train.Trainer, data.DataLoader]:
    model = nn.Sequential(
        nn.Flatten(),
        nn.Linear(64, 32, rng=0),
        nn.BatchNorm1d(32),
        nn.ReLU(),
        nn.Dropout(0.1, rng=1),
        nn.Linear(32, 10, rng=2),
    )
    loader = data.DataLoader(data.digits(), 64, shuffle=True, rng=0)
    return train.Trainer(
        model, optimizer(model.parameters()), et.cross_entropy, display="off", **options
    ), loader


@pytest.mark.parametrize(
    "optimizer", [lambda p: optim.SGD(p, lr=0.3, momentum=0.9), lambda p: optim.Adam(p, lr=0.3)]
)
def test_nothing_is_changed(optimizer: Any) -> None:
    (tried, loader), (other, same_loader) = parts(optimizer), parts(optimizer)
    curve = train.find_rate(tried, loader)
    assert 1e-4 < curve.suggestion < 3
    assert curve.rates == sorted(curve.rates)
    assert loader.state_dict() == same_loader.state_dict()
    assert tried.optimizer.lr == 0.3
    assert tried.step == 0
    for subject, batches in ((tried, loader), (other, same_loader)):
        subject.fit(batches, epochs=1)
    for mine, its in zip(tried.model.state_dict().values(), other.model.state_dict().values()):
        np.testing.assert_array_equal(mine.numpy(), its.numpy())


def test_wrong_arguments_and_plot() -> None:
    trainer, loader = parts(lambda p: optim.SGD(p, lr=0.1))
    with pytest.raises(ValueError, match=r"\[find_rate\] needs 0 < lowest < highest and 10 steps or more"):
        train.find_rate(trainer, loader, lowest=1.0, highest=0.1)
    pytest.importorskip("matplotlib").use("Agg")
    axes = train.find_rate(trainer, loader, steps=20).plot()
    assert axes.get_xscale() == "log"
