"""Choosing between two operands."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import kernels
from ..checks import as_floating, as_tensor, broadcast_shape, check_needs, shape_of, takes_complex
from ..graph import backward_of, differentiable
from ..tensor import ExTensor, TensorOrShape
from ._binary import beside_float, operand
from ._pairs import BOTH, BinaryGradients, Needs
from .casting import cast_like

__all__ = ["where", "where_backward"]


@differentiable
@takes_complex
def where(condition: Any, a: Any, b: Any) -> ExTensor:
    """``a`` where the condition is true, ``b`` elsewhere, with broadcasting.

    Example:
        >>> import extensor as et
        >>> et.where(et.tensor([True, False]), et.tensor([1.0, 2.0]), 0.0).tolist()
        [1.0, 0.0]
    """
    condition = _condition("where", condition)
    a, b = beside_float("where", "a", a, b), beside_float("where", "b", b, a)
    a, b = operand("where", "a", a, b), operand("where", "b", b, a)
    try:
        return kernels.where(condition, a, b)
    except ValueError:
        raise ValueError(
            f"[where] condition, a and b do not broadcast "
            f"(condition: {condition.shape}, a: {np.shape(a)}, b: {np.shape(b)})"
        ) from None
    except (TypeError, OverflowError) as error:
        raise TypeError(f"[where] a and b have no common dtype: {error}") from None


def _condition(function: str, value: Any) -> ExTensor:
    condition = as_tensor(function, "condition", value)
    if condition.dtype.kind != "b":
        raise TypeError(
            f"[{function}] condition must be boolean, got {condition.dtype}; compare it, e.g. x > 0"
        )
    return condition


@backward_of(where, wrt=("a", "b"), keeps_shape=("a", "b"))
def where_backward(
    grad_output: ExTensor, condition: ExTensor, a: TensorOrShape, b: TensorOrShape, *, needs: Needs = BOTH
) -> BinaryGradients:
    """Gradient of :func:`where`: to the operand that was taken, the other gets an exact 0.

    da = dy * [condition],  db = dy * [not condition],  each summed to its operand's shape.
    ``a`` and ``b`` are the operands or just their shapes.

    Example:
        >>> import extensor as et
        >>> et.where_backward(et.ones(2), et.tensor([True, False]), (2,), ()).grad_a.tolist()
        [1.0, 0.0]
    """
    check_needs("where_backward", needs)
    condition = _condition("where_backward", condition)
    shape_a, shape_b = shape_of("where_backward", "a", a), shape_of("where_backward", "b", b)
    grad = as_floating("where_backward", "grad_output", grad_output)
    try:
        shape = broadcast_shape(condition.shape, shape_a, shape_b)
    except ValueError:
        shape = None
    if grad.shape != shape:
        raise ValueError(
            f"[where_backward] grad_output has shape {grad.shape}, which is not what the forward gives "
            f"(condition: {condition.shape}, a: {shape_a}, b: {shape_b})"
        )
    grad_a, grad_b = kernels.where_backward(grad, condition, shape_a, shape_b, needs)
    return BinaryGradients(cast_like(grad_a, a), cast_like(grad_b, b))
