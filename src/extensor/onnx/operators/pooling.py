"""Pooling over any number of axes, with every option of the standard."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import Any

import numpy as np

import extensor as et

from ...dtypes import FLOATING
from ..proto import array_of, as_value, check_bytes, ints_of
from ..table import opaque, operator
from .convolution import pads_of
from .shape import padded

__all__: list[str] = []

_MOST_PLACES = 1 << 16  # of a window that is taken apart


class _Windows:
    """Where the windows of a pooling are."""

    def __init__(
        self, x: Any, kernel: list[int], auto_pad: str, pads: list[int] | None, strides: list[int] | None,
        dilations: list[int] | None, ceil_mode: int,
    ) -> None:  # fmt: skip
        n = len(kernel)
        self.lengths = x.shape[2:]
        self.kernel, self.strides, self.dilations = kernel, strides or [1] * n, dilations or [1] * n
        self.pads = pads_of(auto_pad, pads, self.lengths, kernel, self.strides, self.dilations)
        self.counts, self.ends = [], []
        for length, k, s, d, (before, after) in zip(
            self.lengths, kernel, self.strides, self.dilations, self.pads
        ):
            room = length + before + after - (k - 1) * d - 1
            if room < 0:
                raise ValueError(f"[Pool] a window of {kernel} does not fit {tuple(self.lengths)}")
            count = (-(-room // s) if ceil_mode and auto_pad == "NOTSET" else room // s) + 1
            if (count - 1) * s >= length + before:  # a window that would begin behind the end
                count -= 1
            self.counts.append(count)
            self.ends.append(max((count - 1) * s + (k - 1) * d + 1 - length - before, after))

    def around(self) -> list[tuple[int, int]]:
        """What is added before and after, up to the last window."""
        return [(0, 0), (0, 0), *((before, end) for (before, _), end in zip(self.pads, self.ends))]

    def slices(self, x: Any) -> Iterator[Any]:
        """For each place in the window, the elements of x there."""
        if int(np.prod(self.kernel)) > _MOST_PLACES:
            raise ValueError(f"[Pool] a window of {self.kernel} is too large")
        for offset in np.ndindex(*self.kernel):
            key = tuple(
                slice(o * d, o * d + (c - 1) * s + 1, s)
                for o, d, c, s in zip(offset, self.dilations, self.counts, self.strides)
            )
            yield x[(slice(None), slice(None), *key)]

    @property
    def plain(self) -> bool:
        """Whether the two-dimensional functions know these windows."""
        return (
            len(self.kernel) == 2
            and set(self.dilations) == {1}
            and all(before == after == end for (before, after), end in zip(self.pads, self.ends))
            and all(2 * before <= k for (before, _), k in zip(self.pads, self.kernel))
        )


@operator("MaxPool")
def max_pool(
    x: Any, *, kernel_shape: list[int], auto_pad: str = "NOTSET", ceil_mode: int = 0, dilations: list[int] | None = None,
    pads: list[int] | None = None, storage_order: int = 0, strides: list[int] | None = None, outputs: int = 1,
) -> Any:  # fmt: skip
    """The greatest element of each window, and where it is."""
    windows = _Windows(x, kernel_shape, auto_pad, pads, strides, dilations, ceil_mode)
    if windows.plain and x.dtype in FLOATING:
        padding = tuple(before for before, _ in windows.pads)
        found = et.max_pool2d(x, tuple(kernel_shape), tuple(windows.strides), padding)
    else:
        least = -np.inf if x.dtype in FLOATING else np.iinfo(x.dtype).min
        found = reduce(et.maximum, windows.slices(padded(x, windows.around(), "constant", least)))
    return found if outputs == 1 else (found, _places(x, windows, storage_order))


@opaque
def _places(x: Any, windows: _Windows, storage_order: int) -> Any:
    """The positions of the maxima in the flat tensor."""
    array = array_of(x)
    least = -np.inf if array.dtype.kind not in "iu" else np.iinfo(array.dtype).min
    around = windows.around()
    values = np.stack(list(windows.slices(np.pad(array, around, constant_values=least))))
    size = int(np.prod(windows.lengths))
    flat = np.arange(size).reshape(windows.lengths, order="F" if storage_order else "C")[None, None]
    inside = np.stack(list(windows.slices(np.pad(flat, around, constant_values=-1))))
    values = np.where(inside >= 0, values, least)
    best = values.argmax(0)
    within = np.take_along_axis(np.broadcast_to(inside, values.shape), best[None], 0)[0]
    front = np.arange(array.shape[0] * array.shape[1]).reshape(
        (*array.shape[:2], *(1,) * len(windows.kernel))
    )
    return as_value((within + front * size).astype(np.int64))


@operator("AveragePool")
def average_pool(
    x: Any, *, kernel_shape: list[int], auto_pad: str = "NOTSET", ceil_mode: int = 0, count_include_pad: int = 0,
    dilations: list[int] | None = None, pads: list[int] | None = None, strides: list[int] | None = None,
) -> Any:  # fmt: skip
    """The mean of each window; padding counts if asked to."""
    windows = _Windows(x, kernel_shape, auto_pad, pads, strides, dilations, ceil_mode)
    if windows.plain and x.dtype in FLOATING:
        padding = tuple(before for before, _ in windows.pads)
        return et.avg_pool2d(
            x, tuple(kernel_shape), tuple(windows.strides), padding, count_include_pad=bool(count_include_pad)
        )
    total = reduce(et.add, windows.slices(padded(x, windows.around())))
    ones = np.ones((1, 1, *windows.lengths))
    if count_include_pad:
        ones = np.pad(ones, [(0, 0), (0, 0), *windows.pads], constant_values=1)
        around = [(0, 0), (0, 0), *((0, end - after) for (_, after), end in zip(windows.pads, windows.ends))]
    else:
        around = windows.around()
    counts = reduce(np.add, windows.slices(np.pad(ones, around)))
    return total / as_value(np.maximum(counts, 1).astype(x.dtype))


@operator("LpPool")
def lp_pool(
    x: Any, *, kernel_shape: list[int], p: float = 2, auto_pad: str = "NOTSET", ceil_mode: int = 0,
    dilations: list[int] | None = None, pads: list[int] | None = None, strides: list[int] | None = None,
) -> Any:  # fmt: skip
    """The p-norm of each window."""
    windows = _Windows(x, kernel_shape, auto_pad, pads, strides, dilations, ceil_mode)
    powers = et.power(et.abs(x), float(p))
    return et.power(reduce(et.add, windows.slices(padded(powers, windows.around()))), 1 / p)


@operator("GlobalAveragePool")
def global_average_pool(x: Any) -> Any:
    """The mean of each channel."""
    return et.global_avg_pool2d(x) if x.ndim == 4 else et.mean(x, tuple(range(2, x.ndim)), True)


@operator("GlobalMaxPool")
def global_max_pool(x: Any) -> Any:
    """The greatest element of each channel."""
    return et.max(x, tuple(range(2, x.ndim)), True)


@operator("GlobalLpPool")
def global_lp_pool(x: Any, *, p: float = 2) -> Any:
    """The p-norm of each channel."""
    return et.power(et.sum(et.power(et.abs(x), float(p)), tuple(range(2, x.ndim)), True), 1 / p)


@operator("MaxUnpool", fixed=("indices", "output_shape"))
def max_unpool(
    x: Any, indices: Any, output_shape: Any = None, *, kernel_shape: list[int], pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Any:  # fmt: skip
    """Maxima back where they came from, zeros elsewhere."""
    n = len(kernel_shape)
    strides, pads = strides or [1] * n, pads or [0] * 2 * n
    natural = [
        (m - 1) * s - pads[i] - pads[i + n] + k
        for i, (m, s, k) in enumerate(zip(x.shape[2:], strides, kernel_shape))
    ]
    whole = ints_of(output_shape) if output_shape is not None else [*x.shape[:2], *natural]
    check_bytes("MaxUnpool", whole, x.dtype.itemsize)
    size, places = int(np.prod(natural)), array_of(indices).reshape(-1)
    front, inside = (
        places // size,
        np.unravel_index(places % size, natural),
    )  # positions count in the natural shape
    target = np.ravel_multi_index((front, *inside), (int(np.prod(whole[:2])), *whole[2:]))
    flat = et.index_set(et.zeros((int(np.prod(whole)),), x.dtype), target, x.reshape((-1,)))
    return flat.reshape(tuple(whole))
