"""ResNet-20 for images of 32 x 32 pixels (He, Zhang, Ren and Sun, 2015, section 4.2)."""

from __future__ import annotations

import numpy as np

from .. import init, nn
from ..nn._random import rng_or_default
from ..ops.joining import pad
from ..random import Rng
from ..tensor import ExTensor

__all__ = ["ResNet20"]


class BasicBlock(nn.Module):
    """Two convolutions with a shortcut around them.   y = relu(x + f(x))"""

    def __init__(self, channels_in: int, channels: int, stride: int, rng: np.random.Generator) -> None:
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, padding=1, bias=False, rng=rng)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False, rng=rng)
        self.bn2 = nn.BatchNorm2d(channels)
        self.stride = stride
        self.new_channels = channels - channels_in

    def forward(self, x: ExTensor) -> ExTensor:
        out = self.bn1(self.conv1(x)).relu()
        out = self.bn2(self.conv2(out))
        return (out + self.shortcut(x)).relu()

    def shortcut(self, x: ExTensor) -> ExTensor:
        """The input itself; where the block shrinks it, every second pixel, and zeros for the new channels."""
        if self.stride == 1:
            return x
        more = self.new_channels // 2
        return pad(x[:, :, :: self.stride, :: self.stride], ((0, 0), (more, more), (0, 0), (0, 0)))


class ResNet20(nn.Module):
    """A convolution, nine residual blocks in three stages of 16, 32 and 64 channels, a mean and a dense layer.

    Args:
        num_classes: the number of outputs.
        in_channels: the channels of the images.
        rng: where the parameters start from: a seed or a generator; the default generator without it.

    Example:
        >>> import extensor as et
        >>> net = et.models.ResNet20(rng=0)
        >>> net(et.ones((1, 3, 32, 32))).shape, sum(p.size for p in net.parameters())
        ((1, 10), 269722)
    """

    def __init__(self, num_classes: int = 10, in_channels: int = 3, *, rng: Rng | None = None) -> None:
        source = rng_or_default("ResNet20", rng)
        self.conv1 = nn.Conv2d(in_channels, 16, 3, padding=1, bias=False, rng=source)
        self.bn1 = nn.BatchNorm2d(16)
        self.layer1 = self._stage(16, 16, 1, source)  # 32 x 32
        self.layer2 = self._stage(16, 32, 2, source)  # 16 x 16
        self.layer3 = self._stage(32, 64, 2, source)  # 8 x 8
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(64, num_classes, rng=source)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                module.weight.assign(init.kaiming_normal(module.weight.shape, "fan_out", "relu", rng=source))

    @staticmethod
    def _stage(channels_in: int, channels: int, stride: int, rng: np.random.Generator) -> nn.Sequential:
        return nn.Sequential(
            BasicBlock(channels_in, channels, stride, rng),
            BasicBlock(channels, channels, 1, rng),
            BasicBlock(channels, channels, 1, rng),
        )

    def forward(self, x: ExTensor) -> ExTensor:
        x = self.bn1(self.conv1(x)).relu()
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.fc(self.pool(x).flatten(1))
