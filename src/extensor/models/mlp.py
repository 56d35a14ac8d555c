"""The multilayer perceptron: dense layers with a nonlinearity between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from .. import nn
from ..nn._random import rng_or_default
from ..random import Rng
from ..tensor import ExTensor

__all__ = ["MLP"]


class MLP(nn.Module):
    """Dense layers of the given sizes.

    Args:
        sizes: the number of inputs, the widths of the hidden layers, the number of outputs.
        activation: makes the layer that follows every dense layer but the last.
        rng: where the parameters start from: a seed or a generator; the default generator without it.

    Example:
        >>> import extensor as et
        >>> net = et.models.MLP([784, 128, 10], rng=0)
        >>> net(et.ones((2, 784))).shape
        (2, 10)
    """

    def __init__(
        self, sizes: Sequence[int], activation: Callable[[], nn.Module] = nn.ReLU, *, rng: Rng | None = None
    ) -> None:
        if len(sizes) < 2:
            raise ValueError(f"[MLP] sizes must have the inputs and the outputs at least, got {list(sizes)}")
        source = rng_or_default("MLP", rng)
        layers: list[nn.Module] = []
        for inputs, outputs in pairwise(sizes):
            layers += [nn.Linear(inputs, outputs, rng=source), activation()]
        self.layers = nn.Sequential(*layers[:-1])

    def forward(self, x: ExTensor) -> ExTensor:
        return self.layers(x)
