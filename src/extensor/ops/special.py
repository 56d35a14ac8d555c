"""Special functions, each with its gradient."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np

from ..checks import (
    as_floating,
    as_grad,
    as_int,
    as_number,
    as_tensor,
    broadcast_shape,
    check_needs,
    differentiable_input,
    takes_complex,
)
from ..dtypes import REAL_FLOATING, float32
from ..graph import backward_of, differentiable, undifferentiated
from ..kernels.reference import special as kernels
from ..tensor import ExTensor
from ._binary import binary
from ._pairs import BOTH, BinaryGradients, Needs
from ._unary import unary
from ._wide import computed_wide
from .activation import sigmoid
from .broadcasting import sum_to_shape
from .casting import cast_like
from .complex_numbers import conj
from .elementwise import sign, square
from .exponential import exp, sqrt
from .selection import where
from .trigonometric import cos, sin

__all__ = [
    "acosh", "acosh_backward", "asinh", "asinh_backward", "atan2", "atan2_backward", "atanh", "atanh_backward", "copysign", "copysign_backward", "digamma", "digamma_backward", "erfc", "erfc_backward", "erfinv", "erfinv_backward", "heaviside", "heaviside_backward", "hypot", "hypot_backward", "i0", "i0_backward", "i1", "i1_backward", "lgamma", "lgamma_backward", "logaddexp", "logaddexp_backward", "nextafter", "polygamma", "polygamma_backward", "sinc", "sinc_backward",
]  # fmt: skip


Indices: TypeAlias = Any  # the order of a polygamma function: a whole number, without a gradient


def _floats(function: str, a: Any, b: Any) -> tuple[Any, Any]:
    """The operands of a function of two real floating numbers; Python numbers are weak."""

    def found(name: str, value: Any) -> Any:
        if type(value) in (int, float):
            return as_number(function, name, value)
        return float(value) if type(value) is bool else as_floating(function, name, value)

    a, b = found("a", a), found("b", b)
    if not isinstance(a, ExTensor) and not isinstance(b, ExTensor):
        a = ExTensor(np.asarray(a, float32))
    return a, b


def _operands(
    function: str, grad_output: Any, a: Any, b: Any, needs: Needs
) -> tuple[ExTensor, ExTensor, ExTensor]:
    """The gradient and the operands of a backward, all floating."""
    check_needs(function, needs)
    found = [as_tensor(function, name, value) for name, value in (("a", a), ("b", b))]
    for name, value, needed in zip(("a", "b"), found, needs):
        if needed and value.dtype not in REAL_FLOATING:
            raise TypeError(
                f"[{function}] {name} has dtype {value.dtype}; only floating tensors have gradients"
            )
    try:
        shape = broadcast_shape(found[0].shape, found[1].shape)
    except ValueError:
        raise ValueError(
            f"[{function}] a and b do not broadcast (a: {found[0].shape}, b: {found[1].shape})"
        ) from None
    grad = as_grad(function, grad_output, shape)
    left, right = (v if v.dtype in REAL_FLOATING else v.astype(grad.dtype) for v in found)
    return grad, left, right


def _pair(needs: Needs, a: ExTensor, b: ExTensor, grad_a: ExTensor, grad_b: ExTensor) -> BinaryGradients:
    """The wanted gradients, summed to the shapes of the operands."""
    return BinaryGradients(
        cast_like(sum_to_shape(grad_a, a.shape), a) if needs[0] else None,
        cast_like(sum_to_shape(grad_b, b.shape), b) if needs[1] else None,
    )


def _inputs(function: str, grad_output: Any, x: Any) -> tuple[ExTensor, ExTensor]:
    """The gradient of an elementwise function and its input."""
    x = differentiable_input(function, "x", x)
    return as_grad(function, grad_output, x.shape), x


@differentiable
@takes_complex
def asinh(x: ExTensor) -> ExTensor:
    """Inverse hyperbolic sine.   y = asinh(x)

    Example:
        >>> import extensor as et
        >>> et.asinh(et.tensor([0.0])).tolist()
        [0.0]
    """
    return unary("asinh", kernels.asinh, x)


@backward_of(asinh)
@computed_wide
def asinh_backward(grad_output: ExTensor, x: ExTensor) -> ExTensor:
    """Gradient of :func:`asinh`.   dx = dy / sqrt(1 + x**2)

    Example:
        >>> import extensor as et
        >>> et.asinh_backward(et.ones(1), et.tensor([0.0])).tolist()
        [1.0]
    """
    g, x = _inputs("asinh_backward", grad_output, x)
    return cast_like(g / sqrt(square(conj(x)) + 1), x)


@differentiable
@takes_complex
def acosh(x: ExTensor) -> ExTensor:
    """Inverse hyperbolic cosine; nan below 1.   y = acosh(x)

    Example:
        >>> import extensor as et
        >>> et.acosh(et.tensor([1.0])).tolist()
        [0.0]
    """
    return unary("acosh", kernels.acosh, x)


@backward_of(acosh)
@computed_wide
def acosh_backward(grad_output: ExTensor, x: ExTensor) -> ExTensor:
    """Gradient of :func:`acosh`.   dx = dy / sqrt(x**2 - 1),  inf at 1

    Example:
        >>> import extensor as et
        >>> et.acosh_backward(et.ones(1), et.tensor([1.0])).tolist()
        [inf]
    """
    g, x = _inputs("acosh_backward", grad_output, x)
    return cast_like(g / (sqrt(conj(x) - 1) * sqrt(conj(x) + 1)), x)


@differentiable
@takes_complex
def atanh(x: ExTensor) -> ExTensor:
    """Inverse hyperbolic tangent; nan beyond -1 and 1.   y = atanh(x)

    Example:
        >>> import extensor as et
        >>> et.atanh(et.tensor([0.0])).tolist()
        [0.0]
    """
    return unary("atanh", kernels.atanh, x)


@backward_of(atanh)
@computed_wide
def atanh_backward(grad_output: ExTensor, x: ExTensor) -> ExTensor:
    """Gradient of :func:`atanh`.   dx = dy / (1 - x**2),  inf at -1 and 1

    Example:
        >>> import extensor as et
        >>> et.atanh_backward(et.ones(1), et.tensor([0.0])).tolist()
        [1.0]
    """
    g, x = _inputs("atanh_backward", grad_output, x)
    return cast_like(g / ((1 - conj(x)) * (1 + conj(x))), x)


@differentiable
def lgamma(x: ExTensor) -> ExTensor:
    """The logarithm of the absolute value of the gamma function.   y = log |gamma(x)|

    Example:
        >>> import extensor as et
        >>> et.lgamma(et.tensor([3.0])).tolist()
        [0.6931471824645996]
    """
    return unary("lgamma", kernels.lgamma, x)


@backward_of(lgamma)
@computed_wide
def lgamma_backward(grad_output: ExTensor, x: ExTensor) -> ExTensor:
    """Gradient of :func:`lgamma`.   dx = dy digamma(x)

    Example:
        >>> import extensor as et
        >>> et.lgamma_backward(et.ones(1), et.tensor([1.0])).tolist()
        [-0.5772156715393066]
    """
    g, x = _inputs("lgamma_backward", grad_output, x)
    return cast_like(g * digamma(x), x)


@differentiable
def digamma(x: ExTensor) -> ExTensor:
    """The derivative of the logarithm of the gamma function; nan at 0, -1, -2, ...   y = gamma'(x) / gamma(x)

    Example:
        >>> import extensor as et
        >>> et.digamma(et.tensor([1.0])).tolist()
        [-0.5772156715393066]
    """
    return kernels.polygamma(as_tensor("digamma", "x", x), 0)


@backward_of(digamma)
@computed_wide
def digamma_backward(grad_output: ExTensor, x: ExTensor) -> ExTensor:
    """Gradient of :func:`digamma`.   dx = dy polygamma(1, x)

    Example:
        >>> import extensor as et
        >>> et.digamma_backward(et.ones(1), et.tensor([1.0])).tolist()
        [1.644934058189392]
    """
    g, x = _inputs("digamma_backward", grad_output, x)
    return cast_like(g * polygamma(1, x), x)


@differentiable
def erfc(x: ExTensor) -> ExTensor:
    """One minus the error function, without cancellation.   y = 1 - erf(x)

    Example:
        >>> import extensor as et
        >>> et.erfc(et.tensor([0.0])).tolist()
        [1.0]
    """
    return unary("erfc", kernels.erfc, x)


@backward_of(erfc)
@computed_wide
def erfc_backward(grad_output: ExTensor, x: ExTensor) -> ExTensor:
    """Gradient of :func:`erfc`.   dx = -dy 2 / sqrt(pi) exp(-x**2)

    Example:
        >>> import extensor as et
        >>> et.erfc_backward(et.ones(1), et.tensor([0.0])).tolist()
        [-1.128379225730896]
    """
    g, x = _inputs("erfc_backward", grad_output, x)
    return cast_like(g * exp(-square(x)) * (-2 / math.sqrt(math.pi)), x)


@differentiable
def erfinv(x: ExTensor) -> ExTensor:
    """The inverse of the error function; inf at 1, nan beyond.   erf(y) = x

    Example:
        >>> import extensor as et
        >>> et.erfinv(et.tensor([0.0])).tolist()
        [0.0]
    """
    return unary("erfinv", kernels.erfinv, x)


@backward_of(erfinv)
@computed_wide
def erfinv_backward(grad_output: ExTensor, x: ExTensor) -> ExTensor:
    """Gradient of :func:`erfinv`.   dx = dy sqrt(pi) / 2 exp(y**2)

    Example:
        >>> import extensor as et
        >>> et.erfinv_backward(et.ones(1), et.tensor([0.0])).tolist()
        [0.8862269520759583]
    """
    g, x = _inputs("erfinv_backward", grad_output, x)
    return cast_like(g * exp(square(erfinv(x))) * (math.sqrt(math.pi) / 2), x)


@differentiable
def i0(x: ExTensor) -> ExTensor:
    """The modified Bessel function of the first kind, of order 0.   y = I_0(x)

    Example:
        >>> import extensor as et
        >>> et.i0(et.tensor([0.0])).tolist()
        [1.0]
    """
    return unary("i0", kernels.i0, x)


@backward_of(i0)
@computed_wide
def i0_backward(grad_output: ExTensor, x: ExTensor) -> ExTensor:
    """Gradient of :func:`i0`.   dx = dy I_1(x)

    Example:
        >>> import extensor as et
        >>> et.i0_backward(et.ones(1), et.tensor([0.0])).tolist()
        [0.0]
    """
    g, x = _inputs("i0_backward", grad_output, x)
    return cast_like(g * i1(x), x)


@differentiable
def i1(x: ExTensor) -> ExTensor:
    """The modified Bessel function of the first kind, of order 1.   y = I_1(x)

    Example:
        >>> import extensor as et
        >>> et.i1(et.tensor([0.0])).tolist()
        [0.0]
    """
    return unary("i1", kernels.i1, x)


@backward_of(i1)
@computed_wide
def i1_backward(grad_output: ExTensor, x: ExTensor) -> ExTensor:
    """Gradient of :func:`i1`.   dx = dy (I_0(x) - I_1(x) / x),  dy / 2 at 0

    Example:
        >>> import extensor as et
        >>> et.i1_backward(et.ones(1), et.tensor([0.0])).tolist()
        [0.5]
    """
    g, x = _inputs("i1_backward", grad_output, x)
    zero = x.numpy() == 0
    slope = i0(x) - i1(x) / where(zero, 1.0, x)
    # near 0 the two parts cancel: 1/2 + 3 x**2 / 16, so that the second derivative at 0 is right too
    return cast_like(g * where(zero, 0.5 + square(x) * (3 / 16), slope), x)


@differentiable
def sinc(x: ExTensor) -> ExTensor:
    """The sine of pi x over pi x; 1 at 0.   y = sin(pi x) / (pi x)

    Example:
        >>> import extensor as et
        >>> et.sinc(et.tensor([0.0, 0.5])).tolist()
        [1.0, 0.6366197466850281]
    """
    return unary("sinc", kernels.sinc, x)


@backward_of(sinc)
@computed_wide
def sinc_backward(grad_output: ExTensor, x: ExTensor) -> ExTensor:
    """Gradient of :func:`sinc`.   dx = dy (cos(pi x) - y) / x,  0 at 0

    Example:
        >>> import extensor as et
        >>> et.sinc_backward(et.ones(1), et.tensor([0.0])).tolist()
        [-0.0]
    """
    g, x = _inputs("sinc_backward", grad_output, x)
    small = np.abs(x.numpy()) < 1e-2
    away = where(small, 1.0, x)
    slope = (cos(away * math.pi) - sin(away * math.pi) / (away * math.pi)) / away
    # near 0 the parts cancel: the series of the slope, exact to the last bit there
    s = square(x * math.pi)
    series = x * (math.pi**2) * (((s / 45360 - 1 / 840) * s + 1 / 30) * s - 1 / 3)
    return cast_like(g * where(small, series, slope), x)


def _order(function: str, n: Any) -> int:
    order = as_int(function, "n", n)
    if not 0 <= order <= 100:
        raise ValueError(f"[{function}] n must lie between 0 and 100, got {order}")
    return order


@differentiable
def polygamma(n: Indices, x: ExTensor) -> ExTensor:
    """The n-th derivative of :func:`digamma`.   y = d^n/dx^n digamma(x)

    Args:
        n: the order, from 0; 0 is digamma itself.
        x: any tensor.

    Example:
        >>> import extensor as et
        >>> et.polygamma(1, et.tensor([1.0])).tolist()
        [1.644934058189392]
    """
    return kernels.polygamma(as_tensor("polygamma", "x", x), _order("polygamma", n))


@backward_of(polygamma, wrt="x")
@computed_wide
def polygamma_backward(grad_output: ExTensor, n: Indices, x: ExTensor) -> ExTensor:
    """Gradient of :func:`polygamma`.   dx = dy polygamma(n + 1, x)

    Args:
        grad_output: the gradient of the result.
        n: the order.
        x: the input.

    Example:
        >>> import extensor as et
        >>> et.polygamma_backward(et.ones(1), 0, et.tensor([1.0])).tolist()
        [1.644934058189392]
    """
    g, x = _inputs("polygamma_backward", grad_output, x)
    order = as_int("polygamma_backward", "n", n)
    return cast_like(g * polygamma(_order("polygamma_backward", order) + 1, x), x)


@differentiable
def atan2(a: Any, b: Any) -> ExTensor:
    """The angle of the point (b, a), between -pi and pi.   y = atan2(a, b)

    Example:
        >>> import extensor as et
        >>> et.atan2(et.tensor([0.0]), et.tensor([1.0])).tolist()
        [0.0]
    """
    return binary("atan2", kernels.atan2, *_floats("atan2", a, b))


@backward_of(atan2, wrt=("a", "b"))
@computed_wide
def atan2_backward(
    grad_output: ExTensor, a: ExTensor, b: ExTensor, *, needs: Needs = BOTH
) -> BinaryGradients:
    """Gradient of :func:`atan2`.   da = dy b / (a**2 + b**2),  db = -dy a / (a**2 + b**2),  0 at the origin

    Args:
        grad_output: the gradient of the result.
        a, b: the operands.
        needs: which of the two gradients are wanted; the other is None.

    Example:
        >>> import extensor as et
        >>> et.atan2_backward(et.ones(1), et.tensor([1.0]), et.tensor([1.0])).grad_a.tolist()
        [0.5]
    """
    g, a, b = _operands("atan2_backward", grad_output, a, b, needs)
    length = square(a) + square(b)
    zero = length.numpy() == 0
    scale = where(zero, 0.0, g / where(zero, 1.0, length))
    return _pair(needs, a, b, scale * b, scale * a * -1.0)


@differentiable
def hypot(a: Any, b: Any) -> ExTensor:
    """The length of the vector (a, b), without overflow.   y = sqrt(a**2 + b**2)

    Example:
        >>> import extensor as et
        >>> et.hypot(et.tensor([3.0]), et.tensor([4.0])).tolist()
        [5.0]
    """
    return binary("hypot", kernels.hypot, *_floats("hypot", a, b))


@backward_of(hypot, wrt=("a", "b"))
@computed_wide
def hypot_backward(
    grad_output: ExTensor, a: ExTensor, b: ExTensor, *, needs: Needs = BOTH
) -> BinaryGradients:
    """Gradient of :func:`hypot`.   da = dy a / y,  db = dy b / y,  0 at the origin

    Args:
        grad_output: the gradient of the result.
        a, b: the operands.
        needs: which of the two gradients are wanted; the other is None.

    Example:
        >>> import extensor as et
        >>> et.hypot_backward(et.ones(1), et.tensor([3.0]), et.tensor([4.0])).grad_a.tolist()
        [0.6000000238418579]
    """
    g, a, b = _operands("hypot_backward", grad_output, a, b, needs)
    y = hypot(a, b)
    zero = y.numpy() == 0
    scale = where(zero, 0.0, g / where(zero, 1.0, y))
    return _pair(needs, a, b, scale * a, scale * b)


@differentiable
def logaddexp(a: Any, b: Any) -> ExTensor:
    """The logarithm of a sum of exponentials.   y = log(exp(a) + exp(b))

    Example:
        >>> import extensor as et
        >>> et.logaddexp(et.tensor([0.0]), et.tensor([0.0])).tolist()
        [0.6931471824645996]
    """
    return binary("logaddexp", kernels.logaddexp, *_floats("logaddexp", a, b))


@backward_of(logaddexp, wrt=("a", "b"))
@computed_wide
def logaddexp_backward(
    grad_output: ExTensor, a: ExTensor, b: ExTensor, *, needs: Needs = BOTH
) -> BinaryGradients:
    """Gradient of :func:`logaddexp`.   da = dy sigmoid(a - b),  db = dy sigmoid(b - a)

    Args:
        grad_output: the gradient of the result.
        a, b: the operands.
        needs: which of the two gradients are wanted; the other is None.

    Example:
        >>> import extensor as et
        >>> et.logaddexp_backward(et.ones(1), et.tensor([0.0]), et.tensor([0.0])).grad_a.tolist()
        [0.5]
    """
    g, a, b = _operands("logaddexp_backward", grad_output, a, b, needs)
    alike = a.numpy() == b.numpy()  # infinities of one sign share
    share = where(
        alike,
        0.5 + 0.25 * (where(alike & np.isfinite(a.numpy() + b.numpy()), a - b, 0.0)),
        sigmoid(where(alike, 0.0, a - b)),
    )
    return _pair(needs, a, b, g * share, g * (1 - share))


@differentiable
def copysign(a: Any, b: Any) -> ExTensor:
    """The size of ``a`` with the sign of ``b``.   y = |a| sign(b)

    Example:
        >>> import extensor as et
        >>> et.copysign(et.tensor([2.0]), et.tensor([-1.0])).tolist()
        [-2.0]
    """
    return binary("copysign", kernels.copysign, *_floats("copysign", a, b))


@backward_of(copysign, wrt=("a", "b"))
@computed_wide
def copysign_backward(
    grad_output: ExTensor, a: ExTensor, b: ExTensor, *, needs: Needs = BOTH
) -> BinaryGradients:
    """Gradient of :func:`copysign`.   da = dy sign(a) sign(b),  0 at a = 0;  db = 0

    Args:
        grad_output: the gradient of the result.
        a, b: the operands.
        needs: which of the two gradients are wanted; the other is None.

    Example:
        >>> import extensor as et
        >>> et.copysign_backward(et.ones(1), et.tensor([2.0]), et.tensor([-1.0])).grad_a.tolist()
        [-1.0]
    """
    g, a, b = _operands("copysign_backward", grad_output, a, b, needs)
    signs = np.copysign(np.ones((), a.dtype), b.numpy()) + 0 * a.numpy()
    return _pair(needs, a, b, g * sign(a) * ExTensor(np.asarray(signs)), g * b * 0)


@differentiable
def heaviside(a: Any, b: Any) -> ExTensor:
    """The step function: 0 below 0, 1 above, ``b`` at 0.   y = [a > 0] + b [a == 0]

    Example:
        >>> import extensor as et
        >>> et.heaviside(et.tensor([2.0]), et.tensor([0.5])).tolist()
        [1.0]
    """
    return binary("heaviside", kernels.heaviside, *_floats("heaviside", a, b))


@backward_of(heaviside, wrt=("a", "b"))
@computed_wide
def heaviside_backward(
    grad_output: ExTensor, a: ExTensor, b: ExTensor, *, needs: Needs = BOTH
) -> BinaryGradients:
    """Gradient of :func:`heaviside`.   da = 0,  db = dy [a == 0]

    Args:
        grad_output: the gradient of the result.
        a, b: the operands.
        needs: which of the two gradients are wanted; the other is None.

    Example:
        >>> import extensor as et
        >>> et.heaviside_backward(et.ones(1), et.tensor([2.0]), et.tensor([0.5])).grad_a.tolist()
        [0.0]
    """
    g, a, b = _operands("heaviside_backward", grad_output, a, b, needs)
    return _pair(needs, a, b, g * 0.0 * a, where(a.numpy() == 0, g, 0.0))


@undifferentiated
def nextafter(a: Any, b: Any) -> ExTensor:
    """The next number after ``a`` in the direction of ``b``.

    Example:
        >>> import extensor as et
        >>> (et.nextafter(et.tensor([1.0]), et.tensor([2.0])) - 1).tolist()
        [1.1920928955078125e-07]
    """
    return binary("nextafter", kernels.nextafter, *_floats("nextafter", a, b))
