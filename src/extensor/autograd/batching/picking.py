"""Batching rules of functions that pick elements by position, and put them there."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...checks import as_axis
from ...errors import describe
from ...ops.creation import arange
from ...ops.shape import moveaxis, reshape
from ...tensor import ExTensor, asarray
from .batched import Batched, Level
from .elementwise import aligned
from .reductions import axis_after, flat
from .registry import batches, each_example

__all__: list[str] = []


def _parts(key: Any) -> tuple[Any, ...]:
    """A key part by part, lists and arrays as tensors."""
    parts = key if isinstance(key, tuple) else (key,)
    return tuple(asarray(p) if isinstance(p, (list, np.ndarray, bool, np.bool_)) else p for p in parts)


def _batch_key(level: Level, x: ExTensor, key: Any) -> tuple[Any, ...] | None:
    """The key of all examples of ``x``, where one key can say it; else None.

    Positions that are the same for all examples stay as they are, after ``:`` for the examples. Positions that differ pair
    up with the number of their example. NumPy puts picked axes in front where slices stand between positions: no rule.
    """
    parts = _parts(key)
    tensors = [i for i, p in enumerate(parts) if isinstance(p, ExTensor)]
    places = [i for i, p in enumerate(parts) if isinstance(p, (ExTensor, int, np.integer))]
    if not tensors:
        return (slice(None), *parts)
    adjacent = places[-1] - places[0] + 1 == len(places)
    if not adjacent or any(level.has(parts[i]) and parts[i].dtype == np.bool_ for i in tensors):
        return None
    if not level.holds(parts):
        return (slice(None), *parts)
    if places[0] != 0 or any(p.dtype == np.bool_ for p in parts if isinstance(p, ExTensor)):
        return None
    ndim = max(parts[i].ndim for i in tensors)
    examples = reshape(arange(level.size), (level.size, *(1,) * ndim))
    return (examples, *(aligned(level, p, ndim) for p in parts))


@batches("index")
def index(level: Level, op: Any, x: Any, key: Any) -> Any:
    """``x[key]`` of every example."""
    found = _batch_key(level, x, key)
    return each_example(level, op, x, key) if found is None else op(level.full(x), found)


@batches("index_set", "index_add")
def write(level: Level, op: Any, x: Any, key: Any, values: Any) -> Any:
    """``x.at[key].set(values)`` of every example."""
    found = _batch_key(level, x, key)
    if found is None:
        return each_example(level, op, x, key, values)
    if level.has(values) and values.ndim:
        values = aligned(level, values, _picked_ndim(x, key))
    elif level.has(values):
        values = reshape(values.batch, (level.size, *(1,) * _picked_ndim(x, key)))
    return op(level.full(x), found, values)


def _picked_ndim(x: ExTensor, key: Any) -> int:
    """How many axes ``x[key]`` has; masks that differ between examples are not asked for."""

    def like(part: Any) -> Any:
        if not isinstance(part, ExTensor):
            return part
        if part.dtype == np.bool_:
            return part.numpy()
        return np.broadcast_to(np.int64(0), part.shape)

    try:
        return int(np.ndim(np.broadcast_to(np.False_, x.shape)[tuple(map(like, _parts(key)))]))
    except IndexError:
        raise IndexError(f"[index] key {describe(key)} does not fit a tensor of shape {x.shape}") from None


@batches("take")
def take(level: Level, op: Any, x: Any, indices: Any, axis: int | None = None) -> Any:
    """Slices by position; where the positions differ, they pair up with the number of their example."""
    if axis is None:
        x, axis = _as_row(level, x), 0
    place = as_axis("take", axis, x.ndim)
    if not level.has(indices):
        return op(level.full(x), indices, place + 1)
    if not level.has(x):
        return moveaxis(op(x, indices.batch, place), place, 0)
    rows = moveaxis(x.batch, place + 1, 1)
    examples = reshape(arange(level.size), (level.size, *(1,) * indices.ndim))
    found = rows[examples, indices.batch]  # (examples, *positions, *other axes)
    positions = tuple(range(1, 1 + indices.ndim))
    return moveaxis(found, positions, tuple(place + i for i in positions))


def _as_row(level: Level, x: Any) -> Any:
    if not level.has(x):
        return reshape(x, (x.size,))
    return level.wrapped(flat(level, x))


@batches("take_along_axis")
def take_along_axis(level: Level, op: Any, x: Any, indices: Any, axis: int | None = -1) -> Any:
    """One element per position."""
    if axis is None:
        x, axis = _as_row(level, x), 0
    indices = indices if isinstance(indices, ExTensor) else asarray(indices)
    return op(level.full(x), level.full(indices), axis_after(op, axis, x.ndim))


@batches("gather", "scatter", "scatter_add")
def gather(level: Level, op: Any, x: Any, axis: int, index: Any, *source: Any, **named: Any) -> Any:
    """Positions along one axis, in tensors of one number of axes."""
    if not x.ndim:
        return each_example(level, op, x, axis, index, *source, **named)
    sources = [level.full(s) for s in (*source, *named.values())]
    return op(level.full(x), axis_after(op, axis, x.ndim), level.full(index), *sources)


@batches("embedding")
def embedding(level: Level, op: Any, indices: Any, weight: Any, padding_idx: int | None = None) -> Any:
    """Rows of one table; of tables that differ, the rows of all of them one under the other."""
    if not level.has(weight):
        return op(indices.batch, weight, padding_idx)
    if padding_idx is not None or weight.ndim != 2:
        return each_example(level, op, indices, weight, padding_idx)
    count, width = weight.shape
    full = level.full(indices)
    if level.size and full.size and not _within(full, count):
        return each_example(level, op, indices, weight)  # which says what is wrong
    first = reshape(
        arange(0, level.size * count, count) if count else arange(level.size),
        (level.size, *(1,) * indices.ndim),
    )
    return op(full % count + first, reshape(weight.batch, (level.size * count, width)))


def _within(indices: ExTensor, count: int) -> bool:
    if isinstance(indices, Batched):  # under another vmap nobody can look
        return True
    array = indices.numpy()
    return bool(count and -count <= array.min() and array.max() < count)


@batches("searchsorted", "isin", "bincount", "histogram", "interp")
def one_by_one(level: Level, op: Any, *args: Any, **kwargs: Any) -> Any:
    """Example by example."""
    return each_example(level, op, *args, **kwargs)
