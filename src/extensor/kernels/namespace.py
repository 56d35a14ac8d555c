"""The array namespace that references are written over: ``xp.exp(x)`` is the ``exp`` of the library that x belongs to.

That is NumPy for NumPy's arrays and the library itself for any other array of the standard (``__array_namespace__``). For
tensors it is :mod:`extensor.ops`: the reference of a gradient, evaluated on tensors, is recorded and can be differentiated
again. So there is one text of its mathematics.

What a reference must look out for, to be such a formula as well:

* nothing is written in place, and no decision depends on elements;
* masks and signs are constants: comparisons record nothing, :func:`constant` takes other values out of the recording, and
  :func:`lift` brings what was computed from them back;
* a branch of ``xp.where`` that is not taken must be finite, or its gradient would be ``0 * inf``: choose the argument first;
* a helper that would lose accuracy or speed when differentiated line by line is a :func:`primitive`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType, NoneType
from typing import Any

import numpy as np

from ..devices import jax
from ..tensor import ExTensor

__all__ = [
    "NARROW",
    "PRIMITIVES",
    "added",
    "as_whole",
    "assigned",
    "common_dtype",
    "constant",
    "copied",
    "either",
    "joined_at",
    "namespace_of",
    "primitive",
    "provide_for_tensors",
    "wide",
    "wide_dtype",
    "xp",
    "zeros",
]

PRIMITIVES: set[str] = set()
_NUMPY = frozenset(
    {np.ndarray, np.float32, np.float64, np.bool_, np.int64, bool, int, float, str, NoneType, type, np.dtype}
)
_for_tensors: list[Callable[[], Any]] = []


def provide_for_tensors(load: Callable[[], Any]) -> None:
    """Say what references compute with on tensors; the floor above does, where the functions are. It is loaded on first use."""
    _for_tensors[:] = [functools.cache(load)]


def namespace_of(*values: Any) -> Any:
    """The library that the first array of another kind than NumPy's belongs to; NumPy if there is none."""
    for value in values:
        if type(value) in _NUMPY:
            continue
        if isinstance(value, ExTensor):
            return _for_tensors[0]()
        if isinstance(value, (list, tuple)):
            found = namespace_of(*value)
            if found is not np:
                return found
        elif not isinstance(value, (np.ndarray, np.generic)) and hasattr(value, "__array_namespace__"):
            return value.__array_namespace__()
    return np


class _Namespace:
    """NumPy's functions, each computed by the library of its arguments.

    Args:
        part: of a library, such as ``"linalg"``; None is the library itself.
    """

    def __init__(self, part: str | None = None) -> None:
        self._part = part

    def __getattr__(self, name: str) -> Any:
        in_numpy = getattr(self._of(np), name)

        def function(*args: Any, **options: Any) -> Any:
            if _NUMPY.issuperset(map(type, args)):
                return in_numpy(*args, **options) if options else in_numpy(*args)
            return getattr(self._of(namespace_of(*args)), name)(*args, **options)

        made = _Namespace(name) if isinstance(in_numpy, ModuleType) else function
        setattr(self, name, made)  # the next time it is an attribute like any other
        return made

    def _of(self, library: Any) -> Any:
        return library if self._part is None else getattr(library, self._part)


xp: Any = _Namespace()


def zeros(shape: Any, dtype: Any, like: Any) -> Any:
    """Zeros of the library that ``like`` belongs to."""
    return namespace_of(like).zeros(shape, dtype)


def assigned(fresh: Any, key: Any, values: Any) -> Any:
    """``fresh`` with ``values`` at ``key``. An array of NumPy is changed itself: it must be the caller's own."""
    library = namespace_of(fresh, values)
    if library is not np and hasattr(fresh := library.asarray(fresh), "at"):
        return fresh.at[key].set(values)
    fresh[key] = values
    return fresh


_MOST_AXES_OF_AT = 32  # of what is selected: NumPy's ufunc.at crashes beyond them


def added(fresh: Any, key: Any, values: Any) -> Any:
    """``fresh`` plus ``values`` at ``key``, where positions that repeat accumulate; likewise the caller's own."""
    library = namespace_of(fresh, values)
    if library is not np and hasattr(fresh := library.asarray(fresh), "at"):
        return fresh.at[key].add(values)
    if not any(hasattr(part, "dtype") for part in (key if isinstance(key, tuple) else (key,))):
        fresh[key] += values  # slices never repeat
    elif library is np:
        return joined_at(np.add, fresh, key, values)
    else:
        library.add.at(fresh, key, values)
    return fresh


def joined_at(join: np.ufunc, fresh: np.ndarray, key: Any, values: Any) -> np.ndarray:
    """``fresh`` joined with ``values`` at ``key``, one after the other where positions repeat; the caller's own."""
    parts = key if isinstance(key, tuple) else (key,)
    axes = fresh.ndim + max((np.ndim(part) for part in parts if hasattr(part, "dtype")), default=0)
    if max(axes + sum(part is None for part in parts), np.ndim(values)) <= _MOST_AXES_OF_AT:
        join.at(fresh, key, values)
        return fresh
    places = np.arange(fresh.size).reshape(fresh.shape)[key]
    flat = fresh.reshape(-1)
    join.at(flat, places.reshape(-1), np.broadcast_to(values, places.shape).reshape(-1))
    return flat.reshape(fresh.shape)


def either(condition: Any, one: Callable[..., Any], other: Callable[..., Any], *args: Any) -> Any:
    """``one`` of the arguments if a condition on elements holds, else ``other``; a traced program decides when it runs."""
    if hasattr(condition, "at"):
        return jax().lax.cond(condition, one, other, *args)
    return (one if condition else other)(*args)


def copied(x: Any) -> Any:
    """The array once more, contiguous; arrays that cannot be changed need no copy."""
    return x.copy(order="C") if isinstance(x, np.ndarray) else x


def common_dtype(*values: Any) -> Any:
    """The dtype of a result computed from arrays (or dtypes), some of which may be None; the same in every library."""
    kinds = (v if isinstance(v, type) else getattr(v, "dtype", v) for v in values if v is not None)
    return np.result_type(*kinds)


def as_whole(x: Any) -> Any:
    """Positions and counts as int64, the dtype they have everywhere."""
    return xp.asarray(x).astype(np.int64, copy=False)


def primitive(helper: Callable[..., Any]) -> Callable[..., Any]:
    """A helper that is not differentiated line by line: tensors have a function of this name with a gradient of its own."""
    name = helper.__name__
    PRIMITIVES.add(name)

    @functools.wraps(helper)
    def function(*args: Any) -> Any:
        for value in args:
            if isinstance(value, ExTensor):
                return getattr(_for_tensors[0](), name)(*args)
        return helper(*args)

    return function


def constant(x: Any) -> Any:
    """``x`` as a constant of the differentiation: of a tensor its elements."""
    return x._array if isinstance(x, ExTensor) else x


def lift(value: Any, beside: Any) -> Any:
    """A constant, to compute with beside an array: a tensor beside tensors."""
    return ExTensor(np.asarray(value)) if isinstance(beside, ExTensor) else value


NARROW = frozenset({np.dtype(np.float32), np.dtype(np.complex64)})  # what accumulates in wide numbers


def wide_dtype(x: Any, dtype: Any = None) -> Any:
    """float64 (complex128), in which float32 (complex64) accumulates. In another library than NumPy it accumulates in itself:
    XLA adds up in blocks, and many a device has no fast float64.

    Args:
        x: an array of the library.
        dtype: that of x, if None.
    """
    dtype = np.dtype(dtype or x.dtype)
    if namespace_of(x) is not np and dtype in NARROW:
        return dtype
    return np.dtype(complex if dtype.kind == "c" else float)


def wide(x: Any) -> Any:
    """``x`` in float64. A tensor stays as it is: its functions are accurate by themselves."""
    return x if isinstance(x, ExTensor) else x.astype(wide_dtype(x), copy=False)


def narrow(result: Any, *like: Any) -> Any:
    """What was computed from :func:`wide` numbers, in the dtype of the arrays that they came from."""
    return result if isinstance(result, ExTensor) else result.astype(xp.result_type(*like))
