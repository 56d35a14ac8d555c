"""Sample inputs and edges of circular and hyperbolic functions and the error function."""

from __future__ import annotations

import math

from ..registry import Domain, Pair, at, kinks, unary

INF, NAN = float("inf"), float("nan")

_INSIDE_ONE = Domain(-0.9, 0.9)

PAIRS = [
    Pair("sin", unary(), kinks({0.0: 1.0, INF: NAN, NAN: NAN})),
    Pair("cos", unary(), kinks({0.0: 0.0, INF: NAN, NAN: NAN})),
    Pair("tan", unary(Domain(-1.2, 1.2)), kinks({0.0: 1.0, INF: NAN, NAN: NAN})),
    Pair("asin", unary(_INSIDE_ONE), kinks({0.0: 1.0, 1.0: INF, -1.0: INF, 2.0: NAN, NAN: NAN})),
    Pair("acos", unary(_INSIDE_ONE), kinks({0.0: -1.0, 1.0: -INF, -1.0: -INF, 2.0: NAN, NAN: NAN})),
    Pair("atan", unary(), kinks({0.0: 1.0, INF: 0.0, -INF: 0.0, NAN: NAN})),
    Pair("sinh", unary(), kinks({0.0: 1.0, INF: INF, -INF: INF, NAN: NAN})),
    Pair("cosh", unary(), kinks({0.0: 0.0, INF: INF, -INF: -INF, NAN: NAN})),
    Pair("tanh", unary(), kinks({0.0: 1.0, 100.0: 0.0, INF: 0.0, -INF: 0.0, NAN: NAN}) + at(-0.0)),
    Pair("erf", unary(), kinks({0.0: 2 / math.sqrt(math.pi), INF: 0.0, -INF: 0.0, NAN: NAN}) + at(-0.0)),
]
