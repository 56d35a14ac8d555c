"""Running statistics where batches are cut into shards: each shard has statistics of its own, which count in shard order."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..nn import Module
from ..nn.normalization import BatchNorm1d, BatchNorm2d
from ..tensor import ExTensor

__all__ = ["ShardStatistics", "elements_of"]


class ShardStatistics:
    """The buffers of a model over the shards of one step.

    Every shard starts from the buffers as they were before the step. Batch normalisation tells the statistics of each
    shard, and the running ones then follow as if the shards had come one after the other:
    r = (1 - momentum) r + momentum s. To other buffers the changes that the shards made are added, in the same order.
    """

    def __init__(self, model: Module) -> None:
        self._norms = [
            m
            for m in model.modules()
            if isinstance(m, (BatchNorm1d, BatchNorm2d)) and m.running_mean is not None
        ]
        names = ("running_mean", "running_var")
        self._places: list[tuple[Any, str]] = [(m, name) for m in self._norms for name in names]
        known = {(id(m), name) for m in self._norms for name in (*names, "num_batches_tracked")}
        self._others: list[tuple[Any, str]] = [
            (m, name)
            for m in model.modules()
            for name in m._buffer_names
            if (id(m), name) not in known and getattr(m, name) is not None
        ]
        self._all = self._places + self._others
        self._before: list[ExTensor] = []
        self._counts: list[Any] = []

    @property
    def width(self) -> int:
        """How many numbers describe what one forward pass did to the buffers."""
        return sum(getattr(m, name).size for m, name in self._all) + len(self._norms)

    @contextlib.contextmanager
    def step(self) -> Iterator[None]:
        """In this block forward passes leave the statistics of their batch alone in batch normalisation."""
        self._before = [getattr(m, name) for m, name in self._all]
        self._counts = [m.num_batches_tracked for m in self._norms]
        momenta = [m.momentum for m in self._norms]
        for m in self._norms:
            m.momentum = 1.0  # r = 0 r + 1 s
        try:
            yield
        finally:
            for m, momentum in zip(self._norms, momenta):
                m.momentum = momentum

    def restore(self) -> None:
        """The buffers as they were before the step."""
        for (m, name), value in zip(self._all, self._before):
            vars(m)[name] = value  # past Module.__setattr__: once for each shard and layer
        for m, count in zip(self._norms, self._counts):
            vars(m)["num_batches_tracked"] = count

    def take(self, out: np.ndarray) -> None:
        """What a forward pass left, as numbers; the buffers are as they were before the step again."""
        if not self._all:
            return
        first = len(self._norms)
        values: list[np.ndarray] = []
        for (m, name), before in zip(self._all, self._before):
            own = vars(m)
            array = elements_of(own[name])
            values.append(array if array.ndim == 1 else array.reshape(-1))
            own[name] = before
        np.concatenate(values, out=out[first:])
        for number, (m, count) in enumerate(zip(self._norms, self._counts)):
            own = vars(m)
            out[number] = own["num_batches_tracked"] is not count
            own["num_batches_tracked"] = count

    def settle(self, passes: list[np.ndarray]) -> None:
        """Let what all forward passes of the step left take effect, in this order."""
        self.restore()
        start = len(self._norms)
        if self._norms:
            start = self._settle_norms(passes)
        for (m, name), before in zip(self._others, self._before[len(self._places) :]):
            own, start = slice(start, start + before.size), start + before.size
            old = np.asarray(before, np.float64).reshape(-1)
            new = old
            for row in passes:
                new = new + (row[own] - old)
            setattr(m, name, _like(before, new))

    def _settle_norms(self, passes: list[np.ndarray]) -> int:
        """All batch normalisations at once, one pass after the other; returns where their numbers end."""
        first, befores = len(self._norms), self._before[: len(self._places)]
        sizes = [before.size for before in befores]
        end = first + sum(sizes)
        counts = np.array([int(count) for count in self._counts])
        fixed = np.array([np.nan if m.momentum is None else m.momentum for m in self._norms], np.float64)
        values = np.concatenate([before.numpy().reshape(-1) for before in befores], dtype=np.float64)
        kinds = {before.dtype for before in befores}
        averages = bool(np.isnan(fixed).any())  # over all passes so far
        each = np.repeat(np.arange(first), 2).repeat(sizes)  # the number of the layer that a value belongs to
        usual = fixed[each]
        for row in passes:
            ran = row[:first] != 0
            counts = counts + ran
            weight = usual
            if averages:
                weight = np.where(np.isnan(fixed), 1 / np.maximum(counts, 1), fixed)[each]
            new = (1 - weight) * values + weight * row[first:end]
            if not ran.all():
                new = np.where(ran[each], new, values)
            values = self._rounded(new, sizes, kinds)
        for (m, name), before, value in zip(self._places, befores, np.split(values, np.cumsum(sizes)[:-1])):
            setattr(m, name, _like(before, value))
        for m, old, count in zip(self._norms, self._counts, counts):
            m.num_batches_tracked = ExTensor(np.asarray(count, old.dtype))
        return end

    def _rounded(self, values: np.ndarray, sizes: list[int], kinds: set[Any]) -> np.ndarray:
        """Each number as the buffer it belongs to would keep it."""
        if len(kinds) == 1:
            return values.astype(next(iter(kinds))).astype(np.float64)
        parts = np.split(values, np.cumsum(sizes)[:-1])
        return np.concatenate(
            [part.astype(before.dtype) for part, before in zip(parts, self._before)], dtype=np.float64
        )


def _like(before: ExTensor, values: np.ndarray) -> ExTensor:
    return ExTensor(values.reshape(before.shape).astype(before.dtype))


def elements_of(tensor: ExTensor) -> np.ndarray:
    """The array itself where it is one: a view for everyone to see takes longer, once for each shard and tensor."""
    array = tensor._data
    return array if type(array) is np.ndarray else tensor.numpy()
