"""Sample inputs and edges of the functions that give elements another shape or order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..registry import SHAPES, Case, Draw, Pair, ties

INF, NAN = float("inf"), float("nan")
Calls = tuple[tuple[tuple[int, ...], tuple[Any, ...]], ...]


def _calls(calls: Calls) -> Callable[[Draw], Iterator[Case]]:
    """Cases from (shape, further arguments); the last once more on memory that is not contiguous."""

    def cases(draw: Draw) -> Iterator[Case]:
        for shape, arguments in calls:
            yield Case(draw.values(shape), *arguments)
        shape, arguments = calls[-1]
        yield Case(draw.strided(shape), *arguments)

    return cases


RESHAPE: Calls = (
    ((), ((1, 1),)), ((1,), ((),)), ((0,), ((2, 0),)), ((2, 0, 3), ((0, 5),)), ((7,), (-1,)), ((33,), ((3, 11),)),
    ((2, 3, 5), ((5, -1),)), ((3, 4), ((2, 6),)),
)  # fmt: skip
SQUEEZE: Calls = (
    ((), ()), ((1,), ()), ((0, 1), (1,)), ((1, 7, 1), ((0, -1),)), ((2, 1, 3, 1), (1,)), ((3, 1, 4), ()),
)  # fmt: skip
UNSQUEEZE: Calls = (((), (0,)), ((0,), (-1,)), ((7,), (1,)), ((2, 3), ((0, -1),)), ((3, 4), (1,)))
FLATTEN: Calls = (
    ((), ()),
    ((2, 0, 3), ()),
    ((7,), ()),
    ((2, 3, 5), (1,)),
    ((2, 3, 5), (0, 1)),
    ((2, 3, 4), (-2, -1)),
    ((3, 4), ()),
)
RAVEL: Calls = tuple((shape, ()) for shape in (*SHAPES, (3, 5)))
PERMUTE: Calls = (
    ((), ((),)),
    ((7,), ((0,),)),
    ((2, 0, 3), ((1, 2, 0),)),
    ((2, 3, 5), ((-1, 0, 1),)),
    ((3, 4), ((1, 0),)),
)
MOVEAXIS: Calls = (
    ((7,), (0, -1)), ((2, 3, 5), (0, 2)), ((2, 3, 5), ((0, 1), (-1, 0))), ((2, 0, 3), (1, 0)), ((2, 3, 4, 2), ((3, 1), (0, 2))), ((3, 4), (0, 1)),
)  # fmt: skip
SWAPAXES: Calls = (((7,), (0, 0)), ((2, 3, 5), (0, -1)), ((2, 0, 3), (1, 2)), ((3, 4), (0, 1)))
FLIP: Calls = (
    ((), ()),
    ((0,), ()),
    ((7,), ()),
    ((33,), (0,)),
    ((2, 3, 5), ((0, -1),)),
    ((2, 0, 3), (1,)),
    ((3, 4), (1,)),
)
ROLL: Calls = (
    ((), (3,)), ((0,), (1,)), ((7,), (2,)), ((33,), (-40,)), ((3, 4), (5,)), ((2, 3, 5), ((1, -2), (0, 2))), ((3, 5), ((1, 2), 1)), ((2, 3), (1, (0, 1))),
    ((3, 4), (1, 0)),
)  # fmt: skip

_KEPT = np.array([[NAN, 1.0], [INF, -0.0]])


def _everywhere(*arguments: Any) -> tuple[Any, ...]:
    """Elements are moved, not computed with: the gradient is 1, whatever they are."""
    return ties("nan, inf, -0", Case(_KEPT, *arguments), [[1.0, 1.0], [1.0, 1.0]])


PAIRS = [
    Pair("reshape", _calls(RESHAPE), _everywhere((4,))),
    Pair("squeeze", _calls(SQUEEZE), _everywhere()),
    Pair("unsqueeze", _calls(UNSQUEEZE), _everywhere(1)),
    Pair("expand_dims", _calls(UNSQUEEZE), _everywhere(1)),
    Pair("flatten", _calls(FLATTEN), _everywhere()),
    Pair("ravel", _calls(RAVEL), _everywhere()),
    Pair("permute", _calls(PERMUTE), _everywhere((1, 0))),
    Pair("moveaxis", _calls(MOVEAXIS), _everywhere(0, 1)),
    Pair("swapaxes", _calls(SWAPAXES), _everywhere(0, 1)),
    Pair("flip", _calls(FLIP), _everywhere()),
    Pair("roll", _calls(ROLL), _everywhere(1)),
]
