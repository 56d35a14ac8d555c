"""Structures of Python objects, as a program describes them: of the arguments of a call, and of its result.

A tree is a tuple ``(kind, what, number, requires_grad, node, children)``; see :class:`Kind`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import IntEnum
from types import MethodType
from typing import Any, TypeAlias

import numpy as np

from ..tensor import ExTensor

__all__ = ["Kind", "Tree", "fill", "flat", "is_value", "tensors_of", "tree_of"]

Tree: TypeAlias = tuple[int, Any, int, bool, Any, tuple[Any, ...]]


class Kind(IntEnum):
    """What stands at a place of a tree; the numbers are those of csrc/bindings/recorder/program.hpp."""

    TENSOR = 0  # `number` is that of its value
    OBJECT = 1  # that very object; or the argument of that number
    VALUE = 2  # an equal value
    LIST = 3
    TUPLE = 4  # `what` is its class: a NamedTuple is made again
    DICT = 5  # `what` are its keys


_VALUES = (
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    type(None),
    np.dtype,
    np.generic,
    slice,
    type(...),
    MethodType,
)


def is_value(thing: Any) -> bool:
    """Whether equal things of its kind are as good: it is a part of the kind of a call."""
    return isinstance(thing, (*_VALUES, type))


def tree_of(thing: Any, tensor: Callable[[ExTensor], Tree]) -> Tree:
    """The tree of a structure; ``tensor`` describes the tensors in it."""
    if isinstance(thing, ExTensor):
        return tensor(thing)
    if type(thing) is dict:
        parts = tuple(tree_of(value, tensor) for value in thing.values())
        return (Kind.DICT, tuple(thing), -1, False, None, parts)
    if type(thing) is list or isinstance(thing, tuple):
        kind = Kind.LIST if type(thing) is list else Kind.TUPLE
        return (kind, type(thing), -1, False, None, tuple(tree_of(value, tensor) for value in thing))
    return (Kind.VALUE if is_value(thing) else Kind.OBJECT, thing, -1, False, None, ())


def flat(tree: Tree) -> list[Tree]:
    """A tree and all the trees in it."""
    found = [tree]
    for child in tree[5]:
        found += flat(child)
    return found


def tensors_of(thing: Any) -> Iterator[ExTensor]:
    """The tensors of a structure, in the order of its tree."""
    if isinstance(thing, ExTensor):
        yield thing
    elif type(thing) is dict:
        for value in thing.values():
            yield from tensors_of(value)
    elif isinstance(thing, (list, tuple)):
        for value in thing:
            yield from tensors_of(value)


def fill(thing: Any, replace: Callable[[ExTensor], Any]) -> Any:
    """The same structure with every tensor replaced."""
    if isinstance(thing, ExTensor):
        return replace(thing)
    if type(thing) is dict:
        return {key: fill(value, replace) for key, value in thing.items()}
    if type(thing) is list:
        return [fill(value, replace) for value in thing]
    if isinstance(thing, tuple):
        parts = [fill(value, replace) for value in thing]
        return type(thing)(*parts) if hasattr(thing, "_fields") else type(thing)(parts)
    return thing
