"""Optimisers as operators (ai.onnx.preview.training): any number of tensors, their gradients and their states."""

from __future__ import annotations

from typing import Any

import extensor as et

from ..proto import array_of
from ..table import operator

__all__: list[str] = []

_DOMAIN = "ai.onnx.preview.training"


def _parts(tensors: tuple[Any, ...], kinds: int) -> list[tuple[Any, ...]]:
    """For each optimised tensor: itself, its gradient and its states."""
    count = len(tensors) // kinds
    return list(zip(*(tensors[i * count : (i + 1) * count] for i in range(kinds))))


def _transposed(results: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    return tuple(value for kind in zip(*results) for value in kind)


@operator("Adagrad", domain=_DOMAIN)
def adagrad(
    rate: Any,
    step: Any,
    *tensors: Any,
    decay_factor: float = 0.0,
    epsilon: float = 1e-6,
    norm_coefficient: float = 0.0,
) -> Any:
    """x - r g / (sqrt(h) + epsilon), where h is the sum of all g^2."""
    r = float(array_of(rate)) / (1 + float(array_of(step)) * decay_factor)
    results = []
    for x, g, h in _parts(tensors, 3):
        g = g + norm_coefficient * x
        h = h + g * g
        results.append((x - r * g / (et.sqrt(h) + epsilon), h))
    return _transposed(results)


@operator("Adam", domain=_DOMAIN)
def adam(
    rate: Any, step: Any, *tensors: Any, alpha: float = 0.9, beta: float = 0.999, epsilon: float = 1e-6,
    norm_coefficient: float = 0.0, norm_coefficient_post: float = 0.0,
) -> Any:  # fmt: skip
    """Adam, with the corrections of its first steps."""
    r, t = float(array_of(rate)), int(array_of(step))
    if t > 0:
        r = r * (1 - beta**t) ** 0.5 / (1 - alpha**t)
    results = []
    for x, g, v, h in _parts(tensors, 4):
        g = g + norm_coefficient * x
        v = alpha * v + (1 - alpha) * g
        h = beta * h + (1 - beta) * g * g
        results.append(((x - r * v / (et.sqrt(h) + epsilon)) * (1 - norm_coefficient_post), v, h))
    return _transposed(results)


@operator("Momentum", domain=_DOMAIN)
def momentum(
    rate: Any, step: Any, *tensors: Any, alpha: float, beta: float, mode: str, norm_coefficient: float
) -> Any:
    """Gradient descent with momentum, standard or Nesterov's."""
    r, t = float(array_of(rate)), int(array_of(step))
    results = []
    for x, g, v in _parts(tensors, 3):
        g = g + norm_coefficient * x
        v = alpha * v + (beta if t > 0 else 1.0) * g
        results.append((x - r * (g + alpha * v if mode == "nesterov" else v), v))
    return _transposed(results)
