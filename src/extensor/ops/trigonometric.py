"""Circular and hyperbolic functions, their inverses and the error function, each with its gradient."""

from __future__ import annotations

from ..checks import takes_complex
from ..graph import backward_of, differentiable
from ..kernels.reference import trigonometric as kernels
from ..tensor import ExTensor
from ._unary import unary, unary_backward, unary_backward_from_output

__all__ = [
    "sin", "sin_backward", "cos", "cos_backward", "tan", "tan_backward",
    "asin", "asin_backward", "acos", "acos_backward", "atan", "atan_backward",
    "sinh", "sinh_backward", "cosh", "cosh_backward", "tanh", "tanh_backward", "erf", "erf_backward",
]  # fmt: skip


@differentiable
@takes_complex
def sin(x: ExTensor) -> ExTensor:
    """Sine of an angle in radians.   y = sin(x)

    Example:
        >>> import extensor as et
        >>> et.sin(et.tensor([0.0])).tolist()
        [0.0]
    """
    return unary("sin", kernels.sin, x)


@backward_of(sin)
def sin_backward(grad_output: ExTensor, x: ExTensor) -> ExTensor:
    """Gradient of :func:`sin`.   dx = dy * cos(x)

    Example:
        >>> import extensor as et
        >>> et.sin_backward(et.ones(1), et.tensor([0.0])).tolist()
        [1.0]
    """
    return unary_backward("sin_backward", kernels.sin_backward, grad_output, x)


@differentiable
@takes_complex
def cos(x: ExTensor) -> ExTensor:
    """Cosine of an angle in radians.   y = cos(x)

    Example:
        >>> import extensor as et
        >>> et.cos(et.tensor([0.0])).tolist()
        [1.0]
    """
    return unary("cos", kernels.cos, x)


@backward_of(cos)
def cos_backward(grad_output: ExTensor, x: ExTensor) -> ExTensor:
    """Gradient of :func:`cos`.   dx = -dy * sin(x)

    Example:
        >>> import extensor as et
        >>> et.cos_backward(et.ones(1), et.tensor([0.0])).tolist()
        [-0.0]
    """
    return unary_backward("cos_backward", kernels.cos_backward, grad_output, x)


@differentiable
@takes_complex
def tan(x: ExTensor) -> ExTensor:
    """Tangent of an angle in radians.   y = tan(x)

    Example:
        >>> import extensor as et
        >>> et.tan(et.tensor([0.0])).tolist()
        [0.0]
    """
    return unary("tan", kernels.tan, x)


@backward_of(tan)
def tan_backward(grad_output: ExTensor, x: ExTensor) -> ExTensor:
    """Gradient of :func:`tan`.   dx = dy * (1 + tan(x)**2)

    Example:
        >>> import extensor as et
        >>> et.tan_backward(et.ones(1), et.tensor([0.0])).tolist()
        [1.0]
    """
    return unary_backward("tan_backward", kernels.tan_backward, grad_output, x)


@differentiable
@takes_complex
def asin(x: ExTensor) -> ExTensor:
    """Inverse sine, in radians; nan outside [-1, 1].   y = asin(x)

    Example:
        >>> import extensor as et
        >>> et.asin(et.tensor([0.0])).tolist()
        [0.0]
    """
    return unary("asin", kernels.asin, x)


@backward_of(asin)
def asin_backward(grad_output: ExTensor, x: ExTensor) -> ExTensor:
    """Gradient of :func:`asin`; infinite at -1 and 1.   dx = dy / sqrt(1 - x**2)

    Example:
        >>> import extensor as et
        >>> et.asin_backward(et.ones(1), et.tensor([0.0])).tolist()
        [1.0]
    """
    return unary_backward("asin_backward", kernels.asin_backward, grad_output, x)


@differentiable
@takes_complex
def acos(x: ExTensor) -> ExTensor:
    """Inverse cosine, in radians; nan outside [-1, 1].   y = acos(x)

    Example:
        >>> import extensor as et
        >>> et.acos(et.tensor([1.0])).tolist()
        [0.0]
    """
    return unary("acos", kernels.acos, x)


@backward_of(acos)
def acos_backward(grad_output: ExTensor, x: ExTensor) -> ExTensor:
    """Gradient of :func:`acos`; infinite at -1 and 1.   dx = -dy / sqrt(1 - x**2)

    Example:
        >>> import extensor as et
        >>> et.acos_backward(et.ones(1), et.tensor([0.0])).tolist()
        [-1.0]
    """
    return unary_backward("acos_backward", kernels.acos_backward, grad_output, x)


@differentiable
@takes_complex
def atan(x: ExTensor) -> ExTensor:
    """Inverse tangent, in radians.   y = atan(x)

    Example:
        >>> import extensor as et
        >>> et.atan(et.tensor([0.0])).tolist()
        [0.0]
    """
    return unary("atan", kernels.atan, x)


@backward_of(atan)
def atan_backward(grad_output: ExTensor, x: ExTensor) -> ExTensor:
    """Gradient of :func:`atan`.   dx = dy / (1 + x**2)

    Example:
        >>> import extensor as et
        >>> et.atan_backward(et.ones(1), et.tensor([0.0])).tolist()
        [1.0]
    """
    return unary_backward("atan_backward", kernels.atan_backward, grad_output, x)


@differentiable
@takes_complex
def sinh(x: ExTensor) -> ExTensor:
    """Hyperbolic sine.   y = (e**x - e**-x) / 2

    Example:
        >>> import extensor as et
        >>> et.sinh(et.tensor([0.0])).tolist()
        [0.0]
    """
    return unary("sinh", kernels.sinh, x)


@backward_of(sinh)
def sinh_backward(grad_output: ExTensor, x: ExTensor) -> ExTensor:
    """Gradient of :func:`sinh`.   dx = dy * cosh(x)

    Example:
        >>> import extensor as et
        >>> et.sinh_backward(et.ones(1), et.tensor([0.0])).tolist()
        [1.0]
    """
    return unary_backward("sinh_backward", kernels.sinh_backward, grad_output, x)


@differentiable
@takes_complex
def cosh(x: ExTensor) -> ExTensor:
    """Hyperbolic cosine.   y = (e**x + e**-x) / 2

    Example:
        >>> import extensor as et
        >>> et.cosh(et.tensor([0.0])).tolist()
        [1.0]
    """
    return unary("cosh", kernels.cosh, x)


@backward_of(cosh)
def cosh_backward(grad_output: ExTensor, x: ExTensor) -> ExTensor:
    """Gradient of :func:`cosh`.   dx = dy * sinh(x)

    Example:
        >>> import extensor as et
        >>> et.cosh_backward(et.ones(1), et.tensor([0.0])).tolist()
        [0.0]
    """
    return unary_backward("cosh_backward", kernels.cosh_backward, grad_output, x)


@differentiable
@takes_complex
def tanh(x: ExTensor) -> ExTensor:
    """Hyperbolic tangent.   y = (e**x - e**-x) / (e**x + e**-x)

    Example:
        >>> import extensor as et
        >>> et.tanh(et.tensor([0.0])).tolist()
        [0.0]
    """
    return unary("tanh", kernels.tanh, x)


@backward_of(tanh, from_output=True)
def tanh_backward(grad_output: ExTensor, output: ExTensor) -> ExTensor:
    """Gradient of :func:`tanh`, from its output.   dx = dy * (1 - y**2)

    Example:
        >>> import extensor as et
        >>> et.tanh_backward(et.ones(1), et.tanh(et.tensor([0.0]))).tolist()
        [1.0]
    """
    return unary_backward_from_output("tanh_backward", kernels.tanh_backward, grad_output, output)


@differentiable
def erf(x: ExTensor) -> ExTensor:
    """Error function.   y = 2 / sqrt(pi) * integral of exp(-t**2) from 0 to x

    Example:
        >>> import extensor as et
        >>> et.erf(et.tensor([0.0])).tolist()
        [0.0]
    """
    return unary("erf", kernels.erf, x)


@backward_of(erf)
def erf_backward(grad_output: ExTensor, x: ExTensor) -> ExTensor:
    """Gradient of :func:`erf`.   dx = dy * 2 / sqrt(pi) * exp(-x**2)

    Example:
        >>> import extensor as et
        >>> et.erf_backward(et.ones(1), et.tensor([0.0]))
        tensor([1.1284], shape=(1,), dtype=float32)
    """
    return unary_backward("erf_backward", kernels.erf_backward, grad_output, x)
