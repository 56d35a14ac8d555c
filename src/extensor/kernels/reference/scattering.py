"""Gathering and scattering along an axis; the index has as many axes as ``x`` and may be shorter."""

from __future__ import annotations

import numpy as np

from ..dispatch import kernel

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
    made = x.copy()
    made[key(index, axis)] = source
    return made


@kernel
def scatter_add(x, index, source, axis):
    wide = np.float64 if x.dtype == np.float32 else x.dtype
    made = x.astype(wide)
    np.add.at(made, key(index, axis), source.astype(wide, copy=False))
    return made.astype(x.dtype)


@kernel(exact=True)
def masked_fill(x, mask, value):
    return np.where(mask, np.asarray(value).astype(x.dtype), x)
