"""Which differentiable functions a run calls, seen by watching one step."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..graph import Op, observe
from .random_state import get_random_state, set_random_state
from .recipe import Setup
from .running_statistics import RunningStatistics

__all__ = ["functions_used"]


def functions_used(setup: Setup) -> list[str]:
    """The names of the functions that a training step calls, in order of their first call.

    The step is made on the side: weights, running statistics, random state and the position in the data stay as they
    are.
    """
    seen: dict[str, None] = {}

    def watch(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        seen[op.__name__] = None
        with observe(None):  # what it calls inside is part of it
            return op(*args, **kwargs)

    model, samples = setup.model, setup.train.dataset
    inputs, targets = samples.batch(np.arange(min(setup.train.batch_size, len(samples))))
    random, training = get_random_state(model), model.training
    statistics = RunningStatistics(model)
    statistics.keep()
    try:
        model.train()
        with observe(watch):
            setup.loss(model(inputs), inputs if targets is None else targets)
    finally:
        model.train(training)
        statistics.restore()
        set_random_state(model, random)
    return list(seen)
