"""Images in other sizes and at other places: Resize, GridSample, RoiAlign."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

import extensor as et

from ...dtypes import FLOATING
from ..proto import array_of, as_value, check_bytes, ints_of
from ..table import operator

__all__: list[str] = []

# Resize: along each axis a matrix of weights, or indices


def _sources(mode: str, size: int, out: int, scale: float, roi: tuple[float, float] | None) -> np.ndarray:
    """The place in the input, as a real number, of each place of the output."""
    places = np.arange(out, dtype=np.float64)
    width = scale * size
    if mode == "asymmetric":
        return places / scale
    if mode == "align_corners":
        return places * (size - 1) / (width - 1) if width != 1 else places * 0
    if mode == "half_pixel" or mode == "pytorch_half_pixel":
        return (places + 0.5) / scale - 0.5 if mode == "half_pixel" or width != 1 else places * 0 - 0.5
    if mode == "half_pixel_symmetric":
        return size / 2 * (1 - out / width) + (places + 0.5) / scale - 0.5
    if mode == "tf_half_pixel_for_nn":
        return (places + 0.5) / scale
    if mode == "tf_crop_and_resize":
        start, end = roi if roi is not None else (0.0, 1.0)
        if width == 1:
            return places * 0 + (start + end) * (size - 1) / 2
        return start * (size - 1) + places * (end - start) * (size - 1) / (width - 1)
    raise NotImplementedError(f"[Resize] the coordinates {mode!r} are not known")


_ROUNDING: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
    "simple": np.trunc,
}


def _tent(x: np.ndarray) -> np.ndarray:
    return np.clip(1 - np.abs(x), 0, 1)


def _cubic(a: float) -> Callable[[np.ndarray], np.ndarray]:
    def weights(x: np.ndarray) -> np.ndarray:
        x = np.abs(x)
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
        return np.where(x <= 1, near, np.where(x < 2, far, 0))

    return weights


def _matrix(
    sources: np.ndarray, size: int, kernel: Callable[[np.ndarray], np.ndarray], reach: int, scale: float, antialias: bool,
    exclude_outside: bool,
) -> np.ndarray:  # fmt: skip
    """Weights (out, in): a kernel around each source; what lies outside counts for the edge, or not at all."""
    stretch = min(scale, 1.0) if antialias else 1.0
    half = math.ceil(reach / stretch) + 1
    base = np.floor(sources).astype(np.int64)
    found = np.zeros((len(sources), size))
    offsets = np.arange(-half, half + 1)
    places = base[:, None] + offsets
    weights = kernel((places - sources[:, None]) * stretch)
    if exclude_outside:
        weights = np.where((places < 0) | (places >= size), 0, weights)
    total = weights.sum(1, keepdims=True)
    weights = weights / np.where(total == 0, 1, total)
    rows = np.broadcast_to(np.arange(len(sources))[:, None], places.shape)
    np.add.at(found, (rows, np.clip(places, 0, size - 1)), weights)
    return found


@operator("Resize", since=11, fixed=("roi", "scales", "sizes"))
def resize(
    x: Any, roi: Any = None, scales: Any = None, sizes: Any = None, *, antialias: int = 0, axes: list[int] | None = None,
    coordinate_transformation_mode: str = "half_pixel", cubic_coeff_a: float = -0.75, exclude_outside: int = 0,
    extrapolation_value: float = 0.0, keep_aspect_ratio_policy: str = "stretch", mode: str = "nearest",
    nearest_mode: str = "round_prefer_floor",
) -> Any:  # fmt: skip
    """An image in another size: each axis is a product with a matrix of weights, or a choice of pixels."""
    along = list(range(x.ndim)) if axes is None else [a % x.ndim for a in axes]
    lengths = [x.shape[a] for a in along]
    if sizes is not None and array_of(sizes).size:
        outs = ints_of(sizes)
        factors = [o / n for o, n in zip(outs, lengths)]
        if keep_aspect_ratio_policy != "stretch":
            one = min(factors) if keep_aspect_ratio_policy == "not_larger" else max(factors)
            factors = [one] * len(factors)
            outs = [math.floor(n * one + 0.5) for n in lengths]
    elif scales is not None and array_of(scales).size:
        factors = [float(f) for f in array_of(scales).reshape(-1)]
        if any(not f > 0 or not math.isfinite(f) for f in factors):
            raise ValueError(f"[Resize] scales must be above 0, got {factors}")
        outs = [math.floor(n * f) for n, f in zip(lengths, factors)]
    else:
        raise ValueError("[Resize] needs scales or sizes")
    if len(outs) != len(along):
        raise ValueError(f"[Resize] {len(outs)} sizes for {len(along)} axes")
    whole = list(x.shape)
    for axis, out in zip(along, outs):
        whole[axis] = out
    check_bytes("Resize", whole, x.dtype.itemsize)
    corners = (
        None if roi is None or not array_of(roi).size else array_of(roi).reshape((2, -1)).astype(np.float64)
    )
    crop = coordinate_transformation_mode == "tf_crop_and_resize"
    outside = np.zeros((1,) * x.ndim, bool)
    dtype = x.dtype
    if dtype not in FLOATING and mode != "nearest":
        x = et.astype(x, "float32")
    for i, (axis, size, out, factor) in enumerate(zip(along, lengths, outs, factors)):
        if size == out and factor == 1 and not crop:
            continue
        if size == 0:
            raise ValueError(f"[Resize] cannot make pixels out of none (x: {x.shape})")
        part = None if corners is None else (float(corners[0, i]), float(corners[1, i]))
        where = _sources(coordinate_transformation_mode, size, out, factor, part)
        if crop:
            shape = [1] * x.ndim
            shape[axis] = out
            outside = outside | ((where < 0) | (where > size - 1)).reshape(shape)
        if mode == "nearest":
            rounded = np.clip(_ROUNDING[nearest_mode](where), 0, size - 1).astype(np.int64)
            x = et.take(x, rounded, axis)
            continue
        if mode not in ("linear", "cubic"):
            raise NotImplementedError(f"[Resize] the mode {mode!r} is not known")
        kernel, reach = (_tent, 1) if mode == "linear" else (_cubic(cubic_coeff_a), 2)
        weights = _matrix(where, size, kernel, reach, factor, bool(antialias), bool(exclude_outside))
        x = et.moveaxis(et.tensordot(x, as_value(weights.astype(x.dtype)), ((axis,), (1,))), -1, axis)
    if crop and outside.any():
        x = et.where(outside, et.full((), extrapolation_value, x.dtype), x)
    if x.dtype != dtype:
        x = et.astype(et.clip(et.round(x), np.iinfo(dtype).min, np.iinfo(dtype).max), dtype)
    return x


@operator("Resize", since=10, fixed=("scales",))
def resize_first(x: Any, scales: Any, *, mode: str = "nearest") -> Any:
    """The form of operator set 10: pixels start at the same corner."""
    mode = "linear" if mode in ("linear", "bilinear") else mode
    return resize(
        x, None, scales, coordinate_transformation_mode="asymmetric", mode=mode, nearest_mode="floor"
    )


@operator("Upsample", since=9, fixed=("scales",))
def upsample(x: Any, scales: Any, *, mode: str = "nearest") -> Any:
    """The older name of Resize."""
    return resize_first(x, scales, mode=mode)


@operator("Upsample")
def upsample_first(x: Any, *, scales: list[float], mode: str = "nearest") -> Any:
    """Resize with its scales as an attribute."""
    return resize_first(x, as_value(np.array(scales, np.float32)), mode=mode)


# Places between pixels


def _reflected(x: np.ndarray, low: float, high: float) -> np.ndarray:
    """Mirrored at the borders until it is inside."""
    span = high - low
    if span <= 0:
        return np.zeros_like(x)
    there = np.mod(x - low, 2 * span)
    return low + np.where(there > span, 2 * span - there, there)


def _pixels(
    places: np.ndarray, size: int, padding: str, low: float, high: float
) -> tuple[np.ndarray, np.ndarray]:
    """Indices inside the image, and whether they count."""
    if padding == "zeros":
        return np.clip(places, 0, size - 1), (places >= 0) & (places < size)
    if padding == "reflection":
        places = np.trunc(_reflected(places, low, high)).astype(np.int64)
    return np.clip(places, 0, size - 1), np.ones(places.shape, bool)


def sampled(
    images: Any, points: Sequence[Any], padding: str, borders: Sequence[tuple[float, float]] | None = None,
    kernel: str = "linear",
) -> Any:  # fmt: skip
    """Images (N, C, *sizes) at real places: ``points`` are (N, P) for each axis; gives (N, C, P)."""
    sizes = images.shape[2:]
    batch = np.arange(images.shape[0])[:, None]
    borders = borders or [(0.0, n - 1.0) for n in sizes]
    each = []
    for point, size, (low, high) in zip(points, sizes, borders):
        base = np.floor(array_of(point)).astype(np.int64)
        ratio = point - as_value(base.astype(point.dtype))
        steps = (0, 1) if kernel == "linear" else (-1, 0, 1, 2)
        weights = (1 - ratio, ratio) if kernel == "linear" else _cubic_weights(ratio)
        each.append([(*_pixels(base + s, size, padding, low, high), w) for s, w in zip(steps, weights)])
    last = et.moveaxis(images, 1, -1)  # (N, *sizes, C)
    total: Any = None
    for corner in product(*each):
        places = tuple(c[0] for c in corner)
        counts = np.logical_and.reduce([c[1] for c in corner])
        weight = corner[0][2]
        for c in corner[1:]:
            weight = weight * c[2]
        if not counts.all():
            weight = et.where(counts, weight, et.zeros_like(weight))
        part = et.index(last, (batch, *places)) * et.expand_dims(weight, -1)
        total = part if total is None else total + part
    return et.moveaxis(total, -1, 1)


def _cubic_weights(ratio: Any) -> tuple[Any, ...]:
    a = -0.75

    def near(x: Any) -> Any:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: Any) -> Any:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return far(ratio + 1), near(ratio), near(1 - ratio), far(2 - ratio)


@operator("GridSample")
def grid_sample(
    x: Any, grid: Any, *, align_corners: int = 0, mode: str = "linear", padding_mode: str = "zeros"
) -> Any:
    """x at the places of ``grid``, which run from -1 to 1 along each axis."""
    sizes, count = x.shape[2:], grid.shape[-1]
    if count != len(sizes):
        raise ValueError(f"[GridSample] grid names {count} coordinates for {len(sizes)} axes")
    kernel = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    if kernel not in ("linear", "cubic", "nearest") or padding_mode not in ("zeros", "border", "reflection"):
        raise NotImplementedError(
            f"[GridSample] the mode {mode!r} with padding {padding_mode!r} is not known"
        )
    shape = grid.shape[1:-1]
    points, borders = [], []
    for i, size in enumerate(sizes):
        normal = grid[..., count - 1 - i].reshape((grid.shape[0], -1))
        place = (normal + 1) * ((size - 1) / 2) if align_corners else ((normal + 1) * size - 1) / 2
        low, high = (0.0, size - 1.0) if align_corners else (-0.5, size - 0.5)
        borders.append((low, high))
        if kernel == "nearest":
            place = et.round(place)
        points.append(_inside(place, size, padding_mode, low, high))
    if kernel == "nearest":
        found = _nearest(x, points, padding_mode)
    else:
        found = sampled(x, points, padding_mode, borders, kernel)
    return found.reshape((*x.shape[:2], *shape))


def _inside(place: Any, size: int, padding: str, low: float, high: float) -> Any:
    """A place outside of the image moved into it, as the padding says."""
    array = array_of(place)
    beyond = (array < low) | (array > high)
    if padding == "zeros" or not beyond.any():
        return place
    if padding == "border":
        return et.where(beyond, et.clip(place, 0.0, size - 1.0), place)
    moved = _reflected(array.astype(np.float64), low, high)
    span = max(high - low, 1e-12)
    sign = np.where(np.mod(array - low, 2 * span) > span, -1.0, 1.0).astype(array.dtype)
    shift = (moved - sign * array).astype(array.dtype)
    return et.where(beyond, as_value(sign) * place + as_value(shift), place)


def _nearest(x: Any, points: Sequence[Any], padding: str) -> Any:
    places, counts = [], []
    for point, size in zip(points, x.shape[2:]):
        whole = array_of(point)
        index, inside = _pixels(
            whole.astype(np.int64), size, "zeros" if padding == "zeros" else "border", 0, 0
        )
        places.append(index)
        counts.append(inside)
    found = et.index(et.moveaxis(x, 1, -1), (np.arange(x.shape[0])[:, None], *places))
    inside = np.logical_and.reduce(counts)
    if not inside.all():
        found = et.where(inside[..., None], found, et.zeros_like(found))
    return et.moveaxis(found, -1, 1)


@operator("AffineGrid", fixed=("size",))
def affine_grid(theta: Any, size: Any, *, align_corners: int = 0) -> Any:
    """The grid of an affine map: where each place of the output looks."""
    batch, _, *lengths = ints_of(size)
    check_bytes("AffineGrid", [batch, *lengths, len(lengths) + 1], 8)
    ranges = []
    for n in lengths:
        steps = np.linspace(-1, 1, n) if align_corners else (np.arange(n) * 2 + 1) / n - 1
        ranges.append(steps)
    mesh = np.meshgrid(*ranges, indexing="ij")
    points = np.stack([*mesh[::-1], np.ones(lengths)], -1).reshape((-1, len(lengths) + 1))
    found = et.matmul(as_value(points.astype(theta.dtype)), et.swapaxes(theta, 1, 2))
    return found.reshape((batch, *lengths, len(lengths)))


@operator("RoiAlign", fixed=("rois", "batch_indices"))
def roi_align(
    x: Any, rois: Any, batch_indices: Any, *, coordinate_transformation_mode: str | None = None, mode: str = "avg",
    output_height: int = 1, output_width: int = 1, sampling_ratio: int = 0, spatial_scale: float = 1.0, opset: int = 16,
) -> Any:  # fmt: skip
    """Boxes of an image as small images of one size: the mean (or maximum) of points in each cell."""
    kind = coordinate_transformation_mode or ("half_pixel" if opset >= 16 else "output_half_pixel")
    offset = 0.5 if kind == "half_pixel" else 0.0
    height, width = x.shape[2:]
    check_bytes("RoiAlign", [rois.shape[0], x.shape[1], output_height, output_width])
    results = []
    for box, number in zip(array_of(rois).astype(np.float64), array_of(batch_indices)):
        x1, y1, x2, y2 = box * spatial_scale - offset
        wide, high = x2 - x1, y2 - y1
        if kind != "half_pixel":
            wide, high = max(wide, 1.0), max(high, 1.0)
        cell_h, cell_w = high / output_height, wide / output_width
        count_h = sampling_ratio if sampling_ratio > 0 else math.ceil(cell_h)
        count_w = sampling_ratio if sampling_ratio > 0 else math.ceil(cell_w)
        check_bytes("RoiAlign", [x.shape[1], output_height, count_h, output_width, count_w])
        rows = y1 + cell_h * (
            np.arange(output_height)[:, None] + (np.arange(count_h) + 0.5) / max(count_h, 1)
        )
        columns = x1 + cell_w * (
            np.arange(output_width)[:, None] + (np.arange(count_w) + 0.5) / max(count_w, 1)
        )
        grid_y, grid_x = np.meshgrid(rows.reshape(-1), columns.reshape(-1), indexing="ij")
        beyond = (grid_y < -1) | (grid_y > height) | (grid_x < -1) | (grid_x > width)
        points = [
            as_value(np.clip(g, 0, n - 1).reshape((1, -1)).astype(x.dtype))
            for g, n in ((grid_y, height), (grid_x, width))
        ]
        image = x[int(number) : int(number) + 1]
        shape = (x.shape[1], output_height, count_h, output_width, count_w)
        if mode == "max":
            results.append(_greatest_products(image, points, shape))
            continue
        found = sampled(image, points, "border")[0]
        found = et.where(beyond.reshape(-1), et.zeros_like(found), found).reshape(shape)
        results.append(et.mean(found, (2, 4)))
    if not results:
        return et.zeros((0, x.shape[1], output_height, output_width), x.dtype)
    return et.stack(results, 0)


def _greatest_products(image: Any, points: Sequence[Any], shape: tuple[int, ...]) -> Any:
    """The standard's maximum: of the four weighted neighbours of every point, not of the points."""
    each = []
    for point, size in zip(points, image.shape[2:]):
        base = np.floor(array_of(point)).astype(np.int64)
        ratio = point - as_value(base.astype(point.dtype))
        each.append([(np.clip(base + s, 0, size - 1), w) for s, w in ((0, 1 - ratio), (1, ratio))])
    last = et.moveaxis(image, 1, -1)
    batch = np.zeros((1, 1), np.int64)
    parts = [
        et.moveaxis(et.index(last, (batch, a[0], b[0])) * et.expand_dims(a[1] * b[1], -1), -1, 1)[0].reshape(
            shape
        )
        for a, b in product(*each)
    ]
    return et.max(et.stack(parts, 0), (0, 3, 5))
