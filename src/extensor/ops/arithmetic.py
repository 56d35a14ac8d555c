"""Arithmetic with broadcasting: add, subtract, multiply, divide, power and their gradients.

Every gradient of a broadcast operand is summed down to the operand's shape (:func:`sum_to_shape`).
Python numbers are weak: they take the dtype of the tensor beside them. Integers and booleans that become floating, beside a
Python float or in a quotient, are float32; two tensors have the dtype that NumPy gives the two.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import kernels
from ..checks import (
    Scalar,
    as_floating,
    as_number,
    as_tensor,
    broadcast_shape,
    check_needs,
    dtype_of,
    shape_of,
    takes_complex,
)
from ..dtypes import FLOATING, guard_width
from ..graph import backward_of, differentiable
from ..kernels import Kernel
from ..tensor import ExTensor, Shape, TensorOrShape
from ._binary import arithmetic, quotient
from ._pairs import BOTH, BinaryGradients, Needs
from .casting import cast_like

__all__ = [
    "add", "add_backward", "subtract", "subtract_backward", "multiply", "multiply_backward",
    "divide", "divide_backward", "floor_divide", "floor_divide_backward", "modulo", "modulo_backward",
    "power", "power_backward", "negate", "negate_backward",
    "maximum", "maximum_backward", "minimum", "minimum_backward",
]  # fmt: skip


def _shape(value: Any) -> Shape:
    return value.shape if isinstance(value, (ExTensor, np.ndarray)) else ()


def _check_grad(function: str, grad_output: Any, shape_a: Shape, shape_b: Shape) -> ExTensor:
    grad = as_floating(function, "grad_output", grad_output)
    if grad.shape == shape_a == shape_b:
        return grad
    try:
        shape = broadcast_shape(shape_a, shape_b)
    except ValueError:
        raise ValueError(f"[{function}] a and b do not broadcast (a: {shape_a}, b: {shape_b})") from None
    if grad.shape != shape:
        raise ValueError(
            f"[{function}] grad_output has shape {grad.shape} but the forward's result has shape {shape} "
            f"(a: {shape_a}, b: {shape_b})"
        )
    return grad


def _floating(function: str, name: str, value: Any, needed: bool) -> Any:
    """An operand of a backward: a tensor, floating if its gradient is needed, or a Python number."""
    if type(value) in Scalar:
        return as_number(function, name, value) if abs(value) >= 2**63 else value  # NumPy has no such ints
    found = as_tensor(function, name, value)
    if needed and found.dtype not in FLOATING:
        raise TypeError(f"[{function}] {name} has dtype {found.dtype}; only floating tensors have gradients")
    return found


def _binary_backward(
    function: str, kernel: Kernel, grad_output: Any, a: Any, b: Any, needs: Needs, *attributes: Any
) -> BinaryGradients:
    a, b = _floating(function, "a", a, needs[0]), _floating(function, "b", b, needs[1])
    grad = _check_grad(function, grad_output, _shape(a), _shape(b))
    grad_a, grad_b = kernel(grad, a, b, *attributes, needs)
    return BinaryGradients(cast_like(grad_a, a), cast_like(grad_b, b))


def guard_eps(function: str, eps: Any, dtype: Any) -> float:
    """The width of the guard around zero: 1e-10, in float16 1e-4; 0 is IEEE."""
    if eps is None:
        return guard_width(dtype)
    eps = as_number(function, "eps", eps)
    if not 0 <= eps < float("inf"):
        raise ValueError(f"[{function}] eps must be zero or a small positive number, got {eps}")
    return eps


@differentiable(numbers=("a", "b"))
@takes_complex
def add(a: Any, b: Any) -> ExTensor:
    """Sum with broadcasting.   y = a + b

    Example:
        >>> import extensor as et
        >>> et.add(et.tensor([1.0, 2.0]), 10).tolist()
        [11.0, 12.0]
    """
    return arithmetic("add", kernels.add, a, b)


def _spread_backward(
    function: str, kernel: Kernel, grad_output: Any, a: Any, b: Any, needs: Needs
) -> BinaryGradients:
    check_needs(function, needs)
    shape_a, shape_b = shape_of(function, "a", a), shape_of(function, "b", b)
    grad = _check_grad(function, grad_output, shape_a, shape_b)
    grad_a, grad_b = kernel(grad, shape_a, shape_b, needs)
    return BinaryGradients(
        cast_like(grad_a, a) if needs[0] else None, cast_like(grad_b, b) if needs[1] else None
    )


@backward_of(add, wrt=("a", "b"), keeps_shape=("a", "b"))
def add_backward(
    grad_output: ExTensor, a: TensorOrShape, b: TensorOrShape, *, needs: Needs = BOTH
) -> BinaryGradients:
    """Gradient of :func:`add`.   da = dy,  db = dy,  each summed to its operand's shape

    Args:
        grad_output: the gradient of the sum.
        a, b: the operands, or just their shapes.
        needs: which of the two gradients are wanted; the other is None.

    Example:
        >>> import extensor as et
        >>> et.add_backward(et.ones((2, 3)), (2, 3), (3,)).grad_b.tolist()
        [2.0, 2.0, 2.0]
    """
    return _spread_backward("add_backward", kernels.add_backward, grad_output, a, b, needs)


@differentiable(numbers=("a", "b"))
@takes_complex
def subtract(a: Any, b: Any) -> ExTensor:
    """Difference with broadcasting.   y = a - b

    Example:
        >>> import extensor as et
        >>> et.subtract(et.tensor([1.0, 2.0]), 10).tolist()
        [-9.0, -8.0]
    """
    return arithmetic("subtract", kernels.subtract, a, b)


@backward_of(subtract, wrt=("a", "b"), keeps_shape=("a", "b"))
def subtract_backward(
    grad_output: ExTensor, a: TensorOrShape, b: TensorOrShape, *, needs: Needs = BOTH
) -> BinaryGradients:
    """Gradient of :func:`subtract`.   da = dy,  db = -dy,  each summed to its operand's shape

    ``a`` and ``b`` are the operands or just their shapes.

    Example:
        >>> import extensor as et
        >>> et.subtract_backward(et.ones(3), (3,), ()).grad_b.item()
        -3.0
    """
    return _spread_backward("subtract_backward", kernels.subtract_backward, grad_output, a, b, needs)


@differentiable(numbers=("a", "b"))
@takes_complex
def multiply(a: Any, b: Any) -> ExTensor:
    """Product with broadcasting.   y = a * b

    Example:
        >>> import extensor as et
        >>> et.multiply(et.tensor([1.0, 2.0]), 10).tolist()
        [10.0, 20.0]
    """
    return arithmetic("multiply", kernels.multiply, a, b)


@backward_of(multiply, wrt=("a", "b"), numbers=("a", "b"))
def multiply_backward(
    grad_output: ExTensor, a: ExTensor, b: ExTensor, *, needs: Needs = BOTH
) -> BinaryGradients:
    """Gradient of :func:`multiply`.   da = dy * b,  db = dy * a,  each summed to its operand's shape

    Example:
        >>> import extensor as et
        >>> a, b = et.tensor([1.0, 2.0]), et.tensor([3.0, 4.0])
        >>> grad_a, grad_b = et.multiply_backward(et.ones(2), a, b)
        >>> grad_a.tolist(), grad_b.tolist()
        ([3.0, 4.0], [1.0, 2.0])
    """
    check_needs("multiply_backward", needs)
    return _binary_backward("multiply_backward", kernels.multiply_backward, grad_output, a, b, needs)


@differentiable(numbers=("a", "b"))
@takes_complex
def divide(a: Any, b: Any) -> ExTensor:
    """Quotient with broadcasting, as IEEE has it.   y = a / b

    Example:
        >>> import extensor as et
        >>> et.divide(et.tensor([1.0, 2.0]), 4).tolist()
        [0.25, 0.5]
    """
    return quotient("divide", kernels.divide, a, b)


@backward_of(divide, wrt=("a", "b"), numbers=("a", "b"))
def divide_backward(
    grad_output: ExTensor, a: ExTensor, b: ExTensor, *, eps: float | None = None, needs: Needs = BOTH
) -> BinaryGradients:
    """Gradient of :func:`divide`.   da = dy / b,  db = -dy * a / b**2,  each summed to its operand's shape

    Args:
        grad_output: the gradient of the quotient.
        a, b: the operands.
        eps: where ``|b| < eps``, ``copysign(eps, b)`` stands in for ``b``. Default 1e-10 (float16: 1e-4); 0 is IEEE.
        needs: which of the two gradients are wanted; the other is None.

    Example:
        >>> import extensor as et
        >>> grad_a, grad_b = et.divide_backward(et.ones(1), et.tensor([1.0]), et.tensor([2.0]))
        >>> grad_a.item(), grad_b.item()
        (0.5, -0.25)
    """
    check_needs("divide_backward", needs)
    eps = guard_eps("divide_backward", eps, getattr(grad_output, "dtype", None))
    return _binary_backward("divide_backward", kernels.divide_backward, grad_output, a, b, needs, eps)


@differentiable(numbers=("a", "b"))
def floor_divide(a: Any, b: Any) -> ExTensor:
    """Quotient rounded down, with broadcasting.   y = floor(a / b)

    Infinities are those of Python's ``//`` and of NumPy: an infinite ``a`` has no quotient (nan, or inf where ``b`` is 0), and
    with an infinite ``b`` it is 0 or, where the signs differ, -1.

    Example:
        >>> import extensor as et
        >>> et.floor_divide(et.tensor([7.0, -7.0]), 2).tolist()
        [3.0, -4.0]
    """
    return arithmetic("floor_divide", kernels.floor_divide, a, b)


@backward_of(floor_divide, wrt=("a", "b"), keeps_shape=("a", "b"))
def floor_divide_backward(
    grad_output: ExTensor, a: TensorOrShape, b: TensorOrShape, *, needs: Needs = BOTH
) -> BinaryGradients:
    """Gradient of :func:`floor_divide`: zero, for it is a staircase.   da = 0,  db = 0

    Example:
        >>> import extensor as et
        >>> et.floor_divide_backward(et.ones(2), (2,), ()).grad_a.tolist()
        [0.0, 0.0]
    """
    check_needs("floor_divide_backward", needs)
    shape_a, shape_b = shape_of("floor_divide_backward", "a", a), shape_of("floor_divide_backward", "b", b)
    grad = _check_grad("floor_divide_backward", grad_output, shape_a, shape_b)
    return BinaryGradients(
        ExTensor(np.zeros(shape_a, dtype_of(a, grad.dtype))) if needs[0] else None,
        ExTensor(np.zeros(shape_b, dtype_of(b, grad.dtype))) if needs[1] else None,
    )


@differentiable(numbers=("a", "b"))
def modulo(a: Any, b: Any) -> ExTensor:
    """Remainder of :func:`floor_divide`, with the sign of ``b``.   y = a - b * floor(a / b)

    Example:
        >>> import extensor as et
        >>> et.modulo(et.tensor([7.0, -7.0]), 3).tolist()
        [1.0, 2.0]
    """
    return arithmetic("modulo", kernels.modulo, a, b)


@backward_of(modulo, wrt=("a", "b"), numbers=("a", "b"))
def modulo_backward(
    grad_output: ExTensor, a: ExTensor, b: ExTensor, *, needs: Needs = BOTH
) -> BinaryGradients:
    """Gradient of :func:`modulo`.   da = dy,  db = -dy * floor(a / b),  each summed to its operand's shape

    Example:
        >>> import extensor as et
        >>> et.modulo_backward(et.ones(1), et.tensor([7.0]), et.tensor([3.0])).grad_b.item()
        -2.0
    """
    check_needs("modulo_backward", needs)
    return _binary_backward("modulo_backward", kernels.modulo_backward, grad_output, a, b, needs)


@differentiable(numbers=("a", "b"))
@takes_complex
def power(a: Any, b: Any) -> ExTensor:
    """Power with broadcasting.   y = a ** b

    Example:
        >>> import extensor as et
        >>> et.power(et.tensor([2.0, 3.0]), 2).tolist()
        [4.0, 9.0]
    """
    return arithmetic("power", kernels.power, a, b)


@backward_of(power, wrt=("a", "b"), numbers=("a", "b"))
def power_backward(
    grad_output: ExTensor, a: ExTensor, b: ExTensor, *, eps: float | None = None, needs: Needs = BOTH
) -> BinaryGradients:
    """Gradient of :func:`power`.   da = dy * b * a**(b-1),  db = dy * a**b * log(a)

    ``da`` is 0 where b == 0. ``db`` is 0 where a == 0 and b >= 0, and nan where a < 0.

    Args:
        grad_output: the gradient of the power.
        a, b: the base and the exponent.
        eps: where ``|a| < eps`` would be raised to a negative power, ``copysign(eps, a)`` stands in for it.
            Default 1e-10 (float16: 1e-4); 0 is IEEE.
        needs: which of the two gradients are wanted; the other is None.

    Example:
        >>> import extensor as et
        >>> et.power_backward(et.ones(1), et.tensor([3.0]), et.tensor([2.0])).grad_a.item()
        6.0
    """
    check_needs("power_backward", needs)
    eps = guard_eps("power_backward", eps, getattr(grad_output, "dtype", None))
    return _binary_backward("power_backward", kernels.power_backward, grad_output, a, b, needs, eps)


@differentiable
@takes_complex
def negate(x: ExTensor) -> ExTensor:
    """The negative.   y = -x

    Example:
        >>> import extensor as et
        >>> et.negate(et.tensor([1.0, -2.0])).tolist()
        [-1.0, 2.0]
    """
    x = as_tensor("negate", "x", x)
    if x.dtype.kind == "b":
        raise TypeError("[negate] is not defined for bool; use logical_not(x)")
    return kernels.negate(x)


@backward_of(negate)
def negate_backward(grad_output: ExTensor) -> ExTensor:
    """Gradient of :func:`negate`.   dx = -dy

    Example:
        >>> import extensor as et
        >>> et.negate_backward(et.ones(1)).item()
        -1.0
    """
    return negate(as_floating("negate_backward", "grad_output", grad_output))


@differentiable(numbers=("a", "b"))
def maximum(a: Any, b: Any) -> ExTensor:
    """The larger of two, with broadcasting; nan if either is nan.   y = max(a, b)

    Example:
        >>> import extensor as et
        >>> et.maximum(et.tensor([1.0, 5.0]), 3).tolist()
        [3.0, 5.0]
    """
    return arithmetic("maximum", kernels.maximum, a, b)


@backward_of(maximum, wrt=("a", "b"), numbers=("a", "b"))
def maximum_backward(
    grad_output: ExTensor, a: ExTensor, b: ExTensor, *, needs: Needs = BOTH
) -> BinaryGradients:
    """Gradient of :func:`maximum`: the larger takes it, a tie gives each half, a nan makes both nan.

    da = dy * [a > b] + dy/2 * [a == b],  db = dy - da

    Example:
        >>> import extensor as et
        >>> grad_a, grad_b = et.maximum_backward(et.ones(2), et.tensor([1.0, 2.0]), et.tensor([1.0, 0.0]))
        >>> grad_a.tolist(), grad_b.tolist()
        ([0.5, 1.0], [0.5, 0.0])
    """
    check_needs("maximum_backward", needs)
    return _binary_backward("maximum_backward", kernels.maximum_backward, grad_output, a, b, needs)


@differentiable(numbers=("a", "b"))
def minimum(a: Any, b: Any) -> ExTensor:
    """The smaller of two, with broadcasting; nan if either is nan.   y = min(a, b)

    Example:
        >>> import extensor as et
        >>> et.minimum(et.tensor([1.0, 5.0]), 3).tolist()
        [1.0, 3.0]
    """
    return arithmetic("minimum", kernels.minimum, a, b)


@backward_of(minimum, wrt=("a", "b"), numbers=("a", "b"))
def minimum_backward(
    grad_output: ExTensor, a: ExTensor, b: ExTensor, *, needs: Needs = BOTH
) -> BinaryGradients:
    """Gradient of :func:`minimum`: the smaller takes it, a tie gives each half, a nan makes both nan.

    da = dy * [a < b] + dy/2 * [a == b],  db = dy - da

    Example:
        >>> import extensor as et
        >>> et.minimum_backward(et.ones(1), et.tensor([1.0]), et.tensor([2.0])).grad_a.item()
        1.0
    """
    check_needs("minimum_backward", needs)
    return _binary_backward("minimum_backward", kernels.minimum_backward, grad_output, a, b, needs)
