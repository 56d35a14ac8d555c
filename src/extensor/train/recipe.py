"""What a recipe is: an order of the user becomes a setup that a trainer can run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from .. import data, nn, optim
from ..tensor import ExTensor
from .hyperparameters import Hyperparameters
from .metrics import Metric

__all__ = ["Order", "Recipe", "Setup", "Task"]

Task = Literal["auto", "classification", "regression"]


@dataclass(frozen=True)
class Order:
    """What the user asked for.

    Attributes:
        data: the path of the data; None for what comes with the package.
        seed: of weights, shuffling and dropout.
        target, ignore: of a table, the column to predict and those to leave out.
        task: whether targets are classes or quantities; ``"auto"`` decides by what they are.
        validation, test: files with the samples of these parts; without them, they are split off the data.
        settings: changes to the hyperparameters of the recipe.
        fold: (k, n): test with the k-th of n equal parts of the data, from 1.
    """

    data: Path | None = None
    seed: int = 0
    target: str | None = None
    ignore: tuple[str, ...] = ()
    task: Task = "auto"
    validation: Path | None = None
    test: Path | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    fold: tuple[int, int] | None = None


@dataclass
class Setup:
    """Everything a :class:`~extensor.train.Trainer` needs. ``config`` can build the model again.

    Attributes:
        test: samples that take no part in training, not even in choosing the best weights; None for texts.
        notes: what a person should know about how the data was read.
    """

    model: nn.Module
    optimizer: optim.Optimizer
    loss: Callable[[Any, Any], ExTensor]
    train: data.DataLoader
    validation: data.DataLoader
    config: dict[str, Any]
    hyperparameters: Hyperparameters
    test: data.Dataset | None = None
    metrics: dict[str, Metric] = field(default_factory=dict)
    validate_every: int | None = None
    monitor: str = "val_loss"
    monitor_mode: Literal["min", "max"] = "min"
    notes: list[str] = field(default_factory=list)

    def total_steps(self, epochs: int | None, steps: int | None) -> int:
        """How many optimiser steps a run of so many epochs or steps has."""
        return steps if steps is not None else (epochs or 1) * len(self.train)


@dataclass(frozen=True)
class Recipe:
    """A named way to train.

    Attributes:
        about: one line for ``--help``.
        build: makes the setup of an order.
        hyperparameters: what it trains with unless told otherwise.
        epochs, steps: how long it trains unless told otherwise; one of them is None.
        tables: whether it can learn from tables.
    """

    about: str
    build: Callable[[Order, Hyperparameters], Setup]
    hyperparameters: Hyperparameters
    epochs: int | None = None
    steps: int | None = None
    tables: bool = False

    def set_up(self, order: Order) -> Setup:
        """The setup of an order; ValueError where the data or the settings make no sense."""
        return self.build(order, self.hyperparameters.changed(order.settings))
