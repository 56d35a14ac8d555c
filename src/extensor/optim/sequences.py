"""Schedules made of schedules."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

from ..checks import as_ints
from ..errors import describe
from ..graph import repeated_change
from .optimizer import Optimizer
from .plateau import ReduceLROnPlateau
from .scheduler import LRScheduler
from .schedules import positive_int

__all__ = ["SequentialLR", "WarmupScheduler"]


def _belongs(function: str, name: str, schedule: Any, optimizer: Optimizer) -> LRScheduler:
    if not isinstance(schedule, LRScheduler):
        raise TypeError(f"[{function}] {name} must be a schedule, got {describe(schedule)}")
    if schedule.optimizer is not optimizer:
        raise ValueError(f"[{function}] {name} belongs to another optimiser")
    return schedule


class SequentialLR(LRScheduler):
    """One schedule after another; the next begins, from its own step 0, at each of the ``milestones``.

    Example:
        >>> import extensor as et
        >>> optimizer = et.optim.SGD([et.nn.Parameter([1.0])], lr=1.0)
        >>> warm = et.optim.ConstantLR(optimizer, factor=0.5, total_iters=10)
        >>> decay = et.optim.ExponentialLR(optimizer, gamma=0.5)
        >>> schedule = et.optim.SequentialLR(optimizer, [warm, decay], milestones=[2])
        >>> [schedule.get_last_lr() for _ in range(4) if schedule.step() is None]
        [[0.5], [1.0], [0.5], [0.25]]
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: Sequence[int]
    ) -> None:
        name = "SequentialLR"
        self.schedulers = [_belongs(name, f"schedulers[{i}]", s, optimizer) for i, s in enumerate(schedulers)]
        if any(isinstance(s, ReduceLROnPlateau) for s in self.schedulers):
            raise ValueError(f"[{name}] schedulers must not contain ReduceLROnPlateau: it needs a metric")
        self.milestones = as_ints(name, "milestones", milestones)
        if len(self.milestones) != len(self.schedulers) - 1 or list(self.milestones) != sorted(
            self.milestones
        ):
            raise ValueError(
                f"[{name}] {len(self.schedulers)} schedules need {len(self.schedulers) - 1} milestones in rising order, "
                f"got {self.milestones}"
            )
        super().__init__(optimizer)

    @repeated_change
    def step(self) -> None:
        self.last_epoch += 1
        position = bisect_right(self.milestones, self.last_epoch)
        starts = self.last_epoch == (self.milestones[position - 1] if position else 0)
        schedule = self.schedulers[position]
        schedule.restart() if starts else schedule.step()

    def restart(self) -> None:
        self.last_epoch = -1
        self.step()

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "schedulers": [s.state_dict() for s in self.schedulers]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        if len(state["schedulers"]) != len(self.schedulers):
            raise ValueError(
                f"[SequentialLR.load_state_dict] state has {len(state['schedulers'])} schedules, not {len(self.schedulers)}"
            )
        for schedule, saved in zip(self.schedulers, state["schedulers"]):
            schedule.load_state_dict(saved)


class WarmupScheduler(LRScheduler):
    """A straight rise to the base rate, then another schedule, counted from there.

    base * (t + 1) / warmup_steps at step t < warmup_steps; then what ``after`` says, or the base rate.

    Args:
        optimizer: the optimiser.
        warmup_steps: the length of the rise.
        after: a schedule of the same optimiser that follows, made before this one.

    Example:
        >>> import extensor as et
        >>> optimizer = et.optim.SGD([et.nn.Parameter([1.0])], lr=1.0)
        >>> decay = et.optim.ExponentialLR(optimizer, gamma=0.5)
        >>> schedule = et.optim.WarmupScheduler(optimizer, warmup_steps=4, after=decay)
        >>> schedule.get_last_lr(), [schedule.get_last_lr()[0] for _ in range(6) if schedule.step() is None]
        ([0.25], [0.5, 0.75, 1.0, 1.0, 0.5, 0.25])
    """

    def __init__(self, optimizer: Optimizer, warmup_steps: int, after: LRScheduler | None = None) -> None:
        self.warmup_steps = positive_int("WarmupScheduler", "warmup_steps", warmup_steps)
        self.after = after if after is None else _belongs("WarmupScheduler", "after", after, optimizer)
        super().__init__(optimizer)

    @repeated_change
    def step(self, metrics: Any = None) -> None:
        """One step on; ``metrics`` is for a :class:`ReduceLROnPlateau` that follows."""
        self.last_epoch += 1
        if self.last_epoch < self.warmup_steps or self.after is None:
            self._apply()
        elif self.last_epoch == self.warmup_steps:
            self.after.restart()
        elif isinstance(self.after, ReduceLROnPlateau):
            self.after.step(metrics)
        else:
            self.after.step()

    def rate(self, group: int, lr: float) -> float:
        return self.base_lrs[group] * min(self.last_epoch + 1, self.warmup_steps) / self.warmup_steps

    def restart(self) -> None:
        self.last_epoch = -1
        self.step()

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "after": None if self.after is None else self.after.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        if (state["after"] is None) != (self.after is None):
            raise ValueError(
                "[WarmupScheduler.load_state_dict] state and schedule differ in whether one follows"
            )
        if self.after is not None:
            self.after.load_state_dict(state["after"])
