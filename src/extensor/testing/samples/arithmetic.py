"""Sample inputs and edges of the arithmetic pairs."""

from __future__ import annotations

from collections.abc import Iterator

from ..registry import NONZERO, POSITIVE, REAL, Case, Domain, Draw, Pair, at, binary, unary

INF, NAN = float("inf"), float("nan")


def _away_from_ties(draw: Draw) -> Iterator[Case]:
    """a on the multiples of 0.4, b halfway between them."""
    for case in binary()(draw):
        a, b = case.args
        yield Case(0.4 * (a / 0.4).round(), 0.4 * (b / 0.4).round() + 0.2)


# a / b stays between 1.1 and 1.9 or 3.1 and 3.9: floor jumps at whole numbers
_quotients = binary(Domain(1.15, 1.85), Domain(0.98, 1.02))


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
