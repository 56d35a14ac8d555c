"""Complex samples: a complex number is two real ones, wherever numbers are compared or varied."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dtypes import complex64, float64

__all__ = ["WIDE", "as_real", "narrowed", "real_dtype", "widened"]

WIDE = (np.dtype(np.float64), np.dtype(np.complex128))  # what stands for the floating inputs in a case


def narrowed(array: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """A sample in the dtype that is tested; complex numbers have none narrower than complex64."""
    if array.dtype.kind == "c":
        return array if dtype == float64 else array.astype(complex64)
    return array.astype(dtype)


def real_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of the parts of a number."""
    return np.empty(0, dtype).real.dtype if dtype.kind == "c" else dtype


def widened(array: np.ndarray) -> np.ndarray:
    """In float64 or complex128."""
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def as_real(array: np.ndarray) -> np.ndarray:
    """Complex numbers as pairs along a new last axis; real ones as they are."""
    array = np.asarray(array)
    return np.stack([array.real, array.imag], -1) if array.dtype.kind == "c" else array
