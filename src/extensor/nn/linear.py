"""Dense layers, and layers that only pass on or reshape."""

from __future__ import annotations

from typing import Any

from ..dtypes import float32
from ..ops.linear import linear
from ..ops.shape import flatten
from ..random import Rng
from ..tensor import ExTensor
from ._random import rng_or_default
from ._settings import positive, uniform_in_fan
from .module import Module

__all__ = ["Flatten", "Identity", "Linear"]


class Linear(Module):
    """A dense layer.   y = x @ weight.T + bias

    Args:
        in_features, out_features: the lengths of the last axis of input and output.
        bias: whether there is a bias.
        dtype: of the parameters.
        rng: where the parameters start from: a seed or a generator; the default generator without it.

    Attributes:
        weight: (out_features, in_features), uniform in ±1/sqrt(in_features).
        bias: (out_features,), uniform in the same range, or None.

    Example:
        >>> import extensor as et
        >>> et.nn.Linear(3, 4, rng=0)(et.ones((2, 3))).shape
        (2, 4)
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, *, dtype: Any = float32, rng: Rng | None = None
    ) -> None:  # fmt: skip
        self.in_features = positive("Linear", "in_features", in_features)
        self.out_features = positive("Linear", "out_features", out_features)
        self.weight, self.bias = uniform_in_fan(
            "Linear", (self.out_features, self.in_features), bias, rng_or_default("Linear", rng), dtype
        )

    def forward(self, x: ExTensor) -> ExTensor:
        return linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.out_features}, bias={self.bias is not None}"


class Flatten(Module):
    """Merges the axes from ``start_dim`` to ``end_dim``; by default all but the first.

    Example:
        >>> import extensor as et
        >>> et.nn.Flatten()(et.ones((2, 3, 4))).shape
        (2, 12)
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, x: ExTensor) -> ExTensor:
        return flatten(x, self.start_dim, self.end_dim)


class Identity(Module):
    """Passes its input on; takes any arguments, so that it can stand in for any layer.

    Example:
        >>> import extensor as et
        >>> et.nn.Identity(54)(et.ones(2)).tolist()
        [1.0, 1.0]
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def forward(self, x: Any) -> Any:
        return x
