"""Batches as the loop takes them: inputs and targets, several at a time where gradients accumulate."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import islice
from typing import Any

from ..data import DataLoader
from ..data.shards import ShardedBatch
from ..errors import describe

__all__ = ["groups", "inputs_and_targets", "sharded_groups"]


def groups(train: DataLoader, size: int) -> Iterator[list[tuple[Any, Any]]]:
    """The batches of an epoch, ``size`` at a time; the last group may be smaller."""
    batches = iter(train)
    while group := [inputs_and_targets(batch) for batch in islice(batches, size)]:
        yield group


def sharded_groups(
    train: DataLoader, size: int, shards: int, own: Collection[int]
) -> Iterator[list[ShardedBatch]]:
    """The same groups of batches, of which only the parts of the shards ``own`` are gathered."""
    batches = train.in_shards(shards, own)
    while group := list(islice(batches, size)):
        yield group


def inputs_and_targets(batch: Any) -> tuple[Any, Any]:
    """Both parts of a batch; one without targets is its own target."""
    if not isinstance(batch, (tuple, list)) or len(batch) != 2:
        raise TypeError(f"[Trainer] a batch must be (inputs, targets), got {describe(batch)}")
    inputs, targets = batch
    return inputs, inputs if targets is None else targets
