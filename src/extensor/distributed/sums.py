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
        self._waiting: dict[Node, Leaf | np.ndarray] = {}
        self._spare = [] if spare is None else spare

    def add(self, shard: int, leaf: Leaf) -> None:
        """The gradients of a shard; None counts as zeros. The arrays must not change until the sum is made."""
        node = Node(0, shard)
        value: Leaf | np.ndarray = self._flat(leaf, self._vector(node)) if self.compress else leaf
        while node not in self._out:
            first, second = node.parent.children
            if not covers(second, self.shards):  # an only child passes its sum on
                node = node.parent
                continue
            other = self._waiting.pop(second if node == first else first, None)
            if other is None:
                self._waiting[node] = value
                return
            left, right = (value, other) if node == first else (other, value)
            node = node.parent
            value = self._sum(left, right, self._vector(node))
        if value is not self._out[node]:
            self._flat(value, self._out[node]) if not isinstance(value, np.ndarray) else np.copyto(
                self._out[node], value
            )

    def _vector(self, node: Node) -> np.ndarray:
        while node not in self._out and not covers(node.parent.children[1], self.shards):
            node = node.parent
        if node in self._out:
            return self._out[node]
        return self._spare.pop() if self._spare else np.empty(self.layout.length, self.layout.dtype)

    def _sum(self, left: Leaf | np.ndarray, right: Leaf | np.ndarray, out: np.ndarray) -> np.ndarray:
        if isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
            np.add(left, right, out=out)
        else:
            first, second = (self.layout.views(x) if isinstance(x, np.ndarray) else x for x in (left, right))
            for a, b, target in zip(first, second, self.layout.views(out)):
                np.add(0 if a is None else a, 0 if b is None else b, out=target, dtype=out.dtype)
        if self.compress:
            rounded(out)
        for old in (left, right):
            if isinstance(old, np.ndarray) and old is not out:
                self._spare.append(old)
        return out

    def _flat(self, leaf: Leaf | np.ndarray, out: np.ndarray) -> np.ndarray:
        for value, target in zip(leaf, self.layout.views(out)):
            target[...] = 0 if value is None else value
        if self.compress:
            rounded(out)
        return out


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
