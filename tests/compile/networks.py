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


OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "sgd": lambda params: optim.SGD(params, lr=0.05),
    "momentum": lambda params: optim.SGD(params, lr=0.05, momentum=0.9, nesterov=True),
    "adam": lambda params: optim.Adam(params, lr=1e-3),
    "adamw": lambda params: optim.AdamW(params, lr=1e-3),
    "amsgrad": lambda params: optim.Adam(params, lr=1e-3, amsgrad=True),
    "rmsprop": lambda params: optim.RMSprop(params, lr=1e-3, momentum=0.5),
    "adagrad": lambda params: optim.Adagrad(params),
    "lion": lambda params: optim.Lion(params),
    "lamb": lambda params: optim.LAMB(params),
    "nadam": lambda params: optim.NAdam(params),
    "radam": lambda params: optim.RAdam(params),
    "adadelta": lambda params: optim.Adadelta(params),
    "adafactor": lambda params: optim.Adafactor(params),
    "muon": lambda params: optim.Muon([p for p in params if p.ndim == 2]),
}

SCHEDULES: dict[str, Callable[[Any], Any]] = {
    "step": lambda optimizer: optim.StepLR(optimizer, 3),
    "multistep": lambda optimizer: optim.MultiStepLR(optimizer, [2, 5]),
    "exponential": lambda optimizer: optim.ExponentialLR(optimizer, 0.97),
    "constant": lambda optimizer: optim.ConstantLR(optimizer),
    "linear": lambda optimizer: optim.LinearLR(optimizer),
    "lambda": lambda optimizer: optim.LambdaLR(optimizer, lambda t: 1.0 / (1.0 + t)),
    "cosine": lambda optimizer: optim.CosineAnnealingLR(optimizer, T_max=9),
    "polynomial": lambda optimizer: optim.PolynomialLR(optimizer, 50),
    "restarts": lambda optimizer: optim.CosineAnnealingWarmRestarts(optimizer, 5),
    "cyclic": lambda optimizer: optim.CyclicLR(optimizer, 1e-3, 1e-2, 7, cycle_momentum=False),
    "warmup": lambda optimizer: optim.WarmupScheduler(
        optimizer, 6, optim.CosineAnnealingLR(optimizer, T_max=9)
    ),
    "onecycle": lambda optimizer: optim.OneCycleLR(optimizer, 1e-2, total_steps=1000),
    "sequential": lambda optimizer: optim.SequentialLR(
        optimizer, [optim.ConstantLR(optimizer), optim.ExponentialLR(optimizer, 0.9)], [4]
    ),
}


class Training:
    """A network with its optimiser and a training step; two of the same seed compute the same.

    Args:
        network: of :data:`NETWORKS`.
        make_optimizer: of :data:`OPTIMIZERS`.
        clip: gradients to a norm of 0.3.
        schedule: of :data:`SCHEDULES`.
        checkpoint: the network's activations are computed again in the backward pass.
        pieces: of a batch, whose gradients are added up.
    """

    def __init__(
        self,
        network: str,
        make_optimizer: Callable[[Any], Any],
        *,
        clip: bool = False,
        schedule: str | None = None,
        checkpoint: bool = False,
        pieces: int = 1,
    ) -> None:
        et.seed(7)
        self.model, self.batches = NETWORKS[network]()
        self.optimizer = make_optimizer(self.model.parameters())
        self.schedule = None if schedule is None else SCHEDULES[schedule](self.optimizer)
        self.clip, self.pieces = clip, pieces
        self.forward: Callable[..., Any] = et.checkpoint(self.model) if checkpoint else self.model

    def step(self, x: et.ExTensor, y: et.ExTensor) -> tuple[et.ExTensor, et.ExTensor]:
        self.model.zero_grad()
        size = x.shape[0] // self.pieces
        for i in range(self.pieces):
            out = self.forward(x[i * size : (i + 1) * size] if self.pieces > 1 else x)
            out = out[0] if isinstance(out, tuple) else out
            labels = y[i * size : (i + 1) * size] if self.pieces > 1 else y
            loss = et.cross_entropy(out.reshape((-1, out.shape[-1])), labels.reshape((-1,))) / float(
                self.pieces
            )
            loss.backward()
        if self.clip:
            params = [p for p in self.model.parameters() if p.grad is not None]
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
            for name, value in sorted(self.optimizer.state.get(p, {}).items()):
                found.update(f"{name}{value.tolist() if isinstance(value, et.ExTensor) else value}".encode())
        return found.hexdigest()
