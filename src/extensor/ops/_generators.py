"""Where random numbers come from: the ``rng`` argument, and a record of what was drawn from.

``rng`` is an int (a seed) or a ``numpy.random.Generator``.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np

from ..errors import describe

Rng: TypeAlias = "int | np.random.Generator"


def as_generator(function: str, rng: Any) -> np.random.Generator:
    """The generator an ``rng`` argument stands for."""
    if isinstance(rng, np.random.Generator):
        for draws in _watches.open:
            draws.setdefault(id(rng), (rng, rng.bit_generator.state))
        return rng
    if isinstance(rng, (bool, np.bool_)) or not isinstance(rng, (int, np.integer)):
        raise TypeError(f"[{function}] rng must be an int or a numpy.random.Generator, got {describe(rng)}")
    if rng < 0:
        raise ValueError(f"[{function}] rng: a seed must not be negative, got {rng}")
    return np.random.Generator(np.random.PCG64(int(rng)))


Draws: TypeAlias = "dict[int, tuple[np.random.Generator, Any]]"  # a string: numpy.random loads on first use


class _Watches(threading.local):
    def __init__(self) -> None:
        self.open: list[Draws] = []


_watches = _Watches()


@contextmanager
def watched() -> Iterator[Draws]:
    """Notes the state of every generator before it is first drawn from in this block."""
    draws: Draws = {}
    _watches.open.append(draws)
    try:
        yield draws
    finally:
        _watches.open.pop()


@contextmanager
def restored(draws: Draws) -> Iterator[None]:
    """Every noted generator is back in its noted state in this block, and afterwards where it was."""
    before = [(rng, rng.bit_generator.state) for rng, _ in draws.values()]
    for rng, state in draws.values():
        rng.bit_generator.state = state
    try:
        yield
    finally:
        for rng, state in before:
            rng.bit_generator.state = state
