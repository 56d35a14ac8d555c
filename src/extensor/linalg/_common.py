"""What the functions of linear algebra ask of their arguments, and how they fail."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..checks import as_floating, as_number
from ..dtypes import HALF, float32
from ..graph import observe, set_recording
from ..ops._wide import computed_wide
from ..ops.complex_numbers import conj
from ..ops.shape import swapaxes
from ..tensor import ExTensor

__all__ = [
    "LinAlgError",
    "adjoint",
    "as_matrix",
    "as_square",
    "computed_wide",
    "hermitian",
    "one_call",
    "run",
]

LinAlgError = np.linalg.LinAlgError
LONGEST = 2**31 - 1  # rows and columns that an int of LAPACK counts
_MOST_EMPTY = 2**24  # rows, columns or matrices without an element; loops go through all of them


def as_matrix(function: str, name: str, value: Any) -> ExTensor:
    """The argument as a floating matrix, or a batch of them."""
    found = as_floating(function, name, value)
    if found.ndim < 2:
        raise ValueError(f"[{function}] {name} must be a matrix or a batch of them, got shape {found.shape}")
    return found


def as_square(function: str, name: str, value: Any) -> ExTensor:
    """The argument as a square floating matrix, or a batch of them."""
    found = as_matrix(function, name, value)
    if found.shape[-1] != found.shape[-2]:
        raise ValueError(f"[{function}] {name} must be square, got shape {found.shape}")
    return found


def as_tolerance(function: str, name: str, value: Any, x: ExTensor) -> Any:
    """What counts as zero, relative to the largest singular value: a number, or one for each matrix of a batch."""
    if isinstance(value, (ExTensor, np.ndarray)) and value.ndim:
        given = as_floating(function, name, value)
        if given.dtype.kind == "c":
            raise TypeError(f"[{function}] {name} must be real, got dtype {given.dtype}")
        each = given.numpy().astype(np.float64)
        try:
            each = np.broadcast_to(each, x.shape[:-2])
        except ValueError:
            raise ValueError(
                f"[{function}] {name} of shape {value.shape} does not fit the batch {x.shape[:-2]}"
            ) from None
        if not (each >= 0).all():
            raise ValueError(f"[{function}] {name} must not be negative")
        return each
    if value is None:
        eps = np.finfo(float32 if x.dtype in HALF else x.dtype).eps
        return float(eps) * max(x.shape[-2:])
    found = as_number(function, name, value)
    if not found >= 0:
        raise ValueError(f"[{function}] {name} must not be negative, got {found}")
    return found


def run(function: str, problem: str, kernel: Callable[..., Any], *args: Any) -> Any:
    """The kernel; where LAPACK gives up, an error that says what is wrong with the matrix."""
    for place, value in enumerate(args):
        if isinstance(value, ExTensor) and _is_too_long(value):
            name = list(inspect.signature(kernel).parameters)[place]
            raise ValueError(
                f"[{function}] {name} of shape {value.shape} is more than LAPACK goes through: {LONGEST} rows or columns, "
                f"{_MOST_EMPTY} rows, columns or matrices that have no elements"
            )
    try:
        return kernel(*args)
    except LinAlgError:
        raise LinAlgError(f"[{function}] {problem} (shape {args[0].shape})") from None


def _is_too_long(x: ExTensor) -> bool:
    if x.size:
        return max(x.shape[-2:], default=0) > LONGEST
    return max(math.prod(x.shape[:-2]), *x.shape[-2:]) > _MOST_EMPTY


@contextmanager
def one_call() -> Iterator[None]:
    """For a forward made of several functions: the recorder sees the one call alone."""
    with set_recording(False), observe(None):
        yield


def adjoint(x: ExTensor) -> ExTensor:
    """Rows and columns exchanged, conjugated."""
    return conj(swapaxes(x, -1, -2))


def hermitian(x: ExTensor) -> ExTensor:
    """The part of ``x`` that equals its own adjoint."""
    return (x + adjoint(x)) * 0.5
