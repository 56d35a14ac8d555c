"""The gradients of shards on their way from the parameters to the exchange."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..distributed.exchange import Exchange
from ..distributed.reduction import Reduction
from ..distributed.sums import ShardSums
from ..nn import Parameter
from .shard_statistics import elements_of

__all__ = ["HandedGradients"]


class HandedGradients:
    """Takes the gradients of one shard after the other from the parameters and adds them where the exchange finds them.

    Those of the last shard are taken as the backward pass completes them: a piece whose gradients are all there is exchanged while
    the pass goes on. A pass that is not compiled tells nothing, and all pieces leave at its end.

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

    def listener(self) -> Callable[[Any], None] | None:
        """What is to be told of each gradient that the pass completes; None where nothing can leave before the end."""
        reduction, missing = self._reduction, [p.tensors.stop - p.tensors.start for p in self._pieces]
        if reduction is None or len(missing) == 1:
            return None
        place_of = {
            id(p): place for place, piece in enumerate(self._pieces) for p in self._parameters[piece.tensors]
        }

        def complete(leaf: Any) -> None:
            place = place_of.get(id(leaf))
            if place is not None:
                missing[place] -= 1
            # the last piece waits for the loss and the statistics that go with it
            while self._handed < len(missing) - 1 and not missing[self._handed]:
                self._hand()
                reduction.give()
            reduction.advance()

        return complete

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
