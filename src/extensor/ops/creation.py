"""Tensors from a shape, a range or another tensor, with NumPy's conventions; floats are float32 unless asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import kernels
from .._misfits import explained
from ..checks import as_bool, as_floating, as_int, as_length, as_number, as_shape, as_tensor, takes_complex
from ..dtypes import FLOATING, as_dtype, bool_, float32, int64
from ..graph import backward_of, differentiable
from ..tensor import ExTensor, Shape

__all__ = [
    "arange", "copy", "copy_backward", "empty", "empty_like", "eye", "full", "full_like", "linspace",
    "ones", "ones_like", "zeros", "zeros_like",
]  # fmt: skip


def allocate(function: str, make: Callable[..., Any], *arguments: Any) -> ExTensor:
    """``make(*arguments)``, which allocates; a size beyond any address comes as a ValueError."""
    try:
        return make(*arguments)
    except MemoryError as error:
        raise MemoryError(f"[{function}] {str(error) or 'out of memory'}") from None
    except OverflowError as error:
        raise ValueError(f"[{function}] a value does not fit the dtype: {error}") from None
    except (ValueError, IndexError) as error:
        raise ValueError(f"[{function}] the tensor cannot be made: {error}") from None


def _number(function: str, name: str, value: Any) -> int | float:
    """A real number, ints kept exact."""
    if isinstance(value, ExTensor) and value.size == 1:
        value = value.item()
    if isinstance(value, (bool, np.bool_)):
        return int(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    return as_number(function, name, value)


@explained
def zeros(shape: Any, dtype: Any = float32) -> ExTensor:
    """A tensor of zeros.

    Example:
        >>> import extensor as et
        >>> et.zeros((2, 3)).tolist()
        [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    return allocate("zeros", kernels.zeros, as_shape("zeros", "shape", shape), as_dtype("zeros", dtype))


@explained
def ones(shape: Any, dtype: Any = float32) -> ExTensor:
    """A tensor of ones.

    Example:
        >>> import extensor as et
        >>> et.ones(3, dtype=et.int32)
        tensor([1, 1, 1], shape=(3,), dtype=int32)
    """
    return allocate("ones", kernels.full, as_shape("ones", "shape", shape), 1, as_dtype("ones", dtype))


@explained
def empty(shape: Any, dtype: Any = float32) -> ExTensor:
    """A tensor whose elements are whatever the memory held.

    Example:
        >>> import extensor as et
        >>> et.empty((2, 0)).shape
        (2, 0)
    """
    return allocate("empty", kernels.empty, as_shape("empty", "shape", shape), as_dtype("empty", dtype))


@explained
def full(shape: Any, fill_value: Any, dtype: Any = None) -> ExTensor:
    """A tensor with the same value everywhere.

    Args:
        shape: an int or a tuple of ints.
        fill_value: a number, or a tensor with one element.
        dtype: by default float32 for a float, int64 for an int, bool for a bool, and a tensor's own.

    Example:
        >>> import extensor as et
        >>> et.full((2,), 7.5).tolist()
        [7.5, 7.5]
    """
    wanted = _dtype_of_number(fill_value) if dtype is None else as_dtype("full", dtype)
    return filled("full", as_shape("full", "shape", shape), fill_value, wanted)


def _dtype_of_number(value: Any) -> np.dtype[Any]:
    if isinstance(value, (ExTensor, np.ndarray, np.generic)):
        return as_dtype("full", value.dtype)
    if isinstance(value, bool):
        return bool_
    return int64 if isinstance(value, int) else float32


def filled(function: str, shape: Shape, value: Any, dtype: np.dtype[Any]) -> ExTensor:
    """A tensor of one number; fractions are cut off where ``dtype`` has none."""
    number = _number(function, "fill_value", value)
    if dtype.kind in "biu" and isinstance(number, float):
        if number != number or number in (float("inf"), float("-inf")):
            raise ValueError(f"[{function}] fill_value {number} has no counterpart in {dtype}")
        number = int(number)
    if dtype in FLOATING:
        number = as_number(function, "fill_value", number)
    return allocate(function, kernels.full, shape, bool(number) if dtype == bool_ else number, dtype)


@explained
@takes_complex
def zeros_like(x: ExTensor, dtype: Any = None) -> ExTensor:
    """Zeros with the shape of ``x``, and its dtype unless another is asked for.

    Example:
        >>> import extensor as et
        >>> et.zeros_like(et.tensor([1, 2])).tolist()
        [0, 0]
    """
    return allocate("zeros_like", kernels.zeros, *_like("zeros_like", x, dtype))


@explained
@takes_complex
def ones_like(x: ExTensor, dtype: Any = None) -> ExTensor:
    """Ones with the shape of ``x``, and its dtype unless another is asked for.

    Example:
        >>> import extensor as et
        >>> et.ones_like(et.tensor([1.5, 2.5])).tolist()
        [1.0, 1.0]
    """
    shape, wanted = _like("ones_like", x, dtype)
    return allocate("ones_like", kernels.full, shape, 1, wanted)


@explained
@takes_complex
def empty_like(x: ExTensor, dtype: Any = None) -> ExTensor:
    """An uninitialised tensor with the shape of ``x``, and its dtype unless another is asked for.

    Example:
        >>> import extensor as et
        >>> et.empty_like(et.tensor([1.5, 2.5])).shape
        (2,)
    """
    return allocate("empty_like", kernels.empty, *_like("empty_like", x, dtype))


@explained
@takes_complex
def full_like(x: ExTensor, fill_value: Any, dtype: Any = None) -> ExTensor:
    """One value everywhere, with the shape of ``x``, and its dtype unless another is asked for.

    Example:
        >>> import extensor as et
        >>> et.full_like(et.tensor([1.5, 2.5]), 3).tolist()
        [3.0, 3.0]
    """
    shape, wanted = _like("full_like", x, dtype)
    return filled("full_like", shape, fill_value, wanted)


def _like(function: str, x: Any, dtype: Any) -> tuple[Shape, np.dtype[Any]]:
    x = as_tensor(function, "x", x)
    return x.shape, x.dtype if dtype is None else as_dtype(function, dtype)


@explained
def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> ExTensor:
    """Evenly spaced numbers from ``start`` up to, not including, ``stop``.   y_i = start + i * step

    Args:
        start: the first number; ``arange(n)`` counts from 0 to n - 1.
        stop: where to end.
        step: the distance between neighbours, not zero.
        dtype: by default int64 if all three are whole numbers, float32 if one is a float.

    Example:
        >>> import extensor as et
        >>> et.arange(5).tolist(), et.arange(1, 2, 0.25).tolist()
        ([0, 1, 2, 3, 4], [1.0, 1.25, 1.5, 1.75])
    """
    if stop is None:
        start, stop = 0, start
    numbers = [_number("arange", name, v) for name, v in (("start", start), ("stop", stop), ("step", step))]
    if numbers[2] == 0:
        raise ValueError("[arange] step must not be zero")
    if any(abs(n) == float("inf") or n != n for n in numbers):
        raise ValueError(f"[arange] start, stop and step must be finite, got {', '.join(map(str, numbers))}")
    whole = all(isinstance(n, int) for n in numbers)
    if whole and any(not -(2**63) <= n < 2**63 for n in numbers):
        raise ValueError(f"[arange] start, stop and step must fit int64, got {', '.join(map(str, numbers))}")
    wanted = (int64 if whole else float32) if dtype is None else as_dtype("arange", dtype)
    return allocate("arange", kernels.arange, *numbers, wanted)


@explained
def linspace(start: Any, stop: Any, num: Any = 50, endpoint: bool = True, dtype: Any = float32) -> ExTensor:
    """``num`` evenly spaced numbers between two ends.   y_i = start + i * (stop - start) / (num - 1)

    Args:
        start: the first number.
        stop: the last number.
        num: how many numbers.
        endpoint: whether ``stop`` itself is one of them; if not, the distance is ``(stop - start) / num``.
        dtype: the dtype wanted.

    Example:
        >>> import extensor as et
        >>> et.linspace(0, 1, 5).tolist()
        [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    ends = as_number("linspace", "start", start), as_number("linspace", "stop", stop)
    count = as_length("linspace", "num", num)
    endpoint = as_bool("linspace", "endpoint", endpoint)
    return allocate("linspace", kernels.linspace, *ends, count, endpoint, as_dtype("linspace", dtype))


@explained
def eye(n: Any, m: Any = None, k: Any = 0, dtype: Any = float32) -> ExTensor:
    """Ones on a diagonal, zeros elsewhere.

    Args:
        n: the number of rows.
        m: the number of columns; as many as rows by default.
        k: which diagonal: 0 the main one, positive above it, negative below.
        dtype: the dtype wanted.

    Example:
        >>> import extensor as et
        >>> et.eye(2).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    rows = as_length("eye", "n", n)
    columns = rows if m is None else as_length("eye", "m", m)
    diagonal = min(max(as_int("eye", "k", k), -rows), columns)
    return allocate("eye", kernels.eye, rows, columns, diagonal, as_dtype("eye", dtype))


@differentiable
@takes_complex
def copy(x: ExTensor) -> ExTensor:
    """The same elements in fresh contiguous memory.   y = x

    Example:
        >>> import extensor as et
        >>> et.copy(et.tensor([1.0, 2.0])).tolist()
        [1.0, 2.0]
    """
    return kernels.copy(as_tensor("copy", "x", x))


@backward_of(copy)
def copy_backward(grad_output: ExTensor) -> ExTensor:
    """Gradient of :func:`copy`.   dx = dy

    Example:
        >>> import extensor as et
        >>> et.copy_backward(et.ones(2)).tolist()
        [1.0, 1.0]
    """
    return as_floating("copy_backward", "grad_output", grad_output)
