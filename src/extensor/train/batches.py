"""Batches as the loop takes them: inputs and targets, several at a time where gradients accumulate."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np

from ..data import DataLoader, Dataset
from ..data.shards import ShardedBatch
from ..errors import describe
from ..tensor import ExTensor

__all__ = ["TARGETS", "as_loader", "groups", "inputs_and_targets", "outputs_of", "sharded_groups"]

TARGETS = ("targets", "target", "labels", "label", "y")  # under which a dict may have them


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


def as_loader(batches: Any) -> DataLoader:
    """What :meth:`Trainer.fit` is given, as a loader: a dataset in batches of 32, or batches as somebody else makes them."""
    if isinstance(batches, DataLoader):
        return batches
    if isinstance(batches, Dataset):
        return DataLoader(batches, 32, shuffle=True)
    if isinstance(batches, (ExTensor, np.ndarray)) or not (
        isinstance(batches, Iterable) or callable(batches)
    ):
        raise TypeError(
            f"[Trainer] needs a DataLoader, a Dataset or an iterable of batches, got {describe(batches)}; "
            "arrays go into data.DataLoader(data.Dataset(inputs, targets), batch_size=32, shuffle=True)"
        )
    return DataLoader(batches, None)


def inputs_and_targets(batch: Any) -> tuple[Any, Any]:
    """Both parts of a batch; one without targets is its own target.

    The last of several is the targets, the others are the arguments of the model; of a dict it is ``"targets"`` or another of
    ``TARGETS``, and the others are arguments by name.
    """
    if isinstance(batch, Mapping):
        name = next((name for name in TARGETS if name in batch), None)
        if name is None:
            raise TypeError(
                f"[Trainer] a batch that is a dict needs targets under {' or '.join(map(repr, TARGETS))}, got {list(batch)}"
            )
        return {key: value for key, value in batch.items() if key != name}, batch[name]
    if not isinstance(batch, (tuple, list)) or len(batch) < 2:
        raise TypeError(f"[Trainer] a batch must be (inputs, targets) or a dict, got {describe(batch)}")
    *several, targets = batch
    inputs = several[0] if len(several) == 1 else tuple(several)
    return inputs, inputs if targets is None else targets


def outputs_of(model: Any, inputs: Any) -> Any:
    """The model called with the inputs of a batch: several as several arguments, a dict as arguments by name."""
    if isinstance(inputs, Mapping):
        return model(**inputs)
    return model(*inputs) if isinstance(inputs, (tuple, list)) else model(inputs)
