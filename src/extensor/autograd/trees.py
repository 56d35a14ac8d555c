"""Nested dicts, lists and tuples of tensors: taken apart and put together again.

An object of a registered kind (a module) takes part through its tensors: :func:`opened` shows it as the dict of them, and
:func:`closed` makes the object again around others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..tensor import ExTensor, asarray

__all__ = ["Kind", "closed", "kind_of", "leaves", "map_leaves", "opened", "pairs", "register_kind", "settle"]


class Kind(NamedTuple):
    """How objects of a class take part in structures of tensors."""

    tensors: Callable[[Any], dict[str, ExTensor]]  # those that have gradients, by name
    constants: Callable[[Any], dict[str, ExTensor]]  # the others it computes with
    replaced: Callable[[Any, Mapping[str, ExTensor]], Any]  # a copy of the object with other tensors
    settle: Callable[[Any, Any], None]  # after a call: the object takes over what the copy has kept


_CONTAINERS = (dict, list, tuple)
_kinds: dict[type, Kind] = {}


def register_kind(owner: type, kind: Kind) -> None:
    """Let objects of a class stand where structures of tensors may stand."""
    _kinds[owner] = kind


def kind_of(tree: Any) -> Kind | None:
    """How an object takes part; None for what is no object of a registered class."""
    return next((kind for owner, kind in _kinds.items() if isinstance(tree, owner)), None)


def _is_leaf(tree: Any) -> bool:
    return isinstance(tree, (ExTensor, np.ndarray, np.floating, float)) and not isinstance(tree, bool)


def _each(function: Callable[..., Any], tree: Any, *twins: Any) -> Any:
    """A container with ``function`` of each element, and of those in the same places of ``twins``."""
    if isinstance(tree, dict):
        return type(tree)((k, function(v, *(t[k] for t in twins))) for k, v in tree.items())
    parts = [function(*row) for row in zip(tree, *twins)]
    return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)


def map_leaves(
    function: Callable[[Any], Any],
    tree: Any,
    rest: Callable[[Any], Any] | None = None,
    make: Callable[[Any], ExTensor] = asarray,
) -> Any:
    """The same structure with every tensor (array, float) replaced by ``function`` of it.

    ``rest`` is what becomes of everything else, ``make`` turns arrays and floats into tensors.
    """
    if _is_leaf(tree):
        return function(tree if isinstance(tree, ExTensor) else make(tree))
    if isinstance(tree, _CONTAINERS):
        return _each(lambda v: map_leaves(function, v, rest, make), tree)
    return tree if rest is None else rest(tree)


def leaves(tree: Any) -> Iterator[ExTensor]:
    """The tensors of a structure, in order."""
    if isinstance(tree, ExTensor):
        yield tree
    elif isinstance(tree, dict):
        for value in tree.values():
            yield from leaves(value)
    elif isinstance(tree, (list, tuple)):
        for value in tree:
            yield from leaves(value)


def pairs(tree: Any, other: Any) -> Iterator[tuple[ExTensor, Any]]:
    """Each tensor of ``tree`` beside what stands in its place in ``other``; ValueError where the structures differ."""
    if isinstance(tree, ExTensor):
        yield tree, other
    elif isinstance(tree, dict):
        if not isinstance(other, dict) or other.keys() != tree.keys():
            raise ValueError(f"a dict with the keys {', '.join(map(repr, tree))} is needed")
        for key, value in tree.items():
            yield from pairs(value, other[key])
    elif isinstance(tree, (list, tuple)):
        if not isinstance(other, (list, tuple)) or len(other) != len(tree):
            raise ValueError(f"a list or tuple of {len(tree)} is needed")
        for value, twin in zip(tree, other):
            yield from pairs(value, twin)


def opened(tree: Any) -> Any:
    """The same structure with every object of a registered kind as the dict of its tensors."""
    kind = kind_of(tree)
    if kind is not None:
        return kind.tensors(tree)
    return _each(opened, tree) if isinstance(tree, _CONTAINERS) else tree


def closed(tree: Any, values: Any) -> Any:
    """``values``, shaped like ``opened(tree)``, with the objects of ``tree`` made again around their tensors."""
    kind = kind_of(tree)
    if kind is not None:
        return kind.replaced(tree, values)
    return _each(closed, tree, values) if isinstance(tree, _CONTAINERS) else values


def settle(tree: Any, made: Any) -> None:
    """After a call with ``made``, which :func:`closed` returned: the objects of ``tree`` take over what was kept in it."""
    kind = kind_of(tree)
    if kind is not None:
        kind.settle(tree, made)
    elif isinstance(tree, dict):
        for key, value in tree.items():
            settle(value, made[key])
    elif isinstance(tree, (list, tuple)):
        for value, twin in zip(tree, made):
            settle(value, twin)
