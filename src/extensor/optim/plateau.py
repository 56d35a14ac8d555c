"""The schedule that watches a metric."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

from ..checks import as_int, as_number
from ..errors import describe
from ..graph import repeated_change
from ._rules import finite, not_negative
from .optimizer import Optimizer
from .scheduler import LRScheduler

__all__ = ["ReduceLROnPlateau"]


class ReduceLROnPlateau(LRScheduler):
    """The rate times ``factor`` when a metric has not improved for more than ``patience`` steps.

    Args:
        optimizer: the optimiser.
        mode: ``"min"`` if a lower metric is better, ``"max"`` if a higher one is.
        factor: below 1.
        patience: how many steps without improvement are borne.
        threshold: how much better counts as better.
        threshold_mode: ``"rel"``: relative to the best so far, ``"abs"``: in the metric's own units.
        cooldown: steps after a reduction in which nothing is counted.
        min_lr: the lowest rate, or one for each group.
        eps: smaller changes of the rate are not made.

    Example:
        >>> import extensor as et
        >>> schedule = et.optim.ReduceLROnPlateau(et.optim.SGD([et.nn.Parameter([1.0])], lr=1.0), factor=0.5, patience=1)
        >>> for loss in [3.0, 2.0, 2.0, 2.0]:
        ...     schedule.step(loss)
        >>> schedule.get_last_lr()
        [0.5]
    """

    def __init__(
        self, optimizer: Optimizer, mode: Literal["min", "max"] = "min", factor: float = 0.1, patience: int = 10,
        threshold: float = 1e-4, threshold_mode: Literal["rel", "abs"] = "rel", cooldown: int = 0, min_lr: Any = 0.0,
        eps: float = 1e-8,
    ) -> None:  # fmt: skip
        name = "ReduceLROnPlateau"
        if mode not in ("min", "max"):
            raise ValueError(f"[{name}] mode must be 'min' or 'max', got {describe(mode)}")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(
                f"[{name}] threshold_mode must be 'rel' or 'abs', got {describe(threshold_mode)}"
            )
        self.factor = not_negative(name, "factor", factor)
        if self.factor >= 1:
            raise ValueError(f"[{name}] factor must be below 1, got {self.factor}")
        self.mode, self.threshold_mode = mode, threshold_mode
        self.patience = as_int(name, "patience", patience)
        self.threshold = finite(name, "threshold", threshold)
        self.cooldown = as_int(name, "cooldown", cooldown)
        self.eps = not_negative(name, "eps", eps)
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = 0
        super().__init__(optimizer)
        lowest = list(min_lr) if isinstance(min_lr, (list, tuple)) else [min_lr] * len(self.base_lrs)
        if len(lowest) != len(self.base_lrs):
            raise ValueError(
                f"[{name}] min_lr has {len(lowest)} rates but the optimiser has {len(self.base_lrs)} groups"
            )
        self.min_lrs = [not_negative(name, "min_lr", lr) for lr in lowest]

    def _is_better(self, metric: float) -> bool:
        sign = -1 if self.mode == "min" else 1
        if self.threshold_mode == "abs":
            return sign * metric > sign * self.best + self.threshold
        return sign * metric > sign * self.best * (1 + sign * self.threshold)

    @repeated_change
    def step(self, metrics: Any = None) -> None:
        """Look at the metric of this step (a number or a tensor with one element)."""
        self.last_epoch += 1
        if self.last_epoch == 0:  # the beginning: there is no metric yet
            return
        metric = as_number("ReduceLROnPlateau.step", "metrics", metrics)
        if self._is_better(metric):
            self.best = metric
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
            self._apply()

    def rate(self, group: int, lr: float) -> float:
        if self.last_epoch == 0:
            return lr
        lower = max(lr * self.factor, self.min_lrs[group])
        return lower if lr - lower > self.eps else lr

    def state_dict(self) -> dict[str, Any]:
        counters = {"num_bad_epochs": self.num_bad_epochs, "cooldown_counter": self.cooldown_counter}
        return {**super().state_dict(), "best": self.best, **counters}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        self.best = float(state["best"])
        self.num_bad_epochs, self.cooldown_counter = (
            int(state["num_bad_epochs"]),
            int(state["cooldown_counter"]),
        )
