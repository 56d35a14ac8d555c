"""Matrices, triangles and diagonals; gathering and scattering along an axis; functions of two numbers; distances."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import extensor as et

from ...checks import broadcast_shape
from ..emit import Emitter, Value, exports
from .decompositions import decomposes

__all__: list[str] = []


# Operators of ONNX


@exports("det")
def det(e: Emitter, x: Value) -> str:
    return str(e.node("Det", e.use(x)))


@exports("tril", "triu")
def triangle(e: Emitter, x: Value, k: int = 0) -> str:
    return str(e.node("Trilu", e.use(x), e.constant(k, np.int64), upper=int(e.call == "triu")))


@exports("gather")
def gather(e: Emitter, x: Value, axis: int, index: Any) -> str:
    return str(e.node("GatherElements", e.use(x), e.use(index, np.int64), axis=axis))


@exports("scatter")
def scatter(e: Emitter, x: Value, axis: int, index: Any, source: Any) -> str:
    return str(e.node("ScatterElements", e.use(x), e.use(index, np.int64), e.use(source, x.dtype), axis=axis))


@exports("scatter_add")
def scatter_add(e: Emitter, x: Value, axis: int, index: Any, source: Any) -> str:
    given = e.use(x), e.use(index, np.int64), e.use(source, x.dtype)
    return str(e.node("ScatterElements", *given, axis=axis, reduction="add"))


# Said with functions that have one


@decomposes
def masked_fill(x: Any, mask: Any, value: Any) -> Any:
    return et.where(mask, value, x)


@decomposes
def diagonal(x: Any, offset: int = 0, axis1: int = -2, axis2: int = -1) -> Any:
    rows, columns = axis1 % x.ndim, axis2 % x.ndim
    others = [i for i in range(x.ndim) if i not in (rows, columns)]
    moved = et.permute(x, (*others, rows, columns))
    length = max(0, min(x.shape[rows] + min(offset, 0), x.shape[columns] - max(offset, 0)))
    places = np.arange(length)
    flat = et.reshape(moved, (*moved.shape[:-2], x.shape[rows] * x.shape[columns]))
    return et.take(flat, (places + max(-offset, 0)) * x.shape[columns] + places + max(offset, 0), len(others))


@decomposes
def trace(x: Any, offset: int = 0) -> Any:
    return et.sum(diagonal(x, offset), -1)


@decomposes
def diag_embed(x: Any, offset: int = 0) -> Any:
    n = x.shape[-1] + abs(offset)
    chosen = np.eye(n, k=offset, dtype=np.bool_)
    grown = et.pad(x, [(0, 0)] * (x.ndim - 1) + [(max(-offset, 0), max(offset, 0))])  # along rows
    return et.where(et.asarray(chosen), et.reshape(grown, (*grown.shape, 1)), 0.0)


@decomposes
def diag(x: Any, k: int = 0) -> Any:
    return diag_embed(x, k) if x.ndim == 1 else diagonal(x, k)


@decomposes
def matrix_transpose(x: Any) -> Any:
    return et.swapaxes(x, -1, -2)


@decomposes
def vecdot(a: Any, b: Any, axis: int = -1) -> Any:
    return et.sum(et.multiply(a, b), axis)


@decomposes
def multi_dot(tensors: Any) -> Any:
    found = tensors[0]
    for other in tensors[1:]:
        found = et.matmul(found, other)
    return found


@decomposes
def kron(a: Any, b: Any) -> Any:
    ndim = max(a.ndim, b.ndim)
    left, right = ((1,) * (ndim - x.ndim) + tuple(x.shape) for x in (a, b))
    spread = et.multiply(
        et.reshape(a, [n for length in left for n in (length, 1)]),
        et.reshape(b, [n for length in right for n in (1, length)]),
    )
    return et.reshape(spread, [m * n for m, n in zip(left, right)])


@decomposes
def cross(a: Any, b: Any, axis: int = -1) -> Any:
    return et.subtract(
        et.multiply(et.roll(a, -1, axis), et.roll(b, -2, axis)),
        et.multiply(et.roll(a, -2, axis), et.roll(b, -1, axis)),
    )


@decomposes
def vector_norm(x: Any, ord: Any = 2, axis: Any = None, keepdims: bool = False) -> Any:
    sizes = et.abs(x)
    if ord == 0:
        return NotImplemented
    if ord == math.inf:
        return et.max_reduce(sizes, axis, keepdims)
    if ord == -math.inf:
        return et.min_reduce(sizes, axis, keepdims)
    if ord == 1:
        return et.sum(sizes, axis, keepdims)
    if ord == 2:
        return et.sqrt(et.sum(et.multiply(x, x), axis, keepdims))
    return et.power(et.sum(et.power(sizes, float(ord)), axis, keepdims), 1 / ord)


@decomposes
def hypot(a: Any, b: Any) -> Any:
    a, b = et.abs(a), et.abs(b)
    large, small = et.maximum(a, b), et.minimum(a, b)
    ratio = et.divide(small, et.where(et.equal(large, 0.0), 1.0, large))  # its square does not overflow
    return et.multiply(large, et.sqrt(et.add(et.multiply(ratio, ratio), 1.0)))


@decomposes
def logaddexp(a: Any, b: Any) -> Any:
    return et.add(et.maximum(a, b), et.softplus(et.negate(et.abs(et.subtract(a, b)))))


@decomposes
def heaviside(a: Any, b: Any) -> Any:
    return et.where(et.equal(a, 0.0), b, et.where(et.greater(a, 0.0), 1.0, 0.0))


@decomposes
def sinc(x: Any) -> Any:
    angle = et.multiply(x, math.pi)
    flat = et.equal(x, 0.0)
    safe = et.where(flat, 1.0, angle)
    return et.where(flat, 1.0, et.divide(et.sin(safe), safe))


@decomposes
def diff(x: Any, n: int = 1, axis: int = -1) -> Any:
    before = (slice(None),) * (axis % x.ndim)
    for _ in range(n):
        x = et.subtract(et.index(x, (*before, slice(1, None))), et.index(x, (*before, slice(None, -1))))
    return x


@decomposes
def hstack(tensors: Any) -> Any:
    whole = [et.reshape(t, (1,)) if not t.ndim else t for t in tensors]
    return et.concatenate(whole, 0 if whole[0].ndim == 1 else 1)


@decomposes
def vstack(tensors: Any) -> Any:
    return et.concatenate([et.reshape(t, (1, -1)) if t.ndim < 2 else t for t in tensors], 0)


@decomposes
def column_stack(tensors: Any) -> Any:
    return et.concatenate([et.reshape(t, (-1, 1)) if t.ndim < 2 else t for t in tensors], 1)


@decomposes
def unstack(x: Any, axis: int = 0) -> Any:
    before = (slice(None),) * (axis % x.ndim)
    return [et.index(x, (*before, i)) for i in range(x.shape[axis])]


@decomposes
def cosine_similarity(a: Any, b: Any, axis: int = -1, eps: float = 1e-8) -> Any:
    shape = broadcast_shape(a.shape, b.shape)
    a, b = (et.broadcast_to(x, shape) for x in (a, b))
    lengths = [et.maximum(et.sqrt(et.sum(et.multiply(x, x), axis)), eps) for x in (a, b)]
    return et.divide(et.sum(et.multiply(a, b), axis), et.multiply(*lengths))


@decomposes
def cdist(a: Any, b: Any, p: float = 2.0) -> Any:
    off = et.abs(
        et.subtract(
            et.reshape(a, (*a.shape[:-1], 1, a.shape[-1])), et.reshape(b, (*b.shape[:-2], 1, *b.shape[-2:]))
        )
    )
    return vector_norm(off, p, -1)
