"""Arrays whose elements are somewhere else until they are asked for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np

__all__ = ["LazyArray"]


class LazyArray(ABC):
    """What a :class:`~extensor.data.Dataset` may have as inputs instead of an array: it knows its shape and dtype, and reads rows."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    @abstractmethod
    def take(self, places: np.ndarray) -> np.ndarray:
        """The rows at some places."""

    @abstractmethod
    def subset(self, places: np.ndarray) -> Self:
        """The rows at some places, not read yet."""

    def __getitem__(self, places: Any) -> np.ndarray:
        found = np.arange(len(self))[places]
        return self.take(np.atleast_1d(found)) if np.ndim(found) else self.take(np.array([found]))[0]
