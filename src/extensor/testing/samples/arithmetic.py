"""Sample inputs and edges of the arithmetic pairs."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ..registry import NONZERO, POSITIVE, REAL, Case, Domain, Draw, Pair, at, binary, kinks, unary

INF, NAN = float("inf"), float("nan")


def _away_from_ties(draw: Draw) -> Iterator[Case]:
    """a on the multiples of 0.4, b halfway between them."""
    for case in binary()(draw):
        a, b = case.args
        yield Case(0.4 * (a / 0.4).round(), 0.4 * (b / 0.4).round() + 0.2)


# a / b stays between 1.1 and 1.9 or 3.1 and 3.9: floor jumps at whole numbers
_quotients = binary(Domain(1.15, 1.85), Domain(0.98, 1.02))


# Near zero the guard keeps out of the way: an epsilon added to the divisor would show here
_EXACT = kinks({(1.0, 1e-6): (1e6, -1e12), (1.0, -1e-6): (-1e6, -1e12)})
_GUARDED = kinks({(1.0, 0.0): (1e10, -1e20), (1.0, 1e-12): (1e10, -1e20)}) + kinks(
    {(1.0, -0.0): (-1e10, -1e20)}
)
_TIES = kinks({(1.0, 1.0): (0.5, 0.5), (0.0, -0.0): (0.5, 0.5), (INF, INF): (0.5, 0.5), (NAN, 1.0): (NAN, NAN), (1.0, NAN): (NAN, NAN), (NAN, NAN): (NAN, NAN)})  # fmt: skip

PAIRS = [
    Pair("add", binary(), kinks({(0.0, -0.0): (1.0, 1.0), (INF, -INF): (1.0, 1.0), (1.0, NAN): (1.0, 1.0)})),
    Pair("subtract", binary(), kinks({(0.0, -0.0): (1.0, -1.0), (INF, INF): (1.0, -1.0), (1.0, NAN): (1.0, -1.0)})),
    Pair("multiply", binary(), kinks({(-0.0, 2.0): (2.0, 0.0), (0.0, INF): (INF, 0.0), (NAN, 2.0): (2.0, NAN)})),
    Pair("divide", binary(b=NONZERO), _GUARDED + _EXACT + kinks({(0.0, 0.0): (1e10, 0.0), (1.0, INF): (0.0, 0.0), (1.0, NAN): (NAN, NAN), (NAN, 2.0): (0.5, NAN)}) + at((INF, 2.0), (INF, INF))),
    Pair("floor_divide", _quotients, kinks(dict.fromkeys(((7.0, 2.0), (6.0, 2.0), (-7.0, 2.0), (0.0, 2.0), (1.0, 0.0), (-1.0, 0.0), (0.0, 0.0), (INF, 2.0), (-INF, 2.0), (INF, INF), (INF, 0.0), (1.0, INF), (-1.0, INF), (1.0, -INF), (-1.0, -INF), (0.0, INF), (NAN, 2.0), (1.0, NAN)), (0.0, 0.0)))),
    Pair("modulo", _quotients, kinks({(7.0, 2.0): (1.0, -3.0), (-7.0, 2.0): (1.0, 4.0), (6.0, 2.0): (1.0, -3.0), (0.0, 2.0): (1.0, 0.0)}) + at((-0.0, 2.0), (1.0, 0.0), (1.0, INF), (-1.0, INF), (INF, 2.0), (NAN, 2.0), (1.0, NAN))),
    Pair("power", binary(POSITIVE, REAL), kinks({(0.0, 2.0): (0.0, 0.0), (0.0, 1.0): (1.0, 0.0), (0.0, 0.0): (0.0, 0.0), (2.0, 0.0): (0.0, math.log(2)), (-2.0, 3.0): (12.0, NAN), (1e-6, -1.0): (-1e12, -6e6 * math.log(10)), (NAN, 2.0): (NAN, NAN), (2.0, NAN): (NAN, NAN)}) + at((-0.0, 2.0), (0.0, 0.5), (-0.0, 0.5), (0.0, -1.0), (-0.0, -1.0), (NAN, 0.0), (1.0, NAN), (INF, 2.0), (-INF, 3.0), (2.0, INF), (2.0, -INF))),
    Pair("negate", unary(), kinks({0.0: -1.0, INF: -1.0, -INF: -1.0, NAN: -1.0})),
    Pair("maximum", _away_from_ties, _TIES + kinks({(INF, -INF): (1.0, 0.0)})),
    Pair("minimum", _away_from_ties, _TIES + kinks({(INF, -INF): (0.0, 1.0)})),
]  # fmt: skip
