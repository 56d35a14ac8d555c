"""A batch cut into parts by position, each of which is one forward and backward pass."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["ShardedBatch", "shard_sizes"]


class ShardedBatch(NamedTuple):
    """Some parts of a batch that several processes share.

    Attributes:
        samples: how many the whole batch has.
        filled: how many of its shards hold samples; the first ones.
        parts: inputs and targets by the number of the shard.
    """

    samples: int
    filled: int
    parts: dict[int, Any]


def shard_sizes(samples: int, shards: int) -> list[int]:
    """How many samples each shard of a batch has: equally many, the last of them fewer, those after it none."""
    size = -(-samples // shards)
    return [max(min(size, samples - size * shard), 0) for shard in range(shards)]
