"""The frequencies of a transform, and moving zero into the middle."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from .. import kernels
from ..checks import as_axes, as_floating, as_length, as_number, as_tensor, takes_complex
from ..dtypes import REAL_FLOATING, as_dtype, float32
from ..graph import backward_of, differentiable
from ..ops.creation import allocate
from ..tensor import ExTensor

__all__ = [
    "fftfreq", "fftshift", "fftshift_backward", "ifftshift", "ifftshift_backward", "rfftfreq",
]  # fmt: skip


def _spacing(function: str, n: Any, d: Any, dtype: Any) -> tuple[int, float, Any]:
    count, step = as_length(function, "n", n), as_number(function, "d", d)
    wanted = as_dtype(function, float32 if dtype is None else dtype)
    if wanted not in REAL_FLOATING:
        raise TypeError(f"[{function}] dtype must be real and floating, got {wanted}")
    if count < 1:
        raise ValueError(f"[{function}] n must be at least 1, got {count}")
    if not abs(count * step) > 1 / sys.float_info.max:  # 1 / (n d) is a number
        raise ValueError(f"[{function}] d must not be 0 nor next to it, got {step}")
    return count, step, wanted


def _frequencies(make: Any, n: int, d: float, dtype: Any) -> ExTensor:
    with np.errstate(over="ignore"):  # beyond the range is inf, as in any cast
        return ExTensor(make(n, d).astype(dtype))


def fftfreq(n: int, d: Any = 1.0, dtype: Any = None) -> ExTensor:
    """The frequencies of :func:`fft`: 0 and the positive ones, then the negative ones.   y = [0, 1, ..., -2, -1] / (n d)

    Args:
        n: the number of points.
        d: the distance between two of them.
        dtype: a real floating dtype, float32 by default.

    Example:
        >>> import extensor as et
        >>> et.fft.fftfreq(4).tolist()
        [0.0, 0.25, -0.5, -0.25]
    """
    count, step, wanted = _spacing("fftfreq", n, d, dtype)
    return allocate("fftfreq", _frequencies, np.fft.fftfreq, count, step, wanted)


def rfftfreq(n: int, d: Any = 1.0, dtype: Any = None) -> ExTensor:
    """The frequencies of :func:`rfft`.   y = [0, 1, ..., n // 2] / (n d)

    Args:
        n: the number of points.
        d: the distance between two of them.
        dtype: a real floating dtype, float32 by default.

    Example:
        >>> import extensor as et
        >>> et.fft.rfftfreq(4).tolist()
        [0.0, 0.25, 0.5]
    """
    count, step, wanted = _spacing("rfftfreq", n, d, dtype)
    return allocate("rfftfreq", _frequencies, np.fft.rfftfreq, count, step, wanted)


def _shifted(function: str, x: ExTensor, axes: Any, back: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """How far to roll, along which axes."""
    found = as_axes(function, tuple(axes) if isinstance(axes, list) else axes, x.ndim)
    return tuple(-(x.shape[a] // 2) if back else x.shape[a] // 2 for a in found), found


@differentiable
@takes_complex
def fftshift(x: ExTensor, axes: Any = None) -> ExTensor:
    """The zero frequency moved to the middle.

    Args:
        x: any tensor.
        axes: the axes, all by default.

    Example:
        >>> import extensor as et
        >>> et.fft.fftshift(et.fft.fftfreq(4)).tolist()
        [-0.5, -0.25, 0.0, 0.25]
    """
    x = as_tensor("fftshift", "x", x)
    return kernels.roll(x, *_shifted("fftshift", x, axes, False))


@backward_of(fftshift)
def fftshift_backward(grad_output: ExTensor, axes: Any = None) -> ExTensor:
    """Gradient of :func:`fftshift`: moved back.   dx = ifftshift(dy)

    Example:
        >>> import extensor as et
        >>> et.fft.fftshift_backward(et.tensor([1.0, 2.0, 3.0])).tolist()
        [2.0, 3.0, 1.0]
    """
    grad = as_floating("fftshift_backward", "grad_output", grad_output)
    return ifftshift(grad, _shifted("fftshift_backward", grad, axes, False)[1])


@differentiable
@takes_complex
def ifftshift(x: ExTensor, axes: Any = None) -> ExTensor:
    """The zero frequency moved from the middle to the front; the inverse of :func:`fftshift`.

    Args:
        x: any tensor.
        axes: the axes, all by default.

    Example:
        >>> import extensor as et
        >>> et.fft.ifftshift(et.tensor([-1.0, 0.0, 1.0])).tolist()
        [0.0, 1.0, -1.0]
    """
    x = as_tensor("ifftshift", "x", x)
    return kernels.roll(x, *_shifted("ifftshift", x, axes, True))


@backward_of(ifftshift)
def ifftshift_backward(grad_output: ExTensor, axes: Any = None) -> ExTensor:
    """Gradient of :func:`ifftshift`: moved back.   dx = fftshift(dy)

    Example:
        >>> import extensor as et
        >>> et.fft.ifftshift_backward(et.tensor([1.0, 2.0, 3.0])).tolist()
        [3.0, 1.0, 2.0]
    """
    grad = as_floating("ifftshift_backward", "grad_output", grad_output)
    return fftshift(grad, _shifted("ifftshift_backward", grad, axes, False)[1])
