"""Running statistics where batches are cut into shards: each shard has statistics of its own, which count in shard order."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..nn import Module
from ..nn.normalization import BatchNorm1d, BatchNorm2d
from ..tensor import ExTensor

__all__ = ["ShardStatistics"]


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
        self._before: list[ExTensor] = []
        self._counts: list[Any] = []

    @property
    def width(self) -> int:
        """How many numbers describe what one forward pass did to the buffers."""
        return sum(getattr(m, name).size for m, name in self._all) + len(self._norms)

    @property
    def _all(self) -> list[tuple[Any, str]]:
        return self._places + self._others

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
            setattr(m, name, value)
        for m, count in zip(self._norms, self._counts):
            m.num_batches_tracked = count

    def write(self, out: np.ndarray) -> None:
        """What a forward pass left, as numbers."""
        parts: list[Any] = [
            [float(m.num_batches_tracked is not count)] for m, count in zip(self._norms, self._counts)
        ]
        parts += [np.asarray(getattr(m, name), np.float64).reshape(-1) for m, name in self._all]
        out[...] = np.concatenate(parts) if parts else 0

    def settle(self, passes: list[np.ndarray]) -> None:
        """Let what all forward passes of the step left take effect, in this order."""
        self.restore()
        for number, m in enumerate(self._norms):
            m.num_batches_tracked = self._settle_norm(number, m, [row for row in passes if row[number]])
        start = len(self._norms) + sum(before.size for before in self._before[: len(self._places)])
        for (m, name), before in zip(self._others, self._before[len(self._places) :]):
            own, start = slice(start, start + before.size), start + before.size
            old = np.asarray(before, np.float64).reshape(-1)
            new = old
            for row in passes:
                new = new + (row[own] - old)
            setattr(m, name, _like(before, new))

    def _settle_norm(self, number: int, m: Any, rows: list[np.ndarray]) -> ExTensor:
        count = int(self._counts[number])
        start = len(self._norms) + sum(before.size for before in self._before[: 2 * number])
        for name, before in zip(("running_mean", "running_var"), self._before[2 * number :]):
            own, start = slice(start, start + before.size), start + before.size
            for i, row in enumerate(rows):
                weight = 1 / (count + i + 1) if m.momentum is None else m.momentum
                before = _like(
                    before, (1 - weight) * np.asarray(before, np.float64).reshape(-1) + weight * row[own]
                )
            setattr(m, name, before)
        return ExTensor(np.asarray(count + len(rows), self._counts[number].dtype))


def _like(before: ExTensor, values: np.ndarray) -> ExTensor:
    return ExTensor(values.reshape(before.shape).astype(before.dtype))
