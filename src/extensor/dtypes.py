"""The number types of ExTensor: NumPy dtypes, plus bfloat16.

Floating numbers, those that have gradients, are real or complex, as in the array API standard.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from .errors import describe

__all__ = [
    "bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip

bool_ = np.dtype(np.bool_)
int8, int16, int32, int64 = (np.dtype(f"int{bits}") for bits in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64))
float16, float32, float64 = (np.dtype(f"float{bits}") for bits in (16, 32, 64))
bfloat16 = np.dtype(ml_dtypes.bfloat16)
complex64, complex128 = np.dtype("complex64"), np.dtype("complex128")

HALF = frozenset({float16, bfloat16})
REAL_FLOATING: frozenset[np.dtype[Any]] = frozenset({float16, bfloat16, float32, float64})
COMPLEX: frozenset[np.dtype[Any]] = frozenset({complex64, complex128})
FLOATING: frozenset[np.dtype[Any]] = REAL_FLOATING | COMPLEX
INTEGER = frozenset({int8, int16, int32, int64, uint8, uint16, uint32, uint64})
SUPPORTED: frozenset[np.dtype[Any]] = FLOATING | INTEGER | {bool_}

_SHAPED = frozenset({"zeros", "ones", "empty", "full"})  # whose second number may be meant as a length
_BY_NAME = {dtype.name: dtype for dtype in SUPPORTED}
_BY_PYTHON: dict[Any, np.dtype[Any]] = {float: float32, int: int64, bool: bool_, complex: complex64}


def as_dtype(function: str, dtype: Any) -> np.dtype[Any]:
    """The dtype named by ``dtype``: a NumPy dtype, its name, or Python's ``float`` (float32), ``int``, ``bool``, ``complex``.

    None is float32, as everywhere where nothing is said.
    """
    if dtype is None:
        return float32
    if type(dtype) is int and function in _SHAPED:
        raise TypeError(
            f"[{function}] dtype must name a number type, got int {dtype}; lengths go into one tuple: {function}((3, {dtype}))"
        )
    try:
        found = _BY_PYTHON.get(dtype) or _BY_NAME.get(dtype) or np.dtype(dtype)
    except Exception:  # NumPy looks into the value, which may be anything
        raise TypeError(f"[{function}] dtype must name a number type, got {describe(dtype)}") from None
    if found not in SUPPORTED:
        raise TypeError(
            f"[{function}] dtype {found} is not supported; use one of {', '.join(sorted(_BY_NAME))}"
        )
    return found.newbyteorder("=")


def promote(*dtypes: np.dtype[Any]) -> np.dtype[Any]:
    """NumPy's promotion; bfloat16 behaves as float16 does, and the two meet in float32."""
    if bfloat16 not in dtypes:
        return np.result_type(*dtypes)
    if float16 in dtypes:
        return np.result_type(float32, *(d for d in dtypes if d not in HALF))
    found = np.result_type(*(float16 if d == bfloat16 else d for d in dtypes))
    return bfloat16 if found == float16 else found


def guard_width(dtype: Any) -> float:
    """How near to zero a divisor may come in a backward: 1e-10, in float16 1e-4."""
    return 1e-4 if dtype == float16 else 1e-10
