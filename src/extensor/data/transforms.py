"""What happens to a batch between the dataset and the model.

A transform is any callable ``transform(batch, random)``: it takes a NumPy array with the samples along axis 0 and a
:class:`~extensor.data.SampleRandom`, and returns a new array. Transforms that draw nothing ignore ``random``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from ..checks import as_int, as_number
from ..errors import describe
from .sample_random import SampleRandom

__all__ = ["Normalize", "RandomCrop", "RandomFlip", "ToFloat", "Transform"]

Transform: TypeAlias = Callable[[np.ndarray, SampleRandom], np.ndarray]


class ToFloat:
    """Whole numbers as float32, divided by ``highest``.

    Example:
        >>> import numpy as np
        >>> from extensor.data import ToFloat
        >>> ToFloat()(np.array([[0, 51, 255]], np.uint8), None).round(2).tolist()
        [[0.0, 0.20000000298023224, 1.0]]
    """

    def __init__(self, highest: float = 255) -> None:
        self.highest = as_number("ToFloat", "highest", highest)
        if not 0 < self.highest < float("inf"):
            raise ValueError(f"[ToFloat] highest must be a finite number above 0, got {self.highest}")

    def __call__(self, batch: np.ndarray, random: SampleRandom) -> np.ndarray:
        return np.multiply(batch, np.float32(1 / self.highest), dtype=np.float32)

    def __repr__(self) -> str:
        return f"ToFloat(highest={self.highest:g})"


class Normalize:
    """Shift and scale: (x - mean) / std, with one number for all or one for each channel (axis 1).

    Args:
        mean: a number or one for each channel.
        std: a number or one for each channel, not 0.

    Example:
        >>> import numpy as np
        >>> from extensor.data import Normalize
        >>> Normalize(0.5, 0.25)(np.array([[0.0, 0.5, 1.0]], np.float32), None).tolist()
        [[-2.0, 0.0, 2.0]]
    """

    def __init__(self, mean: Any, std: Any) -> None:
        self.mean, self.std = _per_channel("mean", mean), _per_channel("std", std)
        if not (np.isfinite(self.mean).all() and np.isfinite(self.std).all() and (self.std != 0).all()):
            raise ValueError(
                f"[Normalize] mean and std must be finite and std not 0, got {describe(mean)} and {describe(std)}"
            )

    def __call__(self, batch: np.ndarray, random: SampleRandom) -> np.ndarray:
        if batch.dtype.kind != "f":
            raise TypeError(f"[Normalize] needs floating numbers, got {batch.dtype}; put ToFloat() before it")
        trailing = (1,) * max(batch.ndim - 2, 0)
        mean, std = (
            v.astype(batch.dtype).reshape(-1, *trailing) if v.ndim else v.astype(batch.dtype)
            for v in (self.mean, self.std)
        )
        if self.mean.size > 1 and (batch.ndim < 2 or batch.shape[1] != self.mean.size):
            raise ValueError(f"[Normalize] mean has {self.mean.size} channels but the batch is {batch.shape}")
        return (batch - mean) / std

    def __repr__(self) -> str:
        return f"Normalize(mean={self.mean.tolist()}, std={self.std.tolist()})"


class RandomCrop:
    """Each image padded with zeros and cut to ``size`` at a place of its own.

    Args:
        size: the height and width of the result, or one number for both.
        padding: how many zeros are put around the image first.

    Example:
        >>> import numpy as np
        >>> from extensor.data import RandomCrop, SampleRandom
        >>> batch = np.ones((2, 1, 4, 4), np.float32)
        >>> RandomCrop(4, padding=1)(batch, SampleRandom(0, 0, np.arange(2))).shape
        (2, 1, 4, 4)
    """

    def __init__(self, size: int | tuple[int, int], padding: int = 0) -> None:
        pair = size if isinstance(size, (tuple, list)) else (size, size)
        if len(pair) != 2:
            raise ValueError(f"[RandomCrop] size must be one number or (height, width), got {describe(size)}")
        self.size = (as_int("RandomCrop", "size", pair[0]), as_int("RandomCrop", "size", pair[1]))
        self.padding = as_int("RandomCrop", "padding", padding)
        if min(self.size) < 1 or self.padding < 0:
            raise ValueError(f"[RandomCrop] size must be at least 1 and padding 0, got {size} and {padding}")

    def __call__(self, batch: np.ndarray, random: SampleRandom) -> np.ndarray:
        if batch.ndim < 3:
            raise ValueError(
                f"[RandomCrop] needs images (batch, ..., height, width), got shape {batch.shape}"
            )
        height, width = self.size
        rows = batch.shape[-2] + 2 * self.padding - height + 1
        columns = batch.shape[-1] + 2 * self.padding - width + 1
        if rows < 1 or columns < 1:
            raise ValueError(
                f"[RandomCrop] size {self.size} is larger than images of {batch.shape[-2:]} with padding {self.padding}"
            )
        around = [(0, 0)] * (batch.ndim - 2) + [(self.padding, self.padding)] * 2
        padded = np.pad(batch, around)
        windows = np.lib.stride_tricks.sliding_window_view(padded, self.size, axis=(-2, -1))
        windows = np.moveaxis(
            windows, (-4, -3), (1, 2)
        )  # (batch, rows, columns, ..., height, width), all views
        return windows[np.arange(len(batch)), random.integers(rows), random.integers(columns)]

    def __repr__(self) -> str:
        return f"RandomCrop(size={self.size}, padding={self.padding})"


class RandomFlip:
    """Each sample mirrored along its last axis (left and right change places) with probability ``p``.

    Example:
        >>> import numpy as np
        >>> from extensor.data import RandomFlip, SampleRandom
        >>> batch = np.arange(3.0)[None, None, None, :]
        >>> RandomFlip(p=1)(batch, SampleRandom(0, 0, np.arange(1))).tolist()
        [[[[2.0, 1.0, 0.0]]]]
    """

    def __init__(self, p: float = 0.5) -> None:
        self.p = as_number("RandomFlip", "p", p)
        if not 0 <= self.p <= 1:
            raise ValueError(f"[RandomFlip] p must lie between 0 and 1, got {self.p}")

    def __call__(self, batch: np.ndarray, random: SampleRandom) -> np.ndarray:
        if batch.ndim < 2:
            raise ValueError(f"[RandomFlip] needs samples with an axis to mirror, got shape {batch.shape}")
        flipped = random.uniform() < self.p
        return np.where(flipped.reshape(-1, *(1,) * (batch.ndim - 1)), batch[..., ::-1], batch)

    def __repr__(self) -> str:
        return f"RandomFlip(p={self.p:g})"


def _per_channel(name: str, value: Any) -> np.ndarray:
    try:
        found = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"[Normalize] {name} must be a number or a list of numbers, got {describe(value)}"
        ) from None
    if found.ndim > 1:
        raise ValueError(
            f"[Normalize] {name} must be a number or one for each channel, got shape {found.shape}"
        )
    return found
