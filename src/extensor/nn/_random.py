"""The one default generator of the layer floor: what layers without ``rng=`` draw from."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ..random import as_generator, generator

__all__ = ["seed"]


@functools.cache  # made when first needed: loading numpy.random takes a quarter of the import
def _default() -> np.random.Generator:
    return generator(0)


def seed(n: int) -> None:
    """Restart the default generator of the layers from the seed ``n``.

    Example:
        >>> import extensor as et
        >>> from extensor import nn
        >>> et.seed(1); a = nn.Linear(2, 2).weight.tolist()
        >>> et.seed(1); b = nn.Linear(2, 2).weight.tolist()
        >>> a == b
        True
    """
    _default().bit_generator.state = as_generator("seed", n).bit_generator.state


def rng_or_default(function: str, rng: Any) -> np.random.Generator:
    """The generator an ``rng`` argument stands for; None is the default generator."""
    return as_generator(function, _default() if rng is None else rng)


def default_generator() -> np.random.Generator:
    """The default generator itself."""
    return _default()


def get_state() -> Any:
    """The state of the default generator, for checkpoints."""
    return _default().bit_generator.state


def set_state(state: Any) -> None:
    """Put the default generator back into a state."""
    _default().bit_generator.state = state
