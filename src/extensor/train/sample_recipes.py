"""Recipes for samples with targets: dense layers, LeNet-5 and ResNet-20."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import data
from ..data.loader import to_judge
from ..ops.loss_classification import cross_entropy
from ..ops.loss_regression import mean_squared_error
from ..tensor import ExTensor
from .data_identity import identify_data
from .hyperparameters import Hyperparameters
from .metrics import Accuracy
from .model_config import make_model
from .recipe import Order, Setup
from .sample_files import Parts, load_parts

__all__ = ["enlarged", "lenet", "mlp", "resnet20", "squared_error"]


def mlp(order: Order, settings: Hyperparameters) -> Setup:
    """Dense layers, for samples of any shape and tables."""
    parts = load_parts(order, tables=True, image_size=settings.image_size)
    inputs = int(np.prod(parts.train[0][0].shape))
    sizes = [inputs, *settings.hidden, _outputs(parts.train)]
    setup = _samples_setup(order, settings, parts, {"name": "MLP", "args": {"sizes": sizes}, "flatten": True})
    if parts.table is not None:
        setup.config |= {"table": parts.table, "target": order.target, "ignore": list(order.ignore)}
    return setup


def lenet(order: Order, settings: Hyperparameters) -> Setup:
    """LeNet-5, for images of 28 x 28 pixels; the embedded digits are enlarged to that."""
    parts = load_parts(order, image_size=settings.image_size)
    _check_images("lenet", order, parts)
    for name in ("train", "validation", "test"):
        setattr(parts, name, enlarged(getattr(parts, name)))
    size = parts.train[0][0].shape[1:]
    if min(size) < 12:
        raise ValueError(f"[train] lenet needs images of at least 12 x 12 pixels, got {size}; use resnet20")
    args = _image_sizes(parts) | ({} if size == (28, 28) else {"image_size": list(size)})
    return _samples_setup(order, settings, parts, {"name": "LeNet5", "args": args})


def resnet20(order: Order, settings: Hyperparameters) -> Setup:
    """ResNet-20, with random crops and flips for images of 32 x 32 pixels."""
    parts = load_parts(order, image_size=settings.image_size)
    _check_images("resnet20", order, parts)
    if parts.train.inputs.shape[2:] == (32, 32):
        parts.train = parts.train.with_transforms(data.RandomCrop(32, padding=4), data.RandomFlip())
    return _samples_setup(order, settings, parts, {"name": "ResNet20", "args": _image_sizes(parts)})


def _check_images(recipe: str, order: Order, parts: Parts) -> None:
    if parts.train.inputs.ndim != 4:
        shape = parts.train.inputs.shape[1:]
        raise ValueError(f"[train] {recipe} needs images, {order.data} has samples of shape {shape}; use mlp")


def _image_sizes(parts: Parts) -> dict[str, Any]:
    return {"num_classes": _outputs(parts.train), "in_channels": int(parts.train.inputs.shape[1])}


class Enlarged:
    """Images of 8 x 8 pixels as 28 x 28: each pixel three times as wide, and a border."""

    def __call__(self, batch: np.ndarray, random: Any) -> np.ndarray:
        return np.pad(batch.repeat(3, 2).repeat(3, 3), ((0, 0), (0, 0), (2, 2), (2, 2)))


def enlarged(samples: data.Dataset) -> data.Dataset:
    """Images of 8 x 8 pixels for LeNet-5; others as they are."""
    return samples.with_transforms(Enlarged()) if samples.inputs.shape[2:] == (8, 8) else samples


def _outputs(train: data.Dataset) -> int:
    if train.targets is None:
        raise ValueError("[train] the data has no targets to learn")
    if train.targets.dtype.kind == "f":
        return 1
    return int(train.targets.max()) + 1 if train.classes is None else len(train.classes)


def _samples_setup(order: Order, settings: Hyperparameters, parts: Parts, model: dict[str, Any]) -> Setup:
    train = parts.train
    batch = settings.batch_size or min(max(len(train) // 32, 8), 64)  # a short table needs its steps too
    config: dict[str, Any] = {"model": model, **identify_data(order.data), "seed": order.seed}
    config |= settings.as_config() | {"batch_size": batch, "task": order.task}
    config |= {} if order.fold is None else {"fold": list(order.fold)}
    for name, path in (("validation", order.validation), ("test", order.test)):
        config |= {} if path is None else identify_data(path, name)
    if train.classes is not None:
        config["classes"] = list(train.classes)
    sizes = {name: len(getattr(parts, name)) for name in ("train", "validation", "test")}
    net = make_model(config)
    config["samples"] = sizes
    quantities = train.targets is not None and train.targets.dtype.kind == "f"
    return Setup(
        net,
        settings.make_optimizer(net.parameters()),
        squared_error if quantities else cross_entropy,
        data.DataLoader(train, batch, shuffle=True, rng=order.seed),
        to_judge(parts.validation),
        config,
        settings,
        test=parts.test,
        metrics={} if quantities else {"accuracy": Accuracy()},
        monitor="val_loss" if quantities else "val_accuracy",
        monitor_mode="min" if quantities else "max",
        notes=parts.notes,
    )


def squared_error(outputs: ExTensor, targets: ExTensor) -> ExTensor:
    """The mean squared error of outputs (samples, 1) and targets (samples,)."""
    return mean_squared_error(outputs.reshape(targets.shape), targets)
