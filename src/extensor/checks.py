"""What functions ask of their arguments before a kernel sees them; what an argument may be is said here, once."""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

import numpy as np

from ._core import this_thread
from .dtypes import FLOATING, INTEGER
from .errors import describe
from .nested import MOST_AXES, needs_grad
from .tensor import ExTensor, Shape, asarray, tensor

Scalar = (bool, int, float)
MOST_INTS = 2**20  # of a range, which may promise any number
MOST_ELEMENTS = np.iinfo(np.intp).max // 16  # whose bytes can still be counted, whatever their dtype
INTS = frozenset({int})
Function = TypeVar("Function", bound=Callable[..., Any])

_COMPLEX: set[str] = set()  # the functions that complex numbers may be given to


@overload
def takes_complex(function: Function) -> Function: ...
@overload
def takes_complex(*, backward: bool) -> Callable[[Function], Function]: ...
def takes_complex(function: Any = None, *, backward: bool = True) -> Any:
    """Says of a function that it is defined for complex numbers; so is its backward, unless that is denied."""
    if function is None:
        return lambda found: _with_complex(found, backward)
    return _with_complex(function, backward)


def _with_complex(function: Function, backward: bool) -> Function:
    _COMPLEX.add(function.__name__)
    if backward:
        _COMPLEX.add(f"{function.__name__}_backward")
    return function


def is_for_complex(function: str) -> bool:
    """Whether complex numbers may be given to the function of this name."""
    return function in _COMPLEX


def as_tensor(function: str, name: str, value: Any) -> ExTensor:
    """The argument as a tensor: a tensor, an array, a number, or nested lists of numbers."""
    if isinstance(value, ExTensor):
        if value.dtype.kind == "c":
            _allow_complex(function, name, value)
        return value
    if isinstance(value, (np.ndarray, np.generic, list, tuple, complex, *Scalar)):
        if isinstance(value, (list, tuple)) and needs_grad(value):
            raise TypeError(
                f"[{function}] {name} is a {type(value).__name__} of tensors; join them with stack first"
            )
        # What is recorded of the caller's array is saved, and he may write to it.
        make = tensor if isinstance(value, np.ndarray) and this_thread.recording else asarray
        try:
            found = make(value)
            if found.dtype.kind == "c":
                _allow_complex(function, name, found)
            return found
        except (TypeError, ValueError) as error:
            said = str(error).removeprefix(f"[{make.__name__}] ")
            raise type(error)(f"[{function}] {name}: {said}") from None
    raise TypeError(f"[{function}] {name} must be a tensor, an array or a number, got {describe(value)}")


def _allow_complex(function: str, name: str, value: ExTensor) -> None:
    """Complex numbers go where they are defined, and nowhere else by accident."""
    if not is_for_complex(function):
        raise TypeError(
            f"[{function}] {name} has dtype {value.dtype}; {function} is not defined for complex numbers"
        )


def as_floating(function: str, name: str, value: Any) -> ExTensor:
    """The argument as a tensor of a floating dtype."""
    found = as_tensor(function, name, value)
    if found.dtype not in FLOATING:
        raise TypeError(
            f"[{function}] {name} must have a floating dtype, got {found.dtype}; use {name}.astype(extensor.float32)"
        )
    return found


def as_integers(function: str, name: str, value: Any) -> ExTensor:
    """The argument as a tensor of an integer dtype: indices and labels."""
    found = as_tensor(function, name, value)
    if found.dtype not in INTEGER:
        if not found.size and not isinstance(value, (ExTensor, np.ndarray)):
            return asarray(np.zeros(found.shape, np.int64))
        raise TypeError(f"[{function}] {name} must have an integer dtype, got {found.dtype}")
    return found


def as_grad(function: str, value: Any, shape: Shape) -> ExTensor:
    """``grad_output`` as a floating tensor of the shape the forward's result has."""
    found = as_floating(function, "grad_output", value)
    if found.shape != shape:
        raise ValueError(
            f"[{function}] grad_output has shape {found.shape} but the forward's result has shape {shape}"
        )
    return found


def differentiable_input(function: str, name: str, value: Any) -> ExTensor:
    """An input whose gradient is asked for: integers have none."""
    found = as_tensor(function, name, value)
    if found.dtype not in FLOATING:
        raise TypeError(f"[{function}] {name} has dtype {found.dtype}; only floating tensors have gradients")
    return found


def check_needs(function: str, needs: Any, count: int = 2) -> None:
    """``needs`` says for each of ``count`` gradients whether it is wanted."""
    if type(needs) is not tuple or len(needs) != count or set(map(type, needs)) != {bool}:
        raise TypeError(f"[{function}] needs must be a tuple of {count} booleans, got {describe(needs)}")


def shape_of(function: str, name: str, value: Any) -> Shape:
    """The shape of a tensor, an array or a number; a tuple of ints is a shape already."""
    if isinstance(value, (ExTensor, np.ndarray)):
        if value.dtype not in FLOATING:
            raise TypeError(
                f"[{function}] {name} has dtype {value.dtype}; only floating tensors have gradients"
            )
        return value.shape
    if isinstance(value, (*Scalar, np.generic)):
        return ()
    shape = as_shape(function, name, value)
    if math.prod(filter(None, shape)) > MOST_ELEMENTS:
        raise ValueError(f"[{function}] {name} of shape {shape} has more elements than any memory holds")
    return shape


def dtype_of(value: Any, otherwise: np.dtype[Any]) -> np.dtype[Any]:
    """The floating dtype of a tensor or array; ``otherwise`` for a shape or a number."""
    return value.dtype if isinstance(value, (ExTensor, np.ndarray)) else otherwise


def as_int(function: str, name: str, value: Any) -> int:
    """An argument that must be a whole number."""
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(f"[{function}] {name} must be an int, got {describe(value)}")
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"[{function}] {name} must be an int, got {describe(value)}") from None


def as_number(function: str, name: str, value: Any) -> float:
    """An argument that must be a real number."""
    if isinstance(value, ExTensor) and value.size == 1:
        value = value.item()
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"[{function}] {name} must be a number, got {describe(value)}")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"[{function}] {name} is too large for a float: {describe(value)}") from None


def as_bool(function: str, name: str, value: Any) -> bool:
    """An argument that must be True or False."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    raise TypeError(f"[{function}] {name} must be True or False, got {describe(value)}")


def as_ints(function: str, name: str, value: Any) -> tuple[int, ...]:
    """An int, or a sequence of ints."""
    if type(value) is tuple and INTS.issuperset(map(type, value)):
        return value
    if isinstance(value, (str, bytes, bytearray, memoryview)):
        raise TypeError(f"[{function}] {name} must be an int or a sequence of ints, got {describe(value)}")
    if isinstance(value, (ExTensor, np.ndarray)):
        if value.ndim > 1:
            raise TypeError(f"[{function}] {name} must be ints, got a tensor with {value.ndim} axes")
        value = value.tolist()
    if not isinstance(value, Sequence):
        return (as_int(function, name, value),)
    if isinstance(value, range) and value[:MOST_INTS] != value:
        raise ValueError(f"[{function}] {name} has more than {MOST_INTS} ints, got {describe(value)}")
    return tuple(as_int(function, name, n) for n in value)


def as_length(function: str, name: str, value: Any) -> int:
    """How many elements an axis has: an int that is not negative and can be counted."""
    length = as_int(function, name, value)
    if length < 0:
        raise ValueError(f"[{function}] {name} must not be negative, got {length}")
    if length > sys.maxsize:
        raise _uncountable(function, name, length)
    return length


def as_shape(function: str, name: str, value: Any) -> Shape:
    """A shape: an int or a sequence of non-negative ints."""
    shape = as_ints(function, name, value)
    if min(shape, default=0) < 0:
        raise ValueError(f"[{function}] {name} must not have negative lengths, got {shape}")
    if len(shape) > MOST_AXES:
        raise ValueError(f"[{function}] {name} has {len(shape)} axes; at most {MOST_AXES} are possible")
    if max(shape, default=0) > sys.maxsize:
        raise _uncountable(function, name, shape)
    return shape


def _uncountable(function: str, name: str, value: Any) -> ValueError:
    return ValueError(f"[{function}] {name} means more elements than any memory holds, got {describe(value)}")


def as_axis(function: str, axis: Any, ndim: int) -> int:
    """One axis, counted from the front."""
    found = as_int(function, "axis", axis)
    if not -ndim <= found < ndim:
        raise ValueError(f"[{function}] axis {found} is out of range for a tensor with {ndim} axes")
    return found % ndim


def as_axes(function: str, axis: Any, ndim: int) -> tuple[int, ...]:
    """The axes to reduce over, sorted, counted from the front; None means all."""
    if axis is None:
        return tuple(range(ndim))
    if not isinstance(axis, (tuple, list)):
        return (as_axis(function, axis, ndim),)
    found = sorted(as_axis(function, a, ndim) for a in axis)
    if len(set(found)) != len(found):
        raise ValueError(f"[{function}] axis {tuple(axis)} names an axis twice")
    return tuple(found)


def broadcast_shape(*shapes: Shape) -> Shape:
    """The shape that ``shapes`` broadcast to; a ValueError if they do not, or to more elements than can be counted.

    NumPy's own function knows arrays of 32 axes at most.
    """
    first, *others = shapes or ((),)
    if all(shape == first for shape in others):
        return first
    found = [1] * max(map(len, shapes))
    for shape in shapes:
        for i, n in enumerate(shape, len(found) - len(shape)):
            if n != found[i]:
                if found[i] == 1:
                    found[i] = n
                elif n != 1:
                    raise ValueError(f"{' and '.join(map(str, shapes))} do not broadcast")
    if math.prod(filter(None, found)) > sys.maxsize:
        raise ValueError(f"{' and '.join(map(str, shapes))} broadcast to more elements than any memory holds")
    return tuple(found)


def reduced_shape(shape: Shape, axes: tuple[int, ...], keepdims: bool) -> Shape:
    """The shape of a reduction over ``axes``."""
    if keepdims:
        return tuple(1 if i in axes else n for i, n in enumerate(shape))
    return tuple(n for i, n in enumerate(shape) if i not in axes)
