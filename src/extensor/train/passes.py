"""The passes over a batch: forward and backward to learn from it, forward alone to judge it. Compiled, if that is wanted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._progress import watched
from ..compile import Compiled
from ..data import Dataset
from ..data.loader import to_judge
from ..graph import no_grad
from ..optim import scale_loss
from ..tensor import ExTensor
from .batches import outputs_of

__all__ = ["Passes", "outputs_on"]


class Passes:
    """The two passes of a trainer.

    A model or a loss that cannot be compiled (it reads values, or keeps something between calls) runs as it is written.
    """

    def __init__(self, compiles: bool) -> None:
        self.compiles = compiles
        self.learn: Callable[..., tuple[Any, ExTensor]] = _chosen(_learn, compiles)
        self.judge: Callable[..., tuple[Any, ExTensor]] = _chosen(_judge, compiles)

    def learn_telling(self, listener: Callable[[Any], None] | None) -> Callable[..., tuple[Any, ExTensor]]:
        """``learn``, which calls ``listener`` with each leaf whose gradient is complete, if it is compiled."""
        return (
            self.learn
            if listener is None or not isinstance(self.learn, Compiled)
            else self.learn.telling(listener)
        )

    def __reduce__(self) -> Any:
        return Passes, (self.compiles,)  # a recording belongs to its process


def outputs_on(model: Callable[[Any], Any], samples: Dataset) -> np.ndarray:
    """What a model in evaluation mode says of all samples, in their order."""
    run = Compiled(model, fallback=True, warns=False)
    batches = to_judge(samples)
    parts = watched(batches, "predicting", "samples", len(samples), batches.batch_size)
    with no_grad():
        return np.concatenate([run(inputs).numpy() for inputs, _ in parts])


def _chosen(function: Callable[..., Any], compiles: bool) -> Callable[..., Any]:
    return Compiled(function, fallback=True, warns=False, keeps=False) if compiles else function


def _learn(
    model: Callable[[Any], Any], loss: Callable[..., ExTensor], inputs: Any, targets: Any, share: float | None, scale: float | None
) -> tuple[Any, ExTensor]:  # fmt: skip
    """Add the gradients of ``share`` of the loss, times ``scale``, to those of the parameters; the outputs and the loss."""
    outputs = outputs_of(model, inputs)
    value = loss(outputs, targets)
    start = value if share is None else value * share
    (start if scale is None else scale_loss(start, scale)).backward()
    return outputs, value


def _judge(
    model: Callable[[Any], Any], loss: Callable[..., ExTensor], inputs: Any, targets: Any
) -> tuple[Any, ExTensor]:
    outputs = outputs_of(model, inputs)
    return outputs, loss(outputs, targets)
