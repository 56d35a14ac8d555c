"""Sample inputs and edges of attention."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..registry import Case, Draw, Pair, ties

INF, NAN = float("inf"), float("nan")


def _attention(draw: Draw) -> Iterator[Case]:
    def inputs(q: Any, k: Any, v: Any) -> tuple[np.ndarray, ...]:
        return draw.values(q), draw.values(k), draw.values(v)

    yield Case(*inputs((3, 2), (3, 2), (3, 2)))
    yield Case(*inputs((2, 3), (4, 3), (4, 5)), scale=0.3)
    yield Case(*inputs((2, 2, 3, 2), (2, 2, 3, 2), (2, 2, 3, 2)), causal=True)
    yield Case(*inputs((2, 3, 2), (4, 2), (1, 4, 2)), causal=True)
    yield Case(*inputs((4, 2), (2, 2), (2, 1)), causal=True)
    mask = np.array([[True, False, True], [False, False, False], [True, True, False]])
    yield Case(*inputs((2, 3, 2), (2, 3, 2), (2, 3, 2)), mask)
    yield Case(*inputs((3, 2), (3, 2), (3, 2)), mask, causal=True)
    yield Case(*inputs((2, 3, 2), (2, 3, 2), (2, 3, 2)), draw.values((3, 3)))
    yield Case(*inputs((3, 2), (4, 2), (4, 2)), draw.values((1, 4)), causal=True)
    yield Case(*inputs((3, 2), (4, 2), (4, 2)), draw.values(4))
    yield Case(*inputs((0, 2), (3, 2), (3, 2)))
    yield Case(*inputs((2, 2), (0, 2), (0, 2)))
    yield Case(draw.strided((3, 4)), draw.strided((3, 4)), draw.strided((3, 4)))


def _self_attention(draw: Draw) -> Iterator[Case]:
    yield Case(draw.values((2, 3, 6)))
    yield Case(draw.values((2, 4, 12)), num_heads=2, causal=True)
    yield Case(draw.values((1, 1, 9)), num_heads=3)
    yield Case(draw.values((0, 2, 6)), num_heads=2)
    yield Case(draw.values((2, 0, 6)), num_heads=1, causal=True)
    yield Case(draw.strided((2, 3, 6)), num_heads=2)


_Q, _V = np.zeros((1, 1)), np.array([[1.0], [3.0]])
_K = np.zeros((2, 1))
_ROWS = np.array([[[0.0, 0.0, 1.0], [0.0, 0.0, 3.0]]])
_NAN_LAST = np.array([[[0.0, 0.0, 1.0], [0.0, NAN, 3.0]]])

PAIRS = [
    Pair(
        "scaled_dot_product_attention", _attention,
        ties("a query that may see nothing", Case(_Q, _K, _V, np.array([[False, False]])), [[0.0]], [[0.0], [0.0]], [[0.0], [0.0]], None)
        + ties("a mask of -inf hides", Case(_Q, _K, _V, np.array([[-INF, 0.0]])), [[0.0]], [[0.0], [0.0]], [[0.0], [1.0]], [[0.0, 0.0]])
        + ties("a mask of -inf alone", Case(_Q, _K, _V, np.array([[-INF, -INF]])), [[0.0]], [[0.0], [0.0]], [[0.0], [0.0]], [[0.0, 0.0]])
        + ties("equal scores share", Case(_Q, _K, _V), [[0.0]], [[0.0], [0.0]], [[0.5], [0.5]], None)
        + ties("scores of 1000", Case(np.array([[1000.0]]), np.array([[1.0], [0.0]]), _V), [[0.0]], [[0.0], [0.0]], [[1.0], [0.0]], None)
        + ties("a nan that is hidden", Case(np.zeros((2, 1)), np.array([[0.0], [NAN]]), np.array([[1.0], [NAN]]), np.array([[True, False]])), [[0.0], [0.0]], [[0.0], [0.0]], [[2.0], [0.0]], None)
        + ties("a nan in q", Case(np.array([[NAN]]), _K, _V), [[NAN]], [[NAN], [NAN]], [[NAN], [NAN]], None),
    ),
    Pair(
        "self_attention", _self_attention,
        ties("equal scores share", Case(_ROWS), [[[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]])
        + ties("the first row sees itself alone", Case(_ROWS, causal=True), [[[0.0, 0.0, 1.5], [0.0, 0.0, 0.5]]])
        + ties("a nan behind a row", Case(_NAN_LAST, causal=True), [[[0.0, NAN, NAN], [NAN, NAN, NAN]]]),
    ),
]  # fmt: skip
