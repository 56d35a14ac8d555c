"""The tree of additions, against a recursion that is written the other way round: from the shards up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from extensor.distributed.sums import Layout, ShardSums, add_along
from extensor.distributed.tree import Node, additions, covers, maximal_nodes, root, shards_of

RNG = np.random.default_rng(0)


def paired(values: list[np.ndarray]) -> np.ndarray:
    """Neighbours added pair by pair until one is left; an odd one moves up as it is."""
    while len(values) > 1:
        values = [
            values[i] + values[i + 1] if i + 1 < len(values) else values[i] for i in range(0, len(values), 2)
        ]
    return values[0]


@pytest.mark.parametrize("shards", [1, 2, 3, 5, 7, 8, 13, 16])
@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 7])
def test_the_sum_does_not_depend_on_who_adds(shards: int, ranks: int) -> None:
    leaves = [(RNG.normal(size=6) * 10.0 ** RNG.integers(-4, 4)).astype(np.float32) for _ in range(shards)]
    layout = Layout([(2, 2), (2,)], np.float32)
    sources = {}
    for rank in range(ranks):
        own = shards_of(rank, ranks, shards)
        nodes = maximal_nodes(own, shards)
        out = [np.empty(6, np.float32) for _ in nodes]
        sums = ShardSums(layout, nodes, shards, out)
        for shard in own:
            sums.add(shard, [leaves[shard][:4].reshape(2, 2), leaves[shard][4:]])
        sources |= dict(zip(nodes, out))
    total = np.empty(6, np.float32)
    add_along(additions(sources, [root(shards)], shards), sources, {root(shards): total})
    np.testing.assert_array_equal(total, paired(leaves))


@pytest.mark.parametrize("shards", range(1, 20))
def test_maximal_nodes_cover_exactly_what_is_held(shards: int) -> None:
    for held in ([s for s in range(shards) if s % 3], list(range(shards // 2, shards)), list(range(shards))):
        nodes = maximal_nodes(held, shards)
        assert [s for node in nodes for s in covers(node, shards)] == held
        for node in nodes:  # none of them could be part of a larger one
            assert node == root(shards) or not set(covers(node.parent, shards)) <= set(held)


def test_every_rank_gets_neighbours_and_nobody_too_many() -> None:
    for ranks in range(1, 10):
        shares = [shards_of(rank, ranks, 10) for rank in range(ranks)]
        assert [s for share in shares for s in share] == list(range(10))
        assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_long_vectors_are_added_piece_by_piece() -> None:
    parts = [RNG.normal(size=100_003).astype(np.float32) for _ in range(5)]
    sources = {node: part for part, node in zip(parts, (maximal_nodes([i], 5)[0] for i in range(5)))}
    total = np.empty(100_003, np.float32)
    add_along(additions(sources, [root(5)], 5), sources, {root(5): total})
    np.testing.assert_array_equal(total, paired(parts))


def test_a_missing_shard_is_named() -> None:
    with pytest.raises(ValueError, match="nobody holds shard 2"):
        additions(maximal_nodes([0, 1, 3], 4), [root(4)], 4)


def test_missing_gradients_count_as_zeros() -> None:
    out = np.full(3, 7, np.float32)
    sums = ShardSums(Layout([(2,), (1,)], np.float32), [root(2)], 2, [out])
    sums.add(0, [None, np.ones(1, np.float32)])
    sums.add(1, [np.full(2, 3, np.float32), None])
    assert out.tolist() == [3, 3, 1]
    alone = ShardSums(Layout([(2,), (1,)], np.float32), [Node(0, 1)], 2, [out])
    alone.add(1, [None, np.ones(1, np.float32)])
    assert out.tolist() == [0, 0, 1]


LONG = [
    (70, 130),
    (3,),
    (),
    (0, 4),
    (5000,),
]  # beyond what is added at a time, and what has one element or none


def gradients(dtype: type) -> list[Any]:
    """Of one shard, of all sizes."""
    return [np.asarray(RNG.normal(size=shape) * 10.0 ** RNG.integers(-4, 4), dtype) for shape in LONG]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shards", range(1, 10))
def test_long_gradients_are_added_like_short_ones(shards: int, dtype: type) -> None:
    layout = Layout(LONG, dtype)
    leaves = [gradients(dtype) for _ in range(shards)]
    strided = [[x.T.copy().T for x in leaf] for leaf in leaves]
    flat = [np.concatenate([x.reshape(-1) for x in leaf]) for leaf in leaves]
    for given in (leaves, strided):  # the second in an order of elements that the core leaves to NumPy
        out: np.ndarray = np.empty(layout.length, dtype)
        spare: list[np.ndarray] = []
        for _ in range(2):  # again in the vectors of the first time
            sums = ShardSums(layout, [root(shards)], shards, [out], spare=spare)
            for shard, leaf in enumerate(given):
                sums.add(shard, leaf)
            np.testing.assert_array_equal(out, paired(flat))
        assert all(vector is not out for vector in spare)


def test_the_core_says_what_it_does_not_add() -> None:
    native = pytest.importorskip("extensor._native")
    ones, out = np.ones(6, np.float32), np.zeros(6, np.float32)
    for terms in (
        [ones, None], [ones, [ones, None]], [ones, [ones[:3]]], [[ones], [ones[:3], ones[3:]]], [ones.astype(np.float64)],
        [np.ones(12, np.float32)[::2]], [ones.astype(">f4")], [np.ones(7, np.float32)], [[ones[:3], ones[:4]]],
    ):  # fmt: skip
        assert native.add_gradients(out, terms) is False
    assert not out.any()
    assert native.add_gradients(out.astype(np.int32), [ones]) is False
    out.flags.writeable = False
    assert native.add_gradients(out, [ones]) is False
    wrong: tuple[Any, ...]
    for wrong in ((out,), (out, []), (out, ones), (None, [ones])):
        with pytest.raises(TypeError, match=r"\[add_gradients\]"):
            native.add_gradients(*wrong)
