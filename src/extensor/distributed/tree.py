"""The fixed binary tree over shard numbers along which everything is added.

A node ``(level, place)`` stands for the shards from ``place * 2**level`` up to the next such number. Its sum is that of its
two children, left plus right; a child without shards is left out. So the order of additions follows from the number of
shards alone, and a rank that holds all shards of a node can add them before anything is sent: nobody else's result changes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

__all__ = ["Addition", "Node", "additions", "covers", "maximal_nodes", "root", "shards_of"]


class Node(NamedTuple):
    """The shards from ``place * 2**level`` to below ``(place + 1) * 2**level``."""

    level: int
    place: int

    @property
    def parent(self) -> Node:
        return Node(self.level + 1, self.place // 2)

    @property
    def children(self) -> tuple[Node, Node]:
        return Node(self.level - 1, 2 * self.place), Node(self.level - 1, 2 * self.place + 1)


class Addition(NamedTuple):
    """``target = left + right``; where a node has one child with shards alone, ``right`` is None and nothing is added."""

    target: Node
    left: Node
    right: Node | None


def root(shards: int) -> Node:
    """The node of all shards."""
    return Node(max(shards - 1, 0).bit_length(), 0)


def covers(node: Node, shards: int) -> range:
    """The shards of a node, of so many in all."""
    first = node.place << node.level
    return range(min(first, shards), min(first + (1 << node.level), shards))


def shards_of(position: int, size: int, shards: int) -> range:
    """The shards of one rank of ``size``: neighbours, as many as everyone has, or one more."""
    return range(position * shards // size, (position + 1) * shards // size)


def maximal_nodes(held: Collection[int], shards: int) -> list[Node]:
    """The fewest nodes that cover exactly the shards ``held``, of so many in all; in the order of their shards."""
    found: list[Node] = []
    waiting = [root(shards)] if shards else []
    own = set(held)
    while waiting:
        node = waiting.pop()
        inside = covers(node, shards)
        if not any(shard in own for shard in inside):
            continue
        if all(shard in own for shard in inside):
            found.append(node)
        else:
            waiting += reversed(node.children)
    return found


def additions(sources: Iterable[Node], targets: Iterable[Node], shards: int) -> list[Addition]:
    """What to add, in an order that can be followed, to come from the sums of ``sources`` to those of ``targets``.

    Raises:
        ValueError: the sources do not cover a target.
    """
    known = set(sources)
    found: list[Addition] = []

    def visit(node: Node) -> None:
        if node in known:
            return
        if node.level == 0:
            raise ValueError(f"[reduce_gradients] nobody holds shard {node.place}")
        left, right = node.children
        visit(left)
        empty = not covers(right, shards)
        if not empty:
            visit(right)
        known.add(node)
        found.append(Addition(node, left, None if empty else right))

    for target in targets:
        visit(target)
    return found
