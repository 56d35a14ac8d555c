"""What nested lists hold: the types, the tensors, the leaves. Lists that hold each other, or themselves, have an end here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from ._core import TensorBase

__all__ = ["MOST_AXES", "is_plain", "kinds_in", "leaves", "needs_grad", "with_arrays"]

MOST_AXES = 64  # of an array of NumPy
_NUMBERS = frozenset({float, int, bool, complex})


def needs_grad(value: Any) -> bool:
    """Whether a value, or a tensor in a list of values, requires a gradient. No tensor is made of lists any deeper."""
    if isinstance(value, TensorBase):
        return value._requires_grad
    if not isinstance(value, (list, tuple)) or _NUMBERS.issuperset(map(type, value)):
        return False
    level: Sequence[Any] = value
    for _ in range(MOST_AXES):
        kinds = set(map(type, level))
        tensors = any(issubclass(kind, TensorBase) for kind in kinds)
        if tensors and any(isinstance(part, TensorBase) and part._requires_grad for part in level):
            return True
        if not any(issubclass(kind, (list, tuple)) for kind in kinds):
            return False
        level = _inner([part for part in level if isinstance(part, (list, tuple))])
    return False


def _inner(lists: Sequence[Any]) -> list[Any]:
    """What lists hold, each list once, so that those that hold each other stay small."""
    return list(chain.from_iterable(dict(zip(map(id, lists), lists)).values()))


def kinds_in(function: str, name: str, data: Any) -> dict[type, Any]:
    """The types of what nested lists hold, each with one that is of it. Lists that hold themselves are refused."""
    if not isinstance(data, (list, tuple)):
        return {type(data): data}
    found: dict[type, Any] = {}
    level: Sequence[Any] = data
    for _ in range(MOST_AXES):
        types = list(map(type, level))
        kinds = set(types)
        nested = {kind for kind in kinds if issubclass(kind, (list, tuple))}
        found |= {kind: level[types.index(kind)] for kind in kinds - nested}
        if not nested:
            return found
        inner = level if len(nested) == len(kinds) else [p for p in level if isinstance(p, (list, tuple))]
        level = _inner(inner)
    raise ValueError(
        f"[{function}] {name} is a list nested more than {MOST_AXES} deep, more than a tensor has axes"
    )


def leaves(data: Any) -> Iterator[Any]:
    """What lies in nested lists, one after the other."""
    if not isinstance(data, (list, tuple)):
        yield data
        return
    for part in data:
        yield from leaves(part)


def with_arrays(data: Any) -> Any:
    """Nested lists with arrays in the place of tensors: the scalars of bfloat16 take numbers of NumPy alone."""
    if isinstance(data, (list, tuple)):
        return [with_arrays(part) for part in data]
    return data._array if isinstance(data, TensorBase) else data


def is_plain(data: Any) -> bool:
    """Whether it is an array, a number or a flat list of numbers: nothing to search."""
    if type(data) is list:
        return _NUMBERS.issuperset(map(type, data))
    return type(data) is np.ndarray or type(data) in _NUMBERS
