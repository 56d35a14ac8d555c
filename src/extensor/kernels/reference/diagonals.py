"""Diagonals and triangles of matrices; axes before the last two are a batch."""

from __future__ import annotations

from ..dispatch import kernel
from ..namespace import assigned, xp, zeros

__all__ = ["diag_embed", "diagonal", "diagonal_backward", "tril", "triu"]


@kernel(exact=True)
def tril(x, k):
    return xp.tril(x, k)


@kernel(exact=True)
def triu(x, k):
    return xp.triu(x, k)


def positions(rows, columns, offset):
    """The rows and columns of a diagonal."""
    length = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    return xp.arange(length) + max(-offset, 0), xp.arange(length) + max(offset, 0)


@kernel(exact=True)
def diagonal(x, offset, axis1, axis2):
    return xp.diagonal(x, offset, axis1, axis2)


@kernel(exact=True)
def diagonal_backward(g, shape, offset, axis1, axis2):
    rows, columns = positions(shape[axis1], shape[axis2], offset)
    made = zeros(
        [n for i, n in enumerate(shape) if i not in (axis1, axis2)] + [shape[axis1], shape[axis2]], g.dtype, g
    )
    return xp.moveaxis(assigned(made, (..., rows, columns), g), (-2, -1), (axis1, axis2))


@kernel(exact=True)
def diag_embed(x, offset):
    n = x.shape[-1] + abs(offset)
    return assigned(zeros((*x.shape[:-1], n, n), x.dtype, x), (..., *positions(n, n, offset)), x)
