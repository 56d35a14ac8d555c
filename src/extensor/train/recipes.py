"""The recipes of ``extensor train``: a model, data, an optimiser and a schedule that work well together."""

from __future__ import annotations

from .hyperparameters import Hyperparameters
from .recipe import Order, Recipe, Setup
from .sample_recipes import lenet, mlp, resnet20
from .text_recipes import chargpt, lstm

__all__ = ["RECIPES", "Order", "Recipe", "Setup"]

_WRITES = Hyperparameters(
    lr=1e-3, weight_decay=0.1, beta2=0.99, warmup=100, lr_floor=0.1, clip_norm=1.0, batch_size=12
)

RECIPES = {
    "mlp": Recipe(
        "dense layers: digits, MNIST, a CSV file of your own", mlp, Hyperparameters(hidden=(128, 64)),
        epochs=20, tables=True,
    ),
    "lenet": Recipe(
        "LeNet-5: digits, MNIST, Fashion-MNIST", lenet, Hyperparameters(batch_size=64), epochs=10
    ),
    "resnet20": Recipe(
        "ResNet-20: CIFAR-10", resnet20, Hyperparameters(lr=3e-3, batch_size=64), epochs=20
    ),
    "chargpt": Recipe("a small GPT that writes character by character", chargpt, _WRITES, steps=2000),
    "lstm": Recipe(
        "an LSTM that writes character by character", lstm, _WRITES.changed({"batch_size": 32}), steps=2000
    ),
}  # fmt: skip
