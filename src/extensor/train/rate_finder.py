"""A learning rate by trial: it rises from step to step until the loss explodes."""

from __future__ import annotations

import copy
import importlib
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..checks import as_int, as_number
from .batches import as_loader, groups
from .gradients import accumulate_gradients, clip_gradients
from .progress import Progress
from .random_state import get_random_state, set_random_state
from .running_statistics import RunningStatistics
from .trainer_base import TrainerBase

__all__ = ["RateCurve", "find_rate"]


@dataclass(frozen=True)
class RateCurve:
    """The losses of rising learning rates.

    Attributes:
        rates: the learning rates that were tried.
        losses: the loss at each, smoothed.
        suggestion: the rate at which the loss falls fastest.

    Example:
        >>> from extensor.train import RateCurve
        >>> RateCurve([0.1, 1.0], [2.0, 1.0], 0.1).suggestion
        0.1
    """

    rates: list[float]
    losses: list[float]
    suggestion: float

    def plot(self, ax: Any = None) -> Any:
        """Draw the losses over the rates with matplotlib (the extra ``plots``); returns the axes."""
        try:
            pyplot = importlib.import_module("matplotlib.pyplot")
        except ImportError:
            raise ImportError(
                "[plot] needs matplotlib: pip install matplotlib (the extra 'plots' of ExTensor)"
            ) from None
        ax = pyplot.subplots()[1] if ax is None else ax
        ax.plot(self.rates, self.losses)
        ax.axvline(self.suggestion, linestyle="--", color="grey", label=f"suggestion {self.suggestion:.2g}")
        ax.set_xscale("log")
        ax.set_xlabel("learning rate")
        ax.set_ylabel("loss, smoothed")
        ax.legend()
        return ax


def find_rate(
    trainer: TrainerBase, train: Any, lowest: float = 1e-6, highest: float = 10.0, steps: int = 100
) -> RateCurve:
    """Try learning rates from ``lowest`` to ``highest``, one step each; model, optimiser and data are as before then.

    Args:
        trainer: a :class:`~extensor.train.Trainer`, before its fit.
        train: the batches, as its ``fit`` takes them.
        lowest, highest: the rates; it ends sooner where the loss explodes.
        steps: how many are tried.

    Returns:
        The curve with a suggestion: where the loss falls fastest.

    Example:
        >>> import extensor as et
        >>> from extensor import data, nn, optim, train
        >>> model = nn.Sequential(nn.Flatten(), nn.Linear(64, 10, rng=0))
        >>> trainer = train.Trainer(model, optim.SGD(model.parameters(), lr=0.1), et.cross_entropy, display="off")
        >>> curve = train.find_rate(trainer, data.DataLoader(data.digits(), 64, shuffle=True))
        >>> 1e-3 < curve.suggestion < 10
        True
    """
    low, high = as_number("find_rate", "lowest", lowest), as_number("find_rate", "highest", highest)
    count = as_int("find_rate", "steps", steps)
    if not 0 < low < high < math.inf or count < 10:
        raise ValueError(
            f"[find_rate] needs 0 < lowest < highest and 10 steps or more, got {lowest}, {highest} and {steps}"
        )
    loader, model, optimizer = as_loader(train), trainer.model, trainer.optimizer
    before = (
        model.state_dict(),
        copy.deepcopy(optimizer.state_dict()),
        loader.state_dict(),
        get_random_state(model),
    )
    given = [group["lr"] for group in optimizer.param_groups]
    modes = [(module, module.training) for module in model.modules()]
    rates, losses, progress = list[float](), list[float](), trainer.progress
    trainer.progress = Progress(trainer.metrics)
    statistics = RunningStatistics(model)
    model.train()
    try:
        smooth = 0.0
        for number, rate in enumerate(np.geomspace(low, high, count).tolist(), 1):
            for group in optimizer.param_groups:
                group["lr"] = rate
            try:
                loss = accumulate_gradients(trainer, _next(loader, trainer.accumulate), statistics)
            except FloatingPointError:
                break
            smooth = 0.9 * smooth + 0.1 * loss
            rates.append(rate)
            losses.append(smooth / (1 - 0.9**number))
            if number > 5 and losses[-1] > 4 * min(losses):
                break
            clip_gradients(trainer)
            optimizer.step()
    finally:
        trainer.progress = progress
        optimizer.zero_grad()
        model.load_state_dict(before[0])
        for group, rate in zip(optimizer.param_groups, given):
            group["lr"] = rate
        optimizer.load_state_dict(before[1])
        loader.load_state_dict(before[2])
        set_random_state(model, before[3])
        for module, mode in modes:
            module.training = mode
    if len(rates) < 5:
        raise ValueError(f"[find_rate] the loss explodes at once; begin lower than {lowest}")
    slopes = np.gradient(np.array(losses), np.log(rates))
    until = int(np.argmin(losses)) + 1
    return RateCurve(rates, losses, rates[int(np.argmin(slopes[: max(until, 2)]))])


def _next(loader: Any, size: int) -> list[tuple[Any, Any]]:
    """The batches of the next step; a new epoch begins where one ends."""
    loader._put_back = True
    found = next(groups(loader, size), None)
    if not found:
        loader.advance()
        found = next(groups(loader, size), None)
    if not found:
        raise ValueError("[find_rate] there are no batches")
    return found
