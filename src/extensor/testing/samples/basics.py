"""Sample inputs and edges of choosing, casting, copying, broadcasting and its adjoint."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...checks import broadcast_shape
from ..registry import BROADCASTS, Case, Draw, Pair, kinks, ties, unary

INF, NAN = float("inf"), float("nan")


def _choices(draw: Draw) -> Iterator[Case]:
    """Conditions of the shape of the result, of one operand, and of a single row."""
    for a, b in BROADCASTS:
        for shape in (broadcast_shape(a, b), b):
            yield Case(draw.integers(0, 2, shape) == 1, draw.values(a), draw.values(b))
    yield Case(np.array([[True], [False], [True]]), draw.strided((3, 5)), draw.strided((3, 5)))


def _sums(draw: Draw) -> Iterator[Case]:
    for shape, target in (
        ((), ()), ((3,), ()), ((3,), (1,)), ((2, 3), (3,)), ((2, 3), (2, 1)), ((2, 3), (2, 3)),
        ((4, 2, 3, 5), (2, 1, 5)), ((0, 3), (1, 3)), ((0, 3), (3,)),
    ):  # fmt: skip
        yield Case(draw.values(shape), target)
    yield Case(draw.strided((3, 5)), (5,))


def _spreads(draw: Draw) -> Iterator[Case]:
    for shape, target in (
        ((), ()), ((), (3,)), ((1,), (3,)), ((3,), (2, 3)), ((2, 1), (2, 3)), ((2, 1, 5), (4, 2, 3, 5)), ((1, 3), (0, 3)),
    ):  # fmt: skip
        yield Case(draw.values(shape), target)
    yield Case(draw.strided((3, 5)), (2, 3, 5))


_NUMBERS = kinks({0.0: 1.0, INF: 1.0, -INF: 1.0, NAN: 1.0})

PAIRS = [
    Pair(
        "where", _choices,
        ties("the other is nan", Case(np.array([True, False]), np.array([1.0, NAN]), np.array([NAN, 2.0])), [1.0, 0.0], [0.0, 1.0])
        + ties("nan is chosen", Case(np.array([True]), np.array([NAN]), np.array([2.0])), [1.0], [0.0])
        + ties("the other is inf", Case(np.array([True]), np.array([0.0]), np.array([INF])), [1.0], [0.0]),
    ),
    Pair("astype", unary(dtype="float64"), kinks({0.0: 1.0, INF: 1.0, -INF: 1.0, NAN: 1.0}, dtype="float64")),
    Pair("copy", unary(), _NUMBERS),
    Pair("broadcast_to", _spreads, ties("nan, inf", Case(np.array([NAN, INF]), (3, 2)), [3.0, 3.0])),
    Pair("sum_to_shape", _sums, ties("inf, nan", Case(np.array([INF, NAN]), ()), [1.0, 1.0])),
]  # fmt: skip
