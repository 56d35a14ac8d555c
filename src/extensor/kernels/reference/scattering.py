"""Gathering and scattering along an axis; the index has as many axes as ``x`` and may be shorter."""

from __future__ import annotations

import numpy as np

from ..dispatch import kernel
from ..namespace import added, assigned, copied, wide_dtype, xp

__all__ = ["gather", "masked_fill", "scatter", "scatter_add"]


def key(index, axis):
    """The positions of all elements of an index: its own along ``axis``, their own along the others."""
    places = list(np.ogrid[tuple(map(slice, index.shape))])
    places[axis] = index
    return tuple(places)


@kernel(exact=True)
def gather(x, index, axis):
    return x[key(index, axis)]


@kernel(exact=True)
def scatter(x, index, source, axis):
    return assigned(copied(x), key(index, axis), source)


@kernel
def scatter_add(x, index, source, axis):
    wide = wide_dtype(x) if x.dtype == np.float32 else x.dtype
    return added(x.astype(wide), key(index, axis), source.astype(wide, copy=False)).astype(x.dtype)


@kernel(exact=True)
def masked_fill(x, mask, value):
    return xp.where(mask, xp.asarray(value).astype(x.dtype), x)
