"""Predictions, texts and estimators run compiled models, and say what the model itself says."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

import extensor as et
from extensor import data, models
from extensor.compile import Compiled
from extensor.train import passes, text_sampling


def compiled_by(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[Compiled]:
    """What the module will have compiled."""
    made: list[Compiled] = []

    def make(*args: Any, **kwargs: Any) -> Compiled:
        made.append(Compiled(*args, **kwargs))
        return made[-1]

    monkeypatch.setattr(module, "Compiled", make)
    return made


def repeats(compiled: Compiled) -> int:
    return sum(program.times()[1] for program in compiled.programs)


def test_predictions(monkeypatch: pytest.MonkeyPatch) -> None:
    made = compiled_by(passes, monkeypatch)
    x = np.random.default_rng(0).standard_normal((2000, 6)).astype(np.float32)
    model = models.MLP([6, 16, 3], rng=0).eval()
    found = passes.outputs_on(model, data.Dataset(x, np.zeros(2000, np.int64)))
    assert repeats(made[0]) > 0
    assert not made[0].reasons
    with et.no_grad():
        np.testing.assert_allclose(found, model(et.tensor(x)).numpy(), rtol=1e-5, atol=1e-6)


def test_texts_beyond_the_context(monkeypatch: pytest.MonkeyPatch) -> None:
    made = compiled_by(text_sampling, monkeypatch)
    model = models.GPT(20, 8, n_layer=2, n_head=2, n_embd=16, rng=0).eval()
    start = np.array([3, 1])

    def draw(count: int) -> list[int]:
        return list(text_sampling.drawn_tokens(model, start, count, 8, 1.0, np.random.default_rng(1)))

    found = draw(16)
    assert repeats(made[0]) > 0
    assert not made[0].reasons
    monkeypatch.setattr(text_sampling, "Compiled", lambda fn, **_: fn)
    assert draw(16) == found


@pytest.mark.filterwarnings("ignore:.*still learning")
def test_estimators() -> None:
    pytest.importorskip("sklearn")
    from extensor.sklearn import MLPClassifier, MLPRegressor

    x = np.random.default_rng(0).standard_normal((80, 4)).astype(np.float32)
    for estimator in (MLPClassifier(max_iter=2, random_state=0), MLPRegressor(max_iter=2, random_state=0)):
        estimator.fit(x, (x[:, 0] > 0).astype(np.int64))
        for _ in range(3):
            estimator.predict(x)
        assert repeats(estimator._compiled_network) > 0
        assert not estimator._compiled_network.reasons
