"""Random programs for the autograd tests: the same program runs on ExTensor and on HIPS autograd's NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

SHAPES = [(3, 4), (4,), (3, 1), (), (1, 4)]


def unary(lib: Any) -> list[Callable[[Any], Any]]:
    return [
        lib.tanh, lib.sin, lib.cos, lib.abs,
        lambda x: lib.exp(-x * x), lambda x: lib.sqrt(x * x + 1.0), lambda x: lib.log(x * x + 1.0), lambda x: -x,
    ]  # fmt: skip


def binary(lib: Any) -> list[Callable[[Any, Any], Any]]:
    return [
        lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a / (b * b + 1.0),
        lib.maximum, lib.minimum,
    ]  # fmt: skip


def random_program(seed: int) -> tuple[list[np.ndarray], Callable[[Any, Any], Any]]:
    """Inputs, and ``program(lib, inputs)``: a scalar computed by 5 to 40 operations that share values."""
    rng = np.random.default_rng(seed)
    inputs = [rng.normal(size=SHAPES[i % len(SHAPES)]) for i in range(rng.integers(2, 6))]
    choices = rng.integers(0, 1000, size=(rng.integers(5, 41), 4))

    def program(lib: Any, values: Any) -> Any:
        values = list(values)
        count = len(values)
        for kind, a, b, c in choices.tolist():
            x, y = values[a % len(values)] if a % 3 else values[-1], values[b % len(values)]
            if kind % 5 < 2:
                made = unary(lib)[c % 8](x)
            elif kind % 5 < 4:
                made = lib.tanh(binary(lib)[c % 6](x, y))
            elif len(x.shape) == 2 and c % 3 == 0:
                made = lib.tanh(lib.matmul(x, x.T)) @ x
            elif len(x.shape) >= 1 and c % 3 == 1:
                made = lib.sum(x, -1, keepdims=True) * 0.3
            else:
                made = lib.sum(lib.reshape(x, (1, *x.shape)), 0)
            values.append(made)
        total = values[count].sum()
        for value in values[count + 1 :]:
            total = total + value.sum()
        return total

    return inputs, program
