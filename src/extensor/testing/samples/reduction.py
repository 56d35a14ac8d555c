"""Sample inputs and edges of the reductions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..registry import NONZERO, REAL, Case, Domain, Draw, Edge, Pair, ties

INF, NAN = float("inf"), float("nan")

# shape and options: everything at once, each kind of axis, no axis at all
OVER: tuple[tuple[tuple[int, ...], dict[str, Any]], ...] = (
    ((), {}), ((1,), {}), ((7,), {}), ((33,), {}), ((3, 4), {}), ((3, 4), {"axis": 0}), ((3, 4), {"axis": -1, "keepdims": True}),
    ((2, 3, 5), {"axis": (0, 2)}), ((2, 3, 5), {"axis": (-1, 1), "keepdims": True}), ((2, 3), {"axis": ()}),
    ((2, 0, 3), {"axis": 0}), ((5, 1, 3), {"axis": 1}),
)  # fmt: skip
NOTHING: tuple[tuple[tuple[int, ...], dict[str, Any]], ...] = (
    ((0,), {}),
    ((2, 0, 3), {"axis": 1, "keepdims": True}),
)


def _over(domain: Domain = REAL, nothing: bool = False) -> Callable[[Draw], Iterator[Case]]:
    """Every kind of axis, a non-contiguous input and, where its result is a number, the reduction of nothing."""

    def cases(draw: Draw) -> Iterator[Case]:
        for shape, where in OVER + (NOTHING if nothing else ()):
            yield Case(draw.values(shape, domain), **where)
        yield Case(draw.strided((3, 5), domain), axis=1)

    return cases


def _distinct(draw: Draw) -> Iterator[Case]:
    for shape, where in OVER:
        yield Case(draw.distinct(shape), **where)
    yield Case(draw.distinct((5, 6))[::2, ::-2], axis=1)


def _spread_out(draw: Draw) -> Iterator[Case]:
    """For std: slices whose elements differ, so that the deviation is well away from 0, where it has a kink."""
    for case in _distinct(draw):
        yield Case(*case.args, **case.kwargs)
        yield Case(*case.args, **case.kwargs, ddof=0.5)


def _with_zeros(draw: Draw) -> Iterator[Case]:
    """Products of at most 30 factors, with no, one and two zeros in a slice."""
    for case in _over(Domain(-2.0, 2.0, avoid=(0.0,), margin=0.5), nothing=True)(draw):
        if case.args[0].size <= 30:
            yield case
    x = draw.values((3, 4), NONZERO)
    x[1, 2] = x[2, 0] = x[2, 3] = 0.0
    yield Case(x, axis=1)
    yield Case(x, axis=0, keepdims=True)


def _running(draw: Draw) -> Iterator[Case]:
    for shape, axis in (
        ((), None),
        ((0,), 0),
        ((1,), 0),
        ((7,), -1),
        ((33,), None),
        ((3, 4), None),
        ((3, 4), 0),
        ((2, 3, 5), 1),
        ((2, 0, 3), 1),
    ):
        yield Case(draw.values(shape), axis=axis)
    yield Case(draw.strided((3, 5)), axis=1)


def _edge(label: str, values: list[float], expect: list[float], **options: Any) -> tuple[Edge, ...]:
    return ties(label, Case(np.array(values), **options), expect)


PAIRS = [
    Pair("sum", _over(nothing=True), _edge("nan", [1.0, NAN], [1.0, 1.0]) + _edge("inf, -inf", [INF, -INF], [1.0, 1.0])),
    Pair("mean", _over(), _edge("nan", [1.0, NAN], [0.5, 0.5])),
    Pair(
        "max_reduce", _distinct,
        _edge("a tie", [1.0, 3.0, 2.0, 3.0], [0.0, 0.5, 0.0, 0.5]) + _edge("0, -0", [0.0, -0.0], [0.5, 0.5])
        + _edge("inf twice", [INF, INF, 1.0], [0.5, 0.5, 0.0]) + _edge("nan", [1.0, NAN, 2.0], [NAN, NAN, NAN]),
    ),
    Pair(
        "min_reduce", _distinct,
        _edge("a tie", [1.0, 3.0, 1.0, 3.0], [0.5, 0.0, 0.5, 0.0]) + _edge("0, -0", [0.0, -0.0], [0.5, 0.5])
        + _edge("-inf twice", [-INF, -INF, 1.0], [0.5, 0.5, 0.0]) + _edge("nan", [1.0, NAN, 2.0], [NAN, NAN, NAN]),
    ),
    Pair(
        "variance", _over(),
        _edge("equal elements", [2.0, 2.0], [0.0, 0.0]) + _edge("ddof = n", [1.0, 2.0], [-INF, INF], ddof=2)
        + _edge("one element, ddof = 1", [1.0], [NAN], ddof=1) + _edge("inf", [INF, 1.0], [NAN, -INF])
        + _edge("nan", [1.0, NAN], [NAN, NAN]),
    ),
    Pair(
        "std", _spread_out,
        _edge("equal elements", [2.0, 2.0], [0.0, 0.0]) + _edge("one element, ddof = 1", [1.0], [NAN], ddof=1)
        + _edge("inf", [INF, 1.0], [NAN, NAN]) + _edge("nan", [1.0, NAN], [NAN, NAN]),
    ),
    Pair(
        "prod", _with_zeros,
        _edge("one zero", [2.0, 0.0, 3.0], [0.0, 6.0, 0.0]) + _edge("two zeros", [0.0, 0.0, 3.0], [0.0, 0.0, 0.0])
        + _edge("inf", [INF, 2.0, 3.0], [6.0, INF, INF]) + _edge("nan", [NAN, 2.0, 3.0], [NAN, NAN, NAN]),
    ),
    Pair(
        "logsumexp", _over(),
        _edge("equal elements", [1000.0, 1000.0], [0.5, 0.5]) + _edge("-inf", [-INF, 1.0], [0.0, 1.0])
        + _edge("all -inf", [-INF, -INF], [NAN, NAN]) + _edge("inf", [INF, 1.0], [NAN, 0.0])
        + _edge("nan", [1.0, NAN], [NAN, NAN]),
    ),
    Pair("cumsum", _running, _edge("nan", [1.0, NAN, 2.0], [3.0, 2.0, 1.0])),
]  # fmt: skip
