"""Sample inputs and edges of linear algebra, diagonals and triangles."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..registry import NONZERO, Case, Domain, Draw, Pair, ties

INF, NAN = float("inf"), float("nan")
SQUARES: tuple[tuple[int, ...], ...] = ((1, 1), (2, 2), (3, 3), (2, 3, 3), (0, 2, 2), (2, 0, 0))
RECTANGLES: tuple[tuple[int, ...], ...] = ((1, 1), (2, 2), (3, 2), (2, 3), (2, 3, 2), (0, 2, 3))
SMALL = Domain(-1.0, 1.0)


def regular(draw: Draw, shape: tuple[int, ...]) -> np.ndarray:
    """Square matrices with singular values well apart, none near zero, and no symmetry."""
    n = shape[-1]
    return draw.values(shape, Domain(-0.3, 0.3)) + np.diag(1.0 + 0.7 * np.arange(n))


def _rectangular(draw: Draw, shape: tuple[int, ...]) -> np.ndarray:
    """Matrices of full rank with singular values well apart."""
    rows, columns = shape[-2:]
    scale = np.eye(rows, columns) * (1.0 + 0.8 * np.arange(columns))
    return draw.values(shape, Domain(-0.3, 0.3)) + scale


def _positive(draw: Draw, shape: tuple[int, ...]) -> np.ndarray:
    """Positive definite matrices with eigenvalues well apart."""
    x = draw.values(shape, Domain(-0.3, 0.3))
    return (x + np.swapaxes(x, -1, -2)) / 2 + np.diag(1.0 + 0.8 * np.arange(shape[-1]))


def _of(
    make: Callable[[Draw, tuple[int, ...]], np.ndarray],
    shapes: tuple[tuple[int, ...], ...],
    *options: dict[str, Any],
) -> Callable[[Draw], Iterator[Case]]:
    """Each shape with the first options, the others with one shape alone."""

    def cases(draw: Draw) -> Iterator[Case]:
        for shape in shapes:
            yield Case(make(draw, shape), **(options[0] if options else {}))
        for other in options[1:]:
            yield Case(make(draw, (3, 3) if make is not _rectangular else (3, 2)), **other)

    return cases


def _systems(draw: Draw) -> Iterator[Case]:
    for a, b in (
        ((1, 1), (1,)), ((3, 3), (3,)), ((3, 3), (3, 2)), ((2, 3, 3), (3, 2)), ((3, 3), (2, 3, 2)), ((2, 1, 2, 2), (3, 2, 1)), ((2, 2, 2), (2,)),
        ((0, 2, 2), (0, 2, 1)), ((0, 0), (0, 2)),
    ):  # fmt: skip
        yield Case(regular(draw, a), draw.values(b))


def _triangular(draw: Draw) -> Iterator[Case]:
    for a, b in (
        ((1, 1), (1, 2)),
        ((3, 3), (3, 2)),
        ((2, 3, 3), (3, 1)),
        ((3, 3), (2, 3, 1)),
        ((0, 0), (0, 1)),
    ):
        yield Case(regular(draw, a), draw.values(b))
    yield Case(regular(draw, (3, 3)), draw.values((3, 2)), upper=True)
    yield Case(regular(draw, (3, 3)), draw.values((3, 2)), unit_diagonal=True)
    yield Case(regular(draw, (3, 3)), draw.values((3, 2)), upper=True, unit_diagonal=True)


def _least_squares(draw: Draw) -> Iterator[Case]:
    for a, b in (((2, 2), (2,)), ((3, 2), (3,)), ((3, 2), (3, 2)), ((2, 3), (2, 1)), ((2, 3, 2), (2, 3, 1))):
        yield Case(_rectangular(draw, a), draw.values(b))


def _several(
    options: tuple[dict[str, Any], ...], shapes: tuple[tuple[int, ...], ...]
) -> Callable[[Draw], Iterator[Case]]:
    def cases(draw: Draw) -> Iterator[Case]:
        for i, shape in enumerate(shapes):
            yield Case(draw.values(shape, NONZERO), **options[i % len(options)])
        for other in options:
            yield Case(draw.distinct((3, 4)) + 0.03, **other)

    return cases


def _pairs(
    *shapes: tuple[tuple[int, ...], tuple[int, ...]], **options: Any
) -> Callable[[Draw], Iterator[Case]]:
    def cases(draw: Draw) -> Iterator[Case]:
        for a, b in shapes:
            yield Case(draw.values(a), draw.values(b), **options)
        yield Case(draw.strided((4, 3)), draw.strided((4, 3)), **options)

    return cases


def _chains(draw: Draw) -> Iterator[Case]:
    for shapes in (
        ((2, 3), (3, 4)),
        ((2, 3), (3, 1), (1, 4)),
        ((3,), (3, 2), (2, 4), (4,)),
        ((2, 3), (3,)),
        ((3,), (3,)),
        ((0, 2), (2, 3), (3, 2)),
    ):
        yield Case([draw.values(shape, SMALL) for shape in shapes])


def _powers(draw: Draw) -> Iterator[Case]:
    for n in (0, 1, 2, 3, 6, 7, -1, -3):
        yield Case(regular(draw, (2, 2)), n)
    yield Case(regular(draw, (2, 3, 3)), 5)
    yield Case(regular(draw, (0, 2, 2)), 2)


def _shapes(*shapes: tuple[int, ...], **options: Any) -> Callable[[Draw], Iterator[Case]]:
    def cases(draw: Draw) -> Iterator[Case]:
        for shape in shapes:
            yield Case(draw.values(shape), **options)
        yield Case(draw.strided((3, 5)), **options)

    return cases


def _offsets(name: str, *more: dict[str, Any]) -> Callable[[Draw], Iterator[Case]]:
    def cases(draw: Draw) -> Iterator[Case]:
        for shape in ((1, 1), (3, 4), (4, 3), (2, 3, 3), (0, 3), (2, 0, 0)):
            for k in (0, 1, -2):
                yield Case(draw.values(shape), **{name: k})
        for options in more:
            yield Case(draw.values((2, 3, 4)), **options)
        yield Case(draw.strided((3, 5)), **{name: 0})

    return cases


_ORDERS = tuple({"ord": order} for order in (2, 1, 3, 0.5, -1.5, INF, -INF, 0))
_MATRIX_ORDERS = tuple({"ord": order} for order in ("fro", "nuc", 1, -1, 2, -2, INF, -INF))
_ROOT = 1 / math.sqrt(2)
_UNIT, _ZERO = np.eye(2), np.zeros((2, 2))
_DIAGONAL = np.array([[3.0, 0.0], [0.0, 2.0]])
_ALL_NAN = [[NAN, NAN], [NAN, NAN]]
_NAN = np.array(_ALL_NAN)
_SINGULAR = np.array([[3.0, 0.0], [0.0, 0.0]])

PAIRS = [
    Pair("linalg.inv", _of(regular, SQUARES), ties("the unit matrix", Case(_UNIT), [[-1.0, -1.0], [-1.0, -1.0]]) + ties("nan", Case(_NAN), _ALL_NAN)),
    Pair("linalg.solve", _systems, ties("the unit matrix", Case(_UNIT, np.array([1.0, 2.0])), [[-1.0, -2.0], [-1.0, -2.0]], [1.0, 1.0]) + ties("nan", Case(_NAN, np.array([1.0, 2.0])), _ALL_NAN, [NAN, NAN])),
    Pair("linalg.triangular_solve", _triangular, ties("the other triangle is not read", Case(np.array([[1.0, NAN], [0.0, 1.0]]), np.array([[1.0], [2.0]])), [[-1.0, 0.0], [-1.0, -2.0]], [[1.0], [1.0]])),
    Pair("linalg.pinv", _of(_rectangular, RECTANGLES, {}, {"rtol": 0.1}), ties("a singular matrix", Case(np.array([[2.0, 0.0], [0.0, 0.0]])), [[-0.25, 0.25], [0.25, 0.0]]) + ties("nan", Case(_NAN), _ALL_NAN)),
    Pair("linalg.lstsq", _least_squares, ties("the unit matrix", Case(_UNIT, np.array([1.0, 2.0])), [[0.0, -2.0], [-1.0, -1.0]], [1.0, 1.0]) + ties("nan", Case(_NAN, np.array([1.0, 2.0])), _ALL_NAN, [NAN, NAN])),
    Pair("linalg.det", _of(regular, SQUARES), ties("a singular matrix", Case(_SINGULAR), [[0.0, 0.0], [0.0, 3.0]]) + ties("rank 0", Case(_ZERO), [[0.0, 0.0], [0.0, 0.0]]) + ties("nan", Case(_NAN), _ALL_NAN)),
    Pair("linalg.slogdet", _of(regular, SQUARES), ties("the unit matrix", Case(_UNIT), [[1.0, 0.0], [0.0, 1.0]]) + ties("nan", Case(_NAN), _ALL_NAN)),
    Pair("linalg.cholesky", _of(_positive, SQUARES, {}, {"upper": True}), ties("the unit matrix", Case(_UNIT), [[0.5, 0.5], [0.5, 0.5]]) + ties("nan", Case(_NAN), _ALL_NAN)),
    Pair("linalg.qr", _of(_rectangular, RECTANGLES), ties("upper triangles stay", Case(np.array([[0.0, 1.0], [1.0, 0.0]]))) + ties("nan", Case(_NAN), _ALL_NAN)),
    Pair("linalg.svd", _of(_rectangular, RECTANGLES, {"full_matrices": False}), ties("equal singular values: the vectors have no gradient", Case(_UNIT, full_matrices=False), [[NAN, NAN], [NAN, NAN]]) + ties("nan", Case(_NAN, full_matrices=False), _ALL_NAN)),
    Pair("linalg.svdvals", _of(_rectangular, RECTANGLES), ties("equal singular values", Case(_UNIT), [[1.0, 0.0], [0.0, 1.0]]) + ties("a zero", Case(_SINGULAR), [[1.0, 0.0], [0.0, 0.0]]) + ties("nan", Case(_NAN), _ALL_NAN)),
    Pair("linalg.eigh", _of(_positive, SQUARES), ties("equal eigenvalues: the vectors have no gradient", Case(_UNIT), [[NAN, NAN], [NAN, NAN]]) + ties("nan", Case(_NAN), _ALL_NAN)),
    Pair("linalg.eigvalsh", _of(_positive, SQUARES), ties("equal eigenvalues", Case(_UNIT), [[1.0, 0.0], [0.0, 1.0]]) + ties("nan", Case(_NAN), _ALL_NAN)),
    Pair("linalg.vector_norm", _several(_ORDERS, ((), (1,), (7,), (2, 3))), ties("0", Case(np.zeros(2)), [0.0, 0.0]) + ties("0, ord 3", Case(np.array([0.0, 2.0]), ord=3), [0.0, 1.0]) + ties("a tie", Case(np.array([2.0, -2.0, 1.0]), ord=INF), [0.5, -0.5, 0.0]) + ties("nan", Case(np.array([NAN, 1.0])), [NAN, NAN])),
    Pair("linalg.matrix_norm", _of(_rectangular, RECTANGLES[:-1], *_MATRIX_ORDERS), ties("0", Case(_ZERO), [[0.0, 0.0], [0.0, 0.0]]) + ties("0, nuclear", Case(_SINGULAR, ord="nuc"), [[1.0, 0.0], [0.0, 0.0]]) + ties("a tie", Case(_UNIT, ord=1), [[0.5, 0.0], [0.0, 0.5]]) + ties("nan", Case(_NAN), _ALL_NAN)),
    Pair("linalg.norm", _several(({}, {"ord": 3, "axis": 0}, {"ord": "fro", "axis": (0, 1)}, {"ord": INF, "axis": 1, "keepdims": True}), ((3, 4), (2, 3), (3, 2), (2, 2))), ties("0", Case(np.zeros(2)), [0.0, 0.0]) + ties("nan", Case(_NAN), _ALL_NAN)),
    Pair("linalg.cond", _of(regular, SQUARES[:4], {}, *({"p": p} for p in (2, -2, 1, INF, "fro", "nuc"))), ties("a diagonal", Case(_DIAGONAL), [[0.5, 0.0], [0.0, -0.75]]) + ties("nan", Case(_NAN), _ALL_NAN)),
    Pair("linalg.cross", _pairs(((3,), (3,)), ((2, 3), (3,)), ((2, 1, 3), (4, 3)), ((0, 3), (3,))), ties("nan", Case(np.array([NAN, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])), [1.0, 0.0, -1.0], [0.0, NAN, NAN])),
    Pair("linalg.vecdot", _pairs(((7,), (7,)), ((2, 3), (3,)), ((2, 1, 3), (4, 3)), ((0, 3), (3,))), ties("nan", Case(np.array([NAN]), np.array([2.0])), [2.0], [NAN])),
    Pair("linalg.kron", _pairs(((), ()), ((3,), (2,)), ((2, 3), (2,)), ((2, 2), (3, 1)), ((0, 2), (2, 2))), ties("nan", Case(np.array([NAN]), np.array([2.0])), [2.0], [NAN])),
    Pair("linalg.multi_dot", _chains, ties("nan", Case([np.array([NAN]), np.array([[2.0]]), np.array([3.0])]), [6.0], [[NAN]], [NAN])),
    Pair("linalg.matrix_power", _powers, ties("n = 0", Case(_SINGULAR, 0), [[0.0, 0.0], [0.0, 0.0]]) + ties("nan", Case(_NAN, 2), _ALL_NAN)),
    Pair("linalg.matrix_exp", _of(regular, SQUARES), ties("0", Case(_ZERO), [[1.0, 1.0], [1.0, 1.0]]) + ties("nan", Case(_NAN), _ALL_NAN)),
    Pair("linalg.matrix_transpose", _shapes((1, 1), (2, 3), (4, 2, 3), (0, 2)), ties("nan", Case(np.array([[NAN, 1.0]])), [[1.0, 1.0]])),
    Pair("tril", _offsets("k"), ties("nan", Case(np.array([[NAN, NAN]])), [[1.0, 0.0]])),
    Pair("triu", _offsets("k"), ties("nan", Case(np.array([[NAN], [NAN]])), [[1.0], [0.0]])),
    Pair("diagonal", _offsets("offset", {"axis1": 0, "axis2": 1}, {"offset": 1, "axis1": 2, "axis2": 0}), ties("nan", Case(np.array([[NAN]])), [[1.0]])),
    Pair("trace", _offsets("offset"), ties("nan", Case(np.array([[NAN, 1.0]])), [[1.0, 0.0]])),
    Pair("diag_embed", _shapes((1,), (3,), (2, 3), (0,), offset=1), ties("nan", Case(np.array([NAN])), [1.0])),
    Pair("diag", _shapes((3,), (0,), (1,), (2, 3), (3, 2), k=-1), ties("nan", Case(np.array([NAN])), [1.0])),
]  # fmt: skip
