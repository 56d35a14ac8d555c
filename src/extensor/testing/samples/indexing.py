"""Sample inputs and edges of indexing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..registry import Case, Draw, Pair, ties

INF, NAN = float("inf"), float("nan")
Shape = tuple[int, ...]

MASK = np.array([[True, False, True], [False, False, True]])
KEYS: tuple[tuple[Shape, Any], ...] = (
    ((), ()), ((), None), ((7,), 2), ((7,), -1), ((7,), slice(None, None, -2)), ((33,), slice(1, 30, 3)), ((3, 4), (1, slice(1, 3))),
    ((2, 3, 5), (Ellipsis, 0)), ((2, 3, 5), (slice(None), None, -1)), ((0, 3), slice(0, 5)),
    ((7,), [0, 2, 2, -1]), ((7,), np.array([[1, 1], [6, 1]])), ((3, 4), (np.array([0, 2, 0]), np.array([1, 3, 1]))), ((3, 4), (slice(None), [3, 0, 0])),
    ((2, 3), MASK), ((2, 3), (slice(None), np.array([True, False, True]))), ((2, 3, 5), ([1, 0], slice(1, 3), [4, 4])), ((2, 3, 5), (0, slice(None), [1, 1, 3])),
    ((7,), np.zeros(0, np.int64)), ((7,), np.zeros(7, np.bool_)), ((2, 3), True), ((3, 4), np.array(1)),
)  # fmt: skip
TAKE: tuple[tuple[Shape, Any, int | None], ...] = (
    ((7,), np.array([3, 3, -1]), None), ((7,), 2, 0), ((3, 4), np.array([[0, 5], [11, 5]]), None), ((3, 4), np.array([2, 0, 2, 2]), 0),
    ((2, 3, 5), np.array([[1, 0], [1, 1]]), 1), ((2, 3, 5), np.array([4, 4]), -1), ((5, 2), np.zeros(0, np.int64), 0), ((0, 3), np.array([1]), 1),
)  # fmt: skip
ALONG: tuple[tuple[Shape, np.ndarray, int | None], ...] = (
    ((7,), np.array([3, 3, -1]), 0), ((3, 4), np.array([[0], [3], [1]]), 1), ((3, 4), np.array([[2, 0, 2, 1], [2, 2, 0, 1]]), 0),
    ((3, 4), np.array([[1, 1, 3]]), 1), ((1, 4), np.array([[1, 1], [3, 0]]), -1), ((3, 4), np.array([11, 0, 0]), None), ((2, 3), np.zeros((2, 0), np.int64), 1),
)  # fmt: skip


def _index(draw: Draw) -> Iterator[Case]:
    for shape, key in KEYS:
        yield Case(draw.values(shape), key)
    yield Case(draw.strided((3, 5)), (slice(None), [4, 0]))


def _written(draw: Draw) -> Iterator[Case]:
    """Values of the selected shape, and values that broadcast to it."""
    for shape, key in KEYS:
        x = draw.values(shape)
        selected = x[key].shape
        yield Case(x, key, draw.values(selected))
        if selected:
            yield Case(x, key, draw.values((1, *selected[1:])))
    yield Case(draw.values((3, 4)), 1, draw.values(()))
    yield Case(draw.strided((3, 5)), (slice(None), [4, 0]), draw.strided((3, 2)))


def _taken(calls: tuple[Any, ...]) -> Callable[[Draw], Iterator[Case]]:
    def cases(draw: Draw) -> Iterator[Case]:
        for shape, indices, axis in calls:
            yield Case(draw.values(shape), indices, axis=axis)
        yield Case(draw.strided((3, 5)), np.array([[4, 0], [1, 1], [2, 0]]), axis=1)

    return cases


_X, _TWICE = np.array([NAN, INF, -0.0]), np.array([0, 2, 2])

PAIRS = [
    Pair("index", _index, ties("a position picked twice", Case(_X, _TWICE), [1.0, 0.0, 2.0]) + ties("nan", Case(_X, 0), [1.0, 0.0, 0.0])),
    Pair(
        "index_set", _written,
        ties("a position written twice: the last value stays", Case(_X, _TWICE, np.array([1.0, 2.0, 3.0])), [0.0, 1.0, 0.0], [1.0, 0.0, 1.0])
        + ties("a nan replaced", Case(_X, 0, np.array(1.0)), [0.0, 1.0, 1.0], 1.0),
    ),
    Pair(
        "index_add", _written,
        ties("a position added to twice", Case(_X, _TWICE, np.array([1.0, 2.0, 3.0])), [1.0, 1.0, 1.0], [1.0, 1.0, 1.0]),
    ),
    Pair("take", _taken(TAKE), ties("a position taken twice", Case(_X, _TWICE, axis=0), [1.0, 0.0, 2.0])),
    Pair("take_along_axis", _taken(ALONG), ties("a position taken twice", Case(_X, _TWICE, axis=0), [1.0, 0.0, 2.0])),
]  # fmt: skip
