"""Sample inputs and edges of the poolings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..registry import Case, Draw, Pair, ties

INF, NAN = float("inf"), float("nan")
Row = tuple[tuple[int, ...], dict[str, Any]]

# windows side by side, overlapping, with gaps, with margins, hanging over the end; empty batches
POOLS: tuple[Row, ...] = (
    ((2, 3, 4, 6), {"kernel_size": 2}), ((1, 2, 5, 7), {"kernel_size": 3, "stride": 2, "padding": 1}), ((1, 2, 6, 5), {"kernel_size": (2, 3), "stride": (1, 2)}),
    ((1, 1, 7, 5), {"kernel_size": 2, "stride": 3}), ((1, 2, 5, 6), {"kernel_size": 3, "stride": 2, "padding": (0, 1), "ceil_mode": True}),
    ((1, 1, 4, 4), {"kernel_size": 4}), ((0, 2, 4, 4), {"kernel_size": 2}), ((1, 1, 1, 1), {"kernel_size": 1}),
)  # fmt: skip
INSIDE: Row = (
    (1, 2, 5, 6),
    {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True, "count_include_pad": False},
)


def _max_pool2d(draw: Draw) -> Iterator[Case]:
    for shape, options in POOLS:
        yield Case(draw.distinct(shape), **options)
    yield Case(np.asfortranarray(draw.distinct((2, 2, 4, 4))), kernel_size=2)


def _avg_pool2d(draw: Draw) -> Iterator[Case]:
    for shape, options in (*POOLS, INSIDE):
        yield Case(draw.values(shape), **options)
    yield Case(draw.strided((2, 2, 4, 4)), kernel_size=2)


def _whole(shapes: Sequence[tuple[int, ...]]) -> Callable[[Draw], Iterator[Case]]:
    def cases(draw: Draw) -> Iterator[Case]:
        for shape in shapes:
            yield Case(draw.values(shape))
        yield Case(draw.strided((2, 2, 3, 4)))

    return cases


def _adaptive(draw: Draw) -> Iterator[Case]:
    for shape, size in (
        ((2, 3, 4, 6), 2), ((1, 2, 5, 7), (3, 2)), ((1, 2, 3, 4), (None, 2)), ((1, 1, 3, 2), (5, 4)), ((0, 2, 4, 4), 2),
    ):  # fmt: skip
        yield Case(draw.values(shape), output_size=size)
    yield Case(draw.strided((2, 2, 3, 4)), output_size=1)


def _image(*rows: list[float]) -> np.ndarray:
    return np.array([[rows]])


PAIRS = [
    Pair(
        "max_pool2d", _max_pool2d,
        ties("the first of a tie", Case(_image([1.0, 2.0], [2.0, 0.0]), kernel_size=2), [[[[0.0, 1.0], [0.0, 0.0]]]])
        + ties("0 and -0 tie", Case(_image([-0.0, 0.0]), kernel_size=(1, 2)), [[[[1.0, 0.0]]]])
        + ties("-inf, before the padding", Case(_image([-INF, -INF]), kernel_size=3, padding=1, stride=2), [[[[1.0, 0.0]]]])
        + ties("inf", Case(_image([INF, 1.0, INF]), kernel_size=(1, 3)), [[[[1.0, 0.0, 0.0]]]])
        + ties("nan takes its windows", Case(_image([1.0, NAN, 3.0, 4.0, 0.0, 1.0]), kernel_size=(1, 2)), [[[[NAN, NAN, 0.0, 1.0, 0.0, 1.0]]]]),
    ),
    Pair(
        "avg_pool2d", _avg_pool2d,
        ties("the padding counts", Case(_image([3.0, 6.0]), kernel_size=(1, 3), padding=(0, 1), stride=1), [[[[2 / 3, 2 / 3]]]])
        + ties("the padding does not count", Case(_image([3.0, 6.0]), kernel_size=(1, 3), padding=(0, 1), stride=1, count_include_pad=False), [[[[1.0, 1.0]]]])
        + ties("nan", Case(_image([NAN, 6.0, 1.0, 2.0]), kernel_size=(1, 2)), [[[[0.5, 0.5, 0.5, 0.5]]]]),
    ),
    Pair("global_avg_pool2d", _whole(((2, 3, 4, 5), (1, 2, 1, 7), (0, 2, 3, 3), (1, 1, 1, 1))), ties("nan", Case(_image([NAN, 6.0])), [[[[0.5, 0.5]]]])),
    Pair(
        "adaptive_avg_pool2d", _adaptive,
        ties("cells that overlap", Case(_image([1.0, 2.0, 6.0]), output_size=(1, 2)), [[[[0.5, 1.0, 0.5]]]])
        + ties("nan", Case(_image([NAN, 6.0, 1.0, 2.0]), output_size=(1, 2)), [[[[0.5, 0.5, 0.5, 0.5]]]]),
    ),
]  # fmt: skip
