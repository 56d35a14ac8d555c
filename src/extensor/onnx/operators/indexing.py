"""Taking elements by index, and putting them."""

from __future__ import annotations

from typing import Any

import numpy as np

import extensor as et

from ...kernels.namespace import joined_at
from ...tensor import ExTensor
from ..proto import array_of, as_value, check_bytes
from ..table import opaque, operator

__all__: list[str] = []


def _inside(name: str, indices: Any, length: int) -> np.ndarray:
    """Indices counted from the front; outside of the axis they are an error."""
    places = array_of(indices).astype(np.int64)
    if places.size and not (-length <= places.min() and places.max() < length):
        raise IndexError(f"[{name}] an index is outside of an axis of length {length}")
    return np.where(places < 0, places + length, places)


@operator("Gather")
def gather(x: Any, indices: Any, *, axis: int = 0) -> Any:
    """Slices of x along an axis."""
    places = _inside("Gather", indices, x.shape[axis])
    if not isinstance(x, ExTensor):
        return np.take(x, places, axis)
    if isinstance(indices, ExTensor) and indices.size and array_of(indices).min() >= 0:
        return et.take(x, indices, axis)
    return et.take(x, places, axis)


@operator("GatherElements")
def gather_elements(x: Any, indices: Any, *, axis: int = 0) -> Any:
    """x at the places of ``indices`` along an axis."""
    places = _inside("GatherElements", indices, x.shape[axis])
    key: Any = np.indices(places.shape, sparse=True)
    along = axis % x.ndim
    return et.index(x, tuple(places if i == along else k for i, k in enumerate(key)))


@operator("GatherND")
def gather_nd(x: Any, indices: Any, *, batch_dims: int = 0) -> Any:
    """Slices of x at positions that are rows of ``indices``."""
    return et.index(x, _positions("GatherND", x, indices, batch_dims))


def _positions(name: str, x: Any, indices: Any, batch_dims: int = 0) -> tuple[Any, ...]:
    rows = array_of(indices).astype(np.int64)
    if rows.ndim < 1 or rows.shape[-1] + batch_dims > x.ndim:
        raise ValueError(f"[{name}] indices of shape {rows.shape} do not fit x of shape {x.shape}")
    front = np.indices(rows.shape[:-1], sparse=True)[:batch_dims]
    last = [_inside(name, rows[..., i], x.shape[batch_dims + i]) for i in range(rows.shape[-1])]
    return (*front, *last)


# Putting

_JOIN = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def _put(name: str, x: Any, key: tuple[Any, ...], updates: Any, reduction: str) -> Any:
    """x with new elements: in their place, or joined with what is there. Only "none" and "add" have gradients."""
    if reduction == "none":
        return et.index_set(x, key, updates)
    if reduction == "add":
        return et.index_add(x, key, updates)
    if reduction not in _JOIN:
        raise NotImplementedError(f"[{name}] the reduction {reduction!r} is not known")
    return put_joined(x, key, updates, reduction)


@opaque
def put_joined(x: Any, key: Any, updates: Any, reduction: str) -> Any:
    """Products or extremes of what is there and what comes."""
    return as_value(joined_at(_JOIN[reduction], array_of(x).copy(), key, array_of(updates)))


@operator("ScatterElements")
def scatter_elements(x: Any, indices: Any, updates: Any, *, axis: int = 0, reduction: str = "none") -> Any:
    """x with ``updates`` at the places of ``indices`` along an axis."""
    places = _inside("ScatterElements", indices, x.shape[axis])
    key: Any = np.indices(places.shape, sparse=True)
    along = axis % x.ndim
    full = tuple(places if i == along else k for i, k in enumerate(key))
    return _put("ScatterElements", x, full, updates, reduction)


@operator("Scatter")
def scatter(x: Any, indices: Any, updates: Any, *, axis: int = 0) -> Any:
    """The older name of ScatterElements."""
    return scatter_elements(x, indices, updates, axis=axis)


@operator("ScatterND")
def scatter_nd(x: Any, indices: Any, updates: Any, *, reduction: str = "none") -> Any:
    """x with slices at positions that are rows of ``indices``."""
    return _put("ScatterND", x, _positions("ScatterND", x, indices), updates, reduction)


@operator("TensorScatter")
def tensor_scatter(
    past: Any, update: Any, write_indices: Any = None, *, axis: int = -2, mode: str = "linear"
) -> Any:
    """A cache with new entries from a position on, for each sequence; ``circular`` goes on at the front."""
    along = axis % past.ndim
    batch, length, count = past.shape[0], past.shape[along], update.shape[along]
    start = np.zeros(batch, np.int64) if write_indices is None else array_of(write_indices)
    rows = start[:, None] + np.arange(count)[None, :]
    if mode == "circular":
        rows = rows % length
    elif rows.size and (rows.min() < 0 or rows.max() >= length):
        raise ValueError(f"[TensorScatter] writes beyond the cache of length {length}")
    moved, new = et.moveaxis(past, along, 1), et.moveaxis(update, along, 1)
    return et.moveaxis(et.index_set(moved, (np.arange(batch)[:, None], rows), new), 1, along)


# Finding


@operator("NonZero")
@opaque
def non_zero(x: Any) -> Any:
    """The positions of elements that are not 0, one column for each."""
    return as_value(np.array(np.nonzero(array_of(x)), np.int64).reshape(x.ndim, -1))


@operator("Compress")
def compress(x: Any, condition: Any, *, axis: int | None = None) -> Any:
    """The slices where the condition holds."""
    if axis is None:
        x, axis = x.reshape((-1,)), 0
    places = np.flatnonzero(array_of(condition)[: x.shape[axis]])
    return et.take(x, places, axis)


@operator("OneHot", fixed=("depth", "values"))
def one_hot(indices: Any, depth: Any, values: Any, *, axis: int = -1) -> Any:
    """``values[1]`` at each index along a new axis, ``values[0]`` elsewhere."""
    count = int(array_of(depth).reshape(-1)[0])
    check_bytes("OneHot", [count, *indices.shape], 8)
    places = array_of(indices).astype(np.int64)
    along = axis % (places.ndim + 1)
    where = np.expand_dims(np.where(places < 0, places + count, places), along)
    steps = np.arange(count).reshape((-1, *(1,) * (places.ndim - along)))
    off, on = array_of(values)
    return as_value(np.where(where == steps, on, off).astype(array_of(values).dtype))


@operator("Unique")
@opaque
def unique(x: Any, *, axis: int | None = None, sorted: int = 1, outputs: int = 4) -> Any:
    """The different elements or slices, where each is first, where each went, and how often it is there."""
    array = array_of(x)
    found, first, inverse, counts = np.unique(
        array, return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    inverse = inverse.reshape(-1)
    if not sorted:
        order = np.argsort(first, kind="stable")
        back = np.argsort(order, kind="stable")
        found = found[order] if axis is None else np.take(found, order, axis)
        first, counts, inverse = first[order], counts[order], back[inverse]
    return tuple(map(as_value, (found, first, inverse, counts)))[:outputs] if outputs > 1 else as_value(found)
