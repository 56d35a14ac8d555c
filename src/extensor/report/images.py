"""Arrays of numbers as pictures to look at."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .palette import DIVERGING, blended

__all__ = ["filter_pixels", "sample_pixels", "sheet"]


def sample_pixels(samples: np.ndarray) -> list[np.ndarray]:
    """Samples (N, 1 or 3, H, W) as pixels; the lowest number of all of them is black, the highest white."""
    low, high = float(samples.min()), float(samples.max())
    scaled = (samples.astype(np.float64) - low) / ((high - low) or 1.0)
    pixels = np.round(255 * scaled).astype(np.uint8)
    return [one[0] if len(one) == 1 else one.transpose(1, 2, 0) for one in pixels]


def filter_pixels(weight: np.ndarray) -> list[np.ndarray]:
    """Weights (N, channels, H, W) as pixels: three channels as a colour, one on a scale from blue over white to orange.

    Each filter is scaled by its own largest weight, since the shape is what one wants to see.
    """
    largest = np.abs(weight).max(axis=(1, 2, 3), keepdims=True)
    scaled = 0.5 + 0.5 * weight.astype(np.float64) / np.where(largest > 0, largest, 1.0)
    if weight.shape[1] == 3:
        return list(np.round(255 * scaled).astype(np.uint8).transpose(0, 2, 3, 1))
    return list(blended(DIVERGING, scaled[:, 0]))


def sheet(tiles: Sequence[np.ndarray], width: int = 56, gap: int = 8) -> np.ndarray:
    """Tiles of one shape side by side on white, each enlarged to at least ``width`` pixels, as one picture."""
    factor = math.ceil(width / max(tiles[0].shape[:2]))
    large = [np.atleast_3d(tile).repeat(factor, 0).repeat(factor, 1) for tile in tiles]
    height, wide = large[0].shape[:2]
    some = range(math.ceil(math.sqrt(len(large))), math.ceil(math.sqrt(3 * len(large))) + 1)
    columns = min(some, key=lambda count: -len(large) % count)  # as few empty places as may be
    lines = math.ceil(len(large) / columns)
    page = np.full((lines * (height + gap) + gap, columns * (wide + gap) + gap, 3), 255, np.uint8)
    for i, tile in enumerate(large):
        top, left = gap + i // columns * (height + gap), gap + i % columns * (wide + gap)
        page[top : top + height, left : left + wide] = tile
    return page
