"""An axis of another length: every new element is a weighted sum of old ones.

positions: (taps, new length), int64; weights: likewise in float64, or None for the one tap itself.
"""

from __future__ import annotations

from ..dispatch import kernel
from ..namespace import added, wide_dtype, xp, zeros

__all__ = ["resample", "resample_backward"]


def along(weights, axis, x):
    """The weights of one tap beside x."""
    return weights.reshape([-1 if i == axis else 1 for i in range(x.ndim)]).astype(x.dtype)


@kernel
def resample(x, positions, weights, axis):
    parts = [xp.take(x, row, axis) for row in positions]
    if weights is None:
        return parts[0]
    total = parts[0] * along(weights[0], axis, x)
    for part, row in zip(parts[1:], weights[1:]):
        total = total + part * along(row, axis, x)
    return total


@kernel
def resample_backward(g, length, positions, weights, axis):
    grad = zeros((*g.shape[:axis], length, *g.shape[axis + 1 :]), wide_dtype(g), g)
    for k, row in enumerate(positions):
        share = g if weights is None else g * along(weights[k], axis, g)
        grad = added(grad, (*[slice(None)] * axis, row), share.astype(grad.dtype))
    return grad.astype(g.dtype)
