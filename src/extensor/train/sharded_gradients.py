"""The gradients of one optimiser step where batches are cut into shards, on one process or many."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..data.shards import ShardedBatch
from ..distributed import World
from ..distributed.exchange import Exchange
from ..distributed.reduction import Reduction
from ..distributed.sums import Layout
from ..distributed.tree import shards_of
from ..dtypes import HALF, float32, float64
from ..kernels.held_weights import held_weights
from ..nn import Parameter
from ..ops.creation import copy
from ..tensor import ExTensor
from .batches import inputs_and_targets
from .gradients import not_finite
from .handed_gradients import HandedGradients
from .metric_totals import MetricTotals
from .shard_random import ShardRandom
from .shard_statistics import ShardStatistics
from .trainer_base import TrainerBase

__all__ = ["ShardedGradients"]

_PENDING = 64  # steps whose metrics wait at most before the ranks tell each other


class ShardedGradients:
    """Forward and backward passes over the own shards of a step, and the sum over those of all ranks.

    Attributes:
        parameters: those that are trained, in the order of the vector that is exchanged.
        whole: whether every rank needs all gradients; a divided optimiser alone needs the own slice.
    """

    def __init__(self, trainer: TrainerBase, world: World, shards: int) -> None:
        self.trainer, self.world, self.shards = trainer, world, shards
        self.held = [shards_of(position, world.size, shards) for position in range(world.size)]
        self.own = self.held[world.position]
        self._random = ShardRandom(trainer.model)
        self._statistics = ShardStatistics(trainer.model)
        self._scratch = MetricTotals(trainer.metrics)
        self._pending: list[list[Any]] = []
        self._pending_steps = 0
        self.whole = True
        self._spare: list[list[np.ndarray]] = []
        self.parameters: list[Parameter] = []
        self._every: list[Parameter] = []
        self._moved = -1
        self.layout = Layout([], float32)
        self.exchange: Exchange

    def _find_parameters(self) -> None:
        """What is trained now: layers may have been frozen since the last step."""
        moved = self.trainer.optimizer._params()
        if len(moved) != self._moved:
            self._moved = len(moved)
            self._every = list({id(p): p for p in (*self.trainer.model.parameters(), *moved)}.values())
        found = [p for p in self._every if p.requires_grad]
        if [id(p) for p in found] == [id(p) for p in self.parameters]:
            return
        self.parameters = found
        wide = any(p.dtype == float64 for p in found)
        self.layout = Layout([p.shape for p in found], float64 if wide else float32)
        self._spare = []

    def __call__(self, batches: list[ShardedBatch]) -> float:
        """Leave the gradients of the mean loss over all samples in the parameters; returns that loss.

        Raises:
            FloatingPointError: a loss is nan or infinite, on every rank alike. Weights and running statistics are those
                before the step.
        """
        trainer, statistics = self.trainer, self._statistics
        self._find_parameters()
        width = statistics.width
        side = 1 + len(self.parameters) + trainer.accumulate * width
        self.exchange = exchange = self.world.exchange(self.layout, self.held, self.shards, side)
        filled = max(batch.filled for batch in batches)
        samples = sum(batch.samples for batch in batches)
        own = [shard for shard in self.own if shard < filled]
        reduction = Reduction(exchange, filled, self.whole)
        hand = HandedGradients(self.parameters, exchange, filled, self._spare)
        self._zero_grad()
        self._random.begin_step()
        try:
            with statistics.step(), held_weights(self._weights()):
                for shard in own:
                    self._random.set(trainer.step, shard)
                    row = reduction.side[shard]
                    hand.begin(shard, reduction if shard == own[-1] else None)
                    if not self._shard(batches, shard, samples, row, width, hand):
                        break  # everyone learns of it in the exchange
                    row[1 : 1 + len(self.parameters)] = hand.finish()
        finally:
            self._random.end_step()
        total, told = reduction.finish()
        losses = told[:, 0].tolist()
        strange = next((value for value in losses if not math.isfinite(value)), None)
        if strange is not None:
            self._zero_grad()
            self._pending = [entry for entry in self._pending if entry[0] < self._pending_steps]
            if trainer.mixed_precision.refuse(trainer.optimizer):
                return math.nan
            raise not_finite(trainer, strange)
        self._take(total, told, batches, width)
        self._pending_steps += 1
        trainer.progress.count_samples(samples)
        return float(sum(losses))

    def _weights(self) -> list[Any]:
        """Those of convolutions, which are transformed before they are used: once for all shards, if there are several."""
        return [p._data for p in self.parameters if p.ndim == 4] if len(self.own) > 1 else []

    def _zero_grad(self) -> None:
        for p in self.parameters:
            p.zero_grad()

    def _shard(
        self,
        batches: list[ShardedBatch],
        shard: int,
        samples: int,
        row: np.ndarray,
        width: int,
        hand: HandedGradients,
    ) -> bool:
        """One shard of all batches of the step: gradients into the parameters, everything else into ``row``."""
        trainer, statistics = self.trainer, self._statistics
        row[0] = 0.0
        mine = [number for number, batch in enumerate(batches) if shard in batch.parts]
        for number in mine:
            batch = batches[number]
            inputs, targets = inputs_and_targets(batch.parts[shard])
            share, scale = len(targets) / samples, trainer.mixed_precision.scale
            learn = trainer.passes.learn_telling(hand.listener() if number == mine[-1] else None)
            outputs, loss = learn(trainer.model, trainer.loss, inputs, targets, share, scale)
            value = loss.item()
            if not math.isfinite(value):
                row[0] = value
                statistics.restore()
                return False
            row[0] += value * share
            first = 1 + len(self.parameters) + number * width
            statistics.take(row[first : first + width])
            self._scratch.add(outputs, targets, value)
            self._pending.append([self._pending_steps, number, shard, self._scratch.take()])
        return True

    def _take(self, total: np.ndarray, side: np.ndarray, batches: list[ShardedBatch], width: int) -> None:
        """The summed gradients into the parameters, the statistics of all shards into the buffers."""
        present: Any = side[:, 1 : 1 + len(self.parameters)].any(0)
        views = self.layout.views(copy(ExTensor(total)).numpy())  # into memory that is kept for reuse
        for p, view, has_any in zip(self.parameters, views, present):
            # as backward leaves it: that of a half type is kept in float32
            dtype = view.dtype if p.dtype in HALF else p.dtype
            p._grad = ExTensor(view.astype(dtype, copy=False)) if has_any else None
        if width:
            starts = [1 + len(self.parameters) + number * width for number in range(len(batches))]
            self._statistics.settle(
                [
                    side[shard, first : first + width].copy()
                    for first, batch in zip(starts, batches)
                    for shard in range(batch.filled)
                ]
            )

    def settle_metrics(self, force: bool = True) -> None:
        """Bring the sums over the epoch up to date, in the order of steps, batches and shards; all ranks together."""
        if not self._pending_steps or not (force or self._pending_steps >= _PENDING):
            return
        every = [entry for entries in self.world.gather(self._pending) for entry in entries]
        for _, _, _, state in sorted(every, key=lambda entry: entry[:3]):
            self.trainer.progress.totals.merge(state)
        self._pending, self._pending_steps = [], 0
