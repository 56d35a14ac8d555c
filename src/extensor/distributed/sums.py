"""Sums along the tree: the shards of one rank as they come, and slices of what several ranks have added."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..dtypes import bfloat16
from .tree import Addition, Node, covers

try:
    from .._native import add_gradients
except ModuleNotFoundError:

    def add_gradients(out: np.ndarray, terms: list[Any], /) -> bool:
        """Without the core every sum is NumPy's."""
        return False


__all__ = ["Layout", "Piece", "ShardSums", "add_along", "rounded"]

_CHUNK = 1 << 15  # elements at a time: what is added in between stays in the cache

Leaf: TypeAlias = "list[np.ndarray | None]"  # the gradients of a shard
Term: TypeAlias = "Leaf | np.ndarray"  # or a vector that holds a sum of them


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

    def pieces(self, most: int, least_bytes: int) -> list[Piece]:
        """The layout in at most so many pieces, the last tensors first: that is how a backward pass completes them."""
        size = max(least_bytes // self.dtype.itemsize, -(-self.length // most))
        found: list[Piece] = []
        end = len(self.shapes)
        while end > 0 or not found:
            start = max(end - 1, 0)
            while start > 0 and self.places[end - 1].stop - self.places[start].start < size:
                start -= 1
            place = slice(self.places[start].start, self.places[end - 1].stop) if end else slice(0, 0)
            found.append(Piece(slice(start, end), place, Layout(self.shapes[start:end], self.dtype)))
            end = start
        return found


def rounded(x: np.ndarray) -> None:
    """Round to the nearest bfloat16 in place, ties to even."""
    x[...] = x.astype(bfloat16)


class Piece(NamedTuple):
    """Neighbouring tensors of a layout: their numbers, where they lie in the vector, and how they lie there."""

    tensors: slice
    place: slice
    layout: Layout


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
        self._waiting: dict[Node, Term] = {}
        self._spare = [] if spare is None else spare

    def add(self, shard: int, leaf: Leaf) -> None:
        """The gradients of a shard; None counts as zeros. The arrays must not change until the sum is made."""
        node = Node(0, shard)
        term: Term = leaf
        if self.compress:
            term = vector = self._vector(node)
            self._sum([leaf], vector)
        terms = [term]  # and what is added to it on the way up
        while node not in self._out:
            first, second = node.parent.children
            if covers(second, self.shards):  # an only child passes its sum on
                other = self._waiting.pop(second if node == first else first, None)
                if other is None:
                    break
                terms.append(other)
            node = node.parent
        if len(terms) > 1:
            term = vector = self._vector(node)
            self._sum(terms, vector)
            self._spare += [old for old in terms if isinstance(old, np.ndarray)]
        if node not in self._out:
            self._waiting[node] = term
        elif term is not self._out[node]:
            self._sum([term], self._out[node])

    def _vector(self, node: Node) -> np.ndarray:
        while node not in self._out and not covers(node.parent.children[1], self.shards):
            node = node.parent
        if node in self._out:
            return self._out[node]
        return self._spare.pop() if self._spare else np.empty(self.layout.length, self.layout.dtype)

    def _sum(self, terms: list[Term], out: np.ndarray) -> None:
        """out = terms[n] + (... + (terms[1] + terms[0])): addition commutes, so it does not matter which of two stands left."""
        if self.compress or not add_gradients(out, terms):
            self._sum_tensors(terms, out)

    def _sum_tensors(self, terms: list[Term], out: np.ndarray) -> None:
        """The same for gradients of other dtypes and None, and with every sum rounded; tensor by tensor, which is in the cache then."""
        with np.errstate(all="ignore"):  # of a loss that is not finite: the exchange tells everyone
            self._add_tensors(terms, out)

    def _add_tensors(self, terms: list[Term], out: np.ndarray) -> None:
        parts = [self.layout.views(term) if isinstance(term, np.ndarray) else term for term in terms]
        for target, value, *others in zip(self.layout.views(out), *parts):
            if not others:
                target[...] = 0 if value is None else value
            for other in others:
                np.add(
                    0 if other is None else other, 0 if value is None else value, out=target, dtype=out.dtype
                )
                if self.compress:
                    rounded(target)
                value = target
        if self.compress and len(terms) == 1:
            rounded(out)


def add_along(
    steps: Sequence[Addition],
    sources: Mapping[Node, np.ndarray],
    targets: Mapping[Node, np.ndarray],
    compress: bool = False,
) -> None:
    """Follow ``steps`` from the vectors of ``sources`` to those of ``targets``, a piece that fits the cache at a time."""
    with np.errstate(all="ignore"):  # of a loss that is not finite
        _add_along(steps, sources, targets, compress)


def _add_along(
    steps: Sequence[Addition],
    sources: Mapping[Node, np.ndarray],
    targets: Mapping[Node, np.ndarray],
    compress: bool,
) -> None:
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
