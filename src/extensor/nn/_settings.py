"""What layers ask of their settings when they are made, and how their parameters start."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import init
from ..checks import as_bool, as_int
from ..errors import describe
from ..tensor import Shape
from .parameter import Parameter


def positive(layer: str, name: str, value: Any) -> int:
    """A whole number from 1: sizes, channels, counts."""
    found = as_int(layer, name, value)
    if found < 1:
        raise ValueError(f"[{layer}] {name} must be at least 1, got {found}")
    return found


def lengths(layer: str, name: str, value: Any, count: int) -> tuple[int, ...]:
    """``count`` positive numbers; one stands for all."""
    if isinstance(value, (tuple, list)):
        if len(value) != count:
            raise ValueError(f"[{layer}] {name} must be an int or {count} ints, got {describe(value)}")
        return tuple(positive(layer, name, n) for n in value)
    return (positive(layer, name, value),) * count


def probability(layer: str, name: str, value: Any) -> float:
    """A number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise ValueError(f"[{layer}] {name} must be a probability between 0 and 1, got {describe(value)}")
    return float(value)


def uniform_in_fan(
    layer: str, shape: Shape, bias: Any, rng: np.random.Generator, dtype: Any, outputs: int | None = None
) -> tuple[Parameter, Parameter | None]:
    """Weight and bias of linear and convolution layers: both uniform in ±1/sqrt(fan_in)."""
    weight = init.kaiming_uniform(shape, a=math.sqrt(5), rng=rng, dtype=dtype)
    if not as_bool(layer, "bias", bias):
        return Parameter(weight), None
    bound = 1 / math.sqrt(math.prod(shape[1:]))
    length = shape[0] if outputs is None else outputs
    return Parameter(weight), Parameter(init.uniform((length,), -bound, bound, rng=rng, dtype=dtype))
