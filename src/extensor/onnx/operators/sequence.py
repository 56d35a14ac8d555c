"""Lists of tensors, and values that may be absent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import extensor as et

from ...tensor import ExTensor
from ..proto import array_of, as_value, ints_of
from ..table import operator

__all__: list[str] = []


def _place(position: Any, length: int, end: int) -> int:
    found = int(array_of(position).reshape(-1)[0])
    if not -length <= found < length + end:
        raise IndexError(f"[Sequence] position {found} is outside of a list of {length}")
    return found + length if found < 0 else found


@operator("SequenceConstruct")
def sequence_construct(*tensors: Any) -> Any:
    """A list."""
    return (list(tensors),)


@operator("SequenceEmpty")
def sequence_empty(*, dtype: int = 1) -> Any:
    """A list of nothing."""
    return ([],)


@operator("SequenceAt")
def sequence_at(sequence: list[Any], position: Any) -> Any:
    """One element."""
    return sequence[_place(position, len(sequence), 0)]


@operator("SequenceInsert")
def sequence_insert(sequence: list[Any], tensor: Any, position: Any = None) -> Any:
    """The list with one more element, at the end or at a position."""
    place = len(sequence) if position is None else _place(position, len(sequence), 1)
    return ([*sequence[:place], tensor, *sequence[place:]],)


@operator("SequenceErase")
def sequence_erase(sequence: list[Any], position: Any = None) -> Any:
    """The list without one element: the last, or that at a position."""
    place = len(sequence) - 1 if position is None else _place(position, len(sequence), 0)
    return ([*sequence[:place], *sequence[place + 1 :]],)


@operator("SequenceLength")
def sequence_length(sequence: list[Any]) -> Any:
    """How many elements there are."""
    return as_value(np.array(len(sequence), np.int64))


@operator("ConcatFromSequence")
def concat_from_sequence(sequence: list[Any], *, axis: int, new_axis: int = 0) -> Any:
    """The elements joined along an axis, or stacked along a new one."""
    return et.stack(sequence, axis) if new_axis else et.concatenate(sequence, axis)


@operator("SplitToSequence", fixed=("split",))
def split_to_sequence(x: Any, split: Any = None, *, axis: int = 0, keepdims: int = 1) -> Any:
    """The parts of a tensor along an axis, as a list."""
    length = x.shape[axis]
    if split is None:
        parts = et.split(x, length, axis) if length else []
        return (parts if keepdims else [et.squeeze(p, axis) for p in parts],)
    sizes = ints_of(split)
    if array_of(split).ndim == 0:
        size = sizes[0]
        if size < 1:
            raise ValueError(f"[SplitToSequence] cannot split into parts of {size}")
        sizes = [min(size, length - start) for start in range(0, length, size)]
    if sum(sizes) != length:
        raise ValueError(f"[SplitToSequence] the parts {sizes} do not make up the length {length}")
    return (list(et.split(x, tuple(np.cumsum(sizes)[:-1].tolist()), axis)),)


@operator("SequenceMap")
def sequence_map(sequence: list[Any], *others: Any, body: Callable[..., Any], outputs: int) -> Any:
    """A graph applied to every element."""
    results: list[list[Any]] = [[] for _ in range(outputs)]
    for i, element in enumerate(sequence):
        given = [other[i] if isinstance(other, list) else other for other in others]
        for values, value in zip(results, body(element, *given)):
            values.append(value)
    return tuple(results)


@operator("Optional")
def optional(value: Any = None, *, type: Any = None) -> Any:
    """A value, or nothing."""
    return (value,)


@operator("OptionalHasElement")
def optional_has_element(value: Any = None) -> Any:
    """Whether there is a value."""
    return as_value(np.array(value is not None))


@operator("OptionalGetElement")
def optional_get_element(value: Any) -> Any:
    """The value; nothing is an error."""
    if value is None:
        raise ValueError("[OptionalGetElement] there is no element")
    return (value,) if isinstance(value, (list, ExTensor)) else value
