"""Random numbers keyed by seed, step and shard: the same for a shard whichever process computes it."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np

from ..nn import Module
from .random_state import generators_of

__all__ = ["ShardRandom"]


class ShardRandom:
    """The generators a model draws from, set for one shard of one step at a time.

    The state of a generator between steps stays as it was before the first, and is its seed: what it draws in a shard
    follows from that state, the number of the step and the number of the shard.
    """

    def __init__(self, model: Module) -> None:
        self._generators = generators_of(model)
        self._kept: list[Any] = []
        self._keys: list[int] = []
        self._texts: list[str] = []

    def begin_step(self) -> None:
        """Remember the states between steps."""
        self._kept = [generator.bit_generator.state for generator in self._generators]
        texts = [repr(state) for state in self._kept]
        if texts != self._texts:  # mostly they are as they were: a digest takes longer
            self._texts, self._keys = texts, [_digest(state) for state in self._kept]

    def set(self, step: int, shard: int) -> None:
        """Let every generator begin the numbers of a shard."""
        for generator, key in zip(self._generators, self._keys):
            generator.bit_generator.state = _state(type(generator.bit_generator), key, step, shard)

    def end_step(self) -> None:
        """Put the states back."""
        for generator, state in zip(self._generators, self._kept):
            generator.bit_generator.state = state


def _state(kind: Any, key: int, step: int, shard: int) -> Any:
    """The state of a generator that was seeded with all three."""
    if kind is not np.random.PCG64:
        return kind(np.random.SeedSequence([key, step, shard])).state
    # the same for the usual kind in a tenth of the time: any state and any odd increment make a good stream
    found = hashlib.sha256(b"%d %d %d" % (key, step, shard)).digest()
    state, increment = (int.from_bytes(half, "big") for half in (found[:16], found[16:]))
    return {
        "bit_generator": "PCG64", "state": {"state": state, "inc": increment | 1}, "has_uint32": 0, "uinteger": 0,
    }  # fmt: skip


def _digest(state: Any) -> int:
    text = json.dumps(state, sort_keys=True, default=lambda array: np.asarray(array).tolist())
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "big")
