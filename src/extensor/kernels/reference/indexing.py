"""Elements by position, and their adjoint: adding at positions that may repeat.

``indices`` are int64 and already within -length .. length - 1. A ``key`` is a tuple of ints, slices, None, one
Ellipsis, and boolean or integer arrays. Sums of float32 add up in float64.
"""

from __future__ import annotations

import numpy as np

from ..dispatch import kernel
from ..namespace import added, assigned, copied, wide_dtype, xp, zeros

__all__ = [
    "index", "index_add", "index_backward", "index_last", "index_set",
    "take", "take_along_axis", "take_along_axis_backward", "take_backward",
]  # fmt: skip


def along_axis(shape, indices, axis):
    """The key under which NumPy finds what ``take_along_axis`` takes from an array of ``shape``."""
    key = list(np.ogrid[tuple(slice(n) for n in shape)])
    key[axis] = indices
    return tuple(key)


def added_at(start, key, values):
    """``start`` plus ``values`` at ``key``; positions that repeat accumulate."""
    if not any(hasattr(part, "dtype") for part in key):  # slices never repeat
        return added(copied(start), key, values)
    wide = wide_dtype(start) if start.dtype == np.float32 else start.dtype
    return added(start.astype(wide), key, values.astype(wide)).astype(start.dtype, copy=False)


@kernel(exact=True)
def index(x, key):
    return x[key]


@kernel
def index_backward(g, shape, key):
    return added_at(zeros(shape, g.dtype, g), key, g)


@kernel(exact=True)
def index_set(x, key, values):
    return assigned(copied(x), key, values)


@kernel(exact=True)
def index_last(shape, key):
    """Which of the selected positions are written last: with repeats only one assignment stays."""
    last = zeros(shape, np.int64, key)
    order = np.arange(last[key].size).reshape(last[key].shape)
    # What a device writes at one place has no order; the largest number is the last.
    last = last.at[key].max(order) if hasattr(last, "at") else assigned(last, key, order)
    return last[key] == order


@kernel
def index_add(x, key, values):
    return added_at(x, key, values)


@kernel(exact=True)
def take(x, indices, axis):
    return xp.take(x, indices, axis)


@kernel
def take_backward(g, shape, indices, axis):
    return added_at(zeros(shape, g.dtype, g), (slice(None),) * axis + (indices,), g)


@kernel(exact=True)
def take_along_axis(x, indices, axis):
    return x[along_axis(x.shape, indices, axis)]


@kernel
def take_along_axis_backward(g, shape, indices, axis):
    return added_at(zeros(shape, g.dtype, g), along_axis(shape, indices, axis), g)
