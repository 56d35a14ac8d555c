"""A sum over the shards of all ranks on its way, piece by piece: what is complete travels while the rest is still computed.

A piece goes through stages: the ranks of a host wait for each other; they add up what their host has, and the parts of that go
to the hosts that add them; the sums come back. Each stage has messages of its own, which pieces begin in the same order on
every rank. Nothing waits before :meth:`Reduction.finish`: until then messages are looked at whenever somebody calls.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..dtypes import bfloat16
from .exchange import Exchange
from .sums import add_along

__all__ = ["Reduction"]


class Reduction:
    """The sum of one step.

    Args:
        exchange: where the sums of all ranks stand.
        filled: so many shards are not empty.
        whole: whether all of the sum is needed here, not the own slices alone, for which hosts send less.

    Attributes:
        side: for the numbers that go with the own shards, a row for each; they are sent when :meth:`finish` is called.
    """

    def __init__(self, exchange: Exchange, filled: int, whole: bool = True) -> None:
        self._exchange, self._plan = exchange, exchange.plan(filled)
        self.side = exchange.next_side()
        self._filled, self._whole = filled, whole
        self._stages = [self._stages_of(number) for number in range(len(exchange.pieces))]
        self._requests: list[Any] = [None] * len(self._stages)
        self._begun: list[float] = [0] * len(self._stages)  # so many stages of each; all of them: inf
        self._given = self._done = 0  # so many pieces

    def give(self) -> None:
        """The next piece is in the slots. The last one is given by :meth:`finish`."""
        self._given += 1
        self.advance()

    def advance(self) -> None:
        """Let pieces take the stages they can take without waiting."""
        messages = self._exchange.hosts.everyone
        for number in range(self._done, self._given):
            while number == self._done or self._begun[number] < self._begun[number - 1]:
                request = self._requests[number]
                if request is not None and (messages is None or not messages.is_complete(request)):
                    break
                try:
                    self._requests[number] = next(self._stages[number])
                    self._begun[number] += 1
                except StopIteration:
                    self._begun[number] = math.inf
                    self._done += 1  # pieces end in their order: none passes another
                    break

    def finish(self) -> tuple[np.ndarray, np.ndarray]:
        """The sum, and the side numbers; in shared memory until the next exchange."""
        exchange = self._exchange
        if exchange.hosts.everyone is None:
            return exchange.slots[0], self.side[: self._filled]
        self._given = len(self._stages)
        self.advance()
        while self._done < self._given:
            exchange.hosts.everyone.wait(self._requests[self._done])
            self.advance()
        exchange.window.barrier()
        return exchange.result, self.side[: self._filled]

    def _stages_of(self, number: int) -> Iterator[Any]:
        """What becomes of a piece; each turn yields what must be complete before the next."""
        exchange, hosts, plan = self._exchange, self._exchange.hosts, self._plan
        yield exchange.window.begin_barrier()
        exchange.window.synchronize()
        if hosts.count == 1:
            own = exchange.own[number]
            add_along(plan.whole, self._slots(own), {plan.root: exchange.result[own]}, exchange.compress)
            return
        settle_side = self._share_side() if number == len(self._stages) - 1 else None
        if hosts.channel is not None:
            yield from self._by_messages(number)
        if settle_side is not None:
            settle_side()

    def _by_messages(self, number: int) -> Iterator[Any]:
        """Sums of this host for the slice of the channel; its parts to the hosts that add them; the sums of those back."""
        exchange, hosts, plan = self._exchange, self._exchange.hosts, self._plan
        channel, parts = exchange.shares[number]
        own = exchange.own[number]
        nodes, dtype = plan.by_host[hosts.host_index], exchange.layout.dtype
        sums = {node: np.empty(channel.stop - channel.start, dtype) for node in nodes}
        add_along(plan.local, self._slots(channel), sums, exchange.compress)
        out = np.concatenate(
            [np.empty(0, dtype)]
            + [sums[node][p.start - channel.start : p.stop - channel.start] for p in parts for node in nodes]
        )
        out = self._coded(out)
        width = own.stop - own.start
        received = [width * len(theirs) for theirs in plan.by_host]
        arrived = np.empty(sum(received), out.dtype)
        yield hosts.begin_exchange(out, [(p.stop - p.start) * len(nodes) for p in parts], arrived, received)
        theirs = [node for each in plan.by_host for node in each]
        sources = dict(zip(theirs, self._decoded(arrived).reshape(len(theirs), width)))
        total = exchange.result[own]
        add_along(plan.between, sources, {plan.root: total}, exchange.compress)
        if self._whole:
            lengths = [p.stop - p.start for p in parts]
            own_part = self._coded(total)
            every = np.empty(sum(lengths), own_part.dtype)
            yield hosts.begin_spread(own_part, every, lengths)
            exchange.result[channel] = self._decoded(every)

    def _slots(self, place: slice) -> dict[Any, np.ndarray]:
        """The sums that the ranks of this host have left."""
        return {
            node: slot[place]
            for nodes, slots in zip(self._plan.nodes, self._exchange.all_slots)
            for node, slot in zip(nodes, slots)
        }

    def _share_side(self) -> Callable[[], None] | None:
        """Send the side numbers of this host's shards; what is returned waits for those of the others."""
        hosts, side = self._exchange.hosts, self.side
        if hosts.host_rank != 0 or not side.size:
            return None
        rows = [sorted(s for p in positions for s in self._exchange.held[p]) for positions in hosts.by_host]
        width = side.shape[1]
        own, every = side[rows[hosts.host_index]].reshape(-1), np.empty(width * sum(map(len, rows)))
        wait = hosts.start_aside(own, every, [len(shares) * width for shares in rows])

        def settle() -> None:
            wait()
            start = 0
            for shares in rows:
                side[shares] = every[start : start + len(shares) * width].reshape(len(shares), width)
                start += len(shares) * width

        return settle

    def _coded(self, x: np.ndarray) -> np.ndarray:
        """As it is sent: sums that are bfloat16 already take two bytes."""
        return x.astype(bfloat16).view(np.uint16) if self._exchange.compress else x

    def _decoded(self, x: np.ndarray) -> np.ndarray:
        return x.view(bfloat16).astype(self._exchange.layout.dtype) if self._exchange.compress else x
