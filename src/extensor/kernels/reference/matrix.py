"""Matrix products. float32 adds up in float64; the backward kernels return None where a gradient is not needed."""

from __future__ import annotations

import math

import numpy as np

from ..dispatch import kernel
from .broadcasting import summed_to
from .holomorphic import holomorphic
from .reduction import WIDE

__all__ = [
    "dot",
    "einsum",
    "inner",
    "linear",
    "linear_backward",
    "matmul",
    "matmul_backward",
    "outer",
    "transpose",
]


def widened(*arrays):
    """The arrays in the dtype their products are added up in, and the dtype of the result."""
    dtype = np.result_type(*arrays)
    wide = WIDE.get(dtype, dtype)
    return [a.astype(wide, copy=False) for a in arrays], dtype


def rows(x):
    """``x`` as a matrix: all axes but the last in one."""
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


@kernel
def matmul(a, b):
    (a, b), dtype = widened(a, b)
    return np.matmul(a, b).astype(dtype, copy=False)


@kernel
@holomorphic
def matmul_backward(g, a, b, needs):
    shape_a, shape_b = a.shape, b.shape
    (g, a, b), dtype = widened(g, a, b)
    if a.ndim == 1:  # a row times b
        a, g = a[None, :], g[..., None, :] if b.ndim > 1 else g[None]
    if b.ndim == 1:  # a times a column
        b, g = b[:, None], g[..., :, None]
    grad_a = grad_b = None
    if needs[0]:
        grad_a = summed_to(g @ np.swapaxes(b, -1, -2), a.shape).reshape(shape_a).astype(dtype)
    if needs[1]:
        if b.ndim == 2:  # the batch of a is summed over by one product
            a, g = rows(a), rows(g)
        grad_b = summed_to(np.swapaxes(a, -1, -2) @ g, b.shape).reshape(shape_b).astype(dtype)
    return grad_a, grad_b


@kernel(exact=True)
def transpose(x, axes):
    return x.transpose(axes)


@kernel
def dot(a, b):
    (a, b), dtype = widened(a, b)
    return np.asarray(np.dot(a, b)).astype(dtype, copy=False)


@kernel
def inner(a, b):
    (a, b), dtype = widened(a, b)
    return np.asarray(np.inner(a, b)).astype(dtype, copy=False)


@kernel
def outer(a, b):
    return np.multiply.outer(a.reshape(-1), b.reshape(-1))


@kernel
def einsum(operands, subscripts):
    operands, dtype = widened(*operands)
    return np.asarray(np.einsum(subscripts, *operands, optimize=len(operands) > 1)).astype(dtype, copy=False)


@kernel
def linear(x, weight, bias):
    (x, weight), dtype = widened(x, weight)
    y = x @ weight.T
    if bias is not None:
        y, dtype = y + bias, np.result_type(dtype, bias)
    return y.astype(dtype, copy=False)


@kernel
def linear_backward(g, x, weight, needs):
    (g, x, weight), dtype = widened(g, x, weight)
    return (
        (g @ weight).astype(dtype) if needs[0] else None,
        (rows(g).T @ rows(x)).astype(dtype) if needs[1] else None,
        rows(g).sum(0).astype(dtype) if needs[2] else None,
    )
