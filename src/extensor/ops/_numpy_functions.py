"""NumPy's functions on tensors: ``np.sin(x)`` is ``et.sin(x)``, ``np.mean(x, 0)`` is ``et.mean(x, 0)``.

What has no counterpart here (``np.percentile``, ``np.savez``) NumPy computes from the elements, as from ``x.numpy()``: it returns
arrays, and no gradient. So does what writes into an array of the caller's (``array += x``), and new arrays that are to be written
to (``np.zeros_like(x)``).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from .._habit_names import RENAMED
from ..tensor import ExTensor
from ._later import FAMILY_OF

__all__ = ["by_function", "by_ufunc"]

_NOT_OURS = frozenset({"copy", "empty_like", "full_like", "ones_like", "zeros_like"})
_REDUCED = {
    "add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all", "logical_or": "any",
}  # fmt: skip


def by_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """What ``ufunc(*inputs)`` or ``ufunc.reduce(...)`` gives for tensors."""
    name = ufunc.__name__
    if method == "__call__" and not options:
        ours = _ours("numpy", name)
        if ours is not None:
            return ours(*inputs)
    if method == "reduce" and name in _REDUCED and options.get("out") is None:
        axis = options.pop("axis", inputs[1] if len(inputs) > 1 else 0)  # that of a ufunc, not of a sum
        given = {key: value for key, value in options.items() if key != "out"}
        reduction = _ours("numpy", _REDUCED[name])
        if reduction is not None:
            return reduction(inputs[0], axis=axis, **given)
    return getattr(ufunc, method)(*_elements(inputs), **_elements(options))


def by_function(function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """What a function of NumPy's that is no ufunc gives for tensors."""
    name = function.__name__
    ours = None if name in _NOT_OURS else _ours(function.__module__, name)
    if name == "where" and len(args) == 1:
        ours = _ours("numpy", "nonzero")
    if ours is not None:
        return ours(*args, **options)
    return function(*_elements(args), **_elements(options))


def _ours(module: str, name: str) -> Callable[..., Any] | None:
    """Our function of a name of NumPy's; None if there is none."""
    if module in ("numpy.linalg", "numpy.fft"):
        home = importlib.import_module(f"extensor.{module.removeprefix('numpy.')}")
        return getattr(home, name, None) if name in home.__all__ else None
    if module != "numpy":
        return None
    name = RENAMED.get(name, name)
    if name in FAMILY_OF:
        return getattr(importlib.import_module(f"extensor.ops.{FAMILY_OF[name]}"), name)
    found = getattr(importlib.import_module("extensor.ops"), name, None)
    return found if callable(found) else None  # its modules are not: np.shape is not ops.shape


def _elements(value: Any) -> Any:
    """Tensors, also in tuples, lists and dicts, as arrays of their elements."""
    if isinstance(value, ExTensor):
        return value.numpy()
    if isinstance(value, dict):
        return {key: _elements(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        parts = map(_elements, value)
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value
