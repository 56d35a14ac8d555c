"""Averages of parameters over training."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ..dtypes import HALF, float32
from ..errors import describe
from ..graph import repeated_change
from ..kernels.reference import optim as kernels
from ..nn.module import Module
from ..tensor import ExTensor, tensor
from ._rules import fraction

__all__ = ["EMA"]


class EMA:
    """An exponential moving average of a model's parameters.   a = decay * a + (1 - decay) * p

    Call :meth:`update` after every optimiser step. The averages often generalise better than the last parameters;
    evaluate with them inside ``with ema.applied():``. They start from the model's values.

    Args:
        model: the module whose parameters are averaged.
        decay: how slowly the average forgets, in [0, 1).

    Example:
        >>> import extensor as et
        >>> model = et.nn.ParameterDict({"w": [1.0]})
        >>> ema = et.optim.EMA(model, decay=0.75)
        >>> model["w"].assign([5.0])
        >>> ema.update()
        >>> with ema.applied():
        ...     model["w"].tolist()
        [2.0]
        >>> model["w"].tolist()
        [5.0]
    """

    def __init__(self, model: Module, decay: float = 0.999) -> None:
        if not isinstance(model, Module):
            raise TypeError(f"[EMA] model must be an nn.Module, got {describe(model)}")
        self.model = model
        self.decay = fraction("EMA", "decay", decay)
        self._averages = [
            p.detach().astype(float32) if p.dtype in HALF else p.detach() for p in model.parameters()
        ]

    @repeated_change
    def update(self) -> None:
        """Move the averages towards the parameters."""
        self._averages = kernels.ema_step(self._averages, list(self.model.parameters()), self.decay)

    @contextmanager
    def applied(self) -> Iterator[Module]:
        """The model with the averages as its parameters, for the length of a ``with`` block."""
        own = [p.detach() for p in self.model.parameters()]
        for p, average in zip(self.model.parameters(), self._averages):
            p.assign(average)
        try:
            yield self.model
        finally:
            for p, value in zip(self.model.parameters(), own):
                p.assign(value)

    def state_dict(self) -> dict[str, ExTensor]:
        """The averages by the names of the parameters."""
        return {name: average for (name, _), average in zip(self.model.named_parameters(), self._averages)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what :meth:`state_dict` gave. Nothing is changed unless everything fits."""
        own = self.state_dict()
        if not isinstance(state, Mapping):
            raise TypeError(f"[EMA.load_state_dict] state must be a dict of tensors, got {describe(state)}")
        if set(state) != set(own):
            differing = ", ".join(sorted(set(state) ^ set(own)))
            raise ValueError(f"[EMA.load_state_dict] state and model differ in {differing}")
        values = {
            name: state[name] if isinstance(state[name], ExTensor) else tensor(state[name]) for name in own
        }
        for name, value in values.items():
            if value.shape != own[name].shape:
                raise ValueError(
                    f"[EMA.load_state_dict] {name} has shape {value.shape} but the model has {own[name].shape}"
                )
        self._averages = [values[name].astype(average.dtype) for name, average in own.items()]
