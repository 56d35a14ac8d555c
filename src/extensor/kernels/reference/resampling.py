"""New elements that are weighted sums of old ones: an axis of another length, or samples of images at places of their own.

An axis has positions (taps, new length), int64, and weights likewise in float64, or None for the one tap itself. Images
(N, C, pixels) have positions (taps, N, points) and weights likewise in their own dtype; a position serves every channel, and
below 0 it lies outside, where there is nothing.
"""

from __future__ import annotations

import functools
import operator

import numpy as np

from ..dispatch import formula, kernel
from ..namespace import added, primitive, wide_dtype, xp, zeros
from .softmax import row_sum

__all__ = ["resample", "resample_backward", "sample", "sample_backward"]


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


@primitive
def given_back(g, length, positions, weights, axis):
    """The adjoint of :func:`resample`: every new element gives its weights' shares to its taps."""
    grad = zeros((*g.shape[:axis], length, *g.shape[axis + 1 :]), wide_dtype(g), g)
    for k, row in enumerate(positions):
        share = g if weights is None else g * along(weights[k], axis, g)
        grad = added(grad, (*[slice(None)] * axis, row), share.astype(grad.dtype))
    return grad.astype(g.dtype)


@formula
def resample_backward(g, length, positions, weights, axis):
    return given_back(g, length, positions, weights, axis)


def beside(x, like):
    """(N, points) beside (N, C, ...): (N, C, points)."""
    return xp.broadcast_to(xp.expand_dims(x, 1), (*like.shape[:2], x.shape[-1]))


def picked(image, places):
    """The pixels at places, 0 outside, and which are inside."""
    inside = beside(places >= 0, image)
    found = xp.take_along_axis(image, beside(xp.maximum(places, 0), image), 2)
    return xp.where(inside, found, 0.0), inside


@kernel
def sample(image, positions, weights):
    parts = [picked(image, places)[0] * beside(weight, image) for places, weight in zip(positions, weights)]
    return functools.reduce(operator.add, parts)


@primitive
def put_back(shares, places, pixels):
    """The adjoint of taking from images: what stands at each point, added up where it came from."""
    rows = np.arange(shares.shape[0] * shares.shape[1])[:, None]
    grad = zeros((len(rows), pixels), wide_dtype(shares), shares)
    shape = (len(rows), shares.shape[2])
    grad = added(grad, (rows, places.reshape(shape)), shares.reshape(shape).astype(grad.dtype))
    return grad.reshape(*shares.shape[:2], pixels).astype(shares.dtype)


@formula
def sample_backward(g, image, positions, weights, needs):
    grad_image, grad_weights = [], []
    for places, weight in zip(positions, weights):
        pixels, inside = picked(image, places)
        if needs[0]:
            share = xp.where(inside, g * beside(weight, image), 0.0)
            grad_image.append(put_back(share, beside(xp.maximum(places, 0), image), image.shape[2]))
        if needs[1]:
            grad_weights.append(row_sum(xp.where(inside, g * pixels, 0.0), 1)[:, 0])
    return (
        functools.reduce(operator.add, grad_image) if needs[0] else None,
        xp.stack(grad_weights) if needs[1] else None,
    )
