"""The schedule of one cycle: up to a large rate, down to a tiny one, the momentum the other way round."""

from __future__ import annotations

import math
from typing import Any, Literal

from ..checks import as_bool
from ..errors import describe
from ._rules import finite, fraction, not_negative
from .cycles import set_momentum
from .optimizer import Optimizer
from .scheduler import LRScheduler
from .schedules import positive_int

__all__ = ["OneCycleLR"]


def _cosine(start: float, end: float, done: float) -> float:
    return end + (start - end) / 2 * (math.cos(math.pi * done) + 1)


def _line(start: float, end: float, done: float) -> float:
    return (end - start) * done + start


def _positive(function: str, name: str, value: Any) -> float:
    found = finite(function, name, value)
    if found <= 0:
        raise ValueError(f"[{function}] {name} must be above 0, got {found}")
    return found


class OneCycleLR(LRScheduler):
    """From ``max_lr / div_factor`` up to ``max_lr`` in the first ``pct_start`` of all steps, then down to almost 0.

    The lowest rate is ``max_lr / div_factor / final_div_factor``. With ``cycle_momentum`` the momentum (or β1) falls from
    ``max_momentum`` to ``base_momentum`` while the rate rises, and rises again while it falls.

    Args:
        optimizer: the optimiser.
        max_lr: the highest rate, or one for each group.
        total_steps: the length of the cycle; or give ``epochs`` and ``steps_per_epoch``.
        epochs, steps_per_epoch: their product is the length of the cycle.
        pct_start: the part of the cycle in which the rate rises.
        anneal_strategy: ``"cos"`` or ``"linear"``.
        cycle_momentum, base_momentum, max_momentum: how the momentum moves.
        div_factor, final_div_factor: how low the rate begins and ends.
        three_phase: fall back to the first rate as fast as it rose, then go on falling.

    Example:
        >>> import extensor as et
        >>> optimizer = et.optim.SGD([et.nn.Parameter([1.0])], lr=1.0, momentum=0.9)
        >>> schedule = et.optim.OneCycleLR(optimizer, max_lr=1.0, total_steps=5, pct_start=0.4, div_factor=2)
        >>> [round(schedule.get_last_lr()[0], 3) for _ in range(4) if schedule.step() is None]
        [1.0, 0.75, 0.25, 0.0]
    """

    def __init__(
        self, optimizer: Optimizer, max_lr: Any, total_steps: int | None = None, epochs: int | None = None,
        steps_per_epoch: int | None = None, pct_start: float = 0.3, anneal_strategy: Literal["cos", "linear"] = "cos",
        cycle_momentum: bool = True, base_momentum: float = 0.85, max_momentum: float = 0.95,
        div_factor: float = 25.0, final_div_factor: float = 1e4, three_phase: bool = False, last_epoch: int = -1,
    ) -> None:  # fmt: skip
        name = "OneCycleLR"
        if total_steps is not None:
            self.total_steps = positive_int(name, "total_steps", total_steps)
        elif epochs is None or steps_per_epoch is None:
            raise ValueError(f"[{name}] give total_steps, or epochs and steps_per_epoch")
        else:
            self.total_steps = positive_int(name, "epochs", epochs) * positive_int(
                name, "steps_per_epoch", steps_per_epoch
            )
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"[{name}] anneal_strategy must be 'cos' or 'linear', got {describe(anneal_strategy)}"
            )
        self._anneal = _cosine if anneal_strategy == "cos" else _line
        rising = not_negative(name, "pct_start", pct_start)
        if rising > 1:
            raise ValueError(f"[{name}] pct_start must lie in [0, 1], got {rising}")
        groups = optimizer.param_groups
        peaks = list(max_lr) if isinstance(max_lr, (list, tuple)) else [max_lr] * len(groups)
        if len(peaks) != len(groups):
            raise ValueError(
                f"[{name}] max_lr has {len(peaks)} rates but the optimiser has {len(groups)} groups"
            )
        divide = _positive(name, "div_factor", div_factor)
        divide_last = _positive(name, "final_div_factor", final_div_factor)
        self._rates = []
        for peak in peaks:
            top = not_negative(name, "max_lr", peak)
            self._rates.append((top / divide, top, top / divide / divide_last))
        last = self.total_steps - 1.0
        top_at = rising * self.total_steps - 1.0
        # the end of each phase, and which of (first, highest, lowest) it goes from and to
        self._phases = (
            [(top_at, 0, 1), (2 * top_at, 1, 0), (last, 0, 2)]
            if as_bool(name, "three_phase", three_phase)
            else [(top_at, 0, 1), (last, 1, 2)]
        )
        low, high = (
            fraction(name, "base_momentum", base_momentum),
            fraction(name, "max_momentum", max_momentum),
        )
        self._momenta = (high, low, high) if as_bool(name, "cycle_momentum", cycle_momentum) else None
        if self._momenta and not {"momentum", "betas"} & set(optimizer.defaults):
            raise ValueError(
                f"[{name}] {type(optimizer).__name__} has neither momentum nor betas; pass cycle_momentum=False"
            )
        if last_epoch == -1:
            for group, rates in zip(groups, self._rates):
                group["initial_lr"] = group["lr"] = rates[0]
        super().__init__(optimizer, last_epoch)

    def _along(self, values: tuple[float, float, float]) -> float:
        """Where a value stands between first, highest and lowest."""
        t = self.last_epoch
        begins = [0.0, *(ends for ends, _, _ in self._phases)]
        phase = next((i for i, (ends, _, _) in enumerate(self._phases) if t <= ends), len(self._phases) - 1)
        ends, start, end = self._phases[phase]
        length = ends - begins[phase]
        return self._anneal(values[start], values[end], (t - begins[phase]) / length if length else 1.0)

    def rate(self, group: int, lr: float) -> float:
        if self.last_epoch > self.total_steps:
            raise ValueError(
                f"[OneCycleLR] step {self.last_epoch} of a cycle of {self.total_steps} steps; make total_steps larger"
            )
        if self._momenta:
            set_momentum(self.optimizer.param_groups[group], self._along(self._momenta))
        return self._along(self._rates[group])
