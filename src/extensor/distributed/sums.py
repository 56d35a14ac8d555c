"""Sums along the tree: the shards of one rank as they come, and slices of what several ranks have added."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from ..dtypes import bfloat16
from .tree import Addition, Node, covers

__all__ = ["Layout", "ShardSums", "add_along", "rounded"]

_CHUNK = 1 << 15  # elements at a time: what is added in between stays in the cache

Leaf: TypeAlias = "Sequence[np.ndarray | None]"


class Layout:
    """Where tensors of given shapes lie in one flat vector.

    Args:
        shapes: of the tensors, in order.
        dtype: of the vector.
    """

    def __init__(self, shapes: Sequence[tuple[int, ...]], dtype: Any) -> None:
        self.shapes, self.dtype = [tuple(shape) for shape in shapes], np.dtype(dtype)
        ends = np.cumsum([math.prod(shape) for shape in self.shapes], dtype=np.int64).tolist()
        self.places = [slice(start, end) for start, end in zip([0, *ends], ends)]
        self.length: int = ends[-1] if ends else 0

    def views(self, flat: np.ndarray) -> list[np.ndarray]:
        """The tensors inside a vector."""
        return [flat[place].reshape(shape) for place, shape in zip(self.places, self.shapes)]


def rounded(x: np.ndarray) -> None:
    """Round to the nearest bfloat16 in place, ties to even."""
    x[...] = x.astype(bfloat16)


class ShardSums:
    """Adds the gradients of one rank's shards as they come, in the order of the tree.

    Args:
        layout: of the gradients.
        nodes: those to sum, the maximal nodes of the own shards.
        shards: how many there are in all.
        out: for each node that is passed on, the vector it goes into.
        compress: round every sum, and every shard's gradient, to bfloat16.
        spare: vectors to work in, and where they are left for the next time: fresh memory is slow.
    """

    def __init__(
        self,
        layout: Layout,
        nodes: Sequence[Node],
        shards: int,
        out: Sequence[np.ndarray],
        compress: bool = False,
        spare: list[np.ndarray] | None = None,
    ) -> None:
        self.layout, self.shards, self.compress = layout, shards, compress
        self._out = dict(zip(nodes, out))
        self._waiting: dict[Node, tuple[Leaf, np.ndarray | None]] = {}  # tensors, and the vector they lie in
        self._spare = [] if spare is None else spare

    def add(self, shard: int, leaf: Leaf) -> None:
        """The gradients of a shard; None counts as zeros. The arrays must not change until the sum is made."""
        node = Node(0, shard)
        vector: np.ndarray | None = None
        if self.compress:
            vector = self._vector(node)
            leaf = self._flat(leaf, vector)
        # what is added on the way up, and whether it stands on the left
        partners: list[tuple[Leaf, bool]] = []
        done: list[np.ndarray | None] = [vector]
        while node not in self._out:
            first, second = node.parent.children
            if covers(second, self.shards):  # an only child passes its sum on
                other = self._waiting.pop(second if node == first else first, None)
                if other is None:
                    break
                partners.append((other[0], node == second))
                done.append(other[1])
            node = node.parent
        if partners:
            vector = self._vector(node)
            leaf = self._sum(leaf, partners, vector)
            self._spare += [old for old in done if old is not None]
        if node not in self._out:
            self._waiting[node] = leaf, vector
        elif vector is None:
            self._flat(leaf, self._out[node])
        elif vector is not self._out[node]:
            np.copyto(self._out[node], vector)

    def _vector(self, node: Node) -> np.ndarray:
        while node not in self._out and not covers(node.parent.children[1], self.shards):
            node = node.parent
        if node in self._out:
            return self._out[node]
        return self._spare.pop() if self._spare else np.empty(self.layout.length, self.layout.dtype)

    def _sum(self, leaf: Leaf, partners: list[tuple[Leaf, bool]], out: np.ndarray) -> Leaf:
        """All additions of one tensor before the next one's: it is in the cache then."""
        targets = self.layout.views(out)
        for i, target in enumerate(targets):
            value = leaf[i]
            for other, stands_left in partners:
                left, right = (other[i], value) if stands_left else (value, other[i])
                np.add(
                    0 if left is None else left, 0 if right is None else right, out=target, dtype=out.dtype
                )
                if self.compress:
                    rounded(target)
                value = target
        return targets

    def _flat(self, leaf: Leaf, out: np.ndarray) -> Leaf:
        targets = self.layout.views(out)
        for value, target in zip(leaf, targets):
            target[...] = 0 if value is None else value
        if self.compress:
            rounded(out)
        return targets


def add_along(
    steps: Sequence[Addition],
    sources: Mapping[Node, np.ndarray],
    targets: Mapping[Node, np.ndarray],
    compress: bool = False,
) -> None:
    """Follow ``steps`` from the vectors of ``sources`` to those of ``targets``, a piece that fits the cache at a time."""
    length = next(iter(targets.values())).size if targets else 0
    added = {step.target for step in steps if step.right is not None}
    kept: dict[Node, np.ndarray] = {}
    for start in range(0, length, _CHUNK):
        piece = slice(start, min(start + _CHUNK, length))
        now = {node: vector[piece] for node, vector in sources.items()}
        for target, left, right in steps:
            if right is None:
                now[target] = now[left]
                continue
            if target in targets:
                out = targets[target][piece]
            else:
                if target not in kept:
                    kept[target] = np.empty(min(_CHUNK, length), targets[next(iter(targets))].dtype)
                out = kept[target][: piece.stop - start]
            np.add(now[left], now[right], out=out, dtype=out.dtype)
            if compress:
                rounded(out)
            now[target] = out
        for node, vector in targets.items():
            if node not in added:  # it is a source, or the only child of its parent
                np.copyto(vector[piece], now[node])
