"""The state of every generator that a model draws from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ..nn import Module, _random

__all__ = ["generators_of", "get_random_state", "set_random_state"]


def _own_generators(model: Module) -> Iterator[tuple[str, np.random.Generator]]:
    """The generators that modules hold themselves (``nn.Dropout(0.5, rng=generator)``), by path."""
    for path, module in model.named_modules():
        for name, value in vars(module).items():
            if isinstance(value, np.random.Generator):
                yield f"{path}.{name}" if path else name, value


def generators_of(model: Module) -> list[np.random.Generator]:
    """The default generator of the layers and the model's own ones, each once."""
    every = [_random.default_generator(), *(generator for _, generator in _own_generators(model))]
    return list({id(generator): generator for generator in every}.values())


def get_random_state(model: Module) -> dict[str, Any]:
    """The states of the default generator of the layers and of the model's own ones."""
    own = {name: generator.bit_generator.state for name, generator in _own_generators(model)}
    return {"default": _random.get_state(), "own": own}


def set_random_state(model: Module, state: Mapping[str, Any]) -> None:
    """Put every generator back."""
    own = dict(_own_generators(model))
    if set(own) != set(state["own"]):
        raise ValueError(f"it has generators in {sorted(state['own'])}, the model has them in {sorted(own)}")
    _random.set_state(state["default"])
    for name, generator in own.items():
        generator.bit_generator.state = state["own"][name]
