"""A batch cut into parts by position, each of which is one forward and backward pass."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

__all__ = ["ShardedBatch", "cut_batch", "shard_sizes"]


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


def cut_batch(batch: Any, shards: int, own: Collection[int]) -> ShardedBatch:
    """The shards ``own`` of a batch that is there as a whole: tensors in tuples, lists and dicts, samples along axis 0."""
    samples = next((len(leaf) for leaf in _leaves(batch)), 0)
    sizes = shard_sizes(samples, shards)
    parts = {s: _cut(batch, s * sizes[0], s * sizes[0] + sizes[s]) for s in own if sizes[s]}
    return ShardedBatch(samples, sum(size > 0 for size in sizes), parts)


def _leaves(batch: Any) -> Iterator[Any]:
    if isinstance(batch, Mapping):
        batch = tuple(batch.values())
    if isinstance(batch, (tuple, list)):
        for part in batch:
            yield from _leaves(part)
    elif batch is not None:
        yield batch


def _cut(batch: Any, start: int, stop: int) -> Any:
    if isinstance(batch, Mapping):
        return {key: _cut(part, start, stop) for key, part in batch.items()}
    if isinstance(batch, (tuple, list)):
        return tuple(_cut(part, start, stop) for part in batch)
    return None if batch is None else batch[start:stop]
