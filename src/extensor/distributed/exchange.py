"""The exchange of one flat vector: sums over the shards of all ranks, and slices that ranks have changed.

Ranks of one host write into memory they share. Between hosts, each *channel* (the ranks with the same number on their
hosts) exchanges its own slice of the vector by messages: first the hosts' sums, every host adding a part of the slice, then
the parts. With one host there is nothing to send. Each sum is made by one rank, along the tree, so all have the same bits.
Messages take the vector in pieces, the last tensors first, as a backward pass completes them (see :mod:`.reduction`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .hosts import Hosts
from .sums import Layout, Piece
from .tree import Node, additions, maximal_nodes, root

__all__ = ["Exchange"]

_PIECE_BYTES, _MOST_PIECES = 256 << 10, 8  # a smaller message takes hardly less time than that
_LINE = 16  # slices are multiples of it: with one piece, no two ranks write to one cache line


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
        self.held = held
        self.pieces: list[Piece] = layout.pieces(1 if hosts.count == 1 else _MOST_PIECES, _PIECE_BYTES)
        own = [held[position] for position in hosts.positions]  # of the ranks of this host
        slots = [len(maximal_nodes(shares, shards)) for shares in own]
        aligned = -(-layout.length // _LINE) * _LINE
        itemsize = layout.dtype.itemsize
        sizes = [count * aligned * itemsize for count in slots]
        common = 2 * aligned * itemsize + 2 * shards * side * 8
        self.window = hosts.shared([common + sizes[0], *sizes[1:]])
        first = self.window.segments[0]
        # two regions: a rank may be done with the sums and write its slice while others still read the sums
        self.result: np.ndarray = first[: layout.length * itemsize].view(layout.dtype)
        self._joined: np.ndarray = first[aligned * itemsize :][: layout.length * itemsize].view(layout.dtype)
        # and two sides: a rank may begin the next step while others still read the side of this one
        self._sides = first[2 * aligned * itemsize : common].view(np.float64).reshape(2, shards, side)
        self._turn = 0
        starts = [common] + [0] * (len(sizes) - 1)
        self.all_slots = [
            [
                segment[start + i * aligned * itemsize :][: layout.length * itemsize].view(layout.dtype)
                for i in range(count)
            ]
            for segment, start, count in zip(self.window.segments, starts, slots)
        ]
        self.shares = [_share(piece.place, hosts) for piece in self.pieces]
        # what this rank sums and may change
        self.own = [share.parts[hosts.host_index] for share in self.shares]
        self._plans: dict[int, Plan] = {}

    @property
    def slots(self) -> list[np.ndarray]:
        """Where the own sums belong, one vector for each maximal node of the own shards."""
        return self.all_slots[self.hosts.host_rank]

    def next_side(self) -> np.ndarray:
        """For the numbers that go with the shards in the next exchange, a row for each shard."""
        self._turn = 1 - self._turn
        return self._sides[self._turn]

    def plan(self, filled: int) -> Plan:
        """What is added where, for so many shards that are not empty."""
        if filled not in self._plans:
            self._plans[filled] = Plan(self, filled)
        return self._plans[filled]

    def nodes(self, filled: int) -> list[Node]:
        """The nodes whose sums belong into the slots."""
        return self.plan(filled).nodes[self.hosts.host_rank]

    def gather_slices(self, own: Sequence[np.ndarray]) -> np.ndarray:
        """``own`` in the own slices, and what the others have in theirs; in shared memory until the next exchange."""
        for place, values in zip(self.own, own):
            self._joined[place] = values
        if self.hosts.count > 1 and self.hosts.channel is not None:
            by_host = [[share.parts[host] for share in self.shares] for host in range(self.hosts.count)]
            lengths = [sum(place.stop - place.start for place in places) for places in by_host]
            arrived = np.empty(sum(lengths), self.layout.dtype)
            self.hosts.spread(np.concatenate(own), arrived, lengths)
            start = 0
            for place in (place for places in by_host for place in places):
                size = place.stop - place.start
                self._joined[place] = arrived[start : start + size]
                start += size
        self.window.barrier()
        return self._joined

    def close(self) -> None:
        """Give the shared memory back; everyone must come here."""
        self.all_slots, self._plans = [], {}
        self.result = self._joined = np.empty(0)
        self._sides = np.empty((2, 0, 0))
        self.window.free()


class Plan:
    """What is added where, for so many shards that are not empty."""

    def __init__(self, exchange: Exchange, filled: int) -> None:
        hosts = exchange.hosts
        held = [[s for s in shares if s < filled] for shares in exchange.held]
        self.nodes: list[list[Node]] = [maximal_nodes(held[p], filled) for p in hosts.positions]
        self.by_host = [
            maximal_nodes([s for p in positions for s in held[p]], filled) for positions in hosts.by_host
        ]
        self.root = root(filled)
        sources = [node for nodes in self.nodes for node in nodes]
        self.whole = additions(sources, [self.root], filled) if hosts.count == 1 else []
        self.local = additions(sources, self.by_host[hosts.host_index], filled)
        self.between = additions([node for nodes in self.by_host for node in nodes], [self.root], filled)


class Share(NamedTuple):
    """Who sums what of a piece: the slice of the own channel, and its parts by host."""

    channel: slice
    parts: list[slice]


def _share(piece: slice, hosts: Hosts) -> Share:
    if hosts.channel is None:
        return Share(slice(0, 0), [slice(0, 0)] * hosts.count)
    channel = _cut(piece, hosts.channels)[hosts.host_rank]
    return Share(channel, _cut(channel, hosts.count))


def _cut(place: slice, parts: int) -> list[slice]:
    bounds = [place.start + bound for bound in _bounds(place.stop - place.start, parts)]
    return [slice(a, b) for a, b in zip(bounds, bounds[1:])]


def _bounds(length: int, parts: int) -> list[int]:
    """Where ``parts`` slices of nearly the same length begin and end."""
    lines = -(-length // _LINE)
    return [min(lines * i // parts * _LINE, length) for i in range(parts + 1)]
