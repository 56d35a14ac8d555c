"""How close two gradients must be, per dtype; the only place where these numbers stand."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..dtypes import bfloat16, float16, float32, float64
from ..errors import describe

__all__ = ["TOLERANCES", "Tolerance", "tolerance"]


class Tolerance(NamedTuple):
    """``|actual - expected| <= atol + rtol * |expected|``."""

    rtol: float
    atol: float

    def errors(self, actual: np.ndarray, expected: np.ndarray) -> np.ndarray:
        """The relative error of each element: ``|actual - expected| / (|expected| + atol / rtol)``.

        It is at most ``rtol`` exactly where the elements are close in the sense above. Equal infinities and
        two nans have the error 0; a nan or an infinity on one side alone has the error inf.
        """
        actual, expected = np.asarray(actual, np.float64), np.asarray(expected, np.float64)
        if not self.rtol:  # an absolute tolerance alone: 1 is the limit
            scale = np.full(np.shape(expected), self.atol)
        else:
            scale = np.abs(expected) + self.atol / self.rtol
        with np.errstate(all="ignore"):
            errors = np.abs(actual - expected) / scale
        same = (actual == expected) | (np.isnan(actual) & np.isnan(expected))
        return np.where(same, 0.0, np.where(np.isfinite(actual) & np.isfinite(expected), errors, np.inf))

    @property
    def limit(self) -> float:
        """The largest relative error that passes."""
        return self.rtol or 1.0


TOLERANCES: dict[np.dtype[Any], Tolerance] = {
    float64: Tolerance(rtol=1e-6, atol=1e-8),  # against central differences
    float32: Tolerance(rtol=1e-4, atol=1e-5),  # this and the next two against the float64 result
    float16: Tolerance(rtol=1e-2, atol=1e-3),
    bfloat16: Tolerance(rtol=8e-2, atol=8e-3),  # its spacing is eight times that of float16
}


def tolerance(
    function: str, dtype: np.dtype[Any], rtol: float | None = None, atol: float | None = None
) -> Tolerance:
    """The tolerance of a dtype, with either number replaced by the caller's."""
    default = TOLERANCES.get(dtype)
    if default is None:
        raise TypeError(f"[{function}] only floating gradients are compared, got dtype {dtype}")
    for name, value in (("rtol", rtol), ("atol", atol)):
        if value is not None and not 0 <= value < float("inf"):
            raise ValueError(f"[{function}] {name} must be zero or a positive number, got {describe(value)}")
    return Tolerance(default.rtol if rtol is None else rtol, default.atol if atol is None else atol)
