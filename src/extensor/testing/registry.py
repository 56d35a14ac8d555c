"""The registry: every pair of functions, sample inputs inside its domain, and the points at its edges.

The gradient tests are rows of data. A row names a pair and says how to draw its inputs; the verifier, the
tests and the edge table all walk the same rows (:mod:`extensor.testing.samples`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["Case", "Domain", "Draw", "Edge", "Pair", "at", "binary", "unary"]

# 0-d, empty, one element, odd lengths, several axes, longer than any vector register
SHAPES: tuple[tuple[int, ...], ...] = ((), (0,), (1,), (7,), (3, 4), (2, 0, 3), (2, 3, 5), (33,))
BROADCASTS: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((), ()), ((7,), (7,)), ((3,), ()), ((), (3,)), ((4, 1), (3,)), ((2, 1, 3), (5, 1)), ((0, 3), (3,)), ((1,), (2, 3)),
)  # fmt: skip


@dataclass(frozen=True)
class Domain:
    """Where sample values come from: uniform in [low, high], not nearer than ``margin`` to the points to avoid."""

    low: float = -3.0
    high: float = 3.0
    avoid: tuple[float, ...] = ()
    margin: float = 0.05


REAL = Domain()
NONZERO = Domain(avoid=(0.0,), margin=0.3)
POSITIVE = Domain(0.3, 4.0)


class Draw:
    """A seeded source of float64 arrays; what it makes depends on the seed alone."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def values(self, shape: Sequence[int] | int, domain: Domain = REAL) -> np.ndarray:
        """Uniform values of the domain."""
        x = np.asarray(self.rng.uniform(domain.low, domain.high, shape))
        for point in domain.avoid:
            near = np.abs(x - point) < domain.margin
            x = np.where(near, point + np.copysign(domain.margin + np.abs(x - point), x - point), x)
        return x

    def distinct(self, shape: Sequence[int] | int) -> np.ndarray:
        """Values in random order, any two at least 0.1 apart: no ties for max, sort and their kind."""
        n = int(np.prod(shape))
        return (0.2 * (self.rng.permutation(n) - n / 2) + self.rng.uniform(-0.05, 0.05, n)).reshape(shape)

    def strided(self, shape: Sequence[int], domain: Domain = REAL) -> np.ndarray:
        """A non-contiguous array: every second element of the last axis, axes in reverse memory order."""
        wide = self.values((*shape[:-1], 2 * shape[-1]), domain)[..., ::2]
        return np.asfortranarray(wide)[...] if len(shape) < 2 else np.swapaxes(np.swapaxes(wide, 0, 1).copy(), 0, 1)

    def integers(self, low: int, high: int, shape: Sequence[int] | int) -> np.ndarray:
        """Whole numbers in [low, high)."""
        return self.rng.integers(low, high, shape)


class Case:
    """One call of a forward function: float64 arrays stand for the floating inputs, in whatever dtype is tested."""

    __slots__ = ("args", "kwargs")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args = args
        self.kwargs = kwargs

    def __repr__(self) -> str:
        parts = [*map(_brief, self.args), *(f"{k}={_brief(v)}" for k, v in self.kwargs.items())]
        return f"({', '.join(parts)})"


def _brief(value: Any) -> str:
    return f"{value.dtype}{list(value.shape)}" if isinstance(value, np.ndarray) else repr(value)


@dataclass(frozen=True)
class Edge:
    """A point worth publishing: a label for people, and the call. ``grad_output`` is 1 everywhere."""

    label: str
    case: Case


@dataclass(frozen=True)
class Pair:
    """A row of the registry.

    Attributes:
        name: the public name of the forward function; its gradient is ``<name>_backward``.
        cases: draws the sample calls; away from kinks and ties.
        edges: kinks, ties, 0, -0, the infinities and nan.
    """

    name: str
    cases: Callable[[Draw], Iterator[Case]]
    edges: Sequence[Edge] = field(default_factory=tuple)


def unary(domain: Domain = REAL, **options: Any) -> Callable[[Draw], Iterator[Case]]:
    """Cases of a function of one tensor: every shape, and a non-contiguous one."""

    def cases(draw: Draw) -> Iterator[Case]:
        for shape in SHAPES:
            yield Case(draw.values(shape, domain), **options)
        yield Case(draw.strided((3, 5), domain), **options)

    return cases


def binary(a: Domain = REAL, b: Domain = REAL, **options: Any) -> Callable[[Draw], Iterator[Case]]:
    """Cases of a function of two tensors that broadcast."""

    def cases(draw: Draw) -> Iterator[Case]:
        for shape_a, shape_b in BROADCASTS:
            yield Case(draw.values(shape_a, a), draw.values(shape_b, b), **options)
        yield Case(draw.strided((3, 5), a), draw.strided((3, 5), b), **options)

    return cases


def at(*points: float | tuple[float, ...], **options: Any) -> tuple[Edge, ...]:
    """Edges of an elementwise function at scalar points, or at tuples of them for several inputs."""
    edges = []
    for point in points:
        values = point if isinstance(point, tuple) else (point,)
        label = ", ".join(_number(v) for v in values)
        edges.append(Edge(label, Case(*(np.array(v, np.float64) for v in values), **options)))
    return tuple(edges)


def _number(value: float) -> str:
    return f"{value:g}"
