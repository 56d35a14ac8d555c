"""Random numbers. The standard names no generator, so the numbers of two programs differ; the distributions agree."""

from __future__ import annotations

from typing import Any

import numpy as np

import extensor as et

from ..proto import array_of, as_value, check_bytes, dtype_of
from ..table import opaque, operator

__all__: list[str] = []


def _generator(seed: float | None) -> np.random.Generator:
    return np.random.default_rng(None if seed is None else int(np.float32(seed).view(np.uint32)))


@operator("RandomNormal")
@opaque
def random_normal(
    *, shape: list[int], dtype: int = 1, mean: float = 0.0, scale: float = 1.0, seed: float | None = None
) -> Any:
    """Normally distributed numbers."""
    check_bytes("RandomNormal", shape, 8)
    return as_value(_generator(seed).normal(mean, scale, shape).astype(dtype_of(dtype)))


@operator("RandomNormalLike")
def random_normal_like(
    x: Any, *, dtype: int | None = None, mean: float = 0.0, scale: float = 1.0, seed: float | None = None
) -> Any:
    """Normally distributed numbers in the shape of x."""
    found = random_normal(shape=list(x.shape), dtype=11, mean=mean, scale=scale, seed=seed)
    return et.astype(found, x.dtype if dtype is None else dtype_of(dtype))


@operator("RandomUniform")
@opaque
def random_uniform(
    *, shape: list[int], dtype: int = 1, high: float = 1.0, low: float = 0.0, seed: float | None = None
) -> Any:
    """Evenly distributed numbers."""
    check_bytes("RandomUniform", shape, 8)
    return as_value(_generator(seed).uniform(low, high, shape).astype(dtype_of(dtype)))


@operator("RandomUniformLike")
def random_uniform_like(
    x: Any, *, dtype: int | None = None, high: float = 1.0, low: float = 0.0, seed: float | None = None
) -> Any:
    """Evenly distributed numbers in the shape of x."""
    found = random_uniform(shape=list(x.shape), dtype=11, low=low, high=high, seed=seed)
    return et.astype(found, x.dtype if dtype is None else dtype_of(dtype))


@operator("Bernoulli")
@opaque
def bernoulli(x: Any, *, dtype: int | None = None, seed: float | None = None) -> Any:
    """1 with the probability x, else 0."""
    p = array_of(x)
    drawn = _generator(seed).uniform(size=p.shape) < p.astype(np.float64)
    return as_value(drawn.astype(p.dtype if dtype is None else dtype_of(dtype)))


@operator("Multinomial")
@opaque
def multinomial(x: Any, *, dtype: int = 6, sample_size: int = 1, seed: float | None = None) -> Any:
    """Classes drawn from the distribution of unnormalised log-probabilities."""
    check_bytes("Multinomial", [x.shape[0], sample_size], 8)
    likely = array_of(et.softmax(et.astype(x, "float64"), -1))
    steps = np.cumsum(likely, -1)
    drawn = _generator(seed).uniform(size=(x.shape[0], sample_size, 1)) * steps[:, None, -1:]
    return as_value((steps[:, None, :] <= drawn).sum(-1).clip(0, x.shape[1] - 1).astype(dtype_of(dtype)))
