"""Sorting, searching for extremes, counting. Sorting is stable and puts nan last (``top_k``: first)."""

from __future__ import annotations

from ..dispatch import formula, kernel
from ..namespace import as_whole, assigned, constant, primitive, xp, zeros
from .indexing import along_axis

__all__ = [
    "sort", "sort_backward", "argsort", "top_k", "top_k_backward", "argmax", "argmin", "any", "all", "count_nonzero",
]  # fmt: skip


def largest(x, k, axis):
    """The indices of the ``k`` largest elements, the largest first; of equal ones the first comes first."""
    order = x.shape[axis] - 1 - xp.flip(xp.argsort(xp.flip(x, axis), axis, stable=True), axis)
    return order[(slice(None),) * axis + (slice(k),)]


@primitive
def placed(g, order, shape, axis):
    """The gradient of taking elements in ``order``: each goes back to where its element came from."""
    return assigned(zeros(shape, g.dtype, g), along_axis(shape, order, axis), g)


@kernel
def sort(x, axis):
    return xp.sort(x, axis, stable=True)


@formula
def sort_backward(g, x, axis):
    elements = constant(x)
    flat, along = (elements.reshape(-1), 0) if axis is None else (elements, axis)
    return placed(g, xp.argsort(flat, along, stable=True), flat.shape, along).reshape(x.shape)


@kernel
def argsort(x, axis):
    return as_whole(xp.argsort(x, axis, stable=True))


@kernel
def top_k(x, k, axis):
    """(values, indices)."""
    order = largest(x, k, axis)
    return xp.take_along_axis(x, order, axis), as_whole(order)


@formula
def top_k_backward(g, x, k, axis):
    return placed(g, largest(constant(x), k, axis), x.shape, axis)


@kernel
def argmax(x, axis, keepdims):
    return as_whole(xp.argmax(x, axis, keepdims=keepdims))


@kernel
def argmin(x, axis, keepdims):
    return as_whole(xp.argmin(x, axis, keepdims=keepdims))


@kernel
def any(x, axes, keepdims):
    return xp.any(x, axes, keepdims=keepdims)


@kernel
def all(x, axes, keepdims):
    return xp.all(x, axes, keepdims=keepdims)


@kernel
def count_nonzero(x, axes, keepdims):
    return as_whole(xp.count_nonzero(x, axes, keepdims=keepdims))
