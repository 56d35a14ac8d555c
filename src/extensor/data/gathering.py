"""How the samples at some places become a batch: the same in this process and in others, to the bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .collate import as_batch, collate
from .dataset import Dataset
from .sample_random import SampleRandom

__all__ = ["Gatherer"]


class Gatherer:
    """Makes batches of a dataset; it is what worker processes are sent."""

    def __init__(
        self, dataset: Any, collate_fn: Callable[[list[Any]], Any] | None, seed: int, dtype: Any, whole: bool
    ) -> None:
        self.dataset, self.collate_fn, self.seed = dataset, collate_fn, seed
        self.dtype, self.whole = dtype, whole

    def __call__(self, epoch: int, chosen: np.ndarray) -> Any:
        """The batch of the samples at ``chosen``."""
        if isinstance(self.dataset, Dataset):
            batch = self.dataset.batch(chosen, SampleRandom(self.seed, epoch, chosen))
            if self.collate_fn is None:
                return batch
            inputs, targets = batch
            return self.collate_fn(list(inputs if targets is None else zip(inputs, targets)))
        places = chosen.tolist()
        if self.whole:
            return as_batch(self.dataset[places[0]], self.dtype)
        several = getattr(self.dataset, "__getitems__", None)
        samples = several(places) if callable(several) else [self.dataset[place] for place in places]
        return self.together(samples)

    def together(self, samples: list[Any]) -> Any:
        """A batch of samples."""
        return collate(samples, self.dtype) if self.collate_fn is None else self.collate_fn(samples)
