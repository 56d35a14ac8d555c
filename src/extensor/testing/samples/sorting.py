"""Sample inputs and edges of sorting."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..registry import Case, Draw, Pair, ties

NAN = float("nan")


def _sort(draw: Draw) -> Iterator[Case]:
    for shape, axis in (
        ((0,), 0),
        ((1,), 0),
        ((7,), -1),
        ((33,), -1),
        ((3, 4), None),
        ((3, 4), 0),
        ((2, 3, 5), 1),
        ((2, 0, 3), 1),
    ):
        yield Case(draw.distinct(shape), axis=axis)
    yield Case(draw.distinct((5, 6))[::2, ::-2])
    for shape, along in (((7,), -1), ((3, 4), None), ((2, 3, 5), 1), ((0,), 0)):
        yield Case(draw.distinct(shape), axis=along, descending=True)


def _top_k(draw: Draw) -> Iterator[Case]:
    for shape, k, axis in (
        ((0,), 0, 0),
        ((1,), 1, 0),
        ((7,), 3, -1),
        ((33,), 33, -1),
        ((3, 4), 0, -1),
        ((3, 4), 2, 0),
        ((2, 3, 5), 2, 1),
    ):
        yield Case(draw.distinct(shape), k, axis=axis)
    yield Case(draw.distinct((5, 6))[::2, ::-2], 2)


PAIRS = [
    Pair("sort", _sort, ties("a tie", Case(np.array([1.0, 0.0, 1.0])), [1.0, 1.0, 1.0]) + ties("nan", Case(np.array([NAN, 1.0])), [1.0, 1.0])),
    Pair(
        "top_k", _top_k,
        ties("a tie: the first is taken", Case(np.array([1.0, 2.0, 2.0]), 1), [0.0, 1.0, 0.0])
        + ties("0, -0", Case(np.array([-0.0, 0.0]), 1), [1.0, 0.0])
        + ties("nan is the largest", Case(np.array([1.0, NAN, 3.0]), 1), [0.0, 1.0, 0.0]),
    ),
]  # fmt: skip
