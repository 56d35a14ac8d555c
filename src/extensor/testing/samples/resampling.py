"""Sample inputs and edges of interpolation, sampling, shuffled pixels, response norm and rotary positions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..registry import Case, Domain, Draw, Pair, ties

INF, NAN = float("inf"), float("nan")

INTERPOLATED: tuple[tuple[tuple[int, ...], dict[str, Any]], ...] = (
    ((2, 2, 4), {"scale_factor": 2}), ((1, 2, 4), {"size": 7, "mode": "linear"}), ((1, 2, 3), {"size": 5, "mode": "linear", "align_corners": True}),
    ((1, 2, 3, 4), {"size": (5, 3), "mode": "bilinear"}), ((1, 2, 3, 4), {"scale_factor": (1.5, 0.5), "mode": "bilinear", "align_corners": True}),
    ((1, 1, 3, 4), {"scale_factor": 1.7, "mode": "bicubic"}), ((1, 1, 3, 3), {"size": 2, "mode": "bicubic", "align_corners": True}), ((1, 2, 5, 4), {"size": (2, 3), "mode": "area"}),
    ((1, 1, 2, 3, 2), {"size": (3, 2, 3), "mode": "trilinear"}), ((1, 1, 3, 3), {"scale_factor": 1.4, "mode": "nearest-exact"}), ((0, 2, 3), {"size": 4}), ((1, 1, 1), {"size": 3, "mode": "linear"}),
)  # fmt: skip
_GRID = Domain(-1.2, 1.2)


def _interpolate(draw: Draw) -> Iterator[Case]:
    for shape, options in INTERPOLATED:
        yield Case(draw.values(shape), **options)
    yield Case(draw.strided((2, 2, 4)), size=3)


def _grid_sample(draw: Draw) -> Iterator[Case]:
    """Places away from pixel centres, from the ends and from the middle between pixels, where slopes jump."""
    for padding in ("zeros", "border", "reflection"):
        for align in (False, True):
            yield Case(
                draw.values((2, 2, 3, 4)),
                _places(draw, (2, 2, 3, 2), (3, 4), align),
                padding_mode=padding,
                align_corners=align,
            )
        yield Case(
            draw.values((1, 2, 2, 3, 2)),
            _places(draw, (1, 2, 1, 2, 3), (2, 3, 2), False),
            padding_mode=padding,
        )
    yield Case(draw.values((1, 2, 3, 4)), _places(draw, (1, 2, 2, 2), (3, 4), False), mode="nearest")
    yield Case(draw.values((0, 2, 3, 4)), np.zeros((0, 2, 2, 2)))


def _places(draw: Draw, shape: tuple[int, ...], size: tuple[int, ...], align: bool) -> np.ndarray:
    grid = draw.values(shape, _GRID)
    for axis, n in enumerate(reversed(size)):
        pixels = (grid[..., axis] + 1) * (n - 1) / 2 if align else ((grid[..., axis] + 1) * n - 1) / 2
        away = np.floor(2 * pixels) / 2 + np.clip(2 * pixels - np.floor(2 * pixels), 0.2, 0.8) / 2
        grid[..., axis] = away * 2 / (n - 1) - 1 if align else (2 * away + 1) / n - 1
    return grid


def _affine(draw: Draw) -> Iterator[Case]:
    yield Case(draw.values((2, 2, 3)), size=(2, 1, 3, 4))
    yield Case(draw.values((1, 2, 3)), size=(1, 1, 1, 2), align_corners=True)
    yield Case(draw.values((1, 3, 4)), size=(1, 1, 2, 3, 2))


def _shuffle(draw: Draw) -> Iterator[Case]:
    for shape, r in (((1, 4, 2, 3), 2), ((2, 9, 1, 2), 3), ((1, 2, 3, 3), 1), ((0, 4, 2, 2), 2)):
        yield Case(draw.values(shape), upscale_factor=r)


def _unshuffle(draw: Draw) -> Iterator[Case]:
    for shape, r in (((1, 2, 4, 6), 2), ((2, 1, 3, 6), 3), ((0, 1, 2, 2), 2)):
        yield Case(draw.values(shape), downscale_factor=r)


def _response(draw: Draw) -> Iterator[Case]:
    for shape, options in (
        ((2, 5, 3), {"size": 3, "alpha": 0.5}), ((1, 4, 2, 2), {"size": 2, "alpha": 1.0, "beta": 0.5, "k": 2.0}), ((2, 3), {"size": 5, "alpha": 0.3}), ((0, 3, 2), {"size": 2}),
    ):  # fmt: skip
        yield Case(draw.values(shape), **options)


class _Angles:
    """cos and sin are not differentiated: whole numbers of eighths of a turn, kept as float32."""

    @staticmethod
    def of(length: int, half: int) -> tuple[np.ndarray, np.ndarray]:
        angles = np.arange(length * half).reshape(length, half) * 0.7
        return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def _rotary(draw: Draw) -> Iterator[Case]:
    for shape in ((3, 4), (2, 3, 6), (1, 2, 2, 2), (0, 4)):
        cos, sin = _Angles.of(shape[-2], shape[-1] // 2)
        yield Case(draw.values(shape), cos, sin)
        yield Case(draw.values(shape), cos, sin, interleaved=True)


_ROW = np.array([[[1.0, 2.0, 4.0]]])
_TURN = (np.array([[0.0]], np.float32), np.array([[1.0]], np.float32))

PAIRS = [
    Pair("interpolate", _interpolate, ties("beyond the ends the last pixels count twice", Case(_ROW, size=6, mode="linear"), [[[2.0, 2.0, 2.0]]]) + ties("nan", Case(np.array([[[NAN, 2.0]]]), scale_factor=2), [[[2.0, 2.0]]])),
    Pair("grid_sample", _grid_sample, ties("outside of the image", Case(np.ones((1, 1, 2, 2)), np.full((1, 1, 1, 2), 3.0)), [[[[0.0, 0.0], [0.0, 0.0]]]], [[[[0.0, 0.0]]]]) + ties("nan", Case(np.array([[[[NAN, 1.0], [2.0, 3.0]]]]), np.zeros((1, 1, 1, 2))), [[[[0.25, 0.25], [0.25, 0.25]]]], [[[[NAN, NAN]]]])),
    Pair("affine_grid", _affine, ties("nan", Case(np.full((1, 2, 3), NAN), size=(1, 1, 1, 1)), [[[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]])),
    Pair("pixel_shuffle", _shuffle, ties("nan", Case(np.full((1, 4, 1, 1), NAN), upscale_factor=2), [[[[1.0]]] * 4])),
    Pair("pixel_unshuffle", _unshuffle, ties("nan", Case(np.full((1, 1, 2, 2), NAN), downscale_factor=2), [[[[1.0, 1.0], [1.0, 1.0]]]])),
    Pair("local_response_norm", _response, ties("0", Case(np.zeros((1, 2)), size=2), [[1.0, 1.0]]) + ties("nan", Case(np.array([[NAN, 1.0, 1.0]]), size=1, alpha=1.0, beta=1.0), [[NAN, 0.0, 0.0]])),
    Pair("rotary_embedding", _rotary, ties("a quarter of a turn", Case(np.array([[1.0, NAN]]), *_TURN), [[1.0, -1.0]])),
]  # fmt: skip
