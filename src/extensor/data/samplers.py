"""Which samples an epoch has, and in which order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..checks import as_bool, as_int
from ..errors import describe

__all__ = ["WeightedSampler"]


class WeightedSampler:
    """Draws samples by weights: rare classes as often as common ones.

    Args:
        weights: one number for each sample, not negative; how likely it is drawn.
        count: how many make an epoch; as many as there are weights if None.
        replacement: whether a sample may be drawn more than once in an epoch.

    Example:
        >>> import extensor as et
        >>> labels = et.data.digits().targets
        >>> weights = 1 / et.bincount(labels).numpy()[labels]
        >>> loader = et.data.DataLoader(et.data.digits(), 64, sampler=et.data.WeightedSampler(weights), rng=0)
        >>> len(loader)
        29
    """

    def __init__(self, weights: Any, count: int | None = None, replacement: bool = True) -> None:
        self.weights = np.asarray(weights, np.float64)
        self.replacement = as_bool("WeightedSampler", "replacement", replacement)
        if self.weights.ndim != 1 or not (
            np.isfinite(self.weights).all() and (self.weights >= 0).all() and self.weights.any()
        ):
            raise ValueError(
                f"[WeightedSampler] weights must be a finite number for each sample, not negative and not all 0, got {describe(weights)}"
            )
        self.count = len(self.weights) if count is None else as_int("WeightedSampler", "count", count)
        possible = np.count_nonzero(self.weights)
        if self.count < 1 or (not self.replacement and self.count > possible):
            raise ValueError(
                f"[WeightedSampler] count must be from 1 to {possible} without replacement, got {self.count}"
            )

    def __len__(self) -> int:
        return self.count

    def order(self, seed: int, epoch: int) -> np.ndarray:
        """The places of the samples of an epoch."""
        rng = np.random.Generator(np.random.PCG64([seed, epoch]))
        likely = self.weights / self.weights.sum()
        return rng.choice(len(likely), self.count, self.replacement, likely)

    def __iter__(self) -> Iterator[int]:
        return iter(self.order(0, 0).tolist())
