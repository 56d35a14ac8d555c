"""The exchange of one flat vector: sums over the shards of all ranks, and slices that ranks have changed.

Ranks of one host write into memory they share. Between hosts, each *channel* (the ranks with the same number on their
hosts) exchanges its own slice of the vector by messages: first the hosts' sums, every host adding a part of the slice, then
the parts. With one host there is nothing to send. Each sum is made by one rank, along the tree, so all have the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..dtypes import bfloat16
from .hosts import Hosts
from .sums import Layout, add_along
from .tree import Node, additions, maximal_nodes, root

__all__ = ["Exchange"]

_LINE = 16  # slices begin at multiples of it: no two ranks write to one cache line


class Exchange:
    """The shared memory and the plans for vectors of one layout.

    Args:
        hosts: who sits where.
        layout: of the vector.
        held: for each rank, by its position, the shards it holds.
        shards: how many shards there are in all.
        side: how many float64 numbers go with each shard.
        compress: whether sums are rounded to bfloat16, and sent as that between hosts.
    """

    def __init__(
        self,
        hosts: Hosts,
        layout: Layout,
        held: Sequence[Sequence[int]],
        shards: int,
        side: int = 0,
        compress: bool = False,
    ) -> None:
        self.hosts, self.layout, self.shards, self.compress = hosts, layout, shards, compress
        self._held = held
        own = [held[position] for position in hosts.positions]  # of the ranks of this host
        slots = [len(maximal_nodes(shares, shards)) for shares in own]
        aligned = -(-layout.length // _LINE) * _LINE
        itemsize = layout.dtype.itemsize
        sizes = [count * aligned * itemsize for count in slots]
        common = 2 * aligned * itemsize + 2 * shards * side * 8
        self._window = hosts.shared([common + sizes[0], *sizes[1:]])
        first = self._window.segments[0]
        # two regions: a rank may be done with the sums and write its slice while others still read the sums
        self.result: np.ndarray = first[: layout.length * itemsize].view(layout.dtype)
        self._joined: np.ndarray = first[aligned * itemsize :][: layout.length * itemsize].view(layout.dtype)
        # and two sides: a rank may begin the next step while others still read the side of this one
        self._sides = first[2 * aligned * itemsize : common].view(np.float64).reshape(2, shards, side)
        self._turn = 0
        starts = [common] + [0] * (len(sizes) - 1)
        self._slots = [
            [
                segment[start + i * aligned * itemsize :][: layout.length * itemsize].view(layout.dtype)
                for i in range(count)
            ]
            for segment, start, count in zip(self._window.segments, starts, slots)
        ]
        bounds = _bounds(layout.length, hosts.channels)
        self.channel = slice(0, 0)
        self._parts = [slice(0, 0)] * hosts.count
        if hosts.channel is not None:
            self.channel = slice(bounds[hosts.host_rank], bounds[hosts.host_rank + 1])
            inner = _bounds(self.channel.stop - self.channel.start, hosts.count)
            self._parts = [
                slice(self.channel.start + a, self.channel.start + b) for a, b in zip(inner, inner[1:])
            ]
        self.own: slice = self._parts[hosts.host_index]  # what this rank sums and may change
        self._plans: dict[int, _Plan] = {}

    @property
    def slots(self) -> list[np.ndarray]:
        """Where the own sums belong, one vector for each maximal node of the own shards."""
        return self._slots[self.hosts.host_rank]

    @property
    def side(self) -> np.ndarray:
        """Where the numbers that go with the own shards belong, a row for each shard."""
        return self._sides[self._turn]

    def reduce(self, filled: int, whole: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """The sum over the first ``filled`` shards, whose sums are in the slots; and the side numbers of these shards.

        Both stand in shared memory until the next exchange: copy what is to stay. Unless ``whole`` is asked for, only the
        own slice of the sum need be there, and hosts send less.
        """
        side, self._turn = self.side, 1 - self._turn
        if sum(map(len, self.hosts.by_host)) == 1:
            return self.slots[0], side[:filled]
        plan = self._plan(filled)
        self._window.barrier()
        if self.hosts.count == 1:
            sources = {
                node: slot[self.own]
                for nodes, slots in zip(plan.nodes, self._slots)
                for node, slot in zip(nodes, slots)
            }
            add_along(plan.whole, sources, {plan.root: self.result[self.own]}, self.compress)
        else:
            settle_side = self._share_side(side)  # on its way while the sums are made and sent
            self._reduce_hosts(plan, whole)
            settle_side()
        self._window.barrier()
        return self.result, side[:filled]

    def _plan(self, filled: int) -> _Plan:
        if filled not in self._plans:
            self._plans[filled] = _Plan(self, filled)
        return self._plans[filled]

    def nodes(self, filled: int) -> list[Node]:
        """The nodes whose sums belong into the slots."""
        return self._plan(filled).nodes[self.hosts.host_rank]

    def _reduce_hosts(self, plan: _Plan, whole: bool) -> None:
        """Sums of this host for the slice of the channel; its parts to the hosts that add them; the sums of those back."""
        hosts = self.hosts
        if hosts.channel is None:
            return
        here = {
            node: slot[self.channel]
            for nodes, slots in zip(plan.nodes, self._slots)
            for node, slot in zip(nodes, slots)
        }
        length = self.channel.stop - self.channel.start
        sums = {node: np.empty(length, self.layout.dtype) for node in plan.by_host[hosts.host_index]}
        add_along(plan.local, here, sums, self.compress)
        offset = self.channel.start
        sent = [
            self._coded(sums[node][part.start - offset : part.stop - offset])
            for part in self._parts
            for node in plan.by_host[hosts.host_index]
        ]
        kind = sent[0].dtype if sent else self._coded(np.empty(0, self.layout.dtype)).dtype
        out = np.concatenate(sent) if sent else np.empty(0, kind)
        send = [(part.stop - part.start) * len(sums) for part in self._parts]
        width = self.own.stop - self.own.start
        receive = [width * len(nodes) for nodes in plan.by_host]
        arrived = np.empty(sum(receive), kind)
        hosts.exchange(out, send, arrived, receive)
        sources, start = {}, 0
        for nodes in plan.by_host:
            for node in nodes:
                sources[node] = self._decoded(arrived[start : start + width])
                start += width
        total = np.empty(width, self.layout.dtype)
        add_along(plan.between, sources, {plan.root: total}, self.compress)
        self.result[self.own] = total
        if whole:
            self._spread(self._coded(total), self.result)

    def _share_side(self, side: np.ndarray) -> Callable[[], None]:
        """Send the side numbers of this host's shards; what is returned waits for those of the others."""
        hosts = self.hosts
        if hosts.host_rank != 0 or not side.size:
            return lambda: None
        rows = [sorted(s for p in positions for s in self._held[p]) for positions in hosts.by_host]
        own = side[rows[hosts.host_index]].reshape(-1)
        width = side.shape[1]
        every = np.empty(width * sum(map(len, rows)))
        wait = hosts.start_spread(own, every, [len(shares) * width for shares in rows])

        def settle() -> None:
            wait()
            start = 0
            for shares in rows:
                side[shares] = every[start : start + len(shares) * width].reshape(len(shares), width)
                start += len(shares) * width

        return settle

    def gather_slices(self, own: np.ndarray) -> np.ndarray:
        """``own`` in the own slice, and what the others have in theirs; in shared memory until the next exchange."""
        self._joined[self.own] = own
        if self.hosts.count > 1 and self.hosts.channel is not None:
            self._spread(own, self._joined)
        self._window.barrier()
        return self._joined

    def _spread(self, own: np.ndarray, out: np.ndarray) -> None:
        """The own part to the other hosts, theirs into ``out``."""
        lengths = [part.stop - part.start for part in self._parts]
        arrived = np.empty(sum(lengths), own.dtype)
        self.hosts.spread(np.ascontiguousarray(own), arrived, lengths)
        out[self.channel] = arrived if arrived.dtype == out.dtype else self._decoded(arrived)

    def _coded(self, x: np.ndarray) -> np.ndarray:
        """As it is sent: sums that are bfloat16 already take two bytes."""
        return x.astype(bfloat16).view(np.uint16) if self.compress else x

    def _decoded(self, x: np.ndarray) -> np.ndarray:
        return x.view(bfloat16).astype(self.layout.dtype) if self.compress else x

    def close(self) -> None:
        """Give the shared memory back; everyone must come here."""
        self._slots, self._plans = [], {}
        self.result = self._joined = np.empty(0)
        self._sides = np.empty((2, 0, 0))
        self._window.free()


class _Plan:
    """What is added where, for so many shards that are not empty."""

    def __init__(self, exchange: Exchange, filled: int) -> None:
        hosts = exchange.hosts
        held = [[s for s in shares if s < filled] for shares in exchange._held]
        self.nodes: list[list[Node]] = [maximal_nodes(held[p], filled) for p in hosts.positions]
        self.by_host = [
            maximal_nodes([s for p in positions for s in held[p]], filled) for positions in hosts.by_host
        ]
        self.root = root(filled)
        sources = [node for nodes in self.nodes for node in nodes]
        self.whole = additions(sources, [self.root], filled) if hosts.count == 1 else []
        self.local = additions(sources, self.by_host[hosts.host_index], filled)
        self.between = additions([node for nodes in self.by_host for node in nodes], [self.root], filled)


def _bounds(length: int, parts: int) -> list[int]:
    """Where ``parts`` slices of nearly the same length begin and end."""
    lines = -(-length // _LINE)
    return [min(lines * i // parts * _LINE, length) for i in range(parts + 1)]
