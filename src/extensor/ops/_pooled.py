"""Poolings over one, two or three directions: the checks, the kernels and the gradients that all of them share.

Windows without gaps over sequences and images have kernels of their own (a sequence is an image of one row); windows with
gaps, those of volumes and the cells of adaptive poolings are regions (:mod:`..kernels.reference.regions`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..checks import as_bool, as_floating, as_grad, differentiable_input, shape_of
from ..errors import describe
from ..kernels.reference import pooling as kernels
from ..kernels.reference.regions import (
    positions,
    region_max,
    region_max_backward,
    region_max_indices,
    region_mean,
    region_mean_backward,
)
from ..tensor import ExTensor, Shape
from ._formulas import on_tensors
from ._spatial import as_pair, check_axes, remembered
from .casting import cast_like
from .creation import zeros
from .indexing import take_along_axis_backward, take_backward
from .joining import pad
from .selection import where
from .shape import expand_dims, reshape

AXES = {1: "N, C, L", 2: "N, C, H, W", 3: "N, C, D, H, W"}
Ints: TypeAlias = tuple[int, ...]
Regions: TypeAlias = tuple[tuple[Ints, Ints, int], ...]
Formula: TypeAlias = Callable[..., Any]
_MOST_REGIONS = 2**24  # in one direction: each has its bounds in a tuple


def _countable(function: str, what: str, size: Ints) -> Ints:
    if max(size) > _MOST_REGIONS:
        raise ValueError(f"[{function}] {what} {size}, more than {_MOST_REGIONS} in a direction")
    return size


class Windows(NamedTuple):
    """The checked options of a pooling, one number for each direction; ``size`` is that of the output."""

    window: Ints
    stride: Ints
    padding: Ints
    size: Ints
    dilation: Ints

    @property
    def of_images(self) -> bool:
        """Whether the kernels of images know these windows."""
        return len(self.window) < 3 and set(self.dilation) == {1}

    @property
    def has_largest_of_images(self) -> bool:
        """Whether the largest elements, and their gradients, are best found by the kernel of images."""
        return self.of_images and (len(self.window) == 2 or self.size > (_MOST_REGIONS,))

    def as_image(self) -> tuple[Ints, Ints, Ints, Ints]:
        """Window, stride, padding and size as the kernels of images take them; a sequence has one row."""
        if len(self.window) == 2:
            return self.window, self.stride, self.padding, self.size
        return (1, *self.window), (1, *self.stride), (0, *self.padding), (1, *self.size)

    def regions(self, x: Shape) -> Regions | None:
        """What each window covers of ``x``; None if one of them sees nothing but padding."""
        return _covered(self, x)

    def padded(self, x: ExTensor) -> tuple[ExTensor, Regions]:
        """``x`` with its padding of -inf, and what each window covers of that."""
        reach = [(m - 1) * s + d * (k - 1) + 1 for k, s, _, m, d in zip(*self)]
        margins = [(p, max(0, end - n - p)) for n, p, end in zip(x.shape[2:], self.padding, reach)]
        whole = pad(x, [(0, 0), (0, 0), *margins], constant_values=-math.inf)
        found = self._replace(padding=(0,) * len(self.window)).regions(whole.shape)
        assert found is not None
        return whole, found


@functools.lru_cache(maxsize=1024)
def _covered(how: Windows, x: Shape) -> Regions | None:
    found = []
    for n, k, s, p, m, d in zip(x[2:], *how):
        starts = [i * s - p for i in range(m)]
        begins = tuple(a if a >= 0 else a % d for a in starts)
        ends = tuple(min(a + d * (k - 1) + 1, n) for a in starts)
        if any(a >= b for a, b in zip(begins, ends)):
            return None
        found.append((begins, ends, d))
    return tuple(found)


@remembered
def windows_of(
    function: str,
    x: Shape,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: Any,
    dilation: Any,
    count: int,
) -> Windows:
    """The options of a pooling over ``count`` directions, checked against the shape of ``x``."""
    check_axes(function, "x", x, AXES[count])
    window = as_pair(function, "kernel_size", kernel_size, 1, count)
    strides = window if stride is None else as_pair(function, "stride", stride, 1, count)
    pads = as_pair(function, "padding", padding, 0, count)
    if any(2 * p > k for p, k in zip(pads, window)):
        raise ValueError(f"[{function}] padding {pads} must be at most half of kernel_size {window}")
    partial = as_bool(function, "ceil_mode", ceil_mode)
    gaps = as_pair(function, "dilation", dilation, 1, count)
    size = []
    for n, k, s, p, d in zip(x[2:], window, strides, pads, gaps):
        reach = d * (k - 1) + 1
        found = -((reach - n - 2 * p) // s) + 1 if partial else (n + 2 * p - reach) // s + 1
        if partial and (found - 1) * s >= n + p:
            found -= 1  # a window must begin on the image or on the padding before it
        size.append(found)
    if 0 in x[2:] or min(size) < 1:
        raise ValueError(
            f"[{function}] kernel_size {window} is larger than the padded x: {x} with padding {pads}; "
            "use more padding or a smaller kernel_size"
        )
    how = Windows(window, strides, pads, tuple(size), gaps)
    if not how.of_images:
        _countable(function, "the windows of x are", how.size)
    return how


def _row(x: Any) -> Any:
    """A sequence (or its shape) as an image of one row; images stay."""
    shape = x.shape if isinstance(x, ExTensor) else x
    if len(shape) == 4:
        return x
    image = (*shape[:2], 1, shape[2])
    return reshape(x, image) if isinstance(x, ExTensor) else image


def _as_sequence(image: ExTensor, shape: Shape) -> ExTensor:
    """What was an image of one row as the sequence it is; images stay."""
    return image if image.shape == shape else reshape(image, shape)


# The largest element


def max_pooled(function: str, x: Any, *options: Any) -> ExTensor:
    """The largest element of each window; the options are those of :func:`windows_of`."""
    x = as_floating(function, "x", x)
    how = windows_of(function, x.shape, *options)
    share = how.padding > (0,) or how.stride < how.window  # their elements, which that kernel reads once
    if how.has_largest_of_images or (how.of_images and share):
        return _as_sequence(kernels.max_pool2d(_row(x), *how.as_image()), (*x.shape[:2], *how.size))
    whole, regions = _in_regions(x, how)
    return region_max(whole, regions)


def _in_regions(x: ExTensor, how: Windows) -> tuple[ExTensor, Regions]:
    regions = how.regions(x.shape)
    return (x, regions) if regions is not None else how.padded(x)


def max_pooled_backward(function: str, grad_output: Any, x: Any, *options: Any) -> ExTensor:
    """The gradient of :func:`max_pooled`: to the first of the largest elements; nan all over a window that holds one."""
    x = differentiable_input(function, "x", x)
    how = windows_of(function, x.shape, *options)
    return cast_like(_to_maxima(as_grad(function, grad_output, (*x.shape[:2], *how.size)), x, how), x)


def _to_maxima(grad: ExTensor, x: ExTensor, how: Windows) -> ExTensor:
    if how.has_largest_of_images:
        return _as_sequence(kernels.max_pool2d_backward(_row(grad), _row(x), *how.as_image()), x.shape)
    whole, regions = _in_regions(x, how)
    return _without_padding(region_max_backward(grad, whole, regions), x, how)


def _without_padding(whole: ExTensor, x: ExTensor, how: Windows) -> ExTensor:
    if whole.shape == x.shape:
        return whole
    return whole[(slice(None), slice(None), *(slice(p, p + n) for p, n in zip(how.padding, x.shape[2:])))]


def max_formula(function: str, count: int) -> Formula:
    """The gradient of :func:`max_pooled` in differentiable functions."""

    @on_tensors(2)
    def formula(
        g: Any, x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False, dilation: Any = 1
    ) -> Any:  # fmt: skip
        how = windows_of(function, x.shape, kernel_size, stride, padding, ceil_mode, dilation, count)
        _countable(function, "the windows of x are", how.size)
        whole, regions = _in_regions(x, how)
        blank = _to_maxima(zeros(g.shape, g.dtype), x, how)  # nan in windows that hold one, else 0
        return _without_padding(_at_maxima(g, whole, regions), x, how) + blank

    return formula


def _at_maxima(g: ExTensor, x: ExTensor, regions: Regions) -> ExTensor:
    """``g`` where the largest elements are, as a differentiable function of it."""
    places = region_max_indices(x, regions)
    flat = (*x.shape[:2], math.prod(x.shape[2:]))
    row = (*x.shape[:2], math.prod(places.shape[2:]))
    return reshape(take_along_axis_backward(reshape(g, row), flat, reshape(places, row), axis=2), x.shape)


def max_places(function: str, x: ExTensor, *options: Any) -> ExTensor:
    """Where the maxima are: positions in the flat channel."""
    how = windows_of(function, x.shape, *options)
    _countable(function, "the windows of x are", how.size)
    whole, regions = _in_regions(x, how)
    places = region_max_indices(whole, regions)
    if whole.shape == x.shape:
        return places
    flat, step = ExTensor(np.zeros(places.shape, np.int64)), 1
    for n, length, p in reversed(list(zip(x.shape[2:], whole.shape[2:], how.padding))):
        flat, places, step = flat + (places % length - p) * step, places // length, step * n
    return flat


# The mean


def _shares(how: Windows, x: Shape, count_include_pad: bool) -> tuple[Ints, ...]:
    """By what sums are divided: the elements of a window on the image, or on the image and its padding."""
    found = []
    for n, k, s, p, m, _ in zip(x[2:], *how):
        first, end = (-p, n + p) if count_include_pad else (0, n)
        found.append(tuple(min(i * s - p + k, end) - max(i * s - p, first) for i in range(m)))
    return tuple(found)


def _inner_regions(how: Windows, x: Shape) -> Regions:
    found = how.regions(x)
    assert found is not None  # a window without gaps begins on the image, or ends there
    return found


def avg_pooled(
    function: str,
    x: Any,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: Any,
    include: Any,
    count: int,
) -> ExTensor:
    """The mean of each window."""
    x = as_floating(function, "x", x)
    how = windows_of(function, x.shape, kernel_size, stride, padding, ceil_mode, 1, count)
    include = as_bool(function, "count_include_pad", include)
    if how.of_images:
        return _as_sequence(kernels.avg_pool2d(_row(x), *how.as_image(), include), (*x.shape[:2], *how.size))
    return region_mean(x, _inner_regions(how, x.shape), _shares(how, x.shape, include))


def avg_pooled_backward(
    function: str, grad_output: Any, x: Any, kernel_size: Any, stride: Any, padding: Any, ceil_mode: Any, include: Any, count: int,
) -> ExTensor:  # fmt: skip
    """The gradient of :func:`avg_pooled`: an equal share for every element of a window. ``x`` may be just its shape."""
    shape = shape_of(function, "x", x)
    how = windows_of(function, shape, kernel_size, stride, padding, ceil_mode, 1, count)
    include = as_bool(function, "count_include_pad", include)
    grad = as_grad(function, grad_output, (*shape[:2], *how.size))
    if how.of_images:
        found = kernels.avg_pool2d_backward(_row(grad), _row(shape), *how.as_image(), include)
        return cast_like(_as_sequence(found, shape), x)
    regions, sizes = _inner_regions(how, shape), _shares(how, shape, include)
    return cast_like(region_mean_backward(grad, shape, regions, sizes), x)


def avg_formula(function: str, count: int) -> Formula:
    """The gradient of :func:`avg_pooled` in differentiable functions."""

    @on_tensors(1)
    def formula(
        g: Any, x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> Any:  # fmt: skip
        shape = shape_of(function, "x", x)
        how = windows_of(function, shape, kernel_size, stride, padding, ceil_mode, 1, count)
        _countable(function, "the windows of x are", how.size)
        return _laid_over(g, shape, _inner_regions(how, shape), _shares(how, shape, count_include_pad))

    return formula


def _laid_over(g: ExTensor, shape: Shape, regions: Regions, sizes: tuple[Ints, ...]) -> ExTensor:
    """Shares of ``g`` over its regions, one direction after the other."""
    for axis, (along, lengths) in enumerate(zip(regions, sizes), 2):
        places, real = positions((along,), (1, 1, shape[axis]))
        after = (1,) * (g.ndim - axis - 1)
        share = g / ExTensor(np.array(lengths, g.dtype).reshape((-1, *after)))
        seen = where(ExTensor(real.reshape((*real.shape, *after))), expand_dims(share, axis + 1), 0.0)
        g = take_backward(seen, (*g.shape[:axis], shape[axis], *g.shape[axis + 1 :]), ExTensor(places), axis)
    return g


# Adaptive poolings


@remembered
def cells_of(function: str, x: Shape, output_size: Any, count: int) -> Ints:
    """How many cells an adaptive pooling has in each direction; None keeps those of ``x``."""
    check_axes(function, "x", x, AXES[count])
    if 0 in x[2:]:
        raise ValueError(f"[{function}] x has no elements to pool (x: {x})")
    sizes = output_size if isinstance(output_size, (tuple, list)) else (output_size,) * count
    if len(sizes) != count:
        wanted = "a pair" if count == 2 else f"{count} of them"
        raise ValueError(f"[{function}] output_size must be an int or {wanted}, got {describe(output_size)}")
    return as_pair(function, "output_size", [n if m is None else m for n, m in zip(x[2:], sizes)], 1, count)


@functools.lru_cache(maxsize=1024)
def _cells(function: str, x: Shape, size: Ints) -> Regions:
    """Cell i of m covers floor(i L / m) to ceil((i + 1) L / m)."""
    _countable(function, "output_size is", size)
    return tuple(
        (tuple(i * n // m for i in range(m)), tuple(-(-(i + 1) * n // m) for i in range(m)), 1)
        for n, m in zip(x[2:], size)
    )


def _sizes(regions: Regions) -> tuple[Ints, ...]:
    return tuple(tuple(b - a for a, b in zip(begins, ends)) for begins, ends, _ in regions)


def _even(x: Shape, size: Ints) -> tuple[Ints, Ints, Ints, Ints] | None:
    """Cells of one size side by side, which are the windows of images for :func:`avg_pool2d`; None if they are not."""
    if len(size) > 2 or any(n % m for n, m in zip(x[2:], size)):
        return None
    window = tuple(n // m for n, m in zip(x[2:], size))
    return Windows(window, window, (0,) * len(size), size, (1,) * len(size)).as_image()


def adaptive_avg(function: str, x: Any, output_size: Any, count: int) -> ExTensor:
    """The mean of each cell."""
    x = as_floating(function, "x", x)
    size = cells_of(function, x.shape, output_size, count)
    even = _even(x.shape, size)
    if even:
        return _as_sequence(kernels.avg_pool2d(_row(x), *even, True), (*x.shape[:2], *size))
    regions = _cells(function, x.shape, size)
    return region_mean(x, regions, _sizes(regions))


def adaptive_avg_backward(function: str, grad_output: Any, x: Any, output_size: Any, count: int) -> ExTensor:
    """The gradient of :func:`adaptive_avg`: an equal share for every element of a cell. ``x`` may be just its shape."""
    shape = shape_of(function, "x", x)
    size = cells_of(function, shape, output_size, count)
    grad = as_grad(function, grad_output, (*shape[:2], *size))
    even = _even(shape, size)
    if even:
        return cast_like(
            _as_sequence(kernels.avg_pool2d_backward(_row(grad), _row(shape), *even, True), shape), x
        )
    regions = _cells(function, shape, size)
    return cast_like(region_mean_backward(grad, shape, regions, _sizes(regions)), x)


def adaptive_avg_formula(function: str) -> Formula:
    """The gradient of :func:`adaptive_avg` in differentiable functions."""

    @on_tensors(1)
    def formula(g: Any, x: Any, output_size: Any) -> Any:
        shape = shape_of(function, "x", x)
        regions = _cells(function, shape, g.shape[2:])
        return _laid_over(g, shape, regions, _sizes(regions))

    return formula


def adaptive_max(function: str, x: Any, output_size: Any, count: int) -> ExTensor:
    """The largest element of each cell."""
    x = as_floating(function, "x", x)
    return region_max(x, _cells(function, x.shape, cells_of(function, x.shape, output_size, count)))


def adaptive_max_backward(function: str, grad_output: Any, x: Any, output_size: Any, count: int) -> ExTensor:
    """The gradient of :func:`adaptive_max`: to the first of the largest elements; nan all over a cell that holds one."""
    x = differentiable_input(function, "x", x)
    size = cells_of(function, x.shape, output_size, count)
    grad = as_grad(function, grad_output, (*x.shape[:2], *size))
    return cast_like(region_max_backward(grad, x, _cells(function, x.shape, size)), x)


def adaptive_max_formula(g: Any, x: Any, output_size: Any) -> Any:
    """The gradient of :func:`adaptive_max` in differentiable functions."""
    regions = _cells(f"adaptive_max_pool{x.ndim - 2}d_backward", x.shape, g.shape[2:])
    blank = region_max_backward(zeros(g.shape, g.dtype), x, regions)
    return _at_maxima(g, x, regions) + blank


def adaptive_max_places(function: str, x: ExTensor, output_size: Any, count: int) -> ExTensor:
    """Where the maxima are: positions in the flat channel."""
    return region_max_indices(x, _cells(function, x.shape, cells_of(function, x.shape, output_size, count)))
