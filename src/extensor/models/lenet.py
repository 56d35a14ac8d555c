"""LeNet-5 (LeCun, Bottou, Bengio and Haffner, 1998), with the ReLU and the max pooling that are usual today."""

from __future__ import annotations

from typing import Any

from .. import nn
from ..nn._random import rng_or_default
from ..random import Rng
from ..tensor import ExTensor

__all__ = ["LeNet5"]


class LeNet5(nn.Module):
    """Two convolutions and three dense layers for small images, such as handwritten digits of 28 x 28 pixels.

    Args:
        num_classes: the number of outputs.
        in_channels: the channels of the images.
        image_size: their height and width, or one number for both; at least 12.
        rng: where the parameters start from: a seed or a generator; the default generator without it.

    Example:
        >>> import extensor as et
        >>> net = et.models.LeNet5(rng=0)
        >>> net(et.ones((2, 1, 28, 28))).shape
        (2, 10)
    """

    def __init__(
        self, num_classes: int = 10, in_channels: int = 1, image_size: Any = 28, *, rng: Rng | None = None
    ) -> None:
        source = rng_or_default("LeNet5", rng)
        self.conv1 = nn.Conv2d(in_channels, 6, kernel_size=5, padding=2, rng=source)
        self.conv2 = nn.Conv2d(6, 16, kernel_size=5, rng=source)
        self.pool = nn.MaxPool2d(2)
        height, width = image_size if isinstance(image_size, (tuple, list)) else (image_size, image_size)
        rows, columns = ((int(n) // 2 - 4) // 2 for n in (height, width))
        if min(rows, columns) < 1:
            raise ValueError(f"[LeNet5] image_size must be at least 12, got {image_size}")
        self.fc1 = nn.Linear(16 * rows * columns, 120, rng=source)
        self.fc2 = nn.Linear(120, 84, rng=source)
        self.fc3 = nn.Linear(84, num_classes, rng=source)

    def forward(self, x: ExTensor) -> ExTensor:
        x = self.pool(self.conv1(x).relu())  # (N,  6, 14, 14)
        x = self.pool(self.conv2(x).relu())  # (N, 16,  5,  5)
        x = x.flatten(1)
        x = self.fc1(x).relu()
        x = self.fc2(x).relu()
        return self.fc3(x)
