"""Sample inputs and edges of softmax and its logarithm."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..registry import Case, Draw, Edge, Pair

INF, NAN = float("inf"), float("nan")


def _rows(draw: Draw) -> Iterator[Case]:
    """Every axis of several shapes: 0-d, empty, single elements, longer than a vector register."""
    yield Case(draw.values(()))
    for shape, axis in (
        ((1,), 0), ((0,), 0), ((7,), -1), ((33,), 0), ((3, 4), -1), ((3, 4), 0), ((4, 1), 1),
        ((2, 0, 3), 1), ((2, 0, 3), 2), ((2, 3, 5), 1), ((2, 3, 5), -3),
    ):  # fmt: skip
        yield Case(draw.values(shape), axis=axis)
    yield Case(draw.strided((3, 5)), axis=0)


def _at_rows(*rows: list[float]) -> tuple[Edge, ...]:
    return tuple(Edge(f"[{', '.join(f'{v:g}' for v in row)}]", Case(np.array(row))) for row in rows)


_EDGES = _at_rows([1000.0, 1000.0], [-1000.0, 1000.0], [1.0, -INF], [-INF, -INF], [1.0, INF], [1.0, NAN, 2.0])

PAIRS = [Pair("softmax", _rows, _EDGES), Pair("log_softmax", _rows, _EDGES)]
