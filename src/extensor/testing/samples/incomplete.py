"""Sample inputs and edges of the incomplete functions and of sums of shifted products."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..registry import Case, Domain, Draw, Pair, ties

INF, NAN = float("inf"), float("nan")


def _gamma(draw: Draw) -> Iterator[Case]:
    """Shape parameters are float32: they are not differentiated."""
    for shape_a, shape_x in (((), ()), ((3,), (3,)), ((3, 1), (4,)), ((), (2, 3)), ((2,), ()), ((0,), (1,))):
        a = draw.values(shape_a, Domain(0.5, 6.0)).astype(np.float32)
        yield Case(np.asarray(a), draw.values(shape_x, Domain(0.3, 9.0)))


def _beta(draw: Draw) -> Iterator[Case]:
    for shape_a, shape_x in (((), ()), ((3,), (3,)), ((3, 1), (4,)), ((), (2, 3)), ((0,), (1,))):
        a, b = (np.asarray(draw.values(shape_a, Domain(0.5, 5.0)).astype(np.float32)) for _ in range(2))
        yield Case(a, b, draw.values(shape_x, Domain(0.05, 0.95)))


def _sums(draw: Draw) -> Iterator[Case]:
    for n, m in ((5, 3), (3, 5), (4, 2), (2, 4), (1, 1), (3, 3)):
        for mode in ("full", "same", "valid"):
            yield Case(draw.values((n,)), draw.values((m,)), mode=mode)


def _float32(value: float) -> np.ndarray:
    return np.array(value, np.float32)


_ONE = _float32(1.0)

PAIRS = [
    Pair("gammainc", _gamma, ties("x = 0", Case(_ONE, np.array(0.0)), 1.0) + ties("inf", Case(_ONE, np.array(INF)), 0.0) + ties("nan", Case(_ONE, np.array(NAN)), NAN)),
    Pair("gammaincc", _gamma, ties("x = 0", Case(_ONE, np.array(0.0)), -1.0) + ties("nan", Case(_ONE, np.array(NAN)), NAN)),
    Pair("betainc", _beta, ties("x = 0", Case(_ONE, _float32(2.0), np.array(0.0)), 2.0) + ties("x = 1", Case(_ONE, _float32(2.0), np.array(1.0)), 0.0) + ties("nan", Case(_ONE, _ONE, np.array(NAN)), NAN)),
    Pair("convolve", _sums, ties("nan", Case(np.array([NAN, 1.0]), np.array([1.0])), [1.0, 1.0], [NAN])),
    Pair("correlate", _sums, ties("nan", Case(np.array([NAN, 1.0]), np.array([1.0])), [1.0, 1.0], [NAN])),
]  # fmt: skip
