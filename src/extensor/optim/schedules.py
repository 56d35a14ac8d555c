"""Schedules that are a formula of the step."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..checks import as_int, as_ints
from ..errors import describe
from ._rules import finite, not_negative
from .optimizer import Optimizer
from .scheduler import LRScheduler

__all__ = [
    "ConstantLR", "CosineAnnealingLR", "ExponentialLR", "LambdaLR", "LinearLR", "MultiStepLR", "StepLR",
]  # fmt: skip


def positive_int(function: str, name: str, value: Any) -> int:
    """A whole number from 1."""
    found = as_int(function, name, value)
    if found < 1:
        raise ValueError(f"[{function}] {name} must be at least 1, got {found}")
    return found


class StepLR(LRScheduler):
    """The rate times ``gamma`` every ``step_size`` steps.

    Example:
        >>> import extensor as et
        >>> schedule = et.optim.StepLR(et.optim.SGD([et.nn.Parameter([1.0])], lr=1.0), step_size=2, gamma=0.5)
        >>> [schedule.get_last_lr() for _ in range(5) if schedule.step() is None]
        [[1.0], [0.5], [0.5], [0.25], [0.25]]
    """

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size = positive_int("StepLR", "step_size", step_size)
        self.gamma = finite("StepLR", "gamma", gamma)
        super().__init__(optimizer, last_epoch)

    def rate(self, group: int, lr: float) -> float:
        return lr * self.gamma if self.last_epoch and self.last_epoch % self.step_size == 0 else lr


class MultiStepLR(LRScheduler):
    """The rate times ``gamma`` at each of the ``milestones``.

    Example:
        >>> import extensor as et
        >>> schedule = et.optim.MultiStepLR(et.optim.SGD([et.nn.Parameter([1.0])], lr=1.0), [2, 3], gamma=0.5)
        >>> [schedule.get_last_lr() for _ in range(4) if schedule.step() is None]
        [[1.0], [0.5], [0.25], [0.25]]
    """

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones = Counter(as_ints("MultiStepLR", "milestones", milestones))
        self.gamma = finite("MultiStepLR", "gamma", gamma)
        super().__init__(optimizer, last_epoch)

    def rate(self, group: int, lr: float) -> float:
        return lr * self.gamma ** self.milestones[self.last_epoch]


class ExponentialLR(LRScheduler):
    """The rate times ``gamma`` every step.

    Example:
        >>> import extensor as et
        >>> schedule = et.optim.ExponentialLR(et.optim.SGD([et.nn.Parameter([1.0])], lr=1.0), gamma=0.5)
        >>> [schedule.get_last_lr() for _ in range(3) if schedule.step() is None]
        [[0.5], [0.25], [0.125]]
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = finite("ExponentialLR", "gamma", gamma)
        super().__init__(optimizer, last_epoch)

    def rate(self, group: int, lr: float) -> float:
        return lr * self.gamma if self.last_epoch else lr


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the base rate to ``eta_min`` in ``T_max`` steps, and back.

    eta_min + (base - eta_min) * (1 + cos(pi * t / T_max)) / 2 at step t, written as a change of the rate before.

    Example:
        >>> import extensor as et
        >>> schedule = et.optim.CosineAnnealingLR(et.optim.SGD([et.nn.Parameter([1.0])], lr=1.0), T_max=2)
        >>> [round(schedule.get_last_lr()[0], 6) for _ in range(4) if schedule.step() is None]
        [0.5, 0.0, 0.5, 1.0]
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max = positive_int("CosineAnnealingLR", "T_max", T_max)
        self.eta_min = not_negative("CosineAnnealingLR", "eta_min", eta_min)
        super().__init__(optimizer, last_epoch)

    def rate(self, group: int, lr: float) -> float:
        t, length = self.last_epoch, self.T_max
        if t == 0:
            return lr
        if (t - 1 - length) % (2 * length) == 0:  # one step after the minimum, where nothing is left to scale
            return lr + (self.base_lrs[group] - self.eta_min) * (1 - math.cos(math.pi / length)) / 2
        change = (1 + math.cos(math.pi * t / length)) / (1 + math.cos(math.pi * (t - 1) / length))
        return change * (lr - self.eta_min) + self.eta_min


class ConstantLR(LRScheduler):
    """The rate times ``factor`` for ``total_iters`` steps.

    Example:
        >>> import extensor as et
        >>> schedule = et.optim.ConstantLR(et.optim.SGD([et.nn.Parameter([1.0])], lr=1.0), factor=0.5, total_iters=2)
        >>> [schedule.get_last_lr() for _ in range(3) if schedule.step() is None]
        [[0.5], [1.0], [1.0]]
    """

    def __init__(
        self, optimizer: Optimizer, factor: float = 1 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        self.factor = finite("ConstantLR", "factor", factor)
        if not 0 < self.factor <= 1:
            raise ValueError(f"[ConstantLR] factor must lie in (0, 1], got {self.factor}")
        self.total_iters = positive_int("ConstantLR", "total_iters", total_iters)
        super().__init__(optimizer, last_epoch)

    def rate(self, group: int, lr: float) -> float:
        if self.last_epoch == 0:
            return lr * self.factor
        return lr / self.factor if self.last_epoch == self.total_iters else lr


class LinearLR(LRScheduler):
    """The rate times a factor that goes straight from ``start_factor`` to ``end_factor`` in ``total_iters`` steps.

    Example:
        >>> import extensor as et
        >>> schedule = et.optim.LinearLR(et.optim.SGD([et.nn.Parameter([1.0])], lr=1.0), 0.5, total_iters=2)
        >>> schedule.get_last_lr(), [schedule.get_last_lr() for _ in range(3) if schedule.step() is None]
        ([0.5], [[0.75], [1.0], [1.0]])
    """

    def __init__(
        self, optimizer: Optimizer, start_factor: float = 1 / 3, end_factor: float = 1.0, total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        self.start_factor = finite("LinearLR", "start_factor", start_factor)
        self.end_factor = finite("LinearLR", "end_factor", end_factor)
        if not 0 < self.start_factor <= 1:
            raise ValueError(f"[LinearLR] start_factor must lie in (0, 1], got {self.start_factor}")
        if not 0 <= self.end_factor <= 1:
            raise ValueError(f"[LinearLR] end_factor must lie in [0, 1], got {self.end_factor}")
        self.total_iters = positive_int("LinearLR", "total_iters", total_iters)
        super().__init__(optimizer, last_epoch)

    def rate(self, group: int, lr: float) -> float:
        t, length, climb = self.last_epoch, self.total_iters, self.end_factor - self.start_factor
        if t == 0:
            return lr * self.start_factor
        if t > length:
            return lr
        return lr * (1 + climb / (length * self.start_factor + (t - 1) * climb))


class LambdaLR(LRScheduler):
    """The base rate times ``lr_lambda(step)``; a list has a function for each group.

    Example:
        >>> import extensor as et
        >>> schedule = et.optim.LambdaLR(et.optim.SGD([et.nn.Parameter([1.0])], lr=1.0), lambda step: 1 / (1 + step))
        >>> [schedule.get_last_lr() for _ in range(3) if schedule.step() is None][::2]
        [[0.5], [0.25]]
    """

    def __init__(
        self, optimizer: Optimizer, lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        groups = len(optimizer.param_groups)
        self.lr_lambdas = [lr_lambda] * groups if callable(lr_lambda) else list(lr_lambda)
        if len(self.lr_lambdas) != groups or not all(map(callable, self.lr_lambdas)):
            raise ValueError(
                f"[LambdaLR] lr_lambda must be a function, or one for each of the {groups} groups, got {describe(lr_lambda)}"
            )
        super().__init__(optimizer, last_epoch)

    def rate(self, group: int, lr: float) -> float:
        return self.base_lrs[group] * self.lr_lambdas[group](self.last_epoch)
