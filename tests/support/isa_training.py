"""The SHA-256 of the losses and all weights after some steps of training, printed; the same on every instruction set.

    EXTENSOR_ISA=avx512 python tests/support/isa_training.py resnet20 200

Initial weights, data and dropout come from NumPy's generators, whose bits depend on the seed alone.
"""

from __future__ import annotations

import hashlib
import sys
from typing import Any

import numpy as np

import extensor as et
from extensor import models, nn, optim

TOKENS = 65


def images(rng: np.random.Generator, count: int, channels: int, size: int) -> tuple[Any, Any]:
    return rng.standard_normal((count, channels, size, size), np.float32), rng.integers(0, 10, count)


def text(rng: np.random.Generator, count: int, length: int) -> tuple[Any, Any]:
    tokens = rng.integers(0, TOKENS, (count, length + 1))
    return tokens[:, :-1].copy(), tokens[:, 1:].copy()


def setting(name: str) -> tuple[nn.Module, optim.Optimizer, Any]:
    """A network, its optimiser, and how to draw a batch."""
    if name == "lenet":
        net: nn.Module = models.LeNet5(rng=0)
        return net, optim.SGD(net.parameters(), lr=0.05, momentum=0.9), lambda rng: images(rng, 32, 1, 28)
    if name == "resnet20":
        net = models.ResNet20(rng=0)
        return net, optim.SGD(net.parameters(), lr=0.05, momentum=0.9), lambda rng: images(rng, 8, 3, 32)
    if name == "gpt":
        net = models.GPT(TOKENS, 64, n_layer=2, dropout=0.1, rng=0)
        return net, optim.AdamW(net.parameters(), lr=1e-3), lambda rng: text(rng, 4, 64)
    net = models.LSTMLanguageModel(TOKENS, rng=0)
    return net, optim.Adam(net.parameters(), lr=1e-3), lambda rng: text(rng, 8, 32)


def train(name: str, steps: int) -> str:
    net, optimizer, draw = setting(name)
    rng, digest = np.random.default_rng(1), hashlib.sha256()
    for _ in range(steps):
        x, labels = draw(rng)
        optimizer.zero_grad()
        result = net(et.tensor(x))
        logits = result[0] if isinstance(result, tuple) else result
        loss = et.cross_entropy(logits.reshape((-1, logits.shape[-1])), et.tensor(labels.reshape(-1)))
        loss.backward()
        optimizer.step()
        digest.update(loss.numpy().tobytes())
    for key, value in sorted(net.state_dict().items()):
        digest.update(key.encode() + value.numpy().tobytes())
    return digest.hexdigest()


if __name__ == "__main__":
    print(train(sys.argv[1], int(sys.argv[2])))
