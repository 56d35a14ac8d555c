"""Sample inputs and edges of the activations that are used now and then."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..registry import NONZERO, Case, Domain, Draw, Pair, kinks, ties, unary
from .activation import _each

INF, NAN = float("inf"), float("nan")
_AROUND = Domain(avoid=(-0.5, 0.5))


def _glu(draw: Draw) -> Iterator[Case]:
    for shape, axis in (((4,), -1), ((3, 2), 1), ((2, 3), 0), ((2, 4, 3), 1), ((0, 2), -1), ((2, 0), 1)):
        yield Case(draw.values(shape), axis=axis)
    yield Case(draw.strided((3, 4)))


PAIRS = [
    Pair("celu", _each(unary(NONZERO), unary(NONZERO, alpha=0.5), unary(NONZERO, alpha=-2.0)), kinks({0.0: 1.0, 1000.0: 1.0, -1000.0: 0.0, INF: 1.0, -INF: 0.0, NAN: NAN})),
    Pair("hard_shrink", _each(unary(_AROUND), unary(NONZERO, lambd=0.0)), kinks({0.5: 0.0, -0.5: 0.0, 0.0: 0.0, 1.0: 1.0, INF: 1.0, -INF: 1.0, NAN: NAN})),
    Pair("soft_shrink", _each(unary(_AROUND), unary(NONZERO, lambd=0.0)), kinks({0.5: 0.0, -0.5: 0.0, 0.0: 0.0, 1.0: 1.0, INF: 1.0, -INF: 1.0, NAN: NAN})),
    Pair("log_sigmoid", _each(unary(), unary(Domain(-30.0, 30.0))), kinks({0.0: 0.5, 1000.0: 0.0, -1000.0: 1.0, INF: 0.0, -INF: 1.0, NAN: NAN})),
    Pair("softsign", unary(NONZERO), kinks({0.0: 1.0, 1.0: 0.25, -1.0: 0.25, INF: 0.0, -INF: 0.0, NAN: NAN})),
    Pair("tanh_shrink", _each(unary(NONZERO), unary(Domain(-0.5, 0.5, avoid=(0.0,)))), kinks({0.0: 0.0, 1000.0: 1.0, INF: 1.0, -INF: 1.0, NAN: NAN})),
    Pair("threshold", _each(unary(_AROUND, threshold=0.5, value=7.0), unary(_AROUND, threshold=-0.5, value=0.0)), kinks({0.5: 0.0, 1.0: 1.0, 0.0: 0.0, INF: 1.0, -INF: 0.0, NAN: NAN}, threshold=0.5, value=7.0)),
    Pair("glu", _glu, ties("a gate of inf, of -inf, of nan", Case(np.array([2.0, 3.0, 4.0, INF, -INF, NAN])), [1.0, 0.0, NAN, 0.0, 0.0, NAN])),
]  # fmt: skip
