"""Networks to compile, each with batches, and a training step around them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

import extensor as et
from extensor import models, nn, optim

Batches = list[tuple[et.ExTensor, et.ExTensor]]


def _images(shape: tuple[int, ...], count: int) -> Batches:
    rng = np.random.default_rng(3)
    pictures = [rng.standard_normal(shape).astype(np.float32) for _ in range(count)]
    return [(et.tensor(x), et.tensor(rng.integers(0, 10, shape[0]))) for x in pictures]


def _texts(count: int) -> Batches:
    rng = np.random.default_rng(4)
    lines = [rng.integers(0, 20, (3, 9)) for _ in range(count)]
    return [(et.tensor(line[:, :-1]), et.tensor(line[:, 1:])) for line in lines]


def mlp() -> tuple[nn.Module, Batches]:
    layers = [nn.Linear(12, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 10)]
    return nn.Sequential(*layers), _images((6, 12), 3)


def lenet() -> tuple[nn.Module, Batches]:
    return models.LeNet5(), _images((3, 1, 28, 28), 2)


def resnet() -> tuple[nn.Module, Batches]:
    return models.ResNet20(), _images((2, 3, 32, 32), 2)


def gpt() -> tuple[nn.Module, Batches]:
    return models.GPT(20, 8, n_layer=2, n_head=2, n_embd=16, dropout=0.1), _texts(3)


def lstm() -> tuple[nn.Module, Batches]:
    return models.LSTMLanguageModel(20, 8, 8, 2), _texts(3)


NETWORKS: dict[str, Callable[[], tuple[nn.Module, Batches]]] = {
    f.__name__: f for f in (mlp, lenet, resnet, gpt, lstm)
}


class Training:
    """A network with its optimiser and a training step; two of the same seed compute the same."""

    def __init__(
        self,
        network: str,
        make_optimizer: Callable[[Any], Any],
        *,
        clip: bool = False,
        schedule: bool = False,
    ) -> None:
        et.seed(7)
        self.model, self.batches = NETWORKS[network]()
        self.optimizer = make_optimizer(self.model.parameters())
        self.schedule = optim.CosineAnnealingLR(self.optimizer, T_max=9) if schedule else None
        self.clip = clip

    def step(self, x: et.ExTensor, y: et.ExTensor) -> tuple[et.ExTensor, et.ExTensor]:
        self.optimizer.zero_grad()
        out = self.model(x)
        out = out[0] if isinstance(out, tuple) else out
        loss = et.cross_entropy(out.reshape((-1, out.shape[-1])), y.reshape((-1,)))
        loss.backward()
        if self.clip:
            params = list(self.model.parameters())
            for p, grad in zip(params, optim.clip_grad_norm([p.grad for p in params], 0.3)[0]):
                p.grad = grad
        self.optimizer.step()
        if self.schedule is not None:
            self.schedule.step()
        return loss, out

    def digest(self, steps: int, step: Callable[..., Any]) -> str:
        """A hash of everything that ``steps`` calls of ``step`` computed and left behind."""
        et.seed(8)
        found = hashlib.sha256()
        for i in range(steps):
            for tensor in step(*self.batches[i % len(self.batches)]):
                found.update(tensor.numpy().tobytes())
        for value in self.model.state_dict().values():
            found.update(value.numpy().tobytes())
        for p in self.model.parameters():
            found.update(b"-" if p.grad is None else p.grad.numpy().tobytes())
            for name, value in sorted(self.optimizer.state[p].items()):
                found.update(f"{name}{value.tolist() if isinstance(value, et.ExTensor) else value}".encode())
        return found.hexdigest()
