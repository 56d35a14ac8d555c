"""Gradients of complex functions beside central differences in both directions of every number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import extensor as et


def _outputs(result: Any) -> list[et.ExTensor]:
    outputs = [result] if isinstance(result, et.ExTensor) else list(result)
    return [y for y in outputs if y.dtype.kind in "fc"]


def _difference(loss: Callable[[np.ndarray], float], z: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """dL/d(Re z) + i dL/d(Im z)."""
    gradient = np.zeros(z.shape, z.dtype)
    for i in np.ndindex(z.shape):
        for direction in (1, 1j) if z.dtype.kind == "c" else (1,):
            above, below = z.copy(), z.copy()
            above[i] += step * direction
            below[i] -= step * direction
            gradient[i] += direction * (loss(above) - loss(below)) / (2 * step)
    return gradient


def check_complex(function: Callable[..., Any], *arrays: np.ndarray, seed: int = 0) -> None:
    """The recorded gradients of a real loss ``Re sum(conj(w) y)`` with random w."""
    rng = np.random.default_rng(seed)
    outputs = _outputs(function(*map(et.asarray, arrays)))
    weights = [
        rng.normal(size=y.shape) + (1j * rng.normal(size=y.shape) if y.dtype.kind == "c" else 0)
        for y in outputs
    ]

    def loss(*values: np.ndarray) -> float:
        found = _outputs(function(*map(et.asarray, values)))
        return float(sum((w.conj() * y.numpy()).real.sum() for w, y in zip(weights, found)))

    leaves = [et.tensor(array, requires_grad=True) for array in arrays]
    total: Any = 0.0
    for w, y in zip(weights, _outputs(function(*leaves))):
        total = total + et.sum(et.real(et.asarray(w.conj()) * y))
    total.backward()
    for i, (array, leaf) in enumerate(zip(arrays, leaves)):
        expected = _difference(lambda z: loss(*arrays[:i], z, *arrays[i + 1 :]), array)  # noqa: B023
        assert leaf.grad is not None
        assert leaf.grad.dtype == array.dtype
        np.testing.assert_allclose(
            leaf.grad.numpy(), expected, rtol=2e-6, atol=2e-7 * max(1.0, np.abs(expected).max(initial=0))
        )
