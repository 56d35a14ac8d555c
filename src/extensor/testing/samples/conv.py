"""Sample inputs and edges of the convolutions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..registry import Case, Domain, Draw, Pair, ties

INF, NAN = float("inf"), float("nan")
Row = tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]

# shapes of x and weight: strides, margins, gaps, groups, depthwise, odd kernels, leftovers at the end, empty batches
CONV1D: tuple[Row, ...] = (
    ((2, 3, 7), (4, 3, 3), {}), ((2, 2, 8), (3, 2, 3), {"stride": 2, "padding": 1}), ((1, 4, 6), (4, 2, 2), {"groups": 2, "padding": "same"}),
    ((1, 2, 9), (2, 2, 3), {"dilation": 2, "stride": 3, "padding": 2}), ((0, 2, 5), (3, 2, 2), {}), ((1, 1, 1), (1, 1, 1), {}),
)  # fmt: skip
CONV2D: tuple[Row, ...] = (
    ((2, 3, 5, 6), (4, 3, 3, 3), {"padding": 1}), ((1, 2, 7, 8), (3, 2, 3, 2), {"stride": (3, 2), "padding": (1, 0)}),
    ((2, 4, 4, 5), (4, 2, 2, 3), {"groups": 2, "padding": "same"}), ((1, 3, 5, 5), (6, 1, 3, 3), {"groups": 3, "padding": "valid"}),
    ((1, 2, 7, 7), (2, 2, 3, 1), {"dilation": (2, 3), "stride": 2, "padding": 2}), ((2, 3, 4, 4), (5, 3, 1, 1), {"stride": 2}),
    ((0, 2, 4, 4), (3, 2, 3, 3), {}), ((1, 1, 1, 1), (1, 1, 1, 1), {}), ((1, 2, 3, 3), (2, 2, 3, 3), {}),
)  # fmt: skip
CONV_TRANSPOSE2D: tuple[Row, ...] = (
    ((2, 3, 3, 4), (3, 2, 3, 3), {}), ((1, 2, 3, 3), (2, 3, 3, 2), {"stride": (2, 3), "padding": (1, 0), "output_padding": (1, 2)}),
    ((2, 4, 3, 2), (4, 2, 2, 3), {"groups": 2, "stride": 2}), ((1, 3, 3, 3), (3, 1, 2, 2), {"groups": 3, "dilation": 2, "padding": 1}),
    ((1, 2, 2, 2), (2, 2, 2, 1), {"dilation": (3, 1), "output_padding": (2, 0)}), ((0, 2, 2, 2), (2, 3, 2, 2), {}),
)  # fmt: skip


def _cases(rows: tuple[Row, ...], output_axis: int) -> Any:
    def cases(draw: Draw) -> Iterator[Case]:
        for i, (x, weight, options) in enumerate(rows):
            channels = weight[output_axis] * (options.get("groups", 1) if output_axis else 1)
            bias = draw.values((channels,)) if i % 3 != 2 else None
            yield Case(draw.values(x), draw.values(weight), bias, **options)
        x, weight, _ = rows[0]
        yield Case(draw.strided(x), draw.strided(weight), draw.values((weight[output_axis],)))

    return cases


def _for_winograd(draw: Draw) -> Iterator[Case]:
    """Large enough for Winograd's method, in float32; the gradients are about 1, as errors are measured by that."""
    x, weight = Domain(-0.02, 0.02), Domain(-0.05, 0.05)
    yield Case(draw.values((8, 16, 16, 16), x), draw.values((16, 16, 3, 3), weight), padding=1)


def _image(*values: float) -> np.ndarray:
    return np.array([[[values]]])


_ROW = _image(2.0, 3.0)

PAIRS = [
    Pair(
        "conv1d", _cases(CONV1D, 0),
        ties("nan", Case(np.array([[[1.0, NAN, 4.0]]]), np.array([[[2.0, 3.0]]]), np.array([0.0])), [[[2.0, 5.0, 3.0]]], [[[NAN, NAN]]], [2.0])
        + ties("inf", Case(np.array([[[1.0, INF]]]), np.array([[[2.0, 3.0]]])), [[[2.0, 3.0]]], [[[1.0, INF]]]),
    ),
    Pair(
        "conv2d", _cases(CONV2D, 0),
        ties("nan", Case(_image(1.0, NAN, 4.0), _ROW, np.array([0.0])), [[[[2.0, 5.0, 3.0]]]], [[[[NAN, NAN]]]], [2.0])
        + ties("nan in the weight", Case(_image(1.0, 2.0), _image(NAN, 3.0)), [[[[NAN, 3.0]]]], [[[[1.0, 2.0]]]])
        + ties("inf", Case(_image(1.0, INF), _ROW), [[[[2.0, 3.0]]]], [[[[1.0, INF]]]]),
        _for_winograd,
    ),
    Pair(
        "conv_transpose2d", _cases(CONV_TRANSPOSE2D, 1),
        ties("nan", Case(_image(1.0, NAN), _ROW, np.array([0.0])), [[[[5.0, 5.0]]]], [[[[NAN, NAN]]]], [3.0])
        + ties("inf", Case(_image(1.0, INF), _ROW), [[[[5.0, 5.0]]]], [[[[INF, INF]]]]),
    ),
]  # fmt: skip
