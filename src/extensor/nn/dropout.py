"""Dropout as a layer."""

from __future__ import annotations

from typing import Any

from ..ops.dropout import dropout
from ..random import Rng
from ..tensor import ExTensor
from ._random import rng_or_default
from ._settings import probability
from .module import Module

__all__ = ["Dropout"]


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
