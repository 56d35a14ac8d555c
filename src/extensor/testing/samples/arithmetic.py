"""Sample inputs and edges of the arithmetic pairs."""

from __future__ import annotations

from collections.abc import Iterator

from ..registry import NONZERO, POSITIVE, REAL, Case, Domain, Draw, Pair, at, binary, unary

INF, NAN = float("inf"), float("nan")


def _away_from_ties(draw: Draw) -> Iterator[Case]:
    for case in binary()(draw):
        a, b = case.args
        yield Case(a, b + 0.2 * (2 * (b > a.mean() if a.size else b > 0) - 1) * (abs(a - b).min() < 0.1 if (a - b).size else 0))


def _quotients(draw: Draw) -> Iterator[Case]:
    """a / b stays away from whole numbers, where floor jumps."""
    for case in binary(Domain(0.55, 0.95), Domain(0.3, 0.5))(draw):
        a, b = case.args
        yield Case(a, b)


PAIRS = [
    Pair("add", binary(), at((1.0, NAN), (INF, -INF))),
    Pair("subtract", binary(), at((1.0, NAN), (INF, INF))),
    Pair("multiply", binary(), at((0.0, 2.0), (0.0, INF), (NAN, 2.0))),
    Pair("divide", binary(b=NONZERO), at((1.0, 0.0), (1.0, -0.0), (0.0, 0.0), (1.0, 1e-12), (1.0, INF), (NAN, 2.0), (1.0, NAN))),
    Pair("floor_divide", _quotients, at((7.0, 2.0), (1.0, 0.0), (NAN, 2.0))),
    Pair("modulo", _quotients, at((7.0, 2.0), (-7.0, 2.0), (6.0, 2.0), (1.0, 0.0), (NAN, 2.0))),
    Pair("power", binary(POSITIVE, REAL), at((0.0, 2.0), (-0.0, 2.0), (0.0, 1.0), (0.0, 0.5), (-0.0, 0.5), (0.0, 0.0), (0.0, -1.0), (-2.0, 3.0), (2.0, 0.0), (NAN, 2.0), (2.0, NAN), (NAN, 0.0), (INF, 2.0))),
    Pair("negate", unary(), at(0.0, INF, NAN)),
    Pair("maximum", _away_from_ties, at((1.0, 1.0), (0.0, -0.0), (INF, INF), (NAN, 1.0), (1.0, NAN))),
    Pair("minimum", _away_from_ties, at((1.0, 1.0), (0.0, -0.0), (INF, INF), (NAN, 1.0), (1.0, NAN))),
]  # fmt: skip
