"""Diagonals and triangles of matrices; axes before the last two are a batch."""

from __future__ import annotations

import numpy as np

from ..dispatch import kernel

__all__ = ["diag_embed", "diagonal", "diagonal_backward", "tril", "triu"]


@kernel(exact=True)
def tril(x, k):
    return np.tril(x, k)


@kernel(exact=True)
def triu(x, k):
    return np.triu(x, k)


@kernel(exact=True)
def diagonal(x, offset, axis1, axis2):
    return np.diagonal(x, offset, axis1, axis2)


@kernel(exact=True)
def diagonal_backward(g, shape, offset, axis1, axis2):
    made = np.zeros(shape, g.dtype)
    view = np.diagonal(made, offset, axis1, axis2)
    view.flags.writeable = True  # a view of our own zeros
    view[...] = g
    return made


@kernel(exact=True)
def diag_embed(x, offset):
    n = x.shape[-1] + abs(offset)
    made = np.zeros((*x.shape[:-1], n, n), x.dtype)
    view = np.diagonal(made, offset, -2, -1)
    view.flags.writeable = True
    view[...] = x
    return made
