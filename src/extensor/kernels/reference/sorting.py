"""Sorting, searching for extremes, counting. Sorting is stable and puts nan last (``top_k``: first)."""

from __future__ import annotations

import numpy as np

from ..dispatch import kernel

__all__ = [
    "sort", "sort_backward", "argsort", "top_k", "top_k_backward", "argmax", "argmin", "any", "all", "count_nonzero",
]  # fmt: skip


def descending(x, axis):
    """The stable order from the largest to the smallest."""
    return x.shape[axis] - 1 - np.flip(np.flip(x, axis).argsort(axis, kind="stable"), axis)


def placed(g, order, shape, axis):
    """The gradient of taking elements in ``order``: each goes back to where its element came from."""
    grad = np.zeros(shape, g.dtype)
    np.put_along_axis(grad, order, g, axis)
    return grad


@kernel
def sort(x, axis):
    return np.sort(x, axis, kind="stable")


@kernel
def sort_backward(g, x, axis):
    flat = x.reshape(-1) if axis is None else x
    along = 0 if axis is None else axis
    return placed(g, flat.argsort(along, kind="stable"), flat.shape, along).reshape(x.shape)


@kernel
def argsort(x, axis):
    return np.argsort(x, axis, kind="stable")


@kernel
def top_k(x, k, axis):
    order = np.take(descending(x, axis), np.arange(k), axis)
    return np.take_along_axis(x, order, axis)


@kernel
def top_k_backward(g, x, k, axis):
    order = np.take(descending(x, axis), np.arange(k), axis)
    return placed(g, order, x.shape, axis)


@kernel
def argmax(x, axis, keepdims):
    return np.argmax(x, axis, keepdims=keepdims)


@kernel
def argmin(x, axis, keepdims):
    return np.argmin(x, axis, keepdims=keepdims)


@kernel
def any(x, axes, keepdims):
    return np.any(x, axes, keepdims=keepdims)


@kernel
def all(x, axes, keepdims):
    return np.all(x, axes, keepdims=keepdims)


@kernel
def count_nonzero(x, axes, keepdims):
    return np.asarray(np.count_nonzero(x, axes, keepdims=keepdims))
