"""The recipes of ``extensor train``: a model, data, an optimiser and a schedule that work well together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .. import data, models, nn, optim
from ..ops.loss_classification import cross_entropy
from ..ops.loss_regression import mean_squared_error
from ..tensor import ExTensor
from .metrics import Accuracy, Metric, Perplexity
from .tables import is_table, notes_on, read_table

__all__ = ["RECIPES", "Recipe", "Setup", "load_samples", "load_text", "make_model"]


@dataclass
class Setup:
    """Everything a :class:`~extensor.train.Trainer` needs. ``config`` can build the model again."""

    model: nn.Module
    optimizer: optim.Optimizer
    loss: Callable[[Any, Any], ExTensor]
    train: data.DataLoader
    validation: data.DataLoader
    config: dict[str, Any]
    metrics: dict[str, Metric] = field(default_factory=dict)
    schedule: optim.LRScheduler | None = None
    clip_norm: float | None = None
    validate_every: int | None = None
    monitor: str = "val_loss"
    monitor_mode: str = "min"
    notes: list[str] = field(default_factory=list)  # what a person should know about the data


@dataclass(frozen=True)
class Recipe:
    """A named way to train.

    Attributes:
        about: one line for ``--help``.
        epochs, steps: how long it trains unless told otherwise; one of them is None.
        build: makes the setup from the path of the data (None: what comes with the package), the seed and the number
            of optimiser steps (None: it is the trainer's affair). A recipe for tables also takes the column to predict
            as ``target`` and those to leave out as ``ignore``.
        tables: whether it can learn from tables.
    """

    about: str
    build: Callable[..., Setup]
    epochs: int | None = None
    steps: int | None = None
    tables: bool = False


# Data


def load_samples(path: Path | None) -> tuple[data.Dataset, data.Dataset]:
    """Training and test samples: the embedded digits; a folder of MNIST or CIFAR-10 files; a .npz file."""
    if path is None:
        return data.digits().split(0.8, rng=0)
    if path.is_dir():
        if any(path.glob("data_batch_*")):
            return data.cifar10(path)
        return data.mnist(path)
    if path.suffix == ".npz":
        samples = data.read_arrays(path)
        if samples.inputs.dtype.kind in "biu":
            highest = 255 if samples.inputs.dtype == np.uint8 else 1  # bytes are pixels
            samples = samples.with_transforms(data.ToFloat(highest))
        return samples.split(0.8, rng=0)
    raise ValueError(
        f"[load_samples] {path} is neither a folder of MNIST or CIFAR-10 files nor a .npz file nor, for mlp, a .csv file"
    )


def load_text(path: Path | None) -> data.Text:
    """The characters of a text file, or of ``input.txt`` in a folder."""
    if path is None:
        raise ValueError("[load_text] this recipe needs a text to learn from; pass --data FILE")
    return data.Text.read(path / "input.txt" if path.is_dir() else path)


class Enlarged:
    """Images of 8 x 8 pixels as 28 x 28: each pixel three times as wide, and a border."""

    def __call__(self, batch: np.ndarray, random: Any) -> np.ndarray:
        return np.pad(batch.repeat(3, 2).repeat(3, 3), ((0, 0), (0, 0), (2, 2), (2, 2)))


# Models


def make_model(config: dict[str, Any]) -> nn.Module:
    """The model a configuration describes, with its first weights."""
    kinds: dict[str, Callable[..., nn.Module]] = {
        "MLP": models.MLP, "LeNet5": models.LeNet5, "ResNet20": models.ResNet20, "GPT": models.GPT,
        "LSTMLanguageModel": models.LSTMLanguageModel,
    }  # fmt: skip
    description = config.get("model")
    if not isinstance(description, dict) or description.get("name") not in kinds:
        raise ValueError(f"[make_model] the configuration names no model of ExTensor: {description!r}")
    made = kinds[description["name"]](**description["args"], rng=config.get("seed", 0))
    return nn.Sequential(nn.Flatten(), made) if description.get("flatten") else made


def _samples_setup(
    path: Path | None,
    seed: int,
    model: dict[str, Any],
    samples: tuple[data.Dataset, data.Dataset],
    batch: int,
    lr: float,
) -> Setup:
    train, test = samples
    config: dict[str, Any] = {
        "model": model,
        "data": None if path is None else str(path),
        "seed": seed,
        "batch_size": batch,
        "lr": lr,
    }
    if train.classes is not None:
        config["classes"] = list(train.classes)
    net = make_model(config)
    quantities = train.targets is not None and train.targets.dtype.kind == "f"
    return Setup(
        net,
        optim.AdamW(net.parameters(), lr=lr, weight_decay=1e-2),
        _squared_error if quantities else cross_entropy,
        data.DataLoader(train, batch, shuffle=True, rng=seed),
        data.DataLoader(test, 500),
        config,
        metrics={} if quantities else {"accuracy": Accuracy()},
        monitor="val_loss" if quantities else "val_accuracy",
        monitor_mode="min" if quantities else "max",
    )


def _squared_error(outputs: ExTensor, targets: ExTensor) -> ExTensor:
    return mean_squared_error(outputs.reshape(targets.shape), targets)


def _outputs(train: data.Dataset) -> int:
    if train.targets is None:
        raise ValueError("[train] the data has no targets to learn")
    if train.targets.dtype.kind == "f":
        return 1
    return int(train.targets.max()) + 1 if train.classes is None else len(train.classes)


def _decay(setup: Setup, steps: int | None) -> Setup:
    """The learning rate falls along a cosine to nearly nothing."""
    if steps is not None:
        setup.schedule = optim.CosineAnnealingLR(
            setup.optimizer, T_max=steps, eta_min=setup.config["lr"] / 100
        )
    return setup


def _mlp(
    path: Path | None, seed: int, steps: int | None, target: str | None = None, ignore: Sequence[str] = ()
) -> Setup:
    kept: dict[str, Any] = {}
    notes: list[str] = []
    batch = 64
    if path is not None and is_table(path):
        table, samples, kept["table"] = read_table(path, target, ignore)
        notes = notes_on(table)
        train, test = samples.split(0.8, rng=0)
        batch = min(max(len(train) // 32, 8), batch)  # a short table needs its steps too
    elif target is not None or ignore:
        raise ValueError(f"[train] {path or 'the embedded digits'}: only a table (.csv) has columns to name")
    else:
        train, test = load_samples(path)
    inputs = int(np.prod(train[0][0].shape))
    model = {"name": "MLP", "args": {"sizes": [inputs, 128, 64, _outputs(train)]}, "flatten": True}
    setup = _decay(_samples_setup(path, seed, model, (train, test), batch, 2e-3), steps)
    setup.config.update(kept)
    setup.notes += notes
    return setup


def _lenet(path: Path | None, seed: int, steps: int | None) -> Setup:
    train, test = load_samples(path)
    if train.inputs.ndim != 4:
        raise ValueError(
            f"[train] lenet needs images, {path} has samples of shape {train.inputs.shape[1:]}; use mlp"
        )
    if train.inputs.shape[2:] == (8, 8):
        train, test = train.with_transforms(Enlarged()), test.with_transforms(Enlarged())
    if train[0][0].shape[1:] != (28, 28):
        raise ValueError(
            f"[train] lenet needs images of 28 x 28 pixels, got {train[0][0].shape[1:]}; use resnet20"
        )
    model = {
        "name": "LeNet5",
        "args": {"num_classes": _outputs(train), "in_channels": int(train.inputs.shape[1])},
    }
    return _decay(_samples_setup(path, seed, model, (train, test), 64, 2e-3), steps)


def _resnet20(path: Path | None, seed: int, steps: int | None) -> Setup:
    train, test = load_samples(path)
    if train.inputs.ndim != 4:
        raise ValueError(
            f"[train] resnet20 needs images, {path} has samples of shape {train.inputs.shape[1:]}; use mlp"
        )
    if train.inputs.shape[2:] == (32, 32):
        train = train.with_transforms(data.RandomCrop(32, padding=4), data.RandomFlip())
    model = {
        "name": "ResNet20",
        "args": {"num_classes": _outputs(train), "in_channels": int(train.inputs.shape[1])},
    }
    return _decay(_samples_setup(path, seed, model, (train, test), 64, 3e-3), steps)


def _text_setup(path: Path | None, seed: int, model: dict[str, Any], length: int, batch: int) -> Setup:
    text = load_text(path)
    least = 10 * length + 1
    if len(text) < least:
        raise ValueError(
            f"[load_text] {path} has a length of {len(text)}, but {least} characters are the least to train on: a tenth "
            f"of a text is kept for validation and must hold {length} characters and the one that follows them"
        )
    learned, held_out = text.split(0.9)
    model["args"]["vocab_size"] = len(text.vocabulary)
    config = {
        "model": model,
        "data": str(path),
        "seed": seed,
        "batch_size": batch,
        "vocabulary": "".join(text.vocabulary),
    }
    config["length"] = length
    net = make_model(config)
    every = held_out.windows(length)
    apart = data.Dataset(*every.gather(np.arange(0, len(every), length)))
    return Setup(
        net,
        optim.AdamW(_decayed_groups(net), lr=1e-3, betas=(0.9, 0.99)),
        _next_token_loss,
        data.DataLoader(learned.windows(length), batch, shuffle=True, rng=seed, drop_last=True),
        data.DataLoader(apart, 64),
        config,
        metrics={"perplexity": Perplexity()},
        clip_norm=1.0,
        validate_every=500,
    )


def _decayed_groups(net: nn.Module) -> list[dict[str, Any]]:
    """Matrices decay, biases and the weights of normalisations do not."""
    parameters = list(net.parameters())
    groups = [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": 0.1},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    return [group for group in groups if group["params"]]


def _next_token_loss(outputs: Any, targets: ExTensor) -> ExTensor:
    """Cross-entropy at every position; a recurrent model returns its state beside the logits."""
    return cross_entropy(outputs[0] if isinstance(outputs, tuple) else outputs, targets)


def _warm_cosine(setup: Setup, steps: int | None, warmup: int = 100) -> Setup:
    if steps is not None and steps > warmup:
        after = optim.CosineAnnealingLR(setup.optimizer, T_max=steps - warmup, eta_min=1e-4)
        setup.schedule = optim.WarmupScheduler(setup.optimizer, warmup, after)
    return setup


def _chargpt(path: Path | None, seed: int, steps: int | None) -> Setup:
    sizes = {"n_layer": 4, "n_head": 4, "n_embd": 128, "block_size": 64, "bias": False}
    setup = _text_setup(path, seed, {"name": "GPT", "args": sizes}, 64, 12)
    return _warm_cosine(setup, steps)


def _lstm(path: Path | None, seed: int, steps: int | None) -> Setup:
    sizes = {"embedding_dim": 64, "hidden_size": 128}
    setup = _text_setup(path, seed, {"name": "LSTMLanguageModel", "args": sizes}, 64, 32)
    return _warm_cosine(setup, steps)


RECIPES = {
    "mlp": Recipe("dense layers: digits, MNIST, a CSV file of your own", _mlp, epochs=20, tables=True),
    "lenet": Recipe("LeNet-5: digits, MNIST, Fashion-MNIST", _lenet, epochs=10),
    "resnet20": Recipe("ResNet-20: CIFAR-10", _resnet20, epochs=20),
    "chargpt": Recipe("a small GPT that writes character by character", _chargpt, steps=2000),
    "lstm": Recipe("an LSTM that writes character by character", _lstm, steps=2000),
}
