"""What the first layer of a network for images looks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..tensor import ExTensor

__all__ = ["Filters", "first_filters"]

_LARGEST_KERNEL = 16  # a four-dimensional weight with more is no filter to look at


@dataclass(frozen=True)
class Filters:
    """Weights (N, 1 or 3, H, W) of the first layer, and what to say of them."""

    weight: np.ndarray
    layer: str
    text: str


def first_filters(
    weights: Mapping[str, ExTensor], image_shape: tuple[int, ...] | None, most: int = 64
) -> Filters | None:
    """The filters of the first convolution, or the weights of the first dense layer in the shape of the image.

    Args:
        weights: the state of the model, in the order of its layers.
        image_shape: (channels, height, width) of the samples, if they are images.
        most: how many to show.
    """
    for name, tensor in weights.items():
        shape = tensor.shape
        layer = name.rpartition(".")[0] or name
        if len(shape) == 4 and max(shape[2:]) <= _LARGEST_KERNEL and min(shape[2:]) > 1:
            return _described(tensor.numpy(), layer, "filters", most)
        if len(shape) == 2:
            pixels = int(np.prod(image_shape)) if image_shape is not None else 0
            if shape[1] != pixels or image_shape is None or len(image_shape) != 3:
                return None
            return _described(tensor.numpy().reshape(shape[0], *image_shape), layer, "units", most)
    return None


def _described(weight: np.ndarray, layer: str, what: str, most: int) -> Filters:
    count, channels, height, width = weight.shape
    text = f"{count} {what}, {height} × {width}"
    if channels not in (1, 3):
        weight, text = weight[:, :1], f"{text}, the first of {channels} channels"
    if count > most:
        weight, text = weight[:most], f"{text}; the first {most}"
    return Filters(weight, layer, text)
