"""Sample inputs and edges of dropout."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..registry import SHAPES, Case, Draw, Pair, ties

INF, NAN = float("inf"), float("nan")


def _dropout(draw: Draw) -> Iterator[Case]:
    for seed, shape in enumerate(SHAPES):
        yield Case(draw.values(shape), 0.3, seed)
    yield Case(draw.strided((3, 5)), 0.5, 7)
    yield Case(draw.values((2, 3)), 0.0, 0)
    yield Case(draw.values((2, 3)), 1.0, 0)


PAIRS = [
    Pair(
        "dropout", _dropout,
        ties("p = 0 keeps all", Case(np.array([1.0, NAN, INF]), 0.0, 0), [1.0, 1.0, 1.0])
        + ties("p = 1 drops all", Case(np.array([1.0, NAN, INF]), 1.0, 0), [0.0, 0.0, 0.0])
        + ties("p = 0.5", Case(np.array([NAN, NAN, 1.0, 1.0, 1.0, INF]), 0.5, 0), [2.0, 0.0, 0.0, 0.0, 2.0, 2.0]),
    )
]  # fmt: skip
