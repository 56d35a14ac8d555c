"""Absolute value, sign, rounding, squares, reciprocals and clipping, each with its gradient."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import kernels
from ..checks import as_floating, as_grad, as_number, as_tensor, dtype_of, shape_of, takes_complex
from ..dtypes import FLOATING
from ..graph import backward_of, differentiable
from ..kernels import Kernel
from ..tensor import ExTensor, TensorOrShape
from ._binary import beside_float
from ._unary import kernel_of, unary, unary_backward
from .arithmetic import guard_eps

__all__ = [
    "abs", "abs_backward", "sign", "sign_backward", "ceil", "ceil_backward", "floor", "floor_backward",
    "round", "round_backward", "trunc", "trunc_backward", "square", "square_backward",
    "reciprocal", "reciprocal_backward", "clip", "clip_backward",
]  # fmt: skip


@differentiable
@takes_complex
def abs(x: ExTensor) -> ExTensor:
    """Absolute value.   y = |x|

    Example:
        >>> import extensor as et
        >>> et.abs(et.tensor([-2.0, 3.0])).tolist()
        [2.0, 3.0]
    """
    return kernel_of("abs", kernels.abs, as_tensor("abs", "x", x))


@backward_of(abs)
def abs_backward(grad_output: ExTensor, x: ExTensor) -> ExTensor:
    """Gradient of :func:`abs`; 0 at 0.   dx = dy * sign(x)

    Example:
        >>> import extensor as et
        >>> et.abs_backward(et.ones(3), et.tensor([-2.0, 0.0, 3.0])).tolist()
        [-1.0, 0.0, 1.0]
    """
    return unary_backward("abs_backward", kernels.abs_backward, grad_output, x)


def _zero_gradient(function: str, grad_output: Any, x: Any) -> ExTensor:
    """The gradient of a staircase: zeros in the shape of ``grad_output``, which ``x`` must agree with if it is given."""
    if x is None:
        grad = as_floating(function, "grad_output", grad_output)
    else:
        grad = as_grad(function, grad_output, shape_of(function, "x", x))
    return ExTensor(np.zeros(grad.shape, dtype_of(x, grad.dtype)))


@differentiable
@takes_complex(backward=False)
def sign(x: ExTensor) -> ExTensor:
    """-1, 0 or 1; nan stays nan.   y = sign(x)

    Example:
        >>> import extensor as et
        >>> et.sign(et.tensor([-2.0, 0.0, 3.0])).tolist()
        [-1.0, 0.0, 1.0]
    """
    return kernel_of("sign", kernels.sign, as_tensor("sign", "x", x))


@backward_of(sign, keeps_shape=("x",))
def sign_backward(grad_output: ExTensor, x: TensorOrShape | None = None) -> ExTensor:
    """Gradient of :func:`sign`: zero, for it is a staircase.   dx = 0

    Args:
        grad_output: the gradient of the signs.
        x: the input or its shape, to check ``grad_output`` against; the gradient does not depend on it.

    Example:
        >>> import extensor as et
        >>> et.sign_backward(et.ones(2), et.tensor([-2.0, 3.0])).tolist()
        [0.0, 0.0]
    """
    return _zero_gradient("sign_backward", grad_output, x)


def _whole(function: str, kernel: Kernel, x: Any) -> ExTensor:
    """A rounding function; integers are whole already."""
    x = as_tensor(function, "x", x)
    return kernel(x) if x.dtype in FLOATING else x


@differentiable
def ceil(x: ExTensor) -> ExTensor:
    """The smallest whole number that is not less than x.

    Example:
        >>> import extensor as et
        >>> et.ceil(et.tensor([-1.5, 1.5])).tolist()
        [-1.0, 2.0]
    """
    return _whole("ceil", kernels.ceil, x)


@backward_of(ceil, keeps_shape=("x",))
def ceil_backward(grad_output: ExTensor, x: TensorOrShape | None = None) -> ExTensor:
    """Gradient of :func:`ceil`: zero, for it is a staircase.   dx = 0

    Args:
        grad_output: the gradient of the result.
        x: the input or its shape, to check ``grad_output`` against; the gradient does not depend on it.

    Example:
        >>> import extensor as et
        >>> et.ceil_backward(et.ones(2), et.tensor([-1.5, 1.5])).tolist()
        [0.0, 0.0]
    """
    return _zero_gradient("ceil_backward", grad_output, x)


@differentiable
def floor(x: ExTensor) -> ExTensor:
    """The largest whole number that is not greater than x.

    Example:
        >>> import extensor as et
        >>> et.floor(et.tensor([-1.5, 1.5])).tolist()
        [-2.0, 1.0]
    """
    return _whole("floor", kernels.floor, x)


@backward_of(floor, keeps_shape=("x",))
def floor_backward(grad_output: ExTensor, x: TensorOrShape | None = None) -> ExTensor:
    """Gradient of :func:`floor`: zero, for it is a staircase.   dx = 0

    Args:
        grad_output: the gradient of the result.
        x: the input or its shape, to check ``grad_output`` against; the gradient does not depend on it.

    Example:
        >>> import extensor as et
        >>> et.floor_backward(et.ones(2), et.tensor([-1.5, 1.5])).tolist()
        [0.0, 0.0]
    """
    return _zero_gradient("floor_backward", grad_output, x)


@differentiable
@takes_complex
def round(x: ExTensor) -> ExTensor:
    """The nearest whole number; a half goes to the even neighbour.

    Example:
        >>> import extensor as et
        >>> et.round(et.tensor([0.5, 1.5, 1.6])).tolist()
        [0.0, 2.0, 2.0]
    """
    return _whole("round", kernels.round, x)


@backward_of(round, keeps_shape=("x",))
def round_backward(grad_output: ExTensor, x: TensorOrShape | None = None) -> ExTensor:
    """Gradient of :func:`round`: zero, for it is a staircase.   dx = 0

    Args:
        grad_output: the gradient of the result.
        x: the input or its shape, to check ``grad_output`` against; the gradient does not depend on it.

    Example:
        >>> import extensor as et
        >>> et.round_backward(et.ones(2), et.tensor([0.4, 1.6])).tolist()
        [0.0, 0.0]
    """
    return _zero_gradient("round_backward", grad_output, x)


@differentiable
def trunc(x: ExTensor) -> ExTensor:
    """The whole part, rounded towards zero.

    Example:
        >>> import extensor as et
        >>> et.trunc(et.tensor([-1.5, 1.5])).tolist()
        [-1.0, 1.0]
    """
    return _whole("trunc", kernels.trunc, x)


@backward_of(trunc, keeps_shape=("x",))
def trunc_backward(grad_output: ExTensor, x: TensorOrShape | None = None) -> ExTensor:
    """Gradient of :func:`trunc`: zero, for it is a staircase.   dx = 0

    Args:
        grad_output: the gradient of the result.
        x: the input or its shape, to check ``grad_output`` against; the gradient does not depend on it.

    Example:
        >>> import extensor as et
        >>> et.trunc_backward(et.ones(2), et.tensor([-1.5, 1.5])).tolist()
        [0.0, 0.0]
    """
    return _zero_gradient("trunc_backward", grad_output, x)


@differentiable
@takes_complex
def square(x: ExTensor) -> ExTensor:
    """Square.   y = x**2

    Example:
        >>> import extensor as et
        >>> et.square(et.tensor([-2.0, 3.0])).tolist()
        [4.0, 9.0]
    """
    return kernel_of("square", kernels.square, as_tensor("square", "x", x))


@backward_of(square)
def square_backward(grad_output: ExTensor, x: ExTensor) -> ExTensor:
    """Gradient of :func:`square`.   dx = 2 * dy * x

    Example:
        >>> import extensor as et
        >>> et.square_backward(et.ones(2), et.tensor([-2.0, 3.0])).tolist()
        [-4.0, 6.0]
    """
    return unary_backward("square_backward", kernels.square_backward, grad_output, x)


@differentiable
@takes_complex
def reciprocal(x: ExTensor) -> ExTensor:
    """Reciprocal, as IEEE has it.   y = 1 / x

    Example:
        >>> import extensor as et
        >>> et.reciprocal(et.tensor([2.0, -4.0])).tolist()
        [0.5, -0.25]
    """
    return unary("reciprocal", kernels.reciprocal, x)


@backward_of(reciprocal)
def reciprocal_backward(grad_output: ExTensor, x: ExTensor, *, eps: float | None = None) -> ExTensor:
    """Gradient of :func:`reciprocal`.   dx = -dy / x**2

    Args:
        grad_output: the gradient of the reciprocal.
        x: the input.
        eps: where ``|x| < eps``, ``copysign(eps, x)`` stands in for ``x``. Default 1e-10 (float16: 1e-4); 0 is IEEE.

    Example:
        >>> import extensor as et
        >>> et.reciprocal_backward(et.ones(2), et.tensor([2.0, -4.0])).tolist()
        [-0.25, -0.0625]
    """
    eps = guard_eps("reciprocal_backward", eps, getattr(x, "dtype", None))
    return unary_backward("reciprocal_backward", kernels.reciprocal_backward, grad_output, x, eps)


def _bound(function: str, name: str, value: Any, absent: float | None) -> int | float | None:
    """A bound as a Python number; for integers (``absent`` is None) an int stays an int, so that they stay integers."""
    if value is None:
        return absent
    number = as_number(function, name, value)
    if math.isnan(number):
        raise ValueError(f"[{function}] {name} must be a number or None, got nan")
    whole = isinstance(value, int) or getattr(value, "dtype", np.dtype(float)).kind in "iu"
    return int(value) if whole and absent is None else number


def _bounds(function: str, x: ExTensor, low: Any, high: Any) -> tuple[Any, Any]:
    """The bounds as the kernel takes them: an absent one is an infinity, or None for integers."""
    infinity = math.inf if x.dtype in FLOATING else None
    low = _bound(function, "min", low, infinity and -infinity)
    return low, _bound(function, "max", high, infinity)


@differentiable
def clip(x: ExTensor, min: float | None = None, max: float | None = None) -> ExTensor:
    """Values held between two bounds.   y = minimum(maximum(x, min), max)

    Args:
        x: any tensor.
        min: the lower bound, a number; None for none.
        max: the upper bound, a number; None for none. Where ``min > max``, everything becomes ``max``.

    Example:
        >>> import extensor as et
        >>> et.clip(et.tensor([-2.0, 0.5, 3.0]), 0, 1).tolist()
        [0.0, 0.5, 1.0]
    """
    x = as_tensor("clip", "x", x)
    for bound in (min, max):
        x = beside_float("clip", "x", x, bound)
    low, high = _bounds("clip", x, min, max)
    if low is None and high is None:
        return x
    try:
        return kernels.clip(x, low, high)
    except OverflowError as error:
        raise ValueError(f"[clip] min and max must fit into the dtype {x.dtype} of x: {error}") from None
    except TypeError:
        raise TypeError(f"[clip] is not defined for {x.dtype}; use x.astype(extensor.float32)") from None


@backward_of(clip)
def clip_backward(
    grad_output: ExTensor, x: ExTensor, min: float | None = None, max: float | None = None
) -> ExTensor:
    """Gradient of :func:`clip`: it passes between the bounds, and at them.   dx = dy * [min <= x <= max]

    Args:
        grad_output: the gradient of the result.
        x: the input.
        min: the lower bound, a number; None for none.
        max: the upper bound, a number; None for none.

    Example:
        >>> import extensor as et
        >>> et.clip_backward(et.ones(4), et.tensor([-2.0, 0.0, 0.5, 3.0]), 0, 1).tolist()
        [0.0, 1.0, 1.0, 0.0]
    """
    found = as_tensor("clip_backward", "x", x)
    bounds = _bounds("clip_backward", found, min, max)
    return unary_backward("clip_backward", kernels.clip_backward, grad_output, found, *bounds)
