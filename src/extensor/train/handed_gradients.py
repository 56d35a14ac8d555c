"""The gradients of shards on their way from the parameters to the exchange."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..distributed.exchange import Exchange
from ..distributed.reduction import Reduction
from ..distributed.sums import ShardSums
from ..graph import StateBlock
from ..nn import Parameter
from .shard_statistics import elements_of

__all__ = ["HandedGradients"]


class HandedGradients:
    """Takes the gradients of one shard after the other from the parameters and adds them where the exchange finds them.

    Those of the last shard are taken as the backward pass completes them, if it is compiled: a piece whose gradients are all
    there is exchanged while the pass goes on.

    Args:
        parameters: in the order of the vector that is exchanged.
        exchange: its pieces and where their sums belong.
        filled: so many shards are not empty.
        spare: for each piece, vectors to work in from one step to the next.
    """

    def __init__(
        self, parameters: Sequence[Parameter], exchange: Exchange, filled: int, spare: list[list[np.ndarray]]
    ) -> None:
        self._parameters, self._pieces = parameters, exchange.pieces
        while len(spare) < len(self._pieces):
            spare.append([])
        nodes, compress = exchange.nodes(filled), exchange.compress
        self._sums = [
            ShardSums(
                piece.layout, nodes, filled, [slot[piece.place] for slot in exchange.slots], compress, own
            )
            for piece, own in zip(self._pieces, spare)
        ]
        self._reduction: Reduction | None = None

    def begin(self, shard: int, reduction: Reduction | None) -> None:
        """The gradients of a shard follow; with ``reduction`` they are the last, and each piece goes there."""
        self._shard, self._reduction = shard, reduction
        self._present = [False] * len(self._parameters)
        self._handed = 0

    def listening(self) -> contextlib.AbstractContextManager[Any]:
        """A block around the pass that completes the gradients of the shard."""
        if self._reduction is None or len(self._pieces) == 1:
            return contextlib.nullcontext()
        self._numbers = {id(p): i for i, p in enumerate(self._parameters)}
        self._missing = [piece.tensors.stop - piece.tensors.start for piece in self._pieces]
        return StateBlock("grad_listener", self._complete)

    def _complete(self, leaf: Any) -> None:
        """A gradient is complete; perhaps a piece is. The last piece waits for the loss and the statistics that go with it."""
        number = self._numbers.get(id(leaf))
        for place, piece in enumerate(self._pieces):
            if number is not None and piece.tensors.start <= number < piece.tensors.stop:
                self._missing[place] -= 1
        while self._handed < len(self._pieces) - 1 and not self._missing[self._handed]:
            self._hand()
            assert self._reduction is not None
            self._reduction.give()
        assert self._reduction is not None
        self._reduction.advance()

    def _hand(self) -> None:
        """Take the gradients of the next piece, which the parameters no longer have then."""
        tensors = self._pieces[self._handed].tensors
        leaf: list[np.ndarray | None] = []
        for i in range(tensors.start, tensors.stop):
            grad = self._parameters[i]._grad
            leaf.append(None if grad is None else elements_of(grad))
            self._parameters[i]._grad = None
            self._present[i] = grad is not None
        self._sums[self._handed].add(self._shard, leaf)
        self._handed += 1

    def finish(self) -> list[bool]:
        """The shard is complete; returns which parameters had a gradient."""
        while self._handed < len(self._pieces):
            self._hand()
        return self._present
