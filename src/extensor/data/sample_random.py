"""Random numbers for samples: a function of the seed, the epoch and the sample, and of nothing else.

A transform that draws for a whole batch at once must give each sample the same numbers whichever batch it is in, and
whichever thread prepares it. So the numbers are not drawn from a stream; they are computed from a key by the
finaliser of the SplitMix64 generator, vectorised over the batch.
"""

from __future__ import annotations

import numpy as np

from ..checks import as_int

__all__ = ["SampleRandom"]

_STEP = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: neighbouring counters land far apart


def _mix(x: np.ndarray) -> np.ndarray:
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


class SampleRandom:
    """The random numbers of a batch: one per sample and call.

    Args:
        seed: the seed of the run.
        epoch: each epoch has its own numbers.
        indices: the places of the batch's samples in the dataset.

    Example:
        >>> import numpy as np
        >>> from extensor.data import SampleRandom
        >>> both = SampleRandom(0, 0, np.array([3, 7])).uniform()
        >>> alone = SampleRandom(0, 0, np.array([7])).uniform()
        >>> bool(both[1] == alone[0])
        True
    """

    def __init__(self, seed: int, epoch: int, indices: np.ndarray) -> None:
        key = np.zeros(1, np.uint64)
        for part in (seed, epoch):
            key = _mix((key + np.uint64(part & 0xFFFFFFFFFFFFFFFF)) * _STEP + _STEP)
        self._key = key
        self._indices = np.asarray(indices).astype(np.uint64)

    def bits(self) -> np.ndarray:
        """64 random bits for each sample; the next call gives others."""
        self._key = _mix(self._key + _STEP)
        return _mix(self._key + (self._indices + np.uint64(1)) * _STEP)

    def uniform(self) -> np.ndarray:
        """A number of 0 <= y < 1 for each sample, float64."""
        return (self.bits() >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def integers(self, high: int) -> np.ndarray:
        """A whole number of 0 <= y < high for each sample, int64."""
        limit = as_int("SampleRandom", "high", high)
        if limit < 1:
            raise ValueError(f"[SampleRandom] high must be at least 1, got {limit}")
        return (self.uniform() * limit).astype(np.int64)
