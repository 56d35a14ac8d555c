"""The largest element of windows that are lists of positions: dilated, uneven, along one axis after the other.

Along each axis a window is a row of positions; the first of equal elements wins, so that the order of the axes, last one
first, gives the first of a tie row by row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .. import kernels
from ..tensor import ExTensor, Shape
from .arithmetic import add, multiply
from .broadcasting import broadcast_to
from .comparison import isnan
from .indexing import take, take_along_axis, take_along_axis_backward, take_backward
from .selection import where
from .shape import expand_dims, reshape
from .sorting import argmax

__all__ = ["cell_positions", "flat_places", "maxima", "maxima_backward", "window_positions"]


def window_positions(count: int, window: int, stride: int, dilation: int) -> np.ndarray:
    """(windows, window): the positions that each window covers in the padded axis."""
    return np.arange(count)[:, None] * stride + np.arange(window) * dilation


def cell_positions(length: int, count: int) -> np.ndarray:
    """(cells, longest cell): cell i of m covers floor(i L / m) to ceil((i + 1) L / m); short ones repeat their last position."""
    starts = np.arange(count) * length // count
    ends = -(-(np.arange(count) + 1) * length // count)
    longest = int((ends - starts).max(initial=1))
    return np.minimum(starts[:, None] + np.arange(longest), ends[:, None] - 1)


def _places(x: ExTensor, positions: np.ndarray, axis: int) -> ExTensor:
    """Where along ``axis`` the largest element of each window is: the shape of ``x`` with one place per window."""
    windows, _ = positions.shape
    rank = argmax(take(x, ExTensor(positions), axis), axis + 1)
    lined = np.arange(windows).reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    flat = add(multiply(ExTensor(lined), positions.shape[1]), rank)
    return reshape(take(ExTensor(positions.ravel()), reshape(flat, (flat.size,))), rank.shape)


def maxima(x: ExTensor, positions: Sequence[np.ndarray]) -> ExTensor:
    """The largest element of each window over the last axes, one list of positions for each."""
    for i in reversed(range(len(positions))):
        axis = x.ndim - len(positions) + i
        x = take_along_axis(x, _places(x, positions[i], axis), axis)
    return x


def maxima_backward(grad: ExTensor, x: ExTensor, positions: Sequence[np.ndarray]) -> ExTensor:
    """The gradient of :func:`maxima`: to the place of each maximum; nan all over a window that holds one."""
    walked: list[tuple[Shape, ExTensor, int]] = []
    whole = x
    for i in reversed(range(len(positions))):
        axis = x.ndim - len(positions) + i
        places = _places(x, positions[i], axis)
        walked.append((x.shape, places, axis))
        x = take_along_axis(x, places, axis)
    for shape, places, axis in reversed(walked):
        grad = take_along_axis_backward(grad, shape, places, axis)
    if kernels.first_nan(whole) is None:
        return grad
    spread = where(isnan(x), math.nan, ExTensor(np.zeros((), grad.dtype)))
    for i, taken in enumerate(positions):
        axis = x.ndim - len(positions) + i
        before = (*spread.shape[:axis], whole.shape[axis], *spread.shape[axis + 1 :])
        windows = (*spread.shape[: axis + 1], taken.shape[1], *spread.shape[axis + 1 :])
        spread = take_backward(
            broadcast_to(expand_dims(spread, axis + 1), windows), before, ExTensor(taken), axis
        )
    return grad + spread


def flat_places(
    x: ExTensor, positions: Sequence[np.ndarray], offsets: Sequence[int], size: Shape
) -> ExTensor:
    """Where each maximum is, counted row by row in an image of ``size`` that begins at ``offsets``."""
    count = len(positions)
    coordinates: list[ExTensor] = []  # of the axes that are done, the last one first
    for i in reversed(range(count)):
        axis = x.ndim - count + i
        places = _places(x, positions[i], axis)
        coordinates = [take_along_axis(c, places, axis) for c in coordinates]
        coordinates.append(places)
        x = take_along_axis(x, places, axis)
    flat = ExTensor(np.zeros(x.shape, np.int64))
    step = 1
    for i, found in zip(reversed(range(count)), coordinates):
        flat = flat + (found - offsets[i]) * step
        step *= size[i]
    return flat
