"""Products of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

import extensor as et

from ...dtypes import FLOATING
from ..proto import array_of, as_value
from ..table import opaque, operator

__all__: list[str] = []


@operator("MatMul")
def matmul(a: Any, b: Any) -> Any:
    """a @ b"""
    found = et.matmul(a, b)
    return found if found.dtype == a.dtype else et.astype(found, a.dtype)


@operator("Gemm")
def gemm(
    a: Any, weight: Any, bias: Any = None, *, alpha: float = 1.0, beta: float = 1.0, transA: int = 0, transB: int = 0,
    broadcast: Any = None,
) -> Any:  # fmt: skip
    """alpha A B + beta C, either matrix transposed."""
    if transA:
        a = et.transpose(a)
    one_each = bias is None or bias.shape == (weight.shape[0],)
    if transB and alpha == 1 and beta == 1 and one_each and a.dtype in FLOATING:
        return et.linear(a, weight, bias)
    found = et.matmul(a, et.transpose(weight) if transB else weight)
    if alpha != 1:
        found = found * alpha
    if bias is not None:
        found = found + (bias if beta == 1 else bias * beta)
    return found if found.dtype == a.dtype else et.astype(found, a.dtype)


@operator("Einsum")
def einsum(*operands: Any, equation: str) -> Any:
    """The sum of products that the equation describes."""
    return et.einsum(equation.replace(" ", ""), *operands)


@operator("Det")
def determinant(x: Any) -> Any:
    """The determinant of each matrix, by elimination with pivots."""
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(f"[Det] needs square matrices, got shape {x.shape}")
    return _determinants(x.reshape((-1, *x.shape[-2:]))).reshape(x.shape[:-2])


def _determinants(x: Any) -> Any:
    """Rows are exchanged so that each pivot is the greatest of its column; the product of pivots is left."""
    count, n, _ = x.shape
    result = et.ones((count,), x.dtype)
    every = np.arange(count)
    for k in range(n):
        pivot = np.abs(array_of(x)[:, :, 0]).argmax(1) if x.size else np.zeros(count, int)
        order = np.tile(np.arange(n - k), (count, 1))
        order[every, pivot], order[:, 0] = 0, pivot
        x = et.index(x, (every[:, None], order))
        head = x[:, 0, 0]
        result = result * et.where(pivot != 0, -head, head)
        safe = et.where(et.equal(head, 0), et.ones_like(head), head)
        x = x[:, 1:, 1:] - x[:, 1:, :1] * x[:, :1, 1:] / safe.reshape((-1, 1, 1))
    return result


@operator("MatMulInteger")
@opaque
def matmul_integer(a: Any, b: Any, a_zero_point: Any = None, b_zero_point: Any = None) -> Any:
    """(a - zero) (b - zero) in int32."""
    left = array_of(a).astype(np.int32)
    right = array_of(b).astype(np.int32)
    if a_zero_point is not None:
        zero = array_of(a_zero_point).astype(np.int32)
        left = left - (zero[:, None] if zero.ndim == 1 and zero.size > 1 else zero)
    if b_zero_point is not None:
        right = right - array_of(b_zero_point).astype(np.int32)
    return as_value(left @ right)
