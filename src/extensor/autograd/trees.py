"""Nested dicts, lists and tuples of tensors: taken apart and put together again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..tensor import ExTensor, asarray

__all__ = ["leaves", "map_leaves"]


def _is_leaf(tree: Any) -> bool:
    return isinstance(tree, (ExTensor, np.ndarray, np.floating, float)) and not isinstance(tree, bool)


def map_leaves(function: Callable[[Any], Any], tree: Any) -> Any:
    """The same structure with every tensor (array, float) replaced by ``function`` of it; the rest stays."""
    if _is_leaf(tree):
        return function(tree if isinstance(tree, ExTensor) else asarray(tree))
    if isinstance(tree, dict):
        return type(tree)((k, map_leaves(function, v)) for k, v in tree.items())
    if isinstance(tree, (list, tuple)):
        parts = [map_leaves(function, v) for v in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    return tree


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
