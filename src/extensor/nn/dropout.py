"""Dropout as a layer."""

from __future__ import annotations

from typing import Any

from ..ops.creation import ones
from ..ops.dropout import dropout
from ..ops.selection import where
from ..random import Rng
from ..tensor import ExTensor
from ._random import rng_or_default
from ._settings import probability
from .module import Module

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d"]


class Dropout(Module):
    """In training, every element is 0 with probability ``p`` and otherwise divided by 1 - p; in evaluation nothing changes.

    Args:
        p: the probability.
        inplace: accepted for PyTorch's sake; tensors never change, so it has no effect.
        rng: where the masks come from: a seed or a generator; the default generator without it.

    Example:
        >>> import extensor as et
        >>> layer = et.nn.Dropout(0.5, rng=0)
        >>> sorted(set(layer(et.ones(100)).tolist())), set(layer.eval()(et.ones(100)).tolist())
        ([0.0, 2.0], {1.0})
    """

    def __init__(self, p: float = 0.5, inplace: bool = False, *, rng: Rng | None = None) -> None:
        self.p = probability("Dropout", "p", p)
        self._rng = None if rng is None else rng_or_default("Dropout", rng)

    def forward(self, x: ExTensor) -> Any:
        if not self.training or not self.p:
            return x
        return dropout(x, self.p, rng_or_default("Dropout", self._rng)).output

    def extra_repr(self) -> str:
        return f"p={self.p}"


class _ChannelDropout(Dropout):
    """Whole channels are dropped; inputs are (N, C, ...) or, as single examples, (C, ...)."""

    _directions = 1

    def forward(self, x: ExTensor) -> Any:
        name, count = type(self).__name__, self._directions
        if x.ndim not in (count + 1, count + 2):
            raise ValueError(f"[{name}] x must have {count + 1} or {count + 2} axes, got shape {x.shape}")
        if not self.training or not self.p:
            return x
        channels = (*x.shape[: x.ndim - count], *(1,) * count)
        return x * dropout(ones(channels, x.dtype), self.p, rng_or_default(name, self._rng)).output


class Dropout1d(_ChannelDropout):
    """In training, every channel of sequences (N, C, L) is 0 with probability ``p``; arguments as :class:`Dropout`.

    Example:
        >>> import extensor as et
        >>> sorted(set(et.nn.Dropout1d(0.5, rng=0)(et.ones((1, 20, 3))).sum(2).numpy().ravel().tolist()))
        [0.0, 6.0]
    """


class Dropout2d(_ChannelDropout):
    """In training, every channel of images (N, C, H, W) is 0 with probability ``p``; arguments as :class:`Dropout`.

    Example:
        >>> import extensor as et
        >>> sorted(set(et.nn.Dropout2d(0.5, rng=0)(et.ones((1, 20, 2, 2))).sum((2, 3)).numpy().ravel().tolist()))
        [0.0, 8.0]
    """

    _directions = 2


class Dropout3d(_ChannelDropout):
    """In training, every channel of volumes (N, C, D, H, W) is 0 with probability ``p``; arguments as :class:`Dropout`.

    Example:
        >>> import extensor as et
        >>> et.nn.Dropout3d(0.5, rng=0)(et.ones((1, 4, 2, 2, 2))).shape
        (1, 4, 2, 2, 2)
    """

    _directions = 3


class AlphaDropout(Dropout):
    """Dropout for :class:`SELU`: what is dropped takes its lowest value, and mean and variance stay 0 and 1.

    Arguments as :class:`Dropout`.

    Example:
        >>> import extensor as et
        >>> len(set(et.nn.AlphaDropout(0.5, rng=0)(et.ones(100)).tolist()))
        2
    """

    def forward(self, x: ExTensor) -> Any:
        if not self.training or not self.p:
            return x
        lowest = -1.7580993408473766  # -scale * alpha of selu
        keep = dropout(ones(x.shape, x.dtype), self.p, rng_or_default("AlphaDropout", self._rng)).mask
        if self.p == 1:
            return x * 0.0
        scale = ((1 - self.p) * (1 + self.p * lowest**2)) ** -0.5
        return where(keep, x, lowest) * scale - scale * lowest * self.p
