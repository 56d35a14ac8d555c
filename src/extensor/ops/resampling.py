"""Images and volumes at other sizes and places: interpolation, sampling on a grid, channels as pixels; and the gradients.

Interpolation is linear in x and goes axis by axis: every new element is a weighted sum of a few old ones, its taps.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..checks import (
    as_bool,
    as_floating,
    as_grad,
    as_int,
    as_ints,
    as_number,
    as_shape,
    check_needs,
    differentiable_input,
    shape_of,
)
from ..errors import describe
from ..graph import backward_of, differentiable
from ..kernels.reference import resampling as kernels
from ..tensor import ExTensor, Shape, TensorOrShape
from ._pairs import BOTH, Needs
from ._spatial import check_axes
from ._wide import computed_wide, forward_wide
from .arithmetic import modulo
from .casting import cast_like
from .comparison import isfinite
from .creation import ones_like, zeros
from .elementwise import clip, floor
from .elementwise import round as rounded
from .joining import stack
from .matrix import matmul, transpose
from .pooling import adaptive_avg_pool2d, adaptive_avg_pool2d_backward
from .selection import where
from .shape import reshape, swapaxes
from .volume_pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool1d_backward,
    adaptive_avg_pool3d,
    adaptive_avg_pool3d_backward,
)

__all__ = [
    "GridSampleGradients", "affine_grid", "affine_grid_backward", "grid_sample", "grid_sample_backward", "interpolate",
    "interpolate_backward", "pixel_shuffle", "pixel_shuffle_backward", "pixel_unshuffle", "pixel_unshuffle_backward",
]  # fmt: skip

_MODES = {
    "nearest": None,
    "nearest-exact": None,
    "area": None,
    "linear": 1,
    "bilinear": 2,
    "trilinear": 3,
    "bicubic": 2,
}
_CUBIC = -0.75  # the slope of the cubic kernel, as PyTorch and OpenCV have it


class _Taps(NamedTuple):
    """What one axis becomes: positions (taps, new length) and their weights."""

    positions: np.ndarray
    weights: np.ndarray | None

    @property
    def tensors(self) -> tuple[ExTensor, ExTensor | None]:
        """As the kernels take them."""
        return ExTensor(self.positions), None if self.weights is None else ExTensor(self.weights)


def _sizes(
    function: str, shape: Shape, size: Any, scale_factor: Any, mode: Any
) -> tuple[tuple[int, ...], list[float | None]]:
    """The new lengths, and the scale of each axis where it was given."""
    count = len(shape) - 2
    if count not in (1, 2, 3):
        raise ValueError(
            f"[{function}] x must be (N, C, L), (N, C, H, W) or (N, C, D, H, W), got shape {shape}"
        )
    if not isinstance(mode, str) or mode not in _MODES:
        raise ValueError(f"[{function}] mode must be one of {', '.join(_MODES)}, got {describe(mode)}")
    if _MODES[mode] not in (None, count):
        raise ValueError(
            f"[{function}] mode {mode!r} is for {_MODES[mode]} directions, but x has {count} (x: {shape})"
        )
    if (size is None) == (scale_factor is None):
        raise ValueError(
            f"[{function}] give either size or scale_factor, got {describe(size)} and {describe(scale_factor)}"
        )
    if size is not None:
        found = as_ints(function, "size", size)
        lengths = found * count if len(found) == 1 else found
        scales: list[float | None] = [None] * count
    else:
        given = scale_factor if isinstance(scale_factor, (tuple, list)) else (scale_factor,) * count
        scales = [as_number(function, "scale_factor", s) for s in given]
        if not all(0 < n * s < 2.0**31 for n, s in zip((1, *shape[2:]), (1.0, *scales)) if n):  # type: ignore[operator]
            raise ValueError(
                f"[{function}] scale_factor must be a positive factor of lengths that fit, got {describe(scale_factor)}"
            )
        lengths = tuple(math.floor(n * s) for n, s in zip(shape[2:], scales))  # type: ignore[operator]
    if len(lengths) != count or len(scales) != count or not all(1 <= length < 2**31 for length in lengths):
        raise ValueError(
            f"[{function}] the new size must be {count} positive lengths below 2**31, got {lengths} (x: {shape})"
        )
    if 0 in shape[2:]:
        raise ValueError(f"[{function}] x has no elements to take values from (x: {shape})")
    return lengths, scales


@functools.lru_cache(maxsize=256)
def _taps(n: int, m: int, scale: float | None, mode: str, align_corners: bool) -> _Taps:
    new = np.arange(m, dtype=np.float64)
    ratio = n / m if scale is None else 1 / scale
    if mode.startswith("nearest"):
        shift = 0.5 if mode == "nearest-exact" else 0.0
        return _Taps(np.minimum(np.floor((new + shift) * ratio).astype(np.int64), n - 1)[None], None)
    step = (n - 1) / max(m - 1, 1)
    old = new * step if align_corners else (new + 0.5) * ratio - 0.5
    if mode == "bicubic":
        first = np.floor(old)
        t = old - first
        positions = first.astype(np.int64) + np.arange(-1, 3)[:, None]
        return _Taps(
            np.clip(positions, 0, n - 1), np.stack([_cubic(t + 1), _cubic(t), _cubic(1 - t), _cubic(2 - t)])
        )
    old = np.maximum(old, 0)
    first = np.minimum(np.floor(old).astype(np.int64), n - 1)
    t = np.minimum(old - first, 1.0)
    return _Taps(np.stack([first, np.minimum(first + 1, n - 1)]), np.stack([1 - t, t]))


def _cubic(t: np.ndarray) -> np.ndarray:
    """The weight of a pixel at distance t."""
    near = ((_CUBIC + 2) * t - (_CUBIC + 3)) * t * t + 1
    far = ((_CUBIC * t - 5 * _CUBIC) * t + 8 * _CUBIC) * t - 4 * _CUBIC
    return np.where(t <= 1, near, far)


def _each_axis(
    function: str, shape: Shape, size: Any, scale_factor: Any, mode: Any, align_corners: Any
) -> tuple[tuple[int, ...], list[tuple[int, _Taps]]]:
    """The new lengths, and the taps of each axis that changes."""
    lengths, scales = _sizes(function, shape, size, scale_factor, mode)
    align = as_bool(function, "align_corners", align_corners)
    if align and mode in ("nearest", "nearest-exact", "area"):
        raise ValueError(f"[{function}] align_corners is for linear and cubic modes, not {mode!r}")
    rows = [
        (i + 2, _taps(n, m, s, mode, align))
        for i, (n, m, s) in enumerate(zip(shape[2:], lengths, scales))
        if n != m or (s is not None and s != 1)
    ]
    return lengths, rows


_AREA = {1: adaptive_avg_pool1d, 2: adaptive_avg_pool2d, 3: adaptive_avg_pool3d}
_AREA_BACKWARD = {
    1: adaptive_avg_pool1d_backward,
    2: adaptive_avg_pool2d_backward,
    3: adaptive_avg_pool3d_backward,
}


@differentiable
@forward_wide
def interpolate(
    x: ExTensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool = False,
) -> ExTensor:
    """Sequences, images or volumes of another size.

    Args:
        x: shape (N, C, L), (N, C, H, W) or (N, C, D, H, W).
        size: the new lengths: an int, or one for each direction.
        scale_factor: instead of ``size`` a factor, or one for each direction.
        mode: ``"nearest"``, ``"nearest-exact"``, ``"linear"``, ``"bilinear"``, ``"trilinear"``, ``"bicubic"`` or ``"area"``
            (the mean of what a new pixel covers).
        align_corners: whether the centres of the corner pixels stay where they are, instead of the outer edges.

    Example:
        >>> import extensor as et
        >>> et.interpolate(et.tensor([[[1.0, 2.0]]]), scale_factor=2).tolist()
        [[[1.0, 1.0, 2.0, 2.0]]]
        >>> et.interpolate(et.tensor([[[1.0, 2.0]]]), size=4, mode="linear").tolist()
        [[[1.0, 1.25, 1.75, 2.0]]]
    """
    x = as_floating("interpolate", "x", x)
    lengths, rows = _each_axis("interpolate", x.shape, size, scale_factor, mode, align_corners)
    if mode == "area":
        return _AREA[len(lengths)](x, lengths)
    for axis, taps in rows:
        x = kernels.resample(x, *taps.tensors, axis)
    return x


def _added(parts: Sequence[ExTensor]) -> ExTensor:
    found = parts[0]
    for part in parts[1:]:
        found = found + part
    return found


@backward_of(interpolate, keeps_shape=("x",))
@computed_wide
def interpolate_backward(
    grad_output: ExTensor,
    x: TensorOrShape,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool = False,
) -> ExTensor:
    """Gradient of :func:`interpolate`: every new element gives its weights' shares back to its taps. ``x`` may be just its shape.

    Example:
        >>> import extensor as et
        >>> et.interpolate_backward(et.ones((1, 1, 4)), (1, 1, 2), scale_factor=2).tolist()
        [[[2.0, 2.0]]]
    """
    function = "interpolate_backward"
    shape = shape_of(function, "x", x)
    lengths, rows = _each_axis(function, shape, size, scale_factor, mode, align_corners)
    grad = as_grad(function, grad_output, (*shape[:2], *lengths))
    if mode == "area":
        return cast_like(_AREA_BACKWARD[len(lengths)](grad, shape, lengths), x)
    for axis, taps in reversed(rows):
        grad = kernels.resample_backward(grad, shape[axis], *taps.tensors, axis)
    return cast_like(grad, x)


# Sampling at places


class GridSampleGradients(NamedTuple):
    """The gradients of :func:`grid_sample`; None where not wanted."""

    grad_x: ExTensor | None
    grad_grid: ExTensor | None


class _Sampling(NamedTuple):
    x: ExTensor
    grid: ExTensor
    nearest: bool
    padding: str
    align: bool

    @property
    def size(self) -> Shape:
        return self.x.shape[2:]


def _sampling(
    function: str, x: Any, grid: Any, mode: Any, padding_mode: Any, align_corners: Any
) -> _Sampling:
    image, places = as_floating(function, "x", x), as_floating(function, "grid", grid)
    count = image.ndim - 2
    if count not in (2, 3):
        raise ValueError(f"[{function}] x must be (N, C, H, W) or (N, C, D, H, W), got shape {image.shape}")
    if places.ndim != count + 2 or places.shape[0] != image.shape[0] or places.shape[-1] != count:
        raise ValueError(
            f"[{function}] grid must have the shape (N, ..., {count}) with {count} axes between, "
            f"got {places.shape} (x: {image.shape})"
        )
    if not isinstance(mode, str) or mode not in ("bilinear", "nearest"):
        raise ValueError(f"[{function}] mode must be 'bilinear' or 'nearest', got {describe(mode)}")
    if not isinstance(padding_mode, str) or padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(
            f"[{function}] padding_mode must be 'zeros', 'border' or 'reflection', got {describe(padding_mode)}"
        )
    if 0 in image.shape[2:]:
        raise ValueError(f"[{function}] x has no pixels (x: {image.shape})")
    return _Sampling(
        image, places, mode == "nearest", padding_mode, as_bool(function, "align_corners", align_corners)
    )


def _coordinate(how: _Sampling, axis: int) -> tuple[ExTensor, ExTensor | float]:
    """Where the grid points along an axis of the image, in pixels, and the slope of that: both (N, points).

    The last axis of the image is the first coordinate of the grid.
    """
    length = how.size[axis]
    given = how.grid[..., len(how.size) - 1 - axis]
    given = reshape(given, (given.shape[0], math.prod(given.shape[1:])))
    slope: Any = (length - 1) / 2 if how.align else length / 2
    place = (given + 1) * slope if how.align else (given + 1) * slope - 0.5
    if how.padding == "reflection":
        low, span = (0.0, float(length - 1)) if how.align else (-0.5, float(length))
        if span == 0:
            return place * 0, 0.0
        turns = modulo(place - low, 2 * span)
        back = turns > span
        place = where(back, 2 * span - turns, turns) + low
        slope = where(back, -slope, slope).astype(place.dtype)
    if how.padding != "zeros":
        kept = (place >= 0) & (place <= length - 1)
        place = clip(place, 0.0, float(length - 1))
        slope = where(kept, slope, 0.0).astype(place.dtype)
    return place, slope


class _Neighbours(NamedTuple):
    """The pixels on both sides of each point along one axis; lists of the same length, for nearest pixels of one element."""

    positions: list[ExTensor]  # so far below 0 for those outside that no other axis makes up for it
    weights: list[ExTensor]


def _neighbours(how: _Sampling, place: ExTensor, length: int) -> _Neighbours:
    start = rounded(place) if how.nearest else floor(place)
    outside = -1 - math.prod(how.size)
    positions = []
    for step in (0,) if how.nearest else (0, 1):
        position = start + step
        within = (position >= 0) & (position <= length - 1)  # no nan, no infinity is
        positions.append(where(within, where(within, position, 0.0).astype(np.int64), outside))
    finite = where(isfinite(place), place - start, 0.0)
    weights = [ones_like(finite)] if how.nearest else [1 - finite, finite]
    return _Neighbours(positions, [cast_like(weight, how.x) for weight in weights])


class _Corners(NamedTuple):
    """All pixels around the points of a grid: which neighbour each is along each axis; positions and weights (corners, N, points)."""

    steps: list[tuple[int, ...]]
    positions: ExTensor
    weights: ExTensor


def _corners(how: _Sampling, sides: Sequence[_Neighbours]) -> _Corners:
    steps = list(itertools.product((0,) if how.nearest else (0, 1), repeat=len(sides)))
    flat = []
    for corner in steps:
        position: Any = 0
        for side, step, length in zip(sides, corner, how.size):
            position = position * length + side.positions[step]
        flat.append(position)
    weights = [_product([side.weights[step] for side, step in zip(sides, corner)]) for corner in steps]
    return _Corners(steps, stack(flat), stack(weights))


def _product(factors: Sequence[ExTensor]) -> ExTensor:
    return functools.reduce(operator.mul, factors)


def _flat_image(x: ExTensor) -> ExTensor:
    return reshape(x, (*x.shape[:2], math.prod(x.shape[2:])))


@differentiable
@forward_wide
def grid_sample(
    x: ExTensor,
    grid: ExTensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool = False,
) -> ExTensor:
    """Images at places of a grid, weighted between neighbouring pixels.

    Args:
        x: images (N, C, H, W) or volumes (N, C, D, H, W).
        grid: places of shape (N, oh, ow, 2) as (x, y), or (N, od, oh, ow, 3) as (x, y, z); -1 and 1 are the ends of the image.
        mode: ``"bilinear"`` (for volumes trilinear), or ``"nearest"``, which has the gradient 0 with respect to the grid.
        padding_mode: what lies beyond: ``"zeros"``, ``"border"`` (its last pixels) or ``"reflection"``.
        align_corners: whether -1 and 1 are the centres of the corner pixels, instead of their outer edges.

    Returns:
        Samples of shape (N, C, oh, ow) or (N, C, od, oh, ow).

    Example:
        >>> import extensor as et
        >>> image = et.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
        >>> et.grid_sample(image, et.tensor([[[[0.0, 0.0], [-0.5, -0.5]]]])).tolist()
        [[[[2.5, 1.0]]]]
    """
    how = _sampling("grid_sample", x, grid, mode, padding_mode, align_corners)
    sides = [_neighbours(how, _coordinate(how, axis)[0], length) for axis, length in enumerate(how.size)]
    _, positions, weights = _corners(how, sides)
    y = kernels.sample(_flat_image(how.x), positions, weights)
    return reshape(y, (*y.shape[:2], *how.grid.shape[1:-1]))


@backward_of(grid_sample, wrt=("x", "grid"))
@computed_wide
def grid_sample_backward(
    grad_output: ExTensor,
    x: ExTensor,
    grid: ExTensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool = False,
    *,
    needs: Needs = BOTH,
) -> GridSampleGradients:
    """Gradient of :func:`grid_sample`: pixels get their weights' shares; a place gets the slope between its neighbours.

    Example:
        >>> import extensor as et
        >>> image = et.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
        >>> grads = et.grid_sample_backward(et.ones((1, 1, 1, 1)), image, et.zeros((1, 1, 1, 2)))
        >>> grads.grad_x.tolist(), grads.grad_grid.tolist()
        ([[[[0.25, 0.25], [0.25, 0.25]]]], [[[[1.0, 2.0]]]])
    """
    function = "grid_sample_backward"
    check_needs(function, needs)
    how = _sampling(function, x, grid, mode, padding_mode, align_corners)
    grad = _flat_image(as_grad(function, grad_output, (*how.x.shape[:2], *how.grid.shape[1:-1])))
    found = [_coordinate(how, axis) for axis in range(len(how.size))]
    sides = [_neighbours(how, place, length) for (place, _), length in zip(found, how.size)]
    corners = _corners(how, sides)
    wanted = (needs[0], needs[1] and not how.nearest)
    grad_x, grad_weights = kernels.sample_backward(
        grad, _flat_image(how.x), corners.positions, corners.weights, wanted
    )
    grad_grid = None
    if wanted[1]:
        slopes = [
            _slope(corners.steps, sides, axis, grad_weights) * found[axis][1] for axis in range(len(sides))
        ]
        grad_grid = cast_like(reshape(stack(slopes[::-1], -1), how.grid.shape), how.grid)
    elif needs[1]:
        grad_grid = zeros(how.grid.shape, how.grid.dtype)
    return GridSampleGradients(
        cast_like(reshape(grad_x, how.x.shape), how.x) if needs[0] else None, grad_grid
    )


def _slope(
    steps: Sequence[tuple[int, ...]], sides: Sequence[_Neighbours], axis: int, grad_weights: ExTensor
) -> ExTensor:
    """What the gradients of the corners' weights are for the points along one axis, in pixels."""
    parts = []
    for k, corner in enumerate(steps):
        others = [s.weights[step] for i, (s, step) in enumerate(zip(sides, corner)) if i != axis]
        share = grad_weights[k] * _product(others)
        parts.append(share if corner[axis] else -share)
    return _added(parts)


def _base(function: str, theta: Shape, size: Any, align_corners: Any) -> np.ndarray:
    """The places of an identity map with a 1 behind each: (points, count + 1)."""
    lengths = as_shape(function, "size", size)
    count = len(lengths) - 2
    if count not in (2, 3) or theta != (lengths[0], count, count + 1):
        raise ValueError(
            f"[{function}] size must be (N, C, H, W) with theta (N, 2, 3), or (N, C, D, H, W) with theta (N, 3, 4), "
            f"got {describe(size)} and theta of shape {theta}"
        )
    align = as_bool(function, "align_corners", align_corners)
    lines = []
    for n in lengths[2:]:
        ends = 1.0 if align and n > 1 else (0.0 if align else 1 - 1 / n if n else 1.0)
        lines.append(np.linspace(-ends, ends, n))
    mesh = np.meshgrid(*lines, indexing="ij")
    return np.stack([*(m.ravel() for m in reversed(mesh)), np.ones(mesh[0].size)], -1)


@differentiable
def affine_grid(theta: ExTensor, size: Any, align_corners: bool = False) -> ExTensor:
    """The places that an affine map takes a grid of pixels to, for :func:`grid_sample`.

    Args:
        theta: matrices of shape (N, 2, 3), or (N, 3, 4) for volumes.
        size: the shape (N, C, H, W) or (N, C, D, H, W) of the images to be sampled.
        align_corners: as for :func:`grid_sample`.

    Returns:
        Places of shape (N, H, W, 2) or (N, D, H, W, 3).

    Example:
        >>> import extensor as et
        >>> et.affine_grid(et.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]), (1, 1, 1, 2)).tolist()
        [[[[-0.5, 0.0], [0.5, 0.0]]]]
    """
    theta = as_floating("affine_grid", "theta", theta)
    base = ExTensor(_base("affine_grid", theta.shape, size, align_corners).astype(theta.dtype))
    found = matmul(base, swapaxes(theta, 1, 2))
    return reshape(found, (theta.shape[0], *as_shape("affine_grid", "size", size)[2:], theta.shape[1]))


@backward_of(affine_grid)
def affine_grid_backward(
    grad_output: ExTensor, theta: ExTensor, size: Any, align_corners: bool = False
) -> ExTensor:
    """Gradient of :func:`affine_grid`.   dtheta = dgrid^T @ base

    Example:
        >>> import extensor as et
        >>> et.affine_grid_backward(et.ones((1, 1, 2, 2)), et.zeros((1, 2, 3)), (1, 1, 1, 2)).tolist()
        [[[0.0, 0.0, 2.0], [0.0, 0.0, 2.0]]]
    """
    function = "affine_grid_backward"
    theta = differentiable_input(function, "theta", theta)
    base = ExTensor(_base(function, theta.shape, size, align_corners).astype(theta.dtype))
    grad = as_grad(
        function, grad_output, (theta.shape[0], *as_shape(function, "size", size)[2:], theta.shape[1])
    )
    flat = reshape(grad, (theta.shape[0], base.shape[0], theta.shape[1]))
    return cast_like(matmul(swapaxes(flat, 1, 2), base), theta)


# Channels as pixels


def _factor(function: str, name: str, value: Any) -> int:
    found = as_int(function, name, value)
    if found < 1:
        raise ValueError(f"[{function}] {name} must be at least 1, got {found}")
    return found


def _shuffled(function: str, x: Any, factor: Any) -> tuple[ExTensor, int]:
    found, r = as_floating(function, "x", x), _factor(function, "upscale_factor", factor)
    check_axes(function, "x", found.shape, "N, C, H, W")
    if found.shape[1] % (r * r):
        raise ValueError(
            f"[{function}] the {found.shape[1]} channels of x must be a multiple of {r}**2 (x: {found.shape})"
        )
    return found, r


def _shuffle(x: ExTensor, r: int) -> ExTensor:
    n, channels, height, width = x.shape
    apart = transpose(reshape(x, (n, channels // (r * r), r, r, height, width)), (0, 1, 4, 2, 5, 3))
    return reshape(apart, (n, channels // (r * r), height * r, width * r))


def _unshuffle(x: ExTensor, r: int) -> ExTensor:
    n, channels, height, width = x.shape
    apart = transpose(reshape(x, (n, channels, height // r, r, width // r, r)), (0, 1, 3, 5, 2, 4))
    return reshape(apart, (n, channels * r * r, height // r, width // r))


@differentiable
def pixel_shuffle(x: ExTensor, upscale_factor: int) -> ExTensor:
    """r * r channels as the r x r pixels of a larger image: (N, C r**2, H, W) to (N, C, H r, W r).

    Example:
        >>> import extensor as et
        >>> et.pixel_shuffle(et.tensor([[[[1.0]], [[2.0]], [[3.0]], [[4.0]]]]), 2).tolist()
        [[[[1.0, 2.0], [3.0, 4.0]]]]
    """
    return _shuffle(*_shuffled("pixel_shuffle", x, upscale_factor))


@backward_of(pixel_shuffle)
def pixel_shuffle_backward(grad_output: ExTensor, upscale_factor: int) -> ExTensor:
    """Gradient of :func:`pixel_shuffle`: the pixels go back to their channels.

    Example:
        >>> import extensor as et
        >>> et.pixel_shuffle_backward(et.tensor([[[[1.0, 2.0], [3.0, 4.0]]]]), 2).tolist()
        [[[[1.0]], [[2.0]], [[3.0]], [[4.0]]]]
    """
    return _unshuffle(
        *_unshuffled("pixel_shuffle_backward", grad_output, upscale_factor, "upscale_factor", "grad_output")
    )


def _unshuffled(function: str, x: Any, factor: Any, name: str, of: str = "x") -> tuple[ExTensor, int]:
    found, r = as_floating(function, of, x), _factor(function, name, factor)
    check_axes(function, of, found.shape, "N, C, H, W")
    if found.shape[2] % r or found.shape[3] % r:
        raise ValueError(
            f"[{function}] height and width of {of} must be multiples of {r}, got shape {found.shape}"
        )
    return found, r


@differentiable
def pixel_unshuffle(x: ExTensor, downscale_factor: int) -> ExTensor:
    """The inverse of :func:`pixel_shuffle`: blocks of r x r pixels as channels: (N, C, H r, W r) to (N, C r**2, H, W).

    Example:
        >>> import extensor as et
        >>> et.pixel_unshuffle(et.tensor([[[[1.0, 2.0], [3.0, 4.0]]]]), 2).tolist()
        [[[[1.0]], [[2.0]], [[3.0]], [[4.0]]]]
    """
    return _unshuffle(*_unshuffled("pixel_unshuffle", x, downscale_factor, "downscale_factor"))


@backward_of(pixel_unshuffle)
def pixel_unshuffle_backward(grad_output: ExTensor, downscale_factor: int) -> ExTensor:
    """Gradient of :func:`pixel_unshuffle`: the channels go back to their pixels.

    Example:
        >>> import extensor as et
        >>> et.pixel_unshuffle_backward(et.tensor([[[[1.0]], [[2.0]], [[3.0]], [[4.0]]]]), 2).tolist()
        [[[[1.0, 2.0], [3.0, 4.0]]]]
    """
    return _shuffle(*_shuffled("pixel_unshuffle_backward", grad_output, downscale_factor))
