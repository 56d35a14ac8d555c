"""Training gives the same bits on any number of threads: whole models, of sizes at which the threads share the work."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import extensor as et
from extensor import models, nn, optim

pytest.importorskip("extensor._native")

Case = tuple[Callable[[], nn.Module], Callable[[np.random.Generator], tuple[Any, Any]], int]


def images(channels: int, size: int, count: int) -> Callable[[np.random.Generator], tuple[Any, Any]]:
    return lambda rng: (
        rng.normal(size=(count, channels, size, size)).astype(np.float32),
        rng.integers(0, 10, count),
    )


def text(batch: int, length: int) -> Callable[[np.random.Generator], tuple[Any, Any]]:
    return lambda rng: (rng.integers(0, 65, (batch, length)), rng.integers(0, 65, (batch, length)))


CASES: dict[str, Case] = {
    "MLP": (
        lambda: models.MLP([784, 128, 10], rng=0),
        lambda rng: (rng.normal(size=(64, 784)).astype(np.float32), rng.integers(0, 10, 64)),
        200,
    ),
    "LeNet5": (lambda: models.LeNet5(rng=0), images(1, 28, 32), 20),
    "ResNet20": (lambda: models.ResNet20(rng=0), images(3, 16, 8), 20),
    "GPT": (lambda: models.GPT(65, 32, 2, 2, 64, rng=0), text(8, 32), 20),
    "LSTM": (lambda: models.LSTMLanguageModel(65, 64, 64, rng=0), text(16, 16), 20),
}


def train(name: str, threads: int) -> str:
    """The SHA-256 of the weights after training."""
    make, draw, steps = CASES[name]
    et.set_num_threads(threads)
    model, rng = make(), np.random.default_rng(1)
    optimizer = optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(steps):
        x, y = map(et.tensor, draw(rng))
        out = model(x)
        logits = out[0] if isinstance(out, tuple) else out
        loss = et.cross_entropy(logits.reshape((-1, logits.shape[-1])), y.reshape((-1,)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    digest = hashlib.sha256()
    for value in model.state_dict().values():
        digest.update(np.ascontiguousarray(value.numpy()).tobytes())
    return digest.hexdigest()


@pytest.mark.parametrize("name", CASES)
def test_the_same_bits_on_any_number_of_threads(name: str) -> None:
    before = et.get_num_threads()
    try:
        assert len({train(name, threads) for threads in (1, 2, 3, 4)}) == 1
    finally:
        et.set_num_threads(before)
