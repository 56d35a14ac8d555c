"""Kernels on another device: the references over that library's namespace, and the few that XLA has primitives for."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..devices import DeviceArray, is_foreign, jax, kept_there, wide_types
from ..dtypes import FLOATING, HALF, float32, promote

__all__ = ["compute", "has_foreign", "run_there"]


def has_foreign(args: Any) -> bool:
    """Whether an array of another library is among the arguments, those in lists included."""
    return any(has_foreign(a) if type(a) in (list, tuple) else is_foreign(a) for a in args)


def run_there(kernel: Any, args: Any) -> Any:
    """A kernel on arrays of which one at least is on another device; the others are put there."""
    place = _place(args)
    with wide_types():
        result = compute(kernel, [_there(a, place) for a in args])
    return result if place is None else _standing_for(result)


def compute(kernel: Any, args: list[Any]) -> Any:
    """A kernel on arrays of another library, half precision computed in float32 and rounded once."""
    from . import xla

    function = xla.PRIMITIVES.get(kernel.name, kernel.reference)
    dtypes = [a.dtype for a in _arrays(args) if np.dtype(a.dtype) in FLOATING]
    if kernel.exact or HALF.isdisjoint(map(np.dtype, dtypes)):
        return function(*args)
    wanted = promote(*map(np.dtype, dtypes))
    return _mapped(
        function(*_mapped(args, _widened)), lambda a: a.astype(wanted) if a.dtype == float32 else a
    )


def _widened(array: Any) -> Any:
    return array.astype(float32) if np.dtype(array.dtype) in HALF else array


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) or is_foreign(value)


def _mapped(value: Any, function: Any) -> Any:
    if type(value) in (list, tuple):
        return type(value)(_mapped(v, function) for v in value)
    return function(value) if _is_array(value) else value


def _arrays(value: Any) -> list[Any]:
    if type(value) in (list, tuple):
        return [array for part in value for array in _arrays(part)]
    return [value] if _is_array(value) else []


def _place(args: Any) -> Any:
    """The device of the first array that stands for one elsewhere; None where they are the library's own."""
    for array in _arrays(list(args)):
        if type(array) is DeviceArray:
            return next(iter(array.held.devices()))
    return None


def _there(value: Any, place: Any) -> Any:
    if type(value) in (list, tuple):
        return type(value)(_there(v, place) for v in value)
    if type(value) is DeviceArray:
        return value.held
    if isinstance(value, np.ndarray) and place is not None:
        return jax().device_put(value, place)
    return value


def _standing_for(result: Any) -> Any:
    return _mapped(result, lambda a: a if isinstance(a, np.ndarray) else kept_there(a))
