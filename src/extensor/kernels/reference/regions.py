"""Pooling over regions of sequences, images and volumes (N, C, ...): windows with gaps, cells of any size.

``regions`` has one entry for each direction, (begins, ends, step): region i covers begins[i], begins[i] + step, ... below
ends[i], at least one position, all of them inside. ``sizes``, numbers for each direction, says by the product of which the sum
over a region is divided. Sums add up in float64.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from ..dispatch import kernel
from ..namespace import added, as_whole, namespace_of, wide_dtype, xp, zeros

__all__ = ["region_max", "region_max_backward", "region_max_indices", "region_mean", "region_mean_backward"]

Ints = tuple[int, ...]


def positions(regions: tuple[tuple[Ints, Ints, int], ...], shape: Ints) -> tuple[np.ndarray, np.ndarray]:
    """What each region covers, counted row by row: (*regions in each direction, most elements), and which of these are real.

    Shorter regions repeat their last element, which are not real.
    """
    count = len(regions)
    flat, real = np.zeros((1,) * 2 * count, np.int64), np.ones((1,) * 2 * count, bool)
    for i, (begins, ends, step) in enumerate(regions):
        begin, end = np.array(begins)[:, None], np.array(ends)[:, None]
        places = begin + step * np.arange(int((-(-(end - begin) // step)).max()))
        inside = places < end
        places = np.minimum(places, begin + (end - 1 - begin) // step * step)
        where = [1] * 2 * count
        where[i], where[count + i] = places.shape
        flat = flat * shape[2 + i] + places.reshape(where)
        real = real & inside.reshape(where)
    sizes = (*(len(begins) for begins, _, _ in regions), -1)
    return flat.reshape(sizes), real.reshape(sizes)


def channels(x):
    """All positions of a channel in one row: (N, C, positions)."""
    return x.reshape(*x.shape[:2], math.prod(x.shape[2:]))


def spread(values, flat, shape, dtype):
    """The adjoint of ``channels(x)[:, :, flat]``: values are added up where they came from."""
    grad = zeros((math.prod(shape[:2]), math.prod(shape[2:])), dtype, values)
    rows = np.arange(grad.shape[0]).reshape(-1, *(1,) * (values.ndim - 2))
    whole = values.reshape(grad.shape[0], *values.shape[2:])
    return added(grad, (rows, flat.reshape(-1, *flat.shape[-(values.ndim - 2) :])), whole).reshape(shape)


def first_maxima(x, flat):
    """Where the first maximum of each region is; a nan is the largest."""
    place = xp.argmax(channels(x)[:, :, flat], -1)
    return xp.take_along_axis(
        xp.broadcast_to(xp.asarray(flat), (*x.shape[:2], *flat.shape)), place[..., None], -1
    )[..., 0]


@kernel
def region_max(x, regions):
    return channels(x)[:, :, positions(regions, x.shape)[0]].max(-1)


@kernel
def region_max_indices(x, regions):
    """Where in its channel, counted row by row, each maximum was found: the first of a tie, the first nan."""
    return as_whole(first_maxima(x, positions(regions, x.shape)[0]))


@kernel
def region_max_backward(g, x, regions):
    flat, _ = positions(regions, x.shape)
    found = first_maxima(x, flat)
    grad = spread(g, found.reshape(math.prod(x.shape[:2]), *found.shape[2:]), x.shape, wide_dtype(g))
    top = channels(x)[:, :, flat].max(-1)
    if namespace_of(x) is not np or np.isnan(top).any():  # nan all over a region that holds one
        holes = xp.where(xp.isnan(top), np.nan, 0.0).astype(grad.dtype)[..., None]
        grad = grad + spread(xp.broadcast_to(holes, (*x.shape[:2], *flat.shape)), flat, x.shape, grad.dtype)
    return grad.astype(g.dtype)


def products(sizes):
    """One number for each region."""
    return functools.reduce(np.multiply.outer, (np.array(along, float) for along in sizes))


@kernel
def region_mean(x, regions, sizes):
    flat, real = positions(regions, x.shape)
    total = xp.where(real, channels(x)[:, :, flat], 0).sum(-1, dtype=wide_dtype(x))
    return (total / products(sizes).astype(total.dtype)).astype(x.dtype)


@kernel
def region_mean_backward(g, shape, regions, sizes):
    flat, real = positions(regions, shape)
    share = g.astype(wide_dtype(g)) / products(sizes).astype(wide_dtype(g))
    return spread(xp.where(real, share[..., None], 0.0), flat, shape, wide_dtype(g)).astype(g.dtype)
