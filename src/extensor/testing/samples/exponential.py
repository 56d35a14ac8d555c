"""Sample inputs and edges of exponentials, logarithms and roots."""

from __future__ import annotations

import math

from ..registry import POSITIVE, Domain, Edge, Pair, at, kinks, unary

INF, NAN = float("inf"), float("nan")


def _guarded(at_zero: float) -> tuple[Edge, ...]:
    """Edges at 0, -0 and nearer to 0 than the guard, where the gradient is large and finite; outside it is exact."""
    exact = kinks({1e-6: 1e-4 * at_zero})
    return exact + kinks({0.0: at_zero, NAN: NAN}) + kinks({-0.0: -at_zero}) + at(1e-12, -1e-12, -1.0, INF)


PAIRS = [
    Pair("exp", unary(), kinks({0.0: 1.0, -INF: 0.0, INF: INF, NAN: NAN})),
    Pair("expm1", unary(), kinks({0.0: 1.0, -INF: 0.0, INF: INF, NAN: NAN})),
    Pair("log", unary(POSITIVE), _guarded(1e10)),
    Pair("log1p", unary(Domain(-0.6, 3.0)), kinks({0.0: 1.0, -1.0: INF, INF: 0.0, NAN: NAN}) + at(-2.0)),
    Pair("log2", unary(POSITIVE), _guarded(1e10 / math.log(2))),
    Pair("log10", unary(POSITIVE), _guarded(1e10 / math.log(10))),
    Pair("sqrt", unary(POSITIVE), kinks({0.0: 5e9, 1e-12: 5e5, -1.0: NAN, INF: 0.0, NAN: NAN}) + kinks({-0.0: -5e9}) + at(1e-24)),
    Pair("rsqrt", unary(POSITIVE), kinks({0.0: -5e29, 1e-8: -5e11, -1.0: NAN, INF: 0.0, NAN: NAN}) + kinks({-0.0: 5e29}) + at(1e-24)),
]  # fmt: skip
