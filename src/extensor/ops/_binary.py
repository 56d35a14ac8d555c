"""Calling a kernel on two operands that broadcast, with errors that name the function."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import kernels
from ..checks import Scalar, as_tensor
from ..dtypes import FLOATING, HALF, complex64, float32, promote
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


def beside_float(function: str, name: str, value: Any, other: Any) -> Any:
    """Integers and booleans beside a Python float (or complex) are float32, as the float is by itself."""
    if type(other) not in (float, complex) or isinstance(value, (float, complex)):
        return value
    if isinstance(value, Scalar):  # two Python numbers
        return float(value) if isinstance(other, Scalar) and abs(value) < 2**63 else value
    found = as_tensor(function, name, value)
    return found if found.dtype in FLOATING else kernels.astype(found, float32)


def arithmetic(function: str, kernel: Kernel, a: Any, b: Any) -> ExTensor:
    """:func:`binary` where a Python float makes integers float32; comparisons see them exactly instead."""
    return binary(function, kernel, beside_float(function, "a", a, b), beside_float(function, "b", b, a))


def quotient(function: str, kernel: Kernel, a: Any, b: Any) -> ExTensor:
    """:func:`arithmetic` where integers and booleans alone have float32 results."""
    given = [
        v if isinstance(v, (float, complex)) else as_tensor(function, n, v) for n, v in (("a", a), ("b", b))
    ]
    if any(isinstance(v, (float, complex)) or v.dtype in FLOATING for v in given):
        return arithmetic(function, kernel, a, b)
    return binary(function, kernel, *(kernels.astype(v, float32) for v in given))


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
