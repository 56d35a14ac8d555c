"""Sample inputs and edges of absolute value, sign, rounding, squares, reciprocals and clipping."""

from __future__ import annotations

from ..registry import NONZERO, Domain, Pair, at, kinks, unary

INF, NAN = float("inf"), float("nan")

_between_integers = unary(Domain(avoid=tuple(float(n) for n in range(-3, 4))))
_between_halves = unary(Domain(avoid=tuple(n + 0.5 for n in range(-4, 4))))
_staircase = kinks({0.0: 0.0, 1.0: 0.0, -0.5: 0.0, 1.5: 0.0, INF: 0.0, -INF: 0.0, NAN: 0.0}) + kinks(
    {-0.0: 0.0}
)

PAIRS = [
    Pair("abs", unary(NONZERO), kinks({0.0: 0.0, INF: 1.0, -INF: -1.0, NAN: NAN}) + kinks({-0.0: 0.0})),
    Pair("sign", unary(NONZERO), _staircase),
    Pair("ceil", _between_integers, _staircase),
    Pair("floor", _between_integers, _staircase),
    Pair("round", _between_halves, _staircase),
    Pair("trunc", _between_integers, _staircase),
    Pair("square", unary(), kinks({0.0: 0.0, INF: INF, -INF: -INF, NAN: NAN})),
    Pair("reciprocal", unary(NONZERO), kinks({0.0: -1e20, 1e-6: -1e12, 1e-12: -1e20, -1e-12: -1e20, NAN: NAN}) + kinks({-0.0: -1e20}) + at(INF, -INF)),
    Pair("clip", unary(Domain(avoid=(-1.0, 2.0)), min=-1.0, max=2.0), kinks({-1.0: 1.0, 2.0: 1.0, -1.5: 0.0, 2.5: 0.0, INF: 0.0, -INF: 0.0, NAN: NAN}, min=-1.0, max=2.0) + kinks({0.0: 1.0, -1.0: 0.0, INF: 1.0, NAN: NAN}, min=0.0) + kinks({1.0: 0.0, NAN: NAN}, min=2.0, max=1.0)),
]  # fmt: skip
