"""Elements by position, and their adjoint: adding at positions that may repeat.

``indices`` are int64 and already within -length .. length - 1. A ``key`` is a tuple of ints, slices, None, one
Ellipsis, and boolean or integer arrays. Sums of float32 add up in float64.
"""

from __future__ import annotations

import numpy as np

from ..dispatch import kernel

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
    if not any(isinstance(part, np.ndarray) for part in key):  # slices never repeat
        total = start.copy(order="C")
        total[key] += values
        return total
    wide = np.float64 if start.dtype == np.float32 else start.dtype
    total = start.astype(wide)
    np.add.at(total, key, values.astype(wide))
    return total.astype(start.dtype, copy=False)


@kernel(exact=True)
def index(x, key):
    return x[key]


@kernel
def index_backward(g, shape, key):
    return added_at(np.zeros(shape, g.dtype), key, g)


@kernel(exact=True)
def index_set(x, key, values):
    out = x.copy(order="C")
    out[key] = values
    return out


@kernel(exact=True)
def index_last(shape, key):
    """Which of the selected positions are written last: with repeats only one assignment stays."""
    where = np.zeros(shape, np.int64)
    order = np.arange(where[key].size).reshape(where[key].shape)
    where[key] = order
    return where[key] == order


@kernel
def index_add(x, key, values):
    return added_at(x, key, values)


@kernel(exact=True)
def take(x, indices, axis):
    return np.take(x, indices, axis)


@kernel
def take_backward(g, shape, indices, axis):
    return added_at(np.zeros(shape, g.dtype), (slice(None),) * axis + (indices,), g)


@kernel(exact=True)
def take_along_axis(x, indices, axis):
    return x[along_axis(x.shape, indices, axis)]


@kernel
def take_along_axis_backward(g, shape, indices, axis):
    return added_at(np.zeros(shape, g.dtype), along_axis(shape, indices, axis), g)
