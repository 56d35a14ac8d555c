"""Sample inputs and edges of what sequences and volumes are convolved and pooled with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..registry import Case, Draw, Pair, ties
from .conv import Row, _cases

INF, NAN = float("inf"), float("nan")

CONV3D: tuple[Row, ...] = (
    ((1, 2, 3, 4, 3), (3, 2, 2, 3, 2), {"padding": 1}), ((2, 2, 4, 3, 3), (2, 2, 3, 2, 1), {"stride": (2, 1, 2), "padding": (1, 0, 0)}),
    ((1, 4, 3, 3, 2), (4, 2, 2, 2, 1), {"groups": 2, "padding": "same"}), ((1, 1, 4, 4, 3), (2, 1, 2, 2, 2), {"dilation": (2, 1, 2)}),
    ((0, 2, 2, 2, 2), (3, 2, 2, 2, 2), {}), ((1, 1, 1, 1, 1), (1, 1, 1, 1, 1), {}),
)  # fmt: skip
CONV_TRANSPOSE3D: tuple[Row, ...] = (
    ((1, 2, 2, 2, 3), (2, 2, 2, 3, 1), {}), ((1, 2, 2, 3, 2), (2, 1, 2, 2, 2), {"stride": (2, 1, 2), "padding": (1, 0, 1), "output_padding": (1, 0, 0)}),
    ((1, 4, 2, 2, 2), (4, 1, 2, 1, 2), {"groups": 2, "dilation": 2}), ((0, 2, 2, 2, 2), (2, 3, 2, 2, 2), {}),
)  # fmt: skip
CONV_TRANSPOSE1D: tuple[Row, ...] = (
    ((2, 3, 4), (3, 2, 3), {}), ((1, 4, 5), (4, 2, 3), {"groups": 2, "stride": 3, "padding": 1, "output_padding": 2}),
    ((1, 2, 3), (2, 2, 2), {"dilation": 2}), ((0, 2, 3), (2, 3, 2), {}),
)  # fmt: skip

Draws = Callable[[Draw], Iterator[Case]]


def _pooled(
    shapes: tuple[tuple[int, ...], ...], options: tuple[dict[str, Any], ...], distinct: bool
) -> Draws:
    def cases(draw: Draw) -> Iterator[Case]:
        for shape in shapes:
            for named in options:
                yield Case(draw.distinct(shape) if distinct else draw.values(shape), **named)

    return cases


_PLAIN: tuple[dict[str, Any], ...] = (
    {"kernel_size": 2}, {"kernel_size": 3, "stride": 2, "padding": 1}, {"kernel_size": 2, "stride": 2, "ceil_mode": True},
)  # fmt: skip
_MAX = (*_PLAIN, {"kernel_size": 2, "stride": 1, "padding": 1, "dilation": 2})
_AVG = (*_PLAIN, {"kernel_size": 3, "stride": 2, "padding": 1, "count_include_pad": False})
_SEQUENCES = ((2, 2, 7), (0, 2, 4))
_VOLUMES = ((1, 2, 4, 3, 5), (0, 1, 4, 4, 4))
_CELLS = ({"output_size": 2}, {"output_size": 3}, {"output_size": 1})

_SERIES = np.array([[[1.0, 3.0, 3.0, 2.0]]])
_BLOCK = np.array([[[[[1.0, 3.0]], [[3.0, 2.0]]]]])
_IMAGE = np.array([[[[1.0, 3.0], [3.0, 2.0]]]])
_FIRST = [[[0.0, 1.0, 1.0, 0.0]]]

PAIRS = [
    Pair("conv3d", _cases(CONV3D, 0), ties("nan reaches what its window gives", Case(np.array([[[[[NAN, 1.0]]]]]), np.ones((1, 1, 1, 1, 1))), [[[[[1.0, 1.0]]]]], [[[[[NAN]]]]])),
    Pair("conv_transpose3d", _cases(CONV_TRANSPOSE3D, 1), ties("nan", Case(np.array([[[[[NAN, 1.0]]]]]), np.ones((1, 1, 1, 1, 1))), [[[[[1.0, 1.0]]]]], [[[[[NAN]]]]])),
    Pair("conv_transpose1d", _cases(CONV_TRANSPOSE1D, 1), ties("nan", Case(np.array([[[NAN, 1.0]]]), np.ones((1, 1, 1))), [[[1.0, 1.0]]], [[[NAN]]])),
    Pair("max_pool1d", _pooled(_SEQUENCES, _MAX, True), ties("the first of a tie", Case(_SERIES, kernel_size=2), _FIRST) + ties("nan takes its windows", Case(np.array([[[1.0, NAN, 3.0, 4.0]]]), kernel_size=2), [[[NAN, NAN, 0.0, 1.0]]])),
    Pair("max_pool3d", _pooled(_VOLUMES, _MAX, True), ties("the first of a tie", Case(_BLOCK, kernel_size=(2, 1, 2)), [[[[[0.0, 1.0]], [[0.0, 0.0]]]]]) + ties("nan takes its windows", Case(np.array([[[[[1.0, NAN]]]]]), kernel_size=(1, 1, 2)), [[[[[NAN, NAN]]]]])),
    Pair("avg_pool1d", _pooled(_SEQUENCES, _AVG, False), ties("nan", Case(np.array([[[NAN, 1.0]]]), kernel_size=2), [[[0.5, 0.5]]])),
    Pair("avg_pool3d", _pooled(_VOLUMES, _AVG, False), ties("nan", Case(np.full((1, 1, 1, 1, 2), NAN), kernel_size=(1, 1, 2)), [[[[[0.5, 0.5]]]]])),
    Pair("adaptive_avg_pool1d", _pooled(_SEQUENCES, _CELLS, False), ties("cells that overlap", Case(np.array([[[1.0, 2.0, 6.0]]]), output_size=2), [[[0.5, 1.0, 0.5]]]) + ties("nan", Case(np.array([[[NAN, 1.0]]]), output_size=1), [[[0.5, 0.5]]])),
    Pair("adaptive_avg_pool3d", _pooled(_VOLUMES, _CELLS, False), ties("nan", Case(np.full((1, 1, 2, 1, 2), NAN), output_size=1), [[[[[0.25, 0.25]], [[0.25, 0.25]]]]])),
    Pair("adaptive_max_pool1d", _pooled(_SEQUENCES, _CELLS, True), ties("the first of a tie", Case(_SERIES, output_size=2), _FIRST) + ties("nan takes its cells", Case(np.array([[[1.0, NAN, 3.0, 4.0]]]), output_size=2), [[[NAN, NAN, 0.0, 1.0]]])),
    Pair("adaptive_max_pool2d", _pooled(((2, 2, 5, 4), (0, 1, 3, 3)), (*_CELLS, {"output_size": (3, None)}), True), ties("the first of a tie", Case(_IMAGE, output_size=1), [[[[0.0, 1.0], [0.0, 0.0]]]]) + ties("nan takes its cells", Case(np.array([[[[1.0, 2.0], [NAN, 3.0]]]]), output_size=(1, 2)), [[[[NAN, 0.0], [NAN, 1.0]]]])),
    Pair("adaptive_max_pool3d", _pooled(_VOLUMES, _CELLS, True), ties("the first of a tie", Case(_BLOCK, output_size=1), [[[[[0.0, 1.0]], [[0.0, 0.0]]]]]) + ties("nan takes its cells", Case(np.array([[[[[1.0, NAN]]]]]), output_size=1), [[[[[NAN, NAN]]]]])),
]  # fmt: skip
