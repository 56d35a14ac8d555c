"""The base of all schedules: they change the learning rates of an optimiser step by step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..checks import as_int
from ..errors import describe
from ..graph import repeated_change
from .optimizer import Optimizer

__all__ = ["LRScheduler"]


class LRScheduler:
    """What the schedules have in common. Call :meth:`step` after the optimiser's; subclasses define :meth:`rate`.

    Args:
        optimizer: its rates are changed, those of all groups.
        last_epoch: the step to go on from; -1 is the beginning, where each group's rate is taken as its base.

    Attributes:
        base_lrs: the rate of each group at the beginning.
        last_epoch: the number of steps made.

    Example:
        >>> import extensor as et
        >>> class Halving(et.optim.LRScheduler):
        ...     def rate(self, group, lr):
        ...         return self.base_lrs[group] / 2**self.last_epoch
        >>> schedule = Halving(et.optim.SGD([et.nn.Parameter([1.0])], lr=1.0))
        >>> schedule.step()
        >>> schedule.get_last_lr()
        [0.5]
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        name = type(self).__name__
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"[{name}] optimizer must be an optimiser, got {describe(optimizer)}")
        self.optimizer = optimizer
        self.last_epoch = as_int(name, "last_epoch", last_epoch)
        for i, group in enumerate(optimizer.param_groups):
            if self.last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise ValueError(
                    f"[{name}] last_epoch is {last_epoch} but param_groups[{i}] has no 'initial_lr'"
                )
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.step()

    def rate(self, group: int, lr: float) -> float:
        """The rate of a group at step ``last_epoch``, where it was ``lr`` before this step."""
        raise NotImplementedError(f"[{type(self).__name__}] defines no rate")

    @repeated_change
    def step(self) -> None:
        """One step on."""
        self.last_epoch += 1
        self._apply()

    def restart(self) -> None:
        """Back to step 0."""
        for group, base in zip(self.optimizer.param_groups, self.base_lrs, strict=True):
            group["lr"] = base
        self.last_epoch = 0
        self._apply()

    def _apply(self) -> None:
        groups = self.optimizer.param_groups
        rates = [self.rate(i, group["lr"]) for i, group in enumerate(groups)]
        for group, rate in zip(groups, rates):
            group["lr"] = rate

    def get_last_lr(self) -> list[float]:
        """The rates of the groups now."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """Where the schedule stands, in plain numbers; the rates themselves are in the optimiser's state dict."""
        return {"last_epoch": self.last_epoch, "base_lrs": list(self.base_lrs)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what :meth:`state_dict` gave."""
        name = f"{type(self).__name__}.load_state_dict"
        expected = self.state_dict()
        if not isinstance(state, Mapping) or set(state) != set(expected):
            raise ValueError(
                f"[{name}] state must be a dict with {', '.join(expected)}, got {describe(state)}"
            )
        if len(state["base_lrs"]) != len(self.base_lrs):
            raise ValueError(
                f"[{name}] state has {len(state['base_lrs'])} base_lrs but the optimiser has {len(self.base_lrs)} groups"
            )
        self.last_epoch = as_int(name, "last_epoch", state["last_epoch"])
        self.base_lrs = [float(lr) for lr in state["base_lrs"]]
