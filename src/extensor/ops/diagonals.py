"""Diagonals and triangles of matrices, each with its gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..checks import as_axis, as_floating, as_grad, as_int, as_tensor, shape_of, takes_complex
from ..graph import backward_of, differentiable
from ..kernels import sum as sum_kernel
from ..kernels.reference import diagonals as kernels
from ..tensor import ExTensor, Shape, TensorOrShape
from ._formulas import on_tensors
from .casting import cast_like
from .creation import allocate, zeros
from .indexing import index_add
from .shape import moveaxis

__all__ = [
    "diag", "diag_backward", "diag_embed", "diag_embed_backward", "diagonal", "diagonal_backward",
    "trace", "trace_backward", "tril", "tril_backward", "triu", "triu_backward",
]  # fmt: skip


def _matrix(function: str, x: Any) -> ExTensor:
    found = as_tensor(function, "x", x)
    if found.ndim < 2:
        raise ValueError(f"[{function}] x must have at least two axes, got shape {found.shape}")
    return found


def _clamped(function: str, name: str, value: Any, shape: Shape) -> int:
    """The number of a diagonal; those beyond the matrix are all alike."""
    return min(max(as_int(function, name, value), -shape[-2]), shape[-1])


def _matrix_grad(function: str, grad_output: Any) -> ExTensor:
    grad = as_floating(function, "grad_output", grad_output)
    if grad.ndim < 2:
        raise ValueError(f"[{function}] grad_output must have at least two axes, got shape {grad.shape}")
    return grad


@differentiable
@takes_complex
def tril(x: ExTensor, k: int = 0) -> ExTensor:
    """The lower triangle of a matrix, zeros above it.   y_ij = x_ij if j - i <= k, else 0

    Args:
        x: a matrix, or a batch of them.
        k: the last diagonal that is kept: 0 the main one, positive above it, negative below.

    Example:
        >>> import extensor as et
        >>> et.tril(et.ones((2, 3))).tolist()
        [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]]
    """
    x = _matrix("tril", x)
    return kernels.tril(x, _clamped("tril", "k", k, x.shape))


@backward_of(tril)
def tril_backward(grad_output: ExTensor, k: int = 0) -> ExTensor:
    """Gradient of :func:`tril`: that of the elements that were kept.   dx = tril(dy, k)

    Example:
        >>> import extensor as et
        >>> et.tril_backward(et.ones((2, 2))).tolist()
        [[1.0, 0.0], [1.0, 1.0]]
    """
    grad = _matrix_grad("tril_backward", grad_output)
    return tril(grad, _clamped("tril_backward", "k", k, grad.shape))


@differentiable
@takes_complex
def triu(x: ExTensor, k: int = 0) -> ExTensor:
    """The upper triangle of a matrix, zeros below it.   y_ij = x_ij if j - i >= k, else 0

    Args:
        x: a matrix, or a batch of them.
        k: the first diagonal that is kept: 0 the main one, positive above it, negative below.

    Example:
        >>> import extensor as et
        >>> et.triu(et.ones((2, 3))).tolist()
        [[1.0, 1.0, 1.0], [0.0, 1.0, 1.0]]
    """
    x = _matrix("triu", x)
    return kernels.triu(x, _clamped("triu", "k", k, x.shape))


@backward_of(triu)
def triu_backward(grad_output: ExTensor, k: int = 0) -> ExTensor:
    """Gradient of :func:`triu`: that of the elements that were kept.   dx = triu(dy, k)

    Example:
        >>> import extensor as et
        >>> et.triu_backward(et.ones((2, 2))).tolist()
        [[1.0, 1.0], [0.0, 1.0]]
    """
    grad = _matrix_grad("triu_backward", grad_output)
    return triu(grad, _clamped("triu_backward", "k", k, grad.shape))


def _diagonal_options(
    function: str, shape: Shape, offset: Any, axis1: Any, axis2: Any
) -> tuple[int, int, int]:
    if len(shape) < 2:
        raise ValueError(f"[{function}] x must have at least two axes, got shape {shape}")
    first, second = as_axis(function, axis1, len(shape)), as_axis(function, axis2, len(shape))
    if first == second:
        raise ValueError(f"[{function}] axis1 and axis2 must be two axes, got {axis1} and {axis2}")
    place = as_int(function, "offset", offset)
    return min(max(place, -shape[first]), shape[second]), first, second


def _diagonal_shape(shape: Shape, offset: int, axis1: int, axis2: int) -> Shape:
    rows, columns = shape[axis1], shape[axis2]
    length = min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns)
    return (*(n for i, n in enumerate(shape) if i not in (axis1, axis2)), max(length, 0))


@differentiable
@takes_complex
def diagonal(x: ExTensor, offset: int = 0, axis1: int = -2, axis2: int = -1) -> ExTensor:
    """The diagonal of a matrix, along a new last axis; a view.   y_i = x_(i, i + offset)

    Args:
        x: a tensor with at least two axes.
        offset: 0 the main diagonal, positive above it, negative below.
        axis1, axis2: the rows and the columns; the last two axes by default.

    Example:
        >>> import extensor as et
        >>> et.diagonal(et.tensor([[1.0, 2.0], [3.0, 4.0]])).tolist()
        [1.0, 4.0]
    """
    x = as_tensor("diagonal", "x", x)
    return kernels.diagonal(x, *_diagonal_options("diagonal", x.shape, offset, axis1, axis2))


@on_tensors(1)
def _diagonal_formula(
    g: ExTensor, x: TensorOrShape, offset: int = 0, axis1: int = -2, axis2: int = -1
) -> ExTensor:
    shape = shape_of("diagonal_backward", "x", x)
    offset, first, second = _diagonal_options("diagonal_backward", shape, offset, axis1, axis2)
    others = tuple(n for i, n in enumerate(shape) if i not in (first, second))
    steps = np.arange(g.shape[-1])
    place = (..., steps - min(offset, 0), steps + max(offset, 0))
    made = index_add(zeros((*others, shape[first], shape[second]), g.dtype), place, g)
    return moveaxis(made, (-2, -1), (first, second))


@backward_of(diagonal, keeps_shape=("x",), formula=_diagonal_formula)
def diagonal_backward(
    grad_output: ExTensor, x: TensorOrShape, offset: int = 0, axis1: int = -2, axis2: int = -1
) -> ExTensor:
    """Gradient of :func:`diagonal`: zeros with ``grad_output`` on the diagonal.

    ``x`` is the input or just its shape.

    Example:
        >>> import extensor as et
        >>> et.diagonal_backward(et.ones(2), (2, 2)).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    shape = shape_of("diagonal_backward", "x", x)
    options = _diagonal_options("diagonal_backward", shape, offset, axis1, axis2)
    grad = as_grad("diagonal_backward", grad_output, _diagonal_shape(shape, *options))
    return cast_like(allocate("diagonal_backward", kernels.diagonal_backward, grad, shape, *options), x)


@differentiable
@takes_complex
def diag_embed(x: ExTensor, offset: int = 0) -> ExTensor:
    """Square matrices with the last axis of ``x`` on a diagonal.   y_(i, i + offset) = x_i

    Args:
        x: a tensor with at least one axis.
        offset: 0 the main diagonal, positive above it, negative below.

    Example:
        >>> import extensor as et
        >>> et.diag_embed(et.tensor([1.0, 2.0])).tolist()
        [[1.0, 0.0], [0.0, 2.0]]
    """
    x = as_tensor("diag_embed", "x", x)
    if not x.ndim:
        raise ValueError("[diag_embed] x must have at least one axis, got a 0-d tensor")
    return allocate("diag_embed", kernels.diag_embed, x, as_int("diag_embed", "offset", offset))


@backward_of(diag_embed)
def diag_embed_backward(grad_output: ExTensor, offset: int = 0) -> ExTensor:
    """Gradient of :func:`diag_embed`: the diagonal of the gradient.   dx = diagonal(dy, offset)

    Example:
        >>> import extensor as et
        >>> et.diag_embed_backward(et.ones((2, 2))).tolist()
        [1.0, 1.0]
    """
    grad = _matrix_grad("diag_embed_backward", grad_output)
    if grad.shape[-1] != grad.shape[-2]:
        raise ValueError(f"[diag_embed_backward] grad_output must be square, got shape {grad.shape}")
    return diagonal(grad, _clamped("diag_embed_backward", "offset", offset, grad.shape))


def _at_most_two_axes(function: str, x: Any) -> ExTensor:
    found = as_tensor(function, "x", x)
    if found.ndim not in (1, 2):
        raise ValueError(
            f"[{function}] x must have one or two axes, got shape {found.shape}; use diagonal or diag_embed"
        )
    return found


@differentiable
@takes_complex
def diag(x: ExTensor, k: int = 0) -> ExTensor:
    """The diagonal of a matrix, or the matrix with a given diagonal, as in NumPy.

    Args:
        x: a vector or a matrix; batches have :func:`diagonal` and :func:`diag_embed`.
        k: 0 the main diagonal, positive above it, negative below.

    Example:
        >>> import extensor as et
        >>> et.diag(et.tensor([1.0, 2.0])).tolist(), et.diag(et.ones((2, 3)), 1).tolist()
        ([[1.0, 0.0], [0.0, 2.0]], [1.0, 1.0])
    """
    x, k = _at_most_two_axes("diag", x), as_int("diag", "k", k)
    if x.ndim == 1:
        return allocate("diag", kernels.diag_embed, x, k)
    return kernels.diagonal(x, min(max(k, -x.shape[0]), x.shape[1]), 0, 1)


@backward_of(diag, keeps_shape=("x",))
def diag_backward(grad_output: ExTensor, x: TensorOrShape, k: int = 0) -> ExTensor:
    """Gradient of :func:`diag`: diag undoes itself.   ``x`` is the input or just its shape.

    Example:
        >>> import extensor as et
        >>> et.diag_backward(et.ones((2, 2)), (2,)).tolist()
        [1.0, 1.0]
    """
    shape, k = shape_of("diag_backward", "x", x), as_int("diag_backward", "k", k)
    if len(shape) == 1:
        grad = as_grad("diag_backward", grad_output, (shape[0] + abs(k),) * 2)
        return cast_like(diagonal(grad, k), x)
    if len(shape) != 2:
        raise ValueError(f"[diag_backward] x must have one or two axes, got shape {shape}")
    k = min(max(k, -shape[0]), shape[1])
    grad = as_grad("diag_backward", grad_output, _diagonal_shape(shape, k, 0, 1))
    return cast_like(diagonal_backward(grad, shape, k), x)


@differentiable
@takes_complex
def trace(x: ExTensor, offset: int = 0) -> ExTensor:
    """The sum along a diagonal of a matrix, or of each of a batch.   y = sum_i x_(i, i + offset)

    Args:
        x: a tensor with at least two axes; the last two are the matrix.
        offset: 0 the main diagonal, positive above it, negative below.

    Example:
        >>> import extensor as et
        >>> et.trace(et.tensor([[1.0, 2.0], [3.0, 4.0]])).item()
        5.0
    """
    x = _matrix("trace", x)
    found = kernels.diagonal(x, _clamped("trace", "offset", offset, x.shape), x.ndim - 2, x.ndim - 1)
    return sum_kernel(found, (found.ndim - 1,), False)


@backward_of(trace, keeps_shape=("x",))
def trace_backward(grad_output: ExTensor, x: TensorOrShape, offset: int = 0) -> ExTensor:
    """Gradient of :func:`trace`: dy on the diagonal, 0 elsewhere.   ``x`` is the input or just its shape.

    Example:
        >>> import extensor as et
        >>> et.trace_backward(et.tensor(2.0), (2, 2)).tolist()
        [[2.0, 0.0], [0.0, 2.0]]
    """
    shape = shape_of("trace_backward", "x", x)
    found, first, second = _diagonal_options("trace_backward", shape, offset, -2, -1)
    grad = as_grad("trace_backward", grad_output, shape[:-2])
    length = _diagonal_shape(shape, found, first, second)
    return cast_like(diagonal_backward(grad.unsqueeze(-1).broadcast_to(length), shape, found), x)
