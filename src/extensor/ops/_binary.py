"""Calling a kernel on two operands that broadcast, with errors that name the function."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import kernels
from ..checks import Scalar, as_tensor
from ..dtypes import HALF, complex64, promote
from ..errors import describe
from ..kernels import Kernel
from ..tensor import ExTensor


def operand(function: str, name: str, value: Any, other: Any) -> Any:
    """A tensor, or a Python number where the other side is a tensor that decides the dtype."""
    if type(value) in Scalar and not isinstance(other, Scalar):
        return value
    if type(value) is complex and isinstance(other, (ExTensor, np.ndarray)):
        return as_tensor(function, name, np.asarray(value, promote(other.dtype, complex64)))
    return as_tensor(function, name, value)


def _promoted(a: Any, b: Any) -> tuple[Any, Any]:
    """A half-precision operand beside integers that are too wide for it becomes what NumPy makes of the two."""
    if (
        isinstance(a, ExTensor)
        and isinstance(b, ExTensor)
        and a.dtype != b.dtype
        and not HALF.isdisjoint((a.dtype, b.dtype))
    ):
        dtype = promote(a.dtype, b.dtype)
        if dtype not in HALF:
            return kernels.astype(a, dtype), kernels.astype(b, dtype)
    return a, b


def binary(function: str, kernel: Kernel, a: Any, b: Any) -> ExTensor:
    """``kernel(a, b)``; what NumPy has to say about the operands comes as our errors."""
    a, b = _promoted(operand(function, "a", a, b), operand(function, "b", b, a))
    try:
        return kernel(a, b)
    except ValueError as error:
        if "power" in str(error):
            raise ValueError(
                f"[{function}] integers to negative powers are not integers; use a floating a"
            ) from None
        raise ValueError(
            f"[{function}] a and b do not broadcast (a: {np.shape(a)}, b: {np.shape(b)})"
        ) from None
    except OverflowError as error:
        raise ValueError(f"[{function}] {error}") from None
    except TypeError:
        kinds = " and ".join(str(getattr(v, "dtype", describe(v))) for v in (a, b))
        raise TypeError(f"[{function}] is not defined for {kinds}; use x.astype(...)") from None
