"""The numbers a recipe trains with: their defaults, what the user changes, and what is made of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from .. import optim
from .._spelling import did_you_mean
from ..errors import describe
from ..nn import Parameter
from .mixed_precision import PRECISIONS, Precision

__all__ = ["Hyperparameters"]

OPTIMIZERS: dict[str, Any] = {
    "adamw": optim.AdamW,
    "adam": optim.Adam,
    "sgd": optim.SGD,
    "rmsprop": optim.RMSprop,
    "lion": optim.Lion,
}
SCHEDULES = ("cosine", "constant", "onecycle")


@dataclass(frozen=True)
class Hyperparameters:
    """What may be changed about a recipe without writing code.

    Attributes:
        lr: the highest learning rate.
        batch_size: samples per step; 0 is chosen by the size of the data.
        weight_decay: of matrices and filters.
        optimizer: one of :data:`OPTIMIZERS`.
        schedule: how the learning rate changes: along a cosine, up and down (``"onecycle"``), or not at all.
        warmup: steps in which it rises to ``lr``.
        patience: epochs, or validations, without a better one after which the run ends; 0 for never.
        hidden: the widths of hidden layers, for a network of dense layers.
        momentum: of ``sgd``.
        beta2: of the optimisers of Adam's kind.
        clip_norm: the largest norm of all gradients together; 0 for no bound.
        lr_floor: where a cosine ends, as a part of ``lr``.
        precision: of products; see :class:`~extensor.train.Trainer`.
        image_size: the height and width that pictures in files are scaled and cut to.
    """

    lr: float = 2e-3
    batch_size: int = 0
    weight_decay: float = 1e-2
    optimizer: str = "adamw"
    schedule: str = "cosine"
    warmup: int = 0
    patience: int = 0
    hidden: tuple[int, ...] = ()
    momentum: float = 0.9
    beta2: float = 0.999
    clip_norm: float = 0.0
    lr_floor: float = 0.01
    precision: Precision = "float32"
    image_size: int = 32

    def changed(self, values: Mapping[str, Any]) -> Hyperparameters:
        """With other values, given as numbers or as text; ValueError for a name or value that makes no sense."""
        known = {field.name: getattr(self, field.name) for field in fields(self)}
        for name in values:
            if name not in known:
                near = did_you_mean(name, known)
                raise ValueError(f"there is no setting {name!r}; there are {', '.join(known)}{near}")
        new = replace(self, **{name: _like(name, known[name], value) for name, value in values.items()})
        new._check()
        return new

    def _check(self) -> None:
        if self.optimizer not in OPTIMIZERS:
            raise ValueError(f"optimizer must be one of {', '.join(OPTIMIZERS)}, got {self.optimizer!r}")
        if self.schedule not in SCHEDULES:
            raise ValueError(f"schedule must be one of {', '.join(SCHEDULES)}, got {self.schedule!r}")
        if self.precision not in PRECISIONS:
            raise ValueError(f"precision must be one of {', '.join(PRECISIONS)}, got {self.precision!r}")
        if not 1 <= self.image_size <= 4096:
            raise ValueError(f"image_size must be from 1 to 4096, got {self.image_size}")
        if not self.lr > 0:
            raise ValueError(f"lr must be more than 0, got {self.lr}")
        if not (0 <= self.beta2 < 1 and 0 <= self.momentum < 1):
            raise ValueError(
                f"momentum and beta2 must be from 0 to below 1, got {self.momentum}, {self.beta2}"
            )
        if any(width < 1 for width in self.hidden):
            raise ValueError(f"hidden must be widths of at least 1, got {self.hidden}")
        for name in ("batch_size", "weight_decay", "warmup", "patience", "clip_norm", "lr_floor"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must be at least 0, got {getattr(self, name)}")

    def as_config(self) -> dict[str, Any]:
        """As JSON keeps them."""
        return {**asdict(self), "hidden": list(self.hidden)}

    def make_optimizer(
        self, parameters: Iterable[Parameter], matrices_decay_alone: bool = False
    ) -> optim.Optimizer:
        """The optimiser; with ``matrices_decay_alone``, biases and the weights of norms do not decay."""
        every = list(parameters)
        groups = [{"params": every, "weight_decay": self.weight_decay}]
        if matrices_decay_alone:
            groups = [
                {"params": [p for p in every if p.ndim >= 2], "weight_decay": self.weight_decay},
                {"params": [p for p in every if p.ndim < 2], "weight_decay": 0.0},
            ]
        options: dict[str, Any] = {"lr": self.lr}
        if self.optimizer == "sgd":
            options["momentum"] = self.momentum
        elif self.optimizer in ("adam", "adamw"):
            options["betas"] = (0.9, self.beta2)
        return OPTIMIZERS[self.optimizer]([group for group in groups if group["params"]], **options)

    def make_schedule(self, optimizer: optim.Optimizer, steps: int) -> optim.LRScheduler | None:
        """The schedule of a run of so many steps."""
        rest = steps - self.warmup
        if self.schedule == "onecycle" and steps > 1:
            return optim.OneCycleLR(optimizer, self.lr, total_steps=steps + 1)
        after: optim.LRScheduler | None = None
        if self.schedule == "cosine" and rest > 0:
            after = optim.CosineAnnealingLR(optimizer, T_max=rest, eta_min=self.lr * self.lr_floor)
        return optim.WarmupScheduler(optimizer, self.warmup, after) if 0 < self.warmup < steps else after


def _like(name: str, known: Any, value: Any) -> Any:
    """``value``, which may be text, in the type of the value it replaces."""
    try:
        if isinstance(known, str):
            if isinstance(value, str):
                return value.lower()
        elif isinstance(known, tuple):
            parts = value.replace("x", ",").split(",") if isinstance(value, str) else value
            if isinstance(parts, (list, tuple)):
                return tuple(int(part) for part in parts if str(part).strip())
            return (int(value),)
        elif not isinstance(value, bool):
            number = float(value)
            if math.isfinite(number) and (isinstance(known, float) or number.is_integer()):
                return type(known)(number)
    except (TypeError, ValueError):
        pass
    kinds = {str: "a word", int: "a whole number", float: "a number", tuple: "whole numbers, such as 128,64"}
    raise ValueError(f"{name} must be {kinds[type(known)]}, got {describe(value)}")
