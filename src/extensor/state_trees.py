"""Nested states (dicts, lists, numbers, text, tensors) as JSON beside a flat dict of tensors, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from .errors import describe
from .tensor import ExTensor

__all__ = ["flatten_state", "restore_state"]

# JSON has neither tensors, tuples nor keys that are numbers: an object with one of these keys stands for them.
_TENSOR, _ARRAY, _TUPLE, _DICT = "$tensor", "$array", "$tuple", "$dict"


def flatten_state(function: str, state: Any, path: str, tensors: dict[str, Any]) -> Any:
    """``state`` as JSON; its tensors go into ``tensors`` under their paths (``model/conv1.weight``)."""
    if state is None or isinstance(state, (bool, int, float, str)):
        return state
    if isinstance(state, np.generic):
        return state.item()
    if isinstance(state, (ExTensor, np.ndarray)):
        name = path
        while name in tensors:  # keys may hold the sign that joins them
            name += "'"
        tensors[name] = state
        return {_TENSOR if isinstance(state, ExTensor) else _ARRAY: name}
    if isinstance(state, (list, tuple)):
        items = [flatten_state(function, item, f"{path}/{i}", tensors) for i, item in enumerate(state)]
        return items if isinstance(state, list) else {_TUPLE: items}
    if isinstance(state, dict) and all(isinstance(key, (str, int)) for key in state):
        values = {
            key: flatten_state(function, value, f"{path}/{key}" if path else str(key), tensors)
            for key, value in state.items()
        }
        if all(isinstance(key, str) and not key.startswith("$") for key in state):
            return values
        return {_DICT: [[key, value] for key, value in values.items()]}
    raise TypeError(
        f"[{function}] {path or 'state'} must be made of numbers, text, tensors, lists and dicts, got {describe(state)}"
    )


def restore_state(value: Any, tensors: dict[str, ExTensor]) -> Any:
    """What :func:`flatten_state` was given. Raises ValueError if ``value`` was not made by it."""
    if isinstance(value, list):
        return [restore_state(item, tensors) for item in value]
    if not isinstance(value, dict):
        return value
    if not any(key.startswith("$") for key in value):
        return {key: restore_state(item, tensors) for key, item in value.items()}
    if len(value) == 1:
        (kind, content), *_ = value.items()
        if kind in (_TENSOR, _ARRAY) and isinstance(content, str) and content in tensors:
            return tensors[content] if kind == _TENSOR else tensors[content].numpy().copy()
        if kind == _TUPLE and isinstance(content, list):
            return tuple(restore_state(item, tensors) for item in content)
        if kind == _DICT and isinstance(content, list) and all(map(_is_item, content)):
            return {key: restore_state(item, tensors) for key, item in content}
    raise ValueError(f"no state looks like {describe(value)}")


def _is_item(pair: Any) -> bool:
    return isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], (str, int))
