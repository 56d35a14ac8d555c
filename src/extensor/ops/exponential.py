"""Exponentials, logarithms and roots, each with its gradient.

The gradients of logarithms and roots divide by something that may be 0. They are exact unless the divisor is
nearer to 0 than ``eps``; then ``eps``, with the divisor's sign, stands in for it, and the gradient stays finite.
"""

from __future__ import annotations

from typing import Any

from ..checks import takes_complex
from ..graph import backward_of, differentiable
from ..kernels.reference import exponential as kernels
from ..tensor import ExTensor
from ._unary import unary, unary_backward, unary_backward_from_output
from .arithmetic import guard_eps

__all__ = [
    "exp", "exp_backward", "expm1", "expm1_backward", "log", "log_backward", "log1p", "log1p_backward",
    "log2", "log2_backward", "log10", "log10_backward", "sqrt", "sqrt_backward", "rsqrt", "rsqrt_backward",
]  # fmt: skip


def _eps(function: str, eps: Any, value: Any) -> float:
    return guard_eps(function, eps, getattr(value, "dtype", None))


@differentiable
@takes_complex
def exp(x: ExTensor) -> ExTensor:
    """Exponential.   y = e**x

    Example:
        >>> import extensor as et
        >>> et.exp(et.tensor([0.0, 1.0]))
        tensor([1.    , 2.7183], shape=(2,), dtype=float32)
    """
    return unary("exp", kernels.exp, x)


@backward_of(exp, from_output=True)
def exp_backward(grad_output: ExTensor, output: ExTensor) -> ExTensor:
    """Gradient of :func:`exp`, from its output.   dx = dy * y

    Example:
        >>> import extensor as et
        >>> et.exp_backward(et.ones(1), et.exp(et.tensor([0.0]))).tolist()
        [1.0]
    """
    return unary_backward_from_output("exp_backward", kernels.exp_backward, grad_output, output)


@differentiable
@takes_complex
def expm1(x: ExTensor) -> ExTensor:
    """Exponential minus 1, exact near 0.   y = e**x - 1

    Example:
        >>> import extensor as et
        >>> et.expm1(et.tensor([0.0, 1.0]))
        tensor([0.    , 1.7183], shape=(2,), dtype=float32)
    """
    return unary("expm1", kernels.expm1, x)


@backward_of(expm1)
def expm1_backward(grad_output: ExTensor, x: ExTensor) -> ExTensor:
    """Gradient of :func:`expm1`.   dx = dy * e**x

    Example:
        >>> import extensor as et
        >>> et.expm1_backward(et.ones(1), et.tensor([0.0])).tolist()
        [1.0]
    """
    return unary_backward("expm1_backward", kernels.expm1_backward, grad_output, x)


@differentiable
@takes_complex
def log(x: ExTensor) -> ExTensor:
    """Natural logarithm; -inf at 0, nan below.   y = log(x)

    Example:
        >>> import extensor as et
        >>> et.log(et.tensor([1.0, 2.0]))
        tensor([0.    , 0.6931], shape=(2,), dtype=float32)
    """
    return unary("log", kernels.log, x)


@backward_of(log)
def log_backward(grad_output: ExTensor, x: ExTensor, *, eps: float | None = None) -> ExTensor:
    """Gradient of :func:`log`.   dx = dy / x

    Args:
        grad_output: the gradient of the logarithm.
        x: the input.
        eps: where ``|x| < eps``, ``copysign(eps, x)`` stands in for ``x``. Default 1e-10 (float16: 1e-4); 0 is IEEE.

    Example:
        >>> import extensor as et
        >>> et.log_backward(et.ones(2), et.tensor([1.0, 4.0])).tolist()
        [1.0, 0.25]
    """
    return unary_backward("log_backward", kernels.log_backward, grad_output, x, _eps("log_backward", eps, x))


@differentiable
@takes_complex
def log1p(x: ExTensor) -> ExTensor:
    """Natural logarithm of 1 + x, exact near 0.   y = log(1 + x)

    Example:
        >>> import extensor as et
        >>> et.log1p(et.tensor([0.0, 1.0]))
        tensor([0.    , 0.6931], shape=(2,), dtype=float32)
    """
    return unary("log1p", kernels.log1p, x)


@backward_of(log1p)
def log1p_backward(grad_output: ExTensor, x: ExTensor) -> ExTensor:
    """Gradient of :func:`log1p`; infinite at -1.   dx = dy / (1 + x)

    Example:
        >>> import extensor as et
        >>> et.log1p_backward(et.ones(2), et.tensor([0.0, 1.0])).tolist()
        [1.0, 0.5]
    """
    return unary_backward("log1p_backward", kernels.log1p_backward, grad_output, x)


@differentiable
@takes_complex
def log2(x: ExTensor) -> ExTensor:
    """Logarithm to base 2.   y = log(x) / log(2)

    Example:
        >>> import extensor as et
        >>> et.log2(et.tensor([1.0, 8.0])).tolist()
        [0.0, 3.0]
    """
    return unary("log2", kernels.log2, x)


@backward_of(log2)
def log2_backward(grad_output: ExTensor, x: ExTensor, *, eps: float | None = None) -> ExTensor:
    """Gradient of :func:`log2`.   dx = dy / (x * log(2))

    Args:
        grad_output: the gradient of the logarithm.
        x: the input.
        eps: where ``|x| < eps``, ``copysign(eps, x)`` stands in for ``x``. Default 1e-10 (float16: 1e-4); 0 is IEEE.

    Example:
        >>> import extensor as et
        >>> et.log2_backward(et.ones(1), et.tensor([1.0]))
        tensor([1.4427], shape=(1,), dtype=float32)
    """
    return unary_backward(
        "log2_backward", kernels.log2_backward, grad_output, x, _eps("log2_backward", eps, x)
    )


@differentiable
@takes_complex
def log10(x: ExTensor) -> ExTensor:
    """Logarithm to base 10.   y = log(x) / log(10)

    Example:
        >>> import extensor as et
        >>> et.log10(et.tensor([1.0, 1000.0])).tolist()
        [0.0, 3.0]
    """
    return unary("log10", kernels.log10, x)


@backward_of(log10)
def log10_backward(grad_output: ExTensor, x: ExTensor, *, eps: float | None = None) -> ExTensor:
    """Gradient of :func:`log10`.   dx = dy / (x * log(10))

    Args:
        grad_output: the gradient of the logarithm.
        x: the input.
        eps: where ``|x| < eps``, ``copysign(eps, x)`` stands in for ``x``. Default 1e-10 (float16: 1e-4); 0 is IEEE.

    Example:
        >>> import extensor as et
        >>> et.log10_backward(et.ones(1), et.tensor([1.0]))
        tensor([0.4343], shape=(1,), dtype=float32)
    """
    return unary_backward(
        "log10_backward", kernels.log10_backward, grad_output, x, _eps("log10_backward", eps, x)
    )


@differentiable
@takes_complex
def sqrt(x: ExTensor) -> ExTensor:
    """Square root; nan below 0.   y = x**(1/2)

    Example:
        >>> import extensor as et
        >>> et.sqrt(et.tensor([4.0, 9.0])).tolist()
        [2.0, 3.0]
    """
    return unary("sqrt", kernels.sqrt, x)


@backward_of(sqrt, from_output=True)
def sqrt_backward(grad_output: ExTensor, output: ExTensor, *, eps: float | None = None) -> ExTensor:
    """Gradient of :func:`sqrt`, from its output.   dx = dy / (2 * y)

    Args:
        grad_output: the gradient of the root.
        output: the root y.
        eps: where ``|y| < eps``, ``copysign(eps, y)`` stands in for ``y``. Default 1e-10 (float16: 1e-4); 0 is IEEE.

    Example:
        >>> import extensor as et
        >>> et.sqrt_backward(et.ones(1), et.sqrt(et.tensor([4.0]))).tolist()
        [0.25]
    """
    eps = _eps("sqrt_backward", eps, output)
    return unary_backward_from_output("sqrt_backward", kernels.sqrt_backward, grad_output, output, eps)


@differentiable
def rsqrt(x: ExTensor) -> ExTensor:
    """Reciprocal of the square root.   y = x**(-1/2)

    Example:
        >>> import extensor as et
        >>> et.rsqrt(et.tensor([4.0, 0.25])).tolist()
        [0.5, 2.0]
    """
    return unary("rsqrt", kernels.rsqrt, x)


@backward_of(rsqrt, from_output=True)
def rsqrt_backward(grad_output: ExTensor, output: ExTensor, *, eps: float | None = None) -> ExTensor:
    """Gradient of :func:`rsqrt`, from its output.   dx = -dy * y**3 / 2

    Args:
        grad_output: the gradient of the result.
        output: the forward's result y.
        eps: ``y`` is held between ``-1/eps`` and ``1/eps``. Default 1e-10 (float16: 1e-4); 0 is IEEE.

    Example:
        >>> import extensor as et
        >>> et.rsqrt_backward(et.ones(1), et.rsqrt(et.tensor([4.0]))).tolist()
        [-0.0625]
    """
    eps = _eps("rsqrt_backward", eps, output)
    return unary_backward_from_output("rsqrt_backward", kernels.rsqrt_backward, grad_output, output, eps)
