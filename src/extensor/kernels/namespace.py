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
from types import NoneType
from typing import Any

import numpy as np

from ..tensor import ExTensor

__all__ = [
    "NARROW",
    "PRIMITIVES",
    "constant",
    "namespace_of",
    "primitive",
    "provide_for_tensors",
    "wide",
    "wide_dtype",
    "xp",
]

PRIMITIVES: set[str] = set()
_NUMPY = frozenset(
    {np.ndarray, np.float32, np.float64, np.bool_, np.int64, bool, int, float, str, NoneType, type, np.dtype}
)
_for_tensors: list[Any] = []


def provide_for_tensors(namespace: Any) -> None:
    """Say what references compute with on tensors; the floor above does, where the functions are."""
    _for_tensors[:] = [namespace]


def namespace_of(*values: Any) -> Any:
    """The library that the first array of another kind than NumPy's belongs to; NumPy if there is none."""
    for value in values:
        if type(value) in _NUMPY:
            continue
        if isinstance(value, ExTensor):
            return _for_tensors[0]
        if isinstance(value, (list, tuple)):
            found = namespace_of(*value)
            if found is not np:
                return found
        elif not isinstance(value, (np.ndarray, np.generic)) and hasattr(value, "__array_namespace__"):
            return value.__array_namespace__()
    return np


class _Namespace:
    """NumPy's functions, each computed by the library of its arguments."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        in_numpy = getattr(np, name)

        def function(*args: Any, **options: Any) -> Any:
            if _NUMPY.issuperset(map(type, args)):
                return in_numpy(*args, **options) if options else in_numpy(*args)
            return getattr(namespace_of(*args), name)(*args, **options)

        setattr(self, name, function)  # the next time it is an attribute like any other
        return function


xp: Any = _Namespace()


def primitive(helper: Callable[..., Any]) -> Callable[..., Any]:
    """A helper that is not differentiated line by line: tensors have a function of this name with a gradient of its own."""
    name = helper.__name__
    PRIMITIVES.add(name)

    @functools.wraps(helper)
    def function(*args: Any) -> Any:
        for value in args:
            if isinstance(value, ExTensor):
                return getattr(_for_tensors[0], name)(*args)
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
    """float64 (complex128), in which float32 (complex64) accumulates; the widest that there is in a library without it.

    Args:
        x: an array of the library.
        dtype: that of x, if None.
    """
    library, kind = namespace_of(x), complex if (dtype or x.dtype).kind == "c" else float
    return np.dtype(kind) if library is np else library.result_type(kind)


def wide(x: Any) -> Any:
    """``x`` in float64. A tensor stays as it is: its functions are accurate by themselves."""
    return x if isinstance(x, ExTensor) else x.astype(wide_dtype(x), copy=False)


def narrow(result: Any, *like: Any) -> Any:
    """What was computed from :func:`wide` numbers, in the dtype of the arrays that they came from."""
    return result if isinstance(result, ExTensor) else result.astype(xp.result_type(*like))
