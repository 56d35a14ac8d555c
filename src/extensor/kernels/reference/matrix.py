"""Matrix products. float32 adds up in float64; the backward kernels return None where a gradient is not needed."""

from __future__ import annotations

import math

from ...tensor import ExTensor
from ..dispatch import formula, kernel
from ..namespace import NARROW, wide_dtype, xp
from .broadcasting import summed_to
from .holomorphic import holomorphic

__all__ = [
    "dot",
    "einsum",
    "inner",
    "linear",
    "linear_backward",
    "matmul",
    "matmul_backward",
    "transpose",
]


def widened(*arrays):
    """The arrays in the dtype their products are added up in, and the dtype of the result. Tensors stay: their products are."""
    if any(isinstance(a, ExTensor) for a in arrays):
        return arrays, None
    dtype = xp.result_type(*arrays)
    wide = wide_dtype(arrays[0], dtype) if dtype in NARROW else dtype
    return [a.astype(wide, copy=False) for a in arrays], dtype


def narrowed(product, dtype):
    """A product of :func:`widened` arrays in its dtype."""
    return product if dtype is None else xp.asarray(product).astype(dtype, copy=False)


def rows(x):
    """``x`` as a matrix: all axes but the last in one."""
    return x if x.ndim == 2 else x.reshape((math.prod(x.shape[:-1]), x.shape[-1]))


@kernel
def matmul(a, b):
    (a, b), dtype = widened(a, b)
    return narrowed(xp.matmul(a, b), dtype)


@formula
@holomorphic
def matmul_backward(g, a, b, needs):
    shape_a, shape_b = a.shape, b.shape
    (g, a, b), dtype = widened(g, a, b)
    if a.ndim == 1:  # a row times b
        a = a.reshape((1, *shape_a))
        g = g.reshape((*g.shape[:-1], 1, *g.shape[-1:]) if b.ndim > 1 else (1, *g.shape))
    if b.ndim == 1:  # a times a column
        b, g = b.reshape((*shape_b, 1)), g.reshape((*g.shape, 1))
    grad_a = grad_b = None
    if needs[0]:
        grad_a = narrowed(summed_to(g @ xp.swapaxes(b, -1, -2), a.shape).reshape(shape_a), dtype)
    if needs[1]:
        if b.ndim == 2:  # the batch of a is summed over by one product
            a, g = rows(a), rows(g)
        grad_b = narrowed(summed_to(xp.swapaxes(a, -1, -2) @ g, b.shape).reshape(shape_b), dtype)
    return grad_a, grad_b


@kernel(exact=True)
def transpose(x, axes):
    return x.transpose(axes)


@kernel
def dot(a, b):
    (a, b), dtype = widened(a, b)
    return narrowed(xp.dot(a, b), dtype)


@kernel
def inner(a, b):
    (a, b), dtype = widened(a, b)
    return narrowed(xp.inner(a, b), dtype)


@kernel
def einsum(operands, subscripts):
    operands, dtype = widened(*operands)
    return narrowed(xp.einsum(subscripts, *operands, optimize=len(operands) > 1), dtype)


@kernel
def linear(x, weight, bias):
    (x, weight), dtype = widened(x, weight)
    y = x @ weight.T
    if bias is not None:
        y, dtype = y + bias, xp.result_type(dtype, bias)
    return narrowed(y, dtype)


@formula
def linear_backward(g, x, weight, needs):
    (g, x, weight), dtype = widened(g, x, weight)
    return (
        narrowed(g @ weight, dtype) if needs[0] else None,
        narrowed(rows(g).T @ rows(x), dtype) if needs[1] else None,
        narrowed(rows(g).sum(0), dtype) if needs[2] else None,
    )
