"""Schedules that fall along a power, or rise and fall again and again."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Literal

from ..checks import as_bool
from ..errors import describe
from ..graph import repeated_change
from ._rules import finite, fraction, not_negative
from .optimizer import Optimizer
from .scheduler import LRScheduler
from .schedules import positive_int

__all__ = ["CosineAnnealingWarmRestarts", "CyclicLR", "PolynomialLR"]


class PolynomialLR(LRScheduler):
    """The base rate times ``(1 - t / total_iters) ** power`` at step t, and 0 from ``total_iters`` on.

    Example:
        >>> import extensor as et
        >>> schedule = et.optim.PolynomialLR(et.optim.SGD([et.nn.Parameter([1.0])], lr=1.0), total_iters=4)
        >>> [schedule.get_last_lr() for _ in range(5) if schedule.step() is None]
        [[0.75], [0.5], [0.25], [0.0], [0.0]]
    """

    def __init__(
        self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1
    ) -> None:
        self.total_iters = positive_int("PolynomialLR", "total_iters", total_iters)
        self.power = not_negative("PolynomialLR", "power", power)
        super().__init__(optimizer, last_epoch)

    def rate(self, group: int, lr: float) -> float:
        t, length = self.last_epoch, self.total_iters
        if t == 0 or t > length:
            return lr
        return lr * ((length - t) / (length - t + 1)) ** self.power


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine from the base rate to ``eta_min``, then again from the start, each time ``T_mult`` times as long.

    eta_min + (base - eta_min) * (1 + cos(pi * t / T)) / 2 at step t of a period of T steps.

    Args:
        optimizer: the optimiser.
        T_0: the length of the first period.
        T_mult: how many times as long each period is as the one before.
        eta_min: the lowest rate.
        last_epoch: the step to go on from.

    Example:
        >>> import extensor as et
        >>> optimizer = et.optim.SGD([et.nn.Parameter([1.0])], lr=1.0)
        >>> schedule = et.optim.CosineAnnealingWarmRestarts(optimizer, T_0=2, T_mult=2)
        >>> [round(schedule.get_last_lr()[0], 4) for _ in range(6) if schedule.step() is None]
        [0.5, 1.0, 0.8536, 0.5, 0.1464, 1.0]
    """

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        name = "CosineAnnealingWarmRestarts"
        self.T_0 = positive_int(name, "T_0", T_0)
        self.T_mult = positive_int(name, "T_mult", T_mult)
        self.eta_min = not_negative(name, "eta_min", eta_min)
        self._position: float | None = None  # where a fraction of a step was given
        super().__init__(optimizer, last_epoch)

    @repeated_change
    def step(self, epoch: float | None = None) -> None:
        """One step on; or to ``epoch``, which may lie between two steps: ``step(epoch + batch / batches)``."""
        if epoch is None:
            self._position = None
            super().step()
            return
        self._position = not_negative("CosineAnnealingWarmRestarts", "epoch", epoch)
        self.last_epoch = math.floor(self._position)
        self._apply()

    def rate(self, group: int, lr: float) -> float:
        t: float = self.last_epoch if self._position is None else self._position
        length = self.T_0
        if self.T_mult == 1:
            t %= length
        while t >= length:
            t -= length
            length *= self.T_mult
        base = self.base_lrs[group]
        return self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * t / length)) / 2

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {"position": self._position}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        self._position = None if state["position"] is None else float(state["position"])


class CyclicLR(LRScheduler):
    """From ``base_lr`` straight up to ``max_lr`` and down again, over and over; the momentum goes the other way.

    Args:
        optimizer: the optimiser.
        base_lr, max_lr: the lowest and the highest rate, or one for each group.
        step_size_up, step_size_down: the steps of the way up and of the way down (the same without it).
        mode: the height of the peaks: ``"triangular"``: always the same, ``"triangular2"``: half as high each time,
            ``"exp_range"``: times ``gamma`` every step.
        gamma: the factor of ``"exp_range"``.
        scale_fn: a function of the cycle (from 1) or of the step that scales the peaks, in place of ``mode``.
        scale_mode: what ``scale_fn`` gets: ``"cycle"`` or ``"iterations"``.
        cycle_momentum: whether the momentum (``betas[0]`` of Adam) is moved too.
        base_momentum, max_momentum: its lowest and highest value, or one for each group.
        last_epoch: the step to go on from.

    Example:
        >>> import extensor as et
        >>> optimizer = et.optim.SGD([et.nn.Parameter([1.0])], lr=1.0)
        >>> schedule = et.optim.CyclicLR(optimizer, 0.0, 1.0, step_size_up=2, cycle_momentum=False)
        >>> [schedule.get_last_lr()[0] for _ in range(6) if schedule.step() is None]
        [0.5, 1.0, 0.5, 0.0, 0.5, 1.0]
    """

    def __init__(
        self, optimizer: Optimizer, base_lr: Any, max_lr: Any, step_size_up: int = 2000, step_size_down: int | None = None,
        mode: Literal["triangular", "triangular2", "exp_range"] = "triangular", gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None, scale_mode: Literal["cycle", "iterations"] = "cycle",
        cycle_momentum: bool = True, base_momentum: Any = 0.8, max_momentum: Any = 0.9, last_epoch: int = -1,
    ) -> None:  # fmt: skip
        name = "CyclicLR"
        self._up = positive_int(name, "step_size_up", step_size_up)
        self._down = (
            self._up if step_size_down is None else positive_int(name, "step_size_down", step_size_down)
        )
        if scale_fn is None and mode not in ("triangular", "triangular2", "exp_range"):
            raise ValueError(
                f"[{name}] mode must be 'triangular', 'triangular2' or 'exp_range', got {describe(mode)}"
            )
        if scale_fn is not None and not callable(scale_fn):
            raise TypeError(f"[{name}] scale_fn must be a function, got {describe(scale_fn)}")
        if scale_mode not in ("cycle", "iterations"):
            raise ValueError(
                f"[{name}] scale_mode must be 'cycle' or 'iterations', got {describe(scale_mode)}"
            )
        factor = finite(name, "gamma", gamma)
        self._scale: Callable[[float, int], float]  # of the cycle and the step
        if scale_fn is not None:
            given = scale_fn
            self._scale = (
                (lambda cycle, t: given(cycle)) if scale_mode == "cycle" else (lambda cycle, t: given(t))
            )
        elif mode == "exp_range":
            self._scale = lambda cycle, t: factor**t
        else:
            self._scale = (
                (lambda cycle, t: 1.0) if mode == "triangular" else (lambda cycle, t: 0.5 ** (cycle - 1))
            )
        groups = optimizer.param_groups
        self._rates = list(zip(
            _each(name, "base_lr", base_lr, len(groups), not_negative), _each(name, "max_lr", max_lr, len(groups), not_negative)
        ))  # fmt: skip
        self._momenta = None
        if as_bool(name, "cycle_momentum", cycle_momentum):
            if not {"momentum", "betas"} & set(optimizer.defaults):
                raise ValueError(
                    f"[{name}] {type(optimizer).__name__} has neither momentum nor betas; pass cycle_momentum=False"
                )
            self._momenta = list(zip(
                _each(name, "base_momentum", base_momentum, len(groups), fraction),
                _each(name, "max_momentum", max_momentum, len(groups), fraction),
            ))  # fmt: skip
        if last_epoch == -1:
            for group, (low, _) in zip(groups, self._rates):
                group["initial_lr"] = group["lr"] = low
        super().__init__(optimizer, last_epoch)

    def rate(self, group: int, lr: float) -> float:
        t, length = self.last_epoch, self._up + self._down
        inside = t % length
        height = inside / self._up if inside <= self._up else (length - inside) / self._down
        height *= self._scale(1 + t // length, t)
        if self._momenta is not None:
            low, high = self._momenta[group]
            set_momentum(self.optimizer.param_groups[group], high - (high - low) * height)
        low, high = self._rates[group]
        return low + (high - low) * height


def set_momentum(group: dict[str, Any], momentum: float) -> None:
    """Set the momentum of a group, which for Adam and its kin is the first of the betas."""
    if "betas" in group:
        group["betas"] = (momentum, *group["betas"][1:])
    else:
        group["momentum"] = momentum


def _each(
    name: str, argument: str, value: Any, count: int, check: Callable[[str, str, Any], float]
) -> list[float]:
    """A number for each group."""
    given = list(value) if isinstance(value, (list, tuple)) else [value] * count
    if len(given) != count:
        raise ValueError(f"[{name}] {argument} has {len(given)} values but the optimiser has {count} groups")
    return [check(name, argument, v) for v in given]
