"""Sample inputs and edges of the matrix products, the transpose and the linear layer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..registry import Case, Draw, Pair, ties

INF, NAN = float("inf"), float("nan")
Shapes = tuple[tuple[int, ...], ...]

MATMUL: tuple[Shapes, ...] = (
    ((7,), (7,)), ((3, 7), (7,)), ((7,), (7, 3)), ((3, 7), (7, 5)), ((4, 3, 2), (2, 5)), ((4, 3, 2), (4, 2, 5)),
    ((1, 3, 2), (4, 2, 5)), ((2, 1, 3, 2), (4, 2, 5)), ((4, 3, 2), (2,)), ((2,), (4, 2, 5)), ((0, 3), (3, 2)), ((3, 0), (0, 2)),
    ((9, 17), (17, 5)),
)  # fmt: skip
DOT: tuple[Shapes, ...] = (
    ((), ()), ((), (3,)), ((2, 3), ()), ((7,), (7,)), ((3, 4), (4,)), ((4,), (4, 3)), ((2, 3), (3, 4)), ((2, 5, 3), (4, 3, 2)), ((0, 3), (3, 2)),
)  # fmt: skip
INNER: tuple[Shapes, ...] = (
    ((), ()),
    ((), (3,)),
    ((2, 3), ()),
    ((7,), (7,)),
    ((3, 4), (4,)),
    ((2, 3), (4, 3)),
    ((2, 5, 3), (4, 2, 3)),
    ((2, 0), (3, 0)),
)
OUTER: tuple[Shapes, ...] = (((), ()), ((3,), (4,)), ((2, 3), (4,)), ((0,), (4,)), ((1,), (17,)))
TENSORDOT: tuple[tuple[Shapes, Any], ...] = (
    (((2, 3, 4), (3, 4, 5)), 2), (((2, 3), (4,)), 0), (((2, 3), (3, 4)), 1), (((2, 3, 4), (4, 3, 5)), ((1, 2), (1, 0))),
    (((2, 3, 4), (4, 2)), ((0, -1), (1, 0))), (((3, 2), (3,)), (0, 0)), (((2, 0), (0, 3)), 1), (((), ()), 0),
)  # fmt: skip
EINSUM: tuple[tuple[str, Shapes], ...] = (
    ("ij,jk->ik", ((2, 3), (3, 4))), ("ij,jk", ((2, 3), (3, 4))), ("ii", ((3, 3),)), ("iij->j", ((3, 3, 2),)), ("iii->i", ((2, 2, 2),)),
    ("ba", ((2, 3),)), ("...ij,...jk->...ik", ((5, 1, 2, 3), (4, 3, 2))), ("i...,i", ((3, 2), (3,))), ("bhqd,bhkd->bhqk", ((2, 2, 3, 4), (2, 2, 5, 4))),
    ("i,j,k->kji", ((2,), (3,), (4,))), ("ij->j", ((2, 3),)), ("ij,k->i", ((2, 3), (4,))), ("ij,ij->ij", ((1, 3), (2, 3))), ("ij,jk->ik", ((2, 1), (3, 4))),
    ("ij,jk,kl->il", ((2, 3), (3, 4), (4, 5))), ("ii,jj->ij", ((2, 2), (3, 3))), (",->", ((), ())), ("ij,jk->ik", ((2, 0), (0, 3))),
)  # fmt: skip


def _products(pairs: tuple[Shapes, ...]) -> Callable[[Draw], Iterator[Case]]:
    def cases(draw: Draw) -> Iterator[Case]:
        for a, b in pairs:
            yield Case(draw.values(a), draw.values(b))
        yield Case(draw.strided((3, 5)), draw.values((5,)))

    return cases


def _tensordot(draw: Draw) -> Iterator[Case]:
    for (a, b), axes in TENSORDOT:
        yield Case(draw.values(a), draw.values(b), axes=axes)
    yield Case(draw.strided((3, 4)), draw.strided((3, 4)), axes=(0, 0))


def _einsum(draw: Draw) -> Iterator[Case]:
    for subscripts, shapes in EINSUM:
        yield Case(subscripts, *map(draw.values, shapes))
    yield Case("ij,kj->ki", draw.strided((3, 4)), draw.strided((2, 4)))


def _linear(draw: Draw) -> Iterator[Case]:
    for shape in ((5,), (2, 5), (0, 5), (2, 3, 5)):
        yield Case(draw.values(shape), draw.values((4, 5)), draw.values((4,)))
    yield Case(draw.values((3, 5)), draw.values((4, 5)))
    yield Case(draw.strided((3, 5)), draw.strided((4, 5)), draw.values((4,)))


def _transpose(draw: Draw) -> Iterator[Case]:
    for shape, axes in (
        ((), None),
        ((0,), None),
        ((7,), (0,)),
        ((3, 4), None),
        ((2, 3, 5), (1, 2, 0)),
        ((2, 3, 5), (-1, 0, 1)),
        ((2, 0, 3), None),
    ):
        yield Case(draw.values(shape), axes=axes)
    yield Case(draw.strided((3, 5)))


# 0 * inf: the gradient of a is b, whatever a is
_NONFINITE = ties("inf", Case(np.array([1.0, 0.0]), np.array([2.0, INF])), [2.0, INF], [1.0, 0.0]) + ties(
    "nan", Case(np.array([1.0, NAN]), np.array([2.0, 3.0])), [2.0, 3.0], [1.0, NAN]
)

PAIRS = [
    Pair("matmul", _products(MATMUL), _NONFINITE),
    Pair("dot", _products(DOT), _NONFINITE),
    Pair("inner", _products(INNER), _NONFINITE),
    Pair("outer", _products(OUTER), ties("nan", Case(np.array([NAN]), np.array([2.0])), [2.0], [NAN])),
    Pair("tensordot", _tensordot, ties("nan", Case(np.array([NAN]), np.array([2.0]), axes=1), [2.0], [NAN])),
    Pair(
        "einsum", _einsum,
        ties("a diagonal", Case("ii", np.array([[1.0, 2.0], [3.0, NAN]])), [[1.0, 0.0], [0.0, 1.0]])
        + ties("nan", Case("i,i->", np.array([NAN]), np.array([2.0])), [2.0], [NAN]),
    ),
    Pair("transpose", _transpose, ties("nan", Case(np.array([NAN, 1.0])), [1.0, 1.0])),
    Pair(
        "linear", _linear,
        ties("nan", Case(np.array([NAN, 1.0]), np.array([[2.0, 3.0]]), np.array([0.0])), [2.0, 3.0], [[NAN, 1.0]], [1.0]),
    ),
]  # fmt: skip
