"""Arrays of the standard's namespace: tensors that take ``x[i] = v``, with value semantics.

The elements of a tensor never change, and an assignment changes none: the array gets a new tensor behind it, as a parameter
does. So nothing else sees the change: no view, no copy, no other array of the same memory. What is recorded must not change
either: an array that requires a gradient, or that a recorded call may have kept, refuses.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ..graph import next_sequence
from ..ops.indexing import index_set
from ..tensor import ExTensor
from ._elementwise import rounded_down

__all__ = ["Array", "of_arrays", "wrapped"]

F = TypeVar("F", bound=Callable[..., Any])


class _Count(threading.local):
    """How many numbers of the recorder arrays have drawn in this thread; the others are those of recorded calls."""

    drawn = 0


_count = _Count()


def _now() -> int:
    """How many calls were recorded so far, up to a constant."""
    _count.drawn += 1
    return next_sequence() - _count.drawn


class Array(ExTensor):
    """A tensor whose elements can be replaced by ``x[key] = value``.

    Example:
        >>> import extensor.array_api as xp
        >>> x = xp.zeros(3)
        >>> y = x
        >>> part = x[1:]
        >>> x[1] = 5.0
        >>> x.tolist(), y.tolist(), part.tolist()
        ([0.0, 5.0, 0.0], [0.0, 5.0, 0.0], [0.0, 0.0])
    """

    __slots__ = ("_known",)

    _known: int  # of recorded calls, when its elements were last known to nobody's graph

    def __new__(cls, array: np.ndarray, requires_grad: bool = False, node: Any = None) -> Array:
        self: Array = super().__new__(cls, array, requires_grad, node)
        self._known = _now()
        return self

    def __setitem__(self, key: Any, value: Any) -> None:
        if self.requires_grad:
            raise TypeError(
                "[array_api] an array that requires a gradient cannot be assigned to; use x.at[key].set(value)"
            )
        now = _now()
        if now != self._known:
            raise TypeError(
                "[array_api] a call was recorded since this array was made, and may have kept it; use x = x.at[key].set(value)"
            )
        found = index_set(ExTensor(self._data), plain(key), _cast(plain(value), self.dtype))
        self._array = found._data
        self._known = now

    def __getitem__(self, key: Any) -> Any:
        return wrapped(ExTensor.__getitem__(self, plain(key)))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return wrapped(plain(self).__array_ufunc__(ufunc, method, *plain(inputs), **options))

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        return wrapped(plain(self).__array_function__(function, types, plain(args), options))

    @property
    def T(self) -> Any:
        """The array with its axes in reverse order."""
        return wrapped(plain(self).T)

    @property
    def mT(self) -> Any:
        """A matrix, or a stack of them, with rows and columns exchanged."""
        return wrapped(plain(self).mT)


def _cast(value: Any, dtype: np.dtype[Any]) -> Any:
    """A value of a wider kind than the array, as NumPy's assignment has it: numbers into another float or integer dtype."""
    if isinstance(value, ExTensor) and value.dtype != dtype and np.can_cast(value.dtype, dtype, "same_kind"):
        return value.astype(dtype)
    return value


def wrapped(value: Any) -> Any:
    """Tensors as arrays; what is recorded stays as it is."""
    if isinstance(value, ExTensor):
        if value.requires_grad or type(value) is Array:
            return value
        return Array(value._data)
    if isinstance(value, (tuple, list)):
        parts = [wrapped(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


def plain(value: Any) -> Any:
    """Arrays as tensors that never change, which calls may keep."""
    if type(value) is Array:
        return ExTensor(value._data, value._requires_grad, value._node)
    if isinstance(value, (tuple, list)):
        parts = [plain(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


def of_arrays(function: F) -> F:
    """A function of tensors as one of arrays."""

    @functools.wraps(function)
    def converting(*args: Any, **kwargs: Any) -> Any:
        if (
            kwargs.get("copy", True) is False
            and len(args) == 1
            and type(args[0]) is Array
            and _is_same(args[0], kwargs)
        ):
            return args[0]  # what shares its elements with an array is that array
        return wrapped(function(*map(plain, args), **{name: plain(value) for name, value in kwargs.items()}))

    return converting  # type: ignore[return-value]


def _is_same(x: Array, options: dict[str, Any]) -> bool:
    """Whether an array is already what a call with ``copy=False`` asks for."""
    wanted = options.get("dtype")  # a dtype of float64 equals None, but is not None
    return (wanted is None or wanted == x.dtype) and options.get("device") in (None, "cpu")


_OPERATORS = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift",
)  # fmt: skip


def _attach() -> None:
    names = [f"__{side}{name}__" for name in _OPERATORS for side in ("", "r")]
    names += [f"__{name}__" for name in ("eq", "ne", "lt", "le", "gt", "ge", "neg", "pos", "abs", "invert")]
    for name in names:
        setattr(Array, name, _operator(getattr(ExTensor, name)))
    Array.__floordiv__ = _operator(_floordiv)  # type: ignore[method-assign]
    Array.__rfloordiv__ = _operator(_rfloordiv)  # type: ignore[method-assign]
    Array.__hash__ = ExTensor.__hash__  # type: ignore[method-assign]


def _floordiv(self: ExTensor, other: Any) -> Any:
    """``//`` with the standard's values at the infinities, as :func:`extensor.array_api.floor_divide` has them."""
    found = ExTensor.__floordiv__(self, other)
    return rounded_down(found, self, other) if isinstance(found, ExTensor) else found


def _rfloordiv(self: ExTensor, other: Any) -> Any:
    """``//`` with the array on the right."""
    found = ExTensor.__rfloordiv__(self, other)
    return rounded_down(found, other, self) if isinstance(found, ExTensor) else found


def _operator(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method, assigned=("__name__", "__doc__"), updated=())
    def of_array(self: Array, *other: Any) -> Any:
        return wrapped(method(plain(self), *map(plain, other)))

    return of_array


_attach()
