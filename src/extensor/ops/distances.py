"""Distances and similarities of vectors, each with its gradient."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..checks import as_axis, as_floating, as_grad, as_number, broadcast_shape, check_needs
from ..graph import backward_of, differentiable, observe, set_recording
from ..tensor import ExTensor, Shape
from ._pairs import BOTH, BinaryGradients, Needs
from ._wide import computed_wide
from .arithmetic import divide, maximum, multiply, power
from .broadcasting import sum_to_shape
from .casting import cast_like
from .elementwise import abs as absolute
from .elementwise import sign, square
from .exponential import sqrt
from .reduction import max_reduce, max_reduce_backward
from .reduction import sum as summed
from .selection import where

__all__ = ["cdist", "cdist_backward", "cosine_similarity", "cosine_similarity_backward"]


def _rows(function: str, a: Any, b: Any, p: Any) -> tuple[ExTensor, ExTensor, float, Shape]:
    a, b = as_floating(function, "a", a), as_floating(function, "b", b)
    if a.ndim < 2 or b.ndim < 2 or a.shape[-1] != b.shape[-1]:
        raise ValueError(
            f"[{function}] a and b must be rows of vectors of one length (a: {a.shape}, b: {b.shape})"
        )
    try:
        batch = broadcast_shape(a.shape[:-2], b.shape[:-2])
    except ValueError:
        raise ValueError(f"[{function}] the batches do not broadcast (a: {a.shape}, b: {b.shape})") from None
    order = as_number(function, "p", p)
    if not order >= 1:
        raise ValueError(f"[{function}] p must be at least 1, got {order}")
    return a, b, order, (*batch, a.shape[-2], b.shape[-2])


def _lengths(d: ExTensor, p: float) -> ExTensor:
    """The p-norm along the last axis."""
    if math.isinf(p):
        return max_reduce(absolute(d), -1) if d.shape[-1] else summed(d, -1)
    if p == 1:
        return summed(absolute(d), -1)
    return sqrt(summed(square(d), -1)) if p == 2 else power(summed(power(absolute(d), p), -1), 1 / p)


@differentiable
def cdist(a: ExTensor, b: ExTensor, p: float = 2.0) -> ExTensor:
    """The distances of all rows of ``a`` from all rows of ``b``.   y_ij = |a_i - b_j|_p

    Args:
        a, b: matrices of rows of one length, or batches of them that broadcast.
        p: which norm, from 1 to inf.

    Example:
        >>> import extensor as et
        >>> et.cdist(et.tensor([[0.0, 0.0]]), et.tensor([[3.0, 4.0], [0.0, 1.0]])).tolist()
        [[5.0, 1.0]]
    """
    a, b, order, _ = _rows("cdist", a, b, p)
    with set_recording(False), observe(None):
        return _wide_call(lambda a, b: _lengths(a.unsqueeze(-2) - b.unsqueeze(-3), order), a, b)


def _wide_call(function: Any, a: ExTensor, b: ExTensor) -> ExTensor:
    """Several steps in float64, rounded once."""
    found: ExTensor = function(a.astype(np.float64), b.astype(np.float64))
    dtype = a.dtype if a.dtype == b.dtype else (a[:0].reshape((-1,)) + b[:0].reshape((-1,))).dtype
    return found.astype(dtype)


@backward_of(cdist, wrt=("a", "b"))
@computed_wide
def cdist_backward(
    grad_output: ExTensor, a: ExTensor, b: ExTensor, p: float = 2.0, *, needs: Needs = BOTH
) -> BinaryGradients:
    """Gradient of :func:`cdist`; 0 between equal rows.   da_i = sum_j dy_ij d|a_i - b_j|,  db_j = -sum_i of the same

    Args:
        grad_output: the gradient of the distances.
        a, b: the rows.
        p: as given to :func:`cdist`.
        needs: which of the two gradients are wanted; the other is None.

    Example:
        >>> import extensor as et
        >>> et.cdist_backward(et.ones((1, 1)), et.tensor([[0.0, 0.0]]), et.tensor([[0.0, 2.0]])).grad_a.tolist()
        [[0.0, -1.0]]
    """
    check_needs("cdist_backward", needs)
    a, b, order, shape = _rows("cdist_backward", a, b, p)
    g = as_grad("cdist_backward", grad_output, shape).unsqueeze(-1)
    d = a.unsqueeze(-2) - b.unsqueeze(-3)
    if not d.size:
        slope = d * 0
    elif math.isinf(order):
        slope = max_reduce_backward(g.squeeze(-1), absolute(d), -1) * sign(d)
    elif order == 1:
        slope = g * sign(d)
    else:
        squares = summed(square(d), -1, True)
        zero = squares.numpy() == 0
        safe = where(zero, 1.0, d)
        if order == 2:
            slope = where(zero, 0.0, g * d / sqrt(where(zero, 1.0, squares)))
        else:
            flat = safe.numpy() == 0
            sizes = where(flat, 1.0, absolute(safe))
            parts = where(flat, 0.0, power(sizes, order))
            length = power(summed(parts, -1, True), 1 / order)
            slope = where(zero | flat, 0.0, g * sign(safe) * power(sizes / length, order - 1))
    return BinaryGradients(
        cast_like(sum_to_shape(summed(slope, -2), a.shape), a) if needs[0] else None,
        cast_like(sum_to_shape(summed(slope, -3) * -1.0, b.shape), b) if needs[1] else None,
    )


def _alike(
    function: str, a: Any, b: Any, axis: Any, eps: Any
) -> tuple[ExTensor, ExTensor, int, float, Shape]:
    a, b = as_floating(function, "a", a), as_floating(function, "b", b)
    try:
        shape = broadcast_shape(a.shape, b.shape)
    except ValueError:
        raise ValueError(f"[{function}] a and b do not broadcast (a: {a.shape}, b: {b.shape})") from None
    limit = as_number(function, "eps", eps)
    if not 0 <= limit < math.inf:
        raise ValueError(f"[{function}] eps must be zero or a small positive number, got {limit}")
    return a, b, as_axis(function, axis, len(shape)), limit, shape


@differentiable
def cosine_similarity(a: ExTensor, b: ExTensor, axis: int = -1, eps: float = 1e-8) -> ExTensor:
    """The cosine of the angle between vectors.   y = a . b / (max(|a|, eps) max(|b|, eps))

    Args:
        a, b: tensors that broadcast.
        axis: the axis of the vectors.
        eps: the smallest length to divide by.

    Example:
        >>> import extensor as et
        >>> et.cosine_similarity(et.tensor([1.0, 0.0]), et.tensor([1.0, 0.0])).item()
        1.0
    """
    a, b, along, limit, shape = _alike("cosine_similarity", a, b, axis, eps)

    def similarity(a: ExTensor, b: ExTensor) -> ExTensor:
        a, b = a.broadcast_to(shape), b.broadcast_to(shape)
        lengths = [maximum(sqrt(summed(square(v), along)), limit) for v in (a, b)]
        return divide(summed(multiply(a, b), along), lengths[0] * lengths[1])

    with set_recording(False), observe(None):
        return _wide_call(similarity, a, b)


@backward_of(cosine_similarity, wrt=("a", "b"))
@computed_wide
def cosine_similarity_backward(
    grad_output: ExTensor, a: ExTensor, b: ExTensor, axis: int = -1, eps: float = 1e-8, *, needs: Needs = BOTH
) -> BinaryGradients:
    """Gradient of :func:`cosine_similarity`.   da = dy (b / |b| - y a / |a|) / |a|; a length below eps is a constant

    Args:
        grad_output: the gradient of the similarity.
        a, b: the vectors.
        axis, eps: as given to :func:`cosine_similarity`.
        needs: which of the two gradients are wanted; the other is None.

    Example:
        >>> import extensor as et
        >>> a, b = et.tensor([1.0, 0.0]), et.tensor([0.0, 1.0])
        >>> et.cosine_similarity_backward(et.tensor(1.0), a, b).grad_a.tolist()
        [0.0, 1.0]
    """
    name = "cosine_similarity_backward"
    check_needs(name, needs)
    a, b, along, limit, shape = _alike(name, a, b, axis, eps)
    kept = tuple(n for i, n in enumerate(shape) if i != along)
    g = as_grad(name, grad_output, kept).unsqueeze(along)
    wide = [v.broadcast_to(shape) for v in (a, b)]
    lengths, units = [], []
    for v in wide:
        squares = summed(square(v), along, True)
        short = np.sqrt(squares.numpy()) <= limit
        lengths.append(where(short, limit, sqrt(where(short, 1.0, squares))))
        units.append(where(short, 0.0, v / lengths[-1]))  # the direction in which the length changes
    y = summed(wide[0] * wide[1], along, True) / (lengths[0] * lengths[1])
    grads = [
        g * (wide[1] / lengths[1] - y * units[0]) / lengths[0],
        g * (wide[0] / lengths[0] - y * units[1]) / lengths[1],
    ]
    return BinaryGradients(
        cast_like(sum_to_shape(grads[0], a.shape), a) if needs[0] else None,
        cast_like(sum_to_shape(grads[1], b.shape), b) if needs[1] else None,
    )
