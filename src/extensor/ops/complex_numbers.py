"""Complex numbers: their parts, each with its gradient.

The gradient of a complex z is dL/d(Re z) + i dL/d(Im z): the direction in which the real loss L grows fastest, so that
``z - lr * grad`` descends. For a function with a complex derivative f' it is ``dz = dy * conj(f'(z))``.
"""

from __future__ import annotations

from typing import Any

from .. import kernels
from ..checks import as_floating, as_grad, as_tensor, differentiable_input, takes_complex
from ..dtypes import COMPLEX, as_dtype
from ..graph import backward_of, differentiable
from ..tensor import ExTensor, TensorOrDtype
from .arithmetic import divide, multiply
from .elementwise import square
from .selection import where

__all__ = [
    "angle", "angle_backward", "conj", "conj_backward", "imag", "imag_backward", "real", "real_backward",
]  # fmt: skip


@differentiable
@takes_complex
def conj(x: ExTensor) -> ExTensor:
    """The complex conjugate; a real tensor is its own.   y = Re x - i Im x

    Example:
        >>> import extensor as et
        >>> et.conj(et.tensor([1 + 2j])).tolist()
        [(1-2j)]
    """
    x = as_tensor("conj", "x", x)
    return kernels.conj(x) if x.dtype in COMPLEX else x


@backward_of(conj)
def conj_backward(grad_output: ExTensor) -> ExTensor:
    """Gradient of :func:`conj`.   dx = conj(dy)

    Example:
        >>> import extensor as et
        >>> et.conj_backward(et.tensor([1j])).tolist()
        [-1j]
    """
    return conj(as_floating("conj_backward", "grad_output", grad_output))


@differentiable
@takes_complex
def real(x: ExTensor) -> ExTensor:
    """The real part; a real tensor is its own.   y = Re x

    Example:
        >>> import extensor as et
        >>> et.real(et.tensor([1 + 2j])).tolist()
        [1.0]
    """
    x = as_tensor("real", "x", x)
    return kernels.real(x) if x.dtype in COMPLEX else x


@backward_of(real, keeps_dtype=("x",))
def real_backward(grad_output: ExTensor, x: TensorOrDtype) -> ExTensor:
    """Gradient of :func:`real`.   dx = dy + 0i;   ``x`` is the input or just its dtype.

    Example:
        >>> import extensor as et
        >>> et.real_backward(et.ones(1), et.complex64).tolist()
        [(1+0j)]
    """
    return as_floating("real_backward", "grad_output", grad_output).astype(_dtype("real_backward", x))


def _dtype(function: str, x: Any) -> Any:
    return x.dtype if isinstance(x, ExTensor) else as_dtype(function, x)


def _complex(function: str, x: Any) -> ExTensor:
    found = as_tensor(function, "x", x)
    if found.dtype not in COMPLEX:
        raise TypeError(f"[{function}] x must be complex, got {found.dtype}")
    return found


@differentiable
@takes_complex
def imag(x: ExTensor) -> ExTensor:
    """The imaginary part of a complex tensor.   y = Im x

    Example:
        >>> import extensor as et
        >>> et.imag(et.tensor([1 + 2j])).tolist()
        [2.0]
    """
    return kernels.imag(_complex("imag", x))


@backward_of(imag)
def imag_backward(grad_output: ExTensor) -> ExTensor:
    """Gradient of :func:`imag`.   dx = i dy

    Example:
        >>> import extensor as et
        >>> et.imag_backward(et.ones(1)).tolist()
        [1j]
    """
    grad = as_floating("imag_backward", "grad_output", grad_output)
    if grad.dtype in COMPLEX:
        raise TypeError(f"[imag_backward] grad_output must be real, got {grad.dtype}")
    return multiply(grad, 1j)


@differentiable
@takes_complex
def angle(x: ExTensor) -> ExTensor:
    """The angle of a complex number, between -pi and pi; of a real one 0 or pi.   y = atan2(Im x, Re x)

    Example:
        >>> import extensor as et
        >>> round(et.angle(et.tensor([1j])).item(), 4)
        1.5708
    """
    return kernels.angle(as_floating("angle", "x", x))


@backward_of(angle)
def angle_backward(grad_output: ExTensor, x: ExTensor) -> ExTensor:
    """Gradient of :func:`angle`.   dx = i dy x / |x|**2,  0 at 0 and for real x

    Example:
        >>> import extensor as et
        >>> et.angle_backward(et.ones(1), et.tensor([2.0 + 0j])).tolist()
        [0.5j]
    """
    x = differentiable_input("angle_backward", "x", x)
    grad = as_grad("angle_backward", grad_output, x.shape)
    if x.dtype not in COMPLEX:
        return multiply(x, 0.0)
    length = square(real(x)) + square(imag(x))
    return where(length == 0, 0.0, multiply(divide(multiply(grad, x), where(length == 0, 1.0, length)), 1j))
