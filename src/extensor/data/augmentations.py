"""Changes that make a network see more pictures than there are: turned, brighter, partly covered.

Transforms as in :mod:`extensor.data.transforms`: each sample of a batch (N, channels, height, width) gets random numbers of its own.
"""

from __future__ import annotations

import numpy as np

from ..checks import as_number
from .sample_random import SampleRandom

__all__ = ["ColorJitter", "RandomErase", "RandomRotate"]


def _amount(function: str, name: str, value: float, most: float) -> float:
    found = as_number(function, name, value)
    if not 0 <= found <= most:
        raise ValueError(f"[{function}] {name} must be from 0 to {most:g}, got {found}")
    return found


def _check(function: str, batch: np.ndarray) -> None:
    if batch.ndim != 4:
        raise ValueError(
            f"[{function}] needs images (batch, channels, height, width), got shape {batch.shape}"
        )


class RandomRotate:
    """Each image turned about its middle by an angle between ``-degrees`` and ``degrees``; corners that come in are 0.

    Example:
        >>> import numpy as np
        >>> from extensor.data import RandomRotate, SampleRandom
        >>> batch = np.ones((2, 1, 8, 8), np.float32)
        >>> RandomRotate(15)(batch, SampleRandom(0, 0, np.arange(2))).shape
        (2, 1, 8, 8)
    """

    def __init__(self, degrees: float) -> None:
        self.degrees = _amount("RandomRotate", "degrees", degrees, 180)

    def __call__(self, batch: np.ndarray, random: SampleRandom) -> np.ndarray:
        _check("RandomRotate", batch)
        count, _, height, width = batch.shape
        angle = np.deg2rad((2 * random.uniform() - 1) * self.degrees)[:, None, None]
        y, x = np.mgrid[:height, :width] - np.array([(height - 1) / 2, (width - 1) / 2])[:, None, None]
        rows = np.rint(np.cos(angle) * y - np.sin(angle) * x + (height - 1) / 2).astype(np.int64)
        columns = np.rint(np.sin(angle) * y + np.cos(angle) * x + (width - 1) / 2).astype(np.int64)
        inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
        places = np.where(inside, rows, 0), np.where(inside, columns, 0)
        turned = batch.transpose(0, 2, 3, 1)[np.arange(count)[:, None, None], *places]
        return np.where(inside[..., None], turned, batch.dtype.type(0)).transpose(0, 3, 1, 2)

    def __repr__(self) -> str:
        return f"RandomRotate(degrees={self.degrees:g})"


class ColorJitter:
    """Each image brighter or darker, with more or less contrast and colour, by factors between ``1 - amount`` and ``1 + amount``.

    Args:
        brightness, contrast, saturation: the amounts, from 0 to 1. Saturation needs three channels.

    Example:
        >>> import numpy as np
        >>> from extensor.data import ColorJitter, SampleRandom
        >>> batch = np.full((1, 3, 2, 2), 0.5, np.float32)
        >>> ColorJitter()(batch, SampleRandom(0, 0, np.arange(1))).dtype
        dtype('float32')
    """

    def __init__(self, brightness: float = 0.2, contrast: float = 0.2, saturation: float = 0.2) -> None:
        self.brightness = _amount("ColorJitter", "brightness", brightness, 1)
        self.contrast = _amount("ColorJitter", "contrast", contrast, 1)
        self.saturation = _amount("ColorJitter", "saturation", saturation, 1)

    def __call__(self, batch: np.ndarray, random: SampleRandom) -> np.ndarray:
        _check("ColorJitter", batch)
        if batch.dtype.kind != "f":
            raise TypeError(
                f"[ColorJitter] needs floating numbers, got {batch.dtype}; put ToFloat() before it"
            )

        def factor(amount: float) -> np.ndarray:
            drawn = 1 + (2 * random.uniform() - 1) * amount
            return drawn.astype(batch.dtype)[:, None, None, None]

        batch = batch * factor(self.brightness)
        mean = batch.mean((1, 2, 3), keepdims=True)
        batch = (batch - mean) * factor(self.contrast) + mean
        colour = factor(self.saturation)
        if batch.shape[1] == 3:
            grey = batch.mean(1, keepdims=True)
            batch = (batch - grey) * colour + grey
        return batch.clip(0, 1)

    def __repr__(self) -> str:
        return f"ColorJitter(brightness={self.brightness:g}, contrast={self.contrast:g}, saturation={self.saturation:g})"


class RandomErase:
    """A square of each image is 0, with probability ``p``, of up to ``side`` of the shorter edge.

    Example:
        >>> import numpy as np
        >>> from extensor.data import RandomErase, SampleRandom
        >>> batch = np.ones((1, 1, 8, 8), np.float32)
        >>> RandomErase(p=1.0)(batch, SampleRandom(0, 0, np.arange(1))).sum() < 64
        np.True_
    """

    def __init__(self, p: float = 0.5, side: float = 0.5) -> None:
        self.p, self.side = _amount("RandomErase", "p", p, 1), _amount("RandomErase", "side", side, 1)

    def __call__(self, batch: np.ndarray, random: SampleRandom) -> np.ndarray:
        _check("RandomErase", batch)
        height, width = batch.shape[2:]
        happens = random.uniform() < self.p
        edge = np.maximum(1, random.uniform() * self.side * min(height, width)).astype(np.int64)
        top = (random.uniform() * (height - edge + 1)).astype(np.int64)
        left = (random.uniform() * (width - edge + 1)).astype(np.int64)
        y, x = np.arange(height)[None, :, None], np.arange(width)[None, None, :]
        inside = (y >= top[:, None, None]) & (y < (top + edge)[:, None, None])
        inside = (
            inside & (x >= left[:, None, None]) & (x < (left + edge)[:, None, None]) & happens[:, None, None]
        )
        return np.where(inside[:, None], batch.dtype.type(0), batch)

    def __repr__(self) -> str:
        return f"RandomErase(p={self.p:g}, side={self.side:g})"
