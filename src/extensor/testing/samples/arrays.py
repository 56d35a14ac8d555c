"""Sample inputs and edges of special functions, scans, grids, quantiles, scattering and distances."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..registry import NONZERO, POSITIVE, Case, Domain, Draw, Pair, binary, kinks, ties, unary

INF, NAN = float("inf"), float("nan")


def _apart(draw: Draw) -> Iterator[Case]:
    """Operands that are never equal, nor of the same size, nor zero."""
    yield from binary(NONZERO, NONZERO)(draw)


def _polygamma(draw: Draw) -> Iterator[Case]:
    for n in (0, 1, 2, 5):
        yield Case(n, draw.values((3, 4), POSITIVE))
    yield Case(1, draw.values((), POSITIVE))
    yield Case(1, draw.values((0,), POSITIVE))
    yield Case(2, np.array([-0.4, -1.6, -2.3]))


def _lines(
    make: Callable[[Draw, tuple[int, ...]], np.ndarray], **options: Any
) -> Callable[[Draw], Iterator[Case]]:
    """Every axis of several shapes."""

    def cases(draw: Draw) -> Iterator[Case]:
        for shape in ((1,), (7,), (3, 4), (2, 0, 3), (2, 3, 5)):
            for axis in range(len(shape)):
                yield Case(make(draw, shape), axis=axis, **options)
        yield Case(np.swapaxes(make(draw, (5, 3)), 0, 1), axis=-1, **options)

    return cases


def _values(draw: Draw, shape: tuple[int, ...]) -> np.ndarray:
    return draw.values(shape)


def _distinct(draw: Draw, shape: tuple[int, ...]) -> np.ndarray:
    return draw.distinct(shape)


def _products(draw: Draw) -> Iterator[Case]:
    yield from _lines(lambda draw, shape: draw.values(shape, NONZERO))(draw)
    yield Case(np.array([2.0, 0.0, 3.0, 0.0, 1.0]), axis=0)


def _differences(draw: Draw) -> Iterator[Case]:
    for n in (0, 1, 2, 3):
        yield Case(draw.values((4, 3)), n=n, axis=0)
        yield Case(draw.values((2, 4)), n=n)
    yield Case(draw.strided((3, 5)))


def _joined(*groups: tuple[tuple[int, ...], ...]) -> Callable[[Draw], Iterator[Case]]:
    def cases(draw: Draw) -> Iterator[Case]:
        for shapes in groups:
            yield Case([draw.values(shape) for shape in shapes])

    return cases


def _spread(*groups: tuple[tuple[int, ...], ...], **options: Any) -> Callable[[Draw], Iterator[Case]]:
    def cases(draw: Draw) -> Iterator[Case]:
        for shapes in groups:
            yield Case(*map(draw.values, shapes), **options)

    return cases


def _slices(draw: Draw) -> Iterator[Case]:
    for shape, axis in (((3,), 0), ((2, 3), 0), ((2, 3), -1), ((2, 3, 4), 1), ((2, 0), 0)):
        yield Case(draw.values(shape), axis=axis)


def _reduced(*more: Any) -> Callable[[Draw], Iterator[Case]]:
    def cases(draw: Draw) -> Iterator[Case]:
        for shape, options in (
            ((1,), {}), ((7,), {}), ((6,), {}), ((3, 4), {"axis": 0}), ((3, 4), {"axis": 1, "keepdims": True}), ((2, 3, 5), {"axis": (0, 2)}),
            ((2, 3, 5), {"axis": (2, 1), "keepdims": True}), ((0, 3), {"axis": 1}),
        ):  # fmt: skip
            for q in more or (None,):
                yield Case(draw.distinct(shape), *(() if q is None else (q,)), **options)

    return cases


def _interpolated(draw: Draw) -> Iterator[Case]:
    xp = np.array([-1.0, 0.2, 0.9, 2.0])
    for x in (
        np.array([-0.7, 0.5, 1.2, 1.9, -2.0, 3.0]),
        np.array(0.4),
        np.array([[0.3, -0.3]]),
        np.zeros(0),
    ):
        yield Case(x, xp, draw.values((4,)))
    yield Case(np.array([0.5, 2.5]), np.array([1.0]), draw.values((1,)))


_INDEX = np.array([[0, 2, 1], [3, -1, 0]])


def _gathered(draw: Draw) -> Iterator[Case]:
    yield Case(draw.values((4, 3)), 0, _INDEX)
    yield Case(draw.values((2, 4)), 1, _INDEX)
    yield Case(draw.values((5,)), 0, np.array([4, 4, 0]))
    yield Case(draw.values((2, 3)), 1, np.zeros((0, 2), np.int64))
    yield Case(draw.strided((4, 3)), 0, _INDEX[:, :2])


def _scattered(draw: Draw) -> Iterator[Case]:
    for x, axis, index, source in (
        ((4, 3), 0, _INDEX, (2, 3)),
        ((2, 4), 1, _INDEX, (3, 4)),
        ((5,), 0, np.array([4, 4, 0]), (3,)),
    ):
        yield Case(draw.values(x), axis, index, draw.values(source))


def _masked(draw: Draw) -> Iterator[Case]:
    for shape, mask in (((3, 4), (3, 4)), ((3, 4), (4,)), ((), ()), ((0, 2), (2,))):
        yield Case(draw.values(shape), draw.integers(0, 2, mask) == 1, 0.5)


def _clouds(draw: Draw) -> Iterator[Case]:
    for p in (2.0, 1.0, 3.0, INF):
        yield Case(draw.distinct((2, 3)), draw.distinct((4, 3)) + 0.07, p=p)
    yield Case(draw.distinct((2, 1, 3, 2)), draw.distinct((2, 4, 2)) + 0.07)
    yield Case(draw.values((0, 3)), draw.values((2, 3)))


def _vectors(draw: Draw) -> Iterator[Case]:
    for a, b, axis in (
        ((3,), (3,), 0),
        ((2, 3), (2, 3), 1),
        ((2, 3), (3,), -1),
        ((3, 1), (3, 4), 0),
        ((2, 1, 4), (3, 1), 1),
    ):
        yield Case(draw.values(a, NONZERO), draw.values(b, NONZERO), axis=axis)


_INSIDE = Domain(-0.9, 0.9)
_SPOILT = np.array([NAN, 1.0])

PAIRS = [
    Pair("asinh", unary(), kinks({0.0: 1.0, INF: 0.0, -INF: 0.0, NAN: NAN})),
    Pair("acosh", unary(Domain(1.2, 4.0)), kinks({1.0: INF, 2.0: 1 / math.sqrt(3), INF: 0.0, 0.5: NAN, NAN: NAN})),
    Pair("atanh", unary(_INSIDE), kinks({0.0: 1.0, 1.0: INF, -1.0: INF, NAN: NAN})),
    Pair("lgamma", unary(POSITIVE), kinks({1.0: -float(np.euler_gamma), INF: INF, 0.0: NAN, -1.0: NAN, NAN: NAN})),
    Pair("digamma", unary(POSITIVE), kinks({1.0: math.pi**2 / 6, INF: 0.0, 0.0: INF, NAN: NAN})),
    Pair("polygamma", _polygamma, ties("nan", Case(1, np.array([NAN, 1.0])), [NAN, -2.4041138063191885])),
    Pair("erfc", unary(), kinks({0.0: -2 / math.sqrt(math.pi), INF: 0.0, -INF: 0.0, NAN: NAN})),
    Pair("erfinv", unary(_INSIDE), kinks({0.0: math.sqrt(math.pi) / 2, 1.0: INF, -1.0: INF, 2.0: NAN, NAN: NAN})),
    Pair("i0", unary(), kinks({0.0: 0.0, INF: INF, -INF: -INF, NAN: NAN})),
    Pair("i1", unary(NONZERO), kinks({0.0: 0.5, NAN: NAN})),
    Pair("sinc", unary(), kinks({0.0: 0.0, 1.0: -1.0, NAN: NAN})),
    Pair("atan2", binary(NONZERO, NONZERO), kinks({(0.0, 0.0): (0.0, 0.0), (0.0, 1.0): (1.0, 0.0), (1.0, 0.0): (0.0, -1.0), (NAN, 1.0): (NAN, NAN)})),
    Pair("hypot", binary(NONZERO, NONZERO), kinks({(0.0, 0.0): (0.0, 0.0), (3.0, 4.0): (0.6, 0.8), (NAN, 1.0): (NAN, NAN)})),
    Pair("logaddexp", binary(), kinks({(0.0, 0.0): (0.5, 0.5), (INF, INF): (0.5, 0.5), (-INF, -INF): (0.5, 0.5), (INF, 0.0): (1.0, 0.0), (-INF, 0.0): (0.0, 1.0), (NAN, 1.0): (NAN, NAN)})),
    Pair("copysign", _apart, kinks({(0.0, 1.0): (0.0, 0.0), (2.0, -0.0): (-1.0, 0.0), (-2.0, 1.0): (-1.0, 0.0), (NAN, 1.0): (NAN, 0.0)})),
    Pair("heaviside", _apart, kinks({(0.0, 0.5): (0.0, 1.0), (1.0, 0.5): (0.0, 0.0), (NAN, 0.5): (NAN, 0.0)})),
    Pair("cumprod", _products, ties("zeros", Case(np.array([2.0, 0.0, 3.0])), [1.0, 8.0, 0.0]) + ties("nan", Case(_SPOILT), [NAN, NAN])),
    Pair("cummax", _lines(_distinct), ties("a tie", Case(np.array([2.0, 2.0, 1.0])), [1.0, 2.0, 0.0]) + ties("nan", Case(np.array([1.0, NAN, 2.0])), [1.0, 2.0, 0.0])),
    Pair("cummin", _lines(_distinct), ties("a tie", Case(np.array([2.0, 2.0, 3.0])), [1.0, 2.0, 0.0]) + ties("nan", Case(np.array([1.0, NAN, 0.0])), [1.0, 2.0, 0.0])),
    Pair("logcumsumexp", _lines(_values), ties("-inf", Case(np.array([-INF, 0.0])), [0.0, 1.0]) + ties("nan", Case(np.array([1.0, NAN])))),
    Pair("diff", _differences, ties("nan", Case(_SPOILT), [-1.0, 1.0])),
    Pair("hstack", _joined(((3,), (2,)), ((2, 3), (2, 1)), ((), (2,)), ((2, 1, 2), (2, 3, 2))), ties("nan", Case([_SPOILT, np.ones(1)]), [1.0, 1.0], [1.0])),
    Pair("vstack", _joined(((3,), (3,)), ((2, 3), (3,)), ((), (1,)), ((2, 1, 2), (1, 1, 2))), ties("nan", Case([_SPOILT]), [1.0, 1.0])),
    Pair("dstack", _joined(((3,), (3,)), ((2, 3), (2, 3)), ((), (1,)), ((2, 3, 2), (2, 3))), ties("nan", Case([_SPOILT]), [1.0, 1.0])),
    Pair("column_stack", _joined(((3,), (3,)), ((2, 3), (2,)), ((), (1,))), ties("nan", Case([_SPOILT]), [1.0, 1.0])),
    Pair("broadcast_arrays", _spread(((3,), (3,)), ((2, 1), (3,)), ((), (2, 2)), ((0, 1), (3,))), ties("nan", Case(_SPOILT, np.ones(())), [1.0, 1.0], 2.0)),
    Pair("meshgrid", _spread(((3,), (2,)), ((2,), (3,), (4,)), ((3,),), ((), (2,)), ((0,), (2,))), ties("nan", Case(_SPOILT, np.ones(1)), [1.0, 1.0], [2.0])),
    Pair("unstack", _slices, ties("nan", Case(_SPOILT), [1.0, 1.0])),
    Pair("quantile", _reduced(0.3, np.array([0.0, 0.25, 1.0], np.float32)), ties("a tie", Case(np.array([1.0, 1.0, 1.0]), 0.5), [0.0, 1.0, 0.0]) + ties("nan", Case(np.array([1.0, NAN]), 0.5), [NAN, NAN])),
    Pair("median", _reduced(), ties("two in the middle", Case(np.array([1.0, 2.0])), [0.5, 0.5]) + ties("nan", Case(np.array([1.0, NAN])), [NAN, NAN])),
    Pair("interp", _interpolated, ties("a knot: the right side", Case(np.array([1.0]), np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0, 3.0])), [2.0], [0.0, -2.0, 0.0], [0.0, 1.0, 0.0]) + ties("nan", Case(np.array([NAN]), np.array([0.0, 1.0]), np.array([0.0, 1.0])))),
    Pair("gather", _gathered, ties("nan", Case(_SPOILT, 0, np.array([0, 0])), [2.0, 0.0])),
    Pair("scatter", _scattered, ties("repeats: the last counts", Case(_SPOILT, 0, np.array([0, 0]), np.array([5.0, 6.0])), [0.0, 1.0], [0.0, 1.0])),
    Pair("scatter_add", _scattered, ties("nan", Case(_SPOILT, 0, np.array([0, 0]), np.array([5.0, 6.0])), [1.0, 1.0], [1.0, 1.0])),
    Pair("masked_fill", _masked, ties("nan", Case(_SPOILT, np.array([True, False]), 0.0), [0.0, 1.0])),
    Pair("cdist", _clouds, ties("equal rows", Case(np.ones((1, 2)), np.ones((1, 2))), [[0.0, 0.0]], [[0.0, 0.0]]) + ties("nan", Case(np.array([[NAN, 1.0]]), np.ones((1, 2))))),
    Pair("cosine_similarity", _vectors, ties("nan", Case(_SPOILT, np.ones(2)), [NAN, NAN], [NAN, NAN]) + ties("0", Case(np.zeros(2), np.array([1.0, 0.0])))),
]  # fmt: skip
