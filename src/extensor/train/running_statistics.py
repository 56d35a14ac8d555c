"""The running statistics of a model, kept while a step may still fail."""

from __future__ import annotations

from typing import Any

from ..nn import Module

__all__ = ["RunningStatistics"]


class RunningStatistics:
    """The buffers of a model, which a forward pass replaces; tensors do not change, so keeping them copies nothing."""

    def __init__(self, model: Module) -> None:
        self._places = [(module, name) for module in model.modules() for name in module._buffer_names]
        self._values: list[Any] = []

    def keep(self) -> None:
        """Remember the buffers as they are."""
        self._values = [getattr(module, name) for module, name in self._places]

    def restore(self) -> None:
        """Put back what :meth:`keep` found."""
        for (module, name), value in zip(self._places, self._values):
            setattr(module, name, value)
