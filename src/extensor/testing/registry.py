"""The registry: every pair of functions, sample inputs inside its domain, and the points at its edges.

The gradient tests are rows of data. A row names a pair and says how to draw its inputs; the verifier, the
tests and the edge table all walk the same rows (:mod:`extensor.testing.samples`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

__all__ = ["Case", "Domain", "Draw", "Edge", "Pair", "at", "binary", "kinks", "ties", "unary"]

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
    """A seeded source of float64 arrays; what it makes depends on the seed alone.

    Example:
        >>> from extensor.testing import Draw
        >>> bool((Draw(0).values((2, 3)) == Draw(0).values((2, 3))).all())
        True
    """

    def __init__(self, seed: int | Sequence[int]) -> None:
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
        return (
            np.asfortranarray(wide)[...]
            if len(shape) < 2
            else np.swapaxes(np.swapaxes(wide, 0, 1).copy(), 0, 1)
        )

    def integers(self, low: int, high: int, shape: Sequence[int] | np.ndarray | int) -> np.ndarray:
        """Whole numbers in [low, high)."""
        return self.rng.integers(low, high, shape)


class Case:
    """One call of a forward function: float64 arrays stand for the floating inputs, in whatever dtype is tested.

    Example:
        >>> import numpy as np
        >>> from extensor.testing import Case
        >>> Case(np.ones((2, 3)), axis=1)
        (float64[2, 3], axis=1)
    """

    __slots__ = ("args", "kwargs")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args = tuple(map(_as_array, args))
        self.kwargs = {name: _as_array(value) for name, value in kwargs.items()}

    def __repr__(self) -> str:
        parts = [*map(_brief, self.args), *(f"{k}={_brief(v)}" for k, v in self.kwargs.items())]
        return f"({', '.join(parts)})"


def _as_array(value: Any) -> Any:
    """NumPy makes numbers of 0-d arrays wherever it can; a sample stays an array."""
    return np.asarray(value) if isinstance(value, np.inexact) else value


def _brief(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_brief, value))}]"
    return f"{value.dtype}{list(value.shape)}" if isinstance(value, np.ndarray) else repr(value)


@dataclass(frozen=True)
class Edge:
    """A point worth publishing: a label for people, and the call. ``grad_output`` is 1 everywhere.

    Attributes:
        label: what is special about the point.
        case: the call.
        expect: the gradients that must come out, one (nested list of) numbers per input; None leaves them to
            the table in the docs.
        elementwise: whether the same must come out at every position of a tensor that repeats the point.
    """

    label: str
    case: Case
    expect: tuple[Any, ...] | None = None
    elementwise: bool = False


@dataclass(frozen=True)
class Pair:
    """A row of the registry.

    Attributes:
        name: the public name of the forward function; its gradient is ``<name>_backward``.
        cases: draws the sample calls; away from kinks and ties.
        edges: kinks, ties, 0, -0, the infinities and nan.
        large: draws calls so large that kernels go other ways, and too large for central differences: their gradients
            in the narrower dtypes are compared with those in float64 alone.
    """

    name: str
    cases: Callable[[Draw], Iterator[Case]]
    edges: Sequence[Edge] = field(default_factory=tuple)
    large: Callable[[Draw], Iterable[Case]] = lambda draw: ()


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
    return tuple(_edge(point, options, None) for point in points)


def kinks(
    gradients: Mapping[float | tuple[float, ...], float | tuple[float, ...]], **options: Any
) -> tuple[Edge, ...]:
    """Edges of an elementwise function with the gradient that must come out: ``{point: gradient}``."""
    return tuple(_edge(point, options, _tuple(expect)) for point, expect in gradients.items())


def completed(pair: Pair) -> Pair:
    """The row with 0, -0, the infinities and nan among its edges, if it is an elementwise function of one tensor."""
    points = [edge for edge in pair.edges if edge.elementwise]
    if not points or any(_point(edge) is None for edge in points):
        return pair
    options = points[0].case.kwargs
    known = {_point(edge) for edge in points if edge.case.kwargs == options}
    missing = [p for p in (0.0, -0.0, float("inf"), -float("inf"), float("nan")) if repr(p) not in known]
    return replace(pair, edges=(*pair.edges, *at(*missing, **options)))


def _point(edge: Edge) -> str | None:
    """The one number an edge is about, as text that tells 0 from -0; None if there are several."""
    numbers = [value for value in edge.case.args if isinstance(value, np.ndarray)]
    return repr(numbers[0].item()) if len(numbers) == 1 and numbers[0].ndim == 0 else None


def ties(label: str, case: Case, *expect: Any) -> tuple[Edge, ...]:
    """One edge of a function of whole tensors, with the gradient of each input that must come out."""
    return (Edge(label, case, expect),)


def _edge(point: float | tuple[float, ...], options: dict[str, Any], expect: tuple[Any, ...] | None) -> Edge:
    values = _tuple(point)
    label = ", ".join(f"{v:g}" for v in values)
    return Edge(label, Case(*(np.array(v, np.float64) for v in values), **options), expect, elementwise=True)


def _tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)
