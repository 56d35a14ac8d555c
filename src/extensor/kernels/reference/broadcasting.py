"""Broadcasting and its adjoint."""

from __future__ import annotations

import numpy as np

from ..dispatch import kernel
from ..namespace import primitive, wide_dtype, xp

__all__ = ["broadcast_to", "sum_to_shape"]


@kernel(exact=True)
def broadcast_to(x, shape):
    return xp.broadcast_to(x, shape)


@kernel
def sum_to_shape(x, shape):
    return summed_to(x, shape)


@primitive
def summed_to(x, shape):
    """Sum the leading axes that ``shape`` lacks and the axes where it is 1; float32 adds up in float64."""
    extra = x.ndim - len(shape)
    axes = tuple(range(extra)) + tuple(i + extra for i, n in enumerate(shape) if n == 1 != x.shape[i + extra])
    if not axes:
        return x.reshape(shape)
    return x.sum(axes, dtype=wide_dtype(x) if x.dtype == np.float32 else None).astype(x.dtype).reshape(shape)
