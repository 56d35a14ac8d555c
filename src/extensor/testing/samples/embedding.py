"""Sample inputs and edges of embedding."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..registry import Case, Draw, Pair, ties


def _embedding(draw: Draw) -> Iterator[Case]:
    for shape in ((), (1,), (7,), (2, 3), (0,), (2, 0)):
        yield Case(draw.integers(0, 4, shape), draw.values((4, 3)))
    yield Case(np.zeros(5, np.int32), draw.strided((2, 3)))
    yield Case(np.array([0, 1, 1]), draw.values((3, 2)), padding_idx=-1)
    yield Case(np.array([0, 1], np.uint8), draw.values((3, 0)))


PAIRS = [
    Pair(
        "embedding", _embedding,
        ties("a row that repeats", Case(np.array([1, 1, 0]), np.zeros((3, 1))), [[1.0], [2.0], [0.0]])
        + ties("a nan in the table", Case(np.array([0]), np.array([[float("nan")], [1.0]])), [[1.0], [0.0]])
        + ties("the padding row", Case(np.array([1, 1, 0]), np.zeros((3, 1)), padding_idx=1), [[1.0], [0.0], [0.0]]),
    )
]  # fmt: skip
