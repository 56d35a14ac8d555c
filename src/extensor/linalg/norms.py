"""Norms of vectors and matrices, each with its gradient."""

from __future__ import annotations

import math
from typing import Any

from ..checks import as_axes, as_bool, as_floating, as_grad, as_number, reduced_shape, takes_complex
from ..errors import describe
from ..graph import backward_of, differentiable
from ..kernels.reference import linalg as kernels
from ..ops.arithmetic import divide, power
from ..ops.casting import cast_like
from ..ops.elementwise import abs as absolute
from ..ops.elementwise import abs_backward
from ..ops.reduction import max_reduce, max_reduce_backward, min_reduce, min_reduce_backward
from ..ops.reduction import sum as summed
from ..ops.selection import where
from ..ops.shape import moveaxis
from ..tensor import ExTensor, Shape
from ._common import as_matrix, as_square, computed_wide, one_call
from .singular_values import svdvals, svdvals_backward
from .solving import inv, inv_backward

__all__ = [
    "cond", "cond_backward", "matrix_norm", "matrix_norm_backward", "norm", "norm_backward", "vector_norm", "vector_norm_backward",
]  # fmt: skip

Axis = int | tuple[int, ...] | None
_MATRIX_ORDERS = ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf)


def _order(function: str, ord: Any) -> float:
    found = as_number(function, "ord", ord)
    if found != found:
        raise ValueError(f"[{function}] ord must be a number, got nan")
    return found


def _not_empty(function: str, shape: Shape, axes: tuple[int, ...], order: float) -> None:
    if order < 0 and math.prod(shape[i] for i in axes) == 0:
        raise ValueError(f"[{function}] ord={order} of nothing is not defined (shape {shape}, axis {axes})")


@differentiable
@takes_complex
def vector_norm(x: ExTensor, ord: Any = 2, axis: Axis = None, keepdims: bool = False) -> ExTensor:
    """The length of vectors.   y = (sum_i |x_i|**ord)**(1 / ord)

    Args:
        x: a floating tensor.
        ord: any number; inf is the largest size, -inf the smallest, 0 counts what is not zero.
        axis: the axis or axes of a vector; None for all.
        keepdims: keep the reduced axes with length 1.

    Example:
        >>> import extensor as et
        >>> et.linalg.vector_norm(et.tensor([3.0, -4.0])).item()
        5.0
    """
    x = as_floating("vector_norm", "x", x)
    axes, order = as_axes("vector_norm", axis, x.ndim), _order("vector_norm", ord)
    _not_empty("vector_norm", x.shape, axes, order)
    return kernels.vector_norm(x, order, axes, as_bool("vector_norm", "keepdims", keepdims))


@backward_of(vector_norm, from_output=True)
@computed_wide
def vector_norm_backward(
    grad_output: ExTensor,
    x: ExTensor,
    output: ExTensor,
    ord: Any = 2,
    axis: Axis = None,
    keepdims: bool = False,
) -> ExTensor:
    """Gradient of :func:`vector_norm` from its output y; 0 where y is 0, and at a zero element.

    dx_i = dy sign(x_i) (|x_i| / y)**(ord - 1);   ord 2: dy x_i / y;   inf: ties share equally

    Args:
        grad_output: the gradient of the norm.
        x: the input.
        output: the norm.
        ord, axis, keepdims: as given to :func:`vector_norm`.

    Example:
        >>> import extensor as et
        >>> x = et.tensor([3.0, -4.0])
        >>> [round(v, 5) for v in et.linalg.vector_norm_backward(et.tensor(1.0), x, et.linalg.vector_norm(x)).tolist()]
        [0.6, -0.8]
    """
    name = "vector_norm_backward"
    x = as_floating(name, "x", x)
    axes, order = as_axes(name, axis, x.ndim), _order(name, ord)
    keepdims = as_bool(name, "keepdims", keepdims)
    shape = reduced_shape(x.shape, axes, keepdims)
    grad = as_grad(name, grad_output, shape).reshape(reduced_shape(x.shape, axes, True))
    y = as_grad(name, output, shape).reshape(grad.shape)
    if order == 0 or not x.size:
        return x * 0
    if order == 1:
        return abs_backward(grad.broadcast_to(x.shape), x)
    if math.isinf(order):
        extreme = max_reduce_backward if order > 0 else min_reduce_backward
        return abs_backward(extreme(grad, absolute(x), axes, True), x)
    zero = y.numpy() == 0
    length = where(zero, 1.0, y)
    if order == 2:
        return cast_like(x * where(zero, 0.0, divide(grad, length)), x)
    sizes = absolute(x)
    flat = (sizes.numpy() == 0) | zero
    parts = power(divide(where(flat, 1.0, sizes), length), order - 1)
    return abs_backward(where(flat, 0.0, grad * parts), x)


def _matrix_order(function: str, ord: Any, name: str = "ord") -> Any:
    if isinstance(ord, bool) or not isinstance(ord, (str, int, float)) or ord not in _MATRIX_ORDERS:
        known = isinstance(ord, (str, int, float)) and not isinstance(ord, bool)
        raise (ValueError if known else TypeError)(
            f'[{function}] {name} must be "fro", "nuc", 1, -1, 2, -2, inf or -inf, got {describe(ord)}'
        )
    return ord


def _has_elements(function: str, x: ExTensor, order: Any) -> None:
    if 0 in x.shape[-2:] and order not in ("fro", "nuc"):
        raise ValueError(f"[{function}] ord={order} of an empty matrix is not defined (shape {x.shape})")


def _kept(x: ExTensor, keepdims: bool) -> ExTensor:
    return x.reshape((*x.shape, 1, 1)) if keepdims else x


@differentiable
@takes_complex
def matrix_norm(x: ExTensor, ord: Any = "fro", keepdims: bool = False) -> ExTensor:
    """The norm of a matrix, or of each of a batch.

    Args:
        x: a floating tensor; the last two axes are the matrix.
        ord: "fro" the root of the sum of squares, "nuc" the sum of the singular values, 2 and -2 the largest and the
            smallest of them, 1 and -1 the largest and smallest sum of sizes in a column, inf and -inf in a row.
        keepdims: keep the reduced axes with length 1.

    Example:
        >>> import extensor as et
        >>> et.linalg.matrix_norm(et.tensor([[3.0, 0.0], [0.0, -4.0]]), "nuc").item()
        7.0
    """
    x, order = as_matrix("matrix_norm", "x", x), _matrix_order("matrix_norm", ord)
    keepdims = as_bool("matrix_norm", "keepdims", keepdims)
    _has_elements("matrix_norm", x, order)
    if order == "fro":
        return kernels.vector_norm(x, 2.0, (x.ndim - 2, x.ndim - 1), keepdims)
    with one_call():
        if order in ("nuc", 2, -2):
            values = svdvals(x)
            reduced = {"nuc": summed, 2: max_reduce, -2: min_reduce}[order](values, -1)
        else:
            sizes = summed(absolute(x), -2 if abs(order) == 1 else -1)
            reduced = (max_reduce if order > 0 else min_reduce)(sizes, -1)
        return _kept(reduced, keepdims)


@backward_of(matrix_norm)
@computed_wide
def matrix_norm_backward(
    grad_output: ExTensor, x: ExTensor, ord: Any = "fro", keepdims: bool = False
) -> ExTensor:
    """Gradient of :func:`matrix_norm`; ties share equally, a zero has the gradient 0.

    "fro": dx = dy x / |x|;   "nuc": dx = dy U V^H;   2: dy u v^H of the largest singular value

    Args:
        grad_output: the gradient of the norm.
        x: the input.
        ord, keepdims: as given to :func:`matrix_norm`.

    Example:
        >>> import extensor as et
        >>> et.linalg.matrix_norm_backward(et.tensor(1.0), et.tensor([[3.0, 0.0], [0.0, -4.0]]), 2).tolist()
        [[0.0, 0.0], [0.0, -1.0]]
    """
    name = "matrix_norm_backward"
    x, order = as_matrix(name, "x", x), _matrix_order(name, ord)
    keepdims = as_bool(name, "keepdims", keepdims)
    _has_elements(name, x, order)
    grad = as_grad(name, grad_output, reduced_shape(x.shape, (x.ndim - 2, x.ndim - 1), keepdims))
    if order == "fro":
        return vector_norm_backward(grad, x, vector_norm(x, 2, (-2, -1), keepdims), 2, (-2, -1), keepdims)
    column = grad.reshape((*x.shape[:-2], 1))
    if order == "nuc":
        return svdvals_backward(column.broadcast_to((*x.shape[:-2], min(x.shape[-2:]))), x)
    extreme = max_reduce_backward if order > 0 else min_reduce_backward
    if abs(order) == 2:
        return svdvals_backward(extreme(column, svdvals(x), -1, True), x)
    along = -2 if abs(order) == 1 else -1
    sizes = absolute(x)
    spread = extreme(column, summed(sizes, along), -1, True).unsqueeze(along)
    return abs_backward(spread.broadcast_to(x.shape), x)


def _pair(function: str, x: ExTensor, ord: Any, axis: Any) -> tuple[int, ...] | None:
    """The axes of a matrix norm; None for a vector norm."""
    if axis is None:
        if ord is None or x.ndim == 1:
            return None
        if x.ndim != 2:
            raise ValueError(f"[{function}] ord needs an axis for a tensor with {x.ndim} axes")
        return (0, 1)
    if isinstance(axis, (tuple, list)) and len(axis) == 2:
        as_axes(function, axis, x.ndim)
        return tuple(int(a) % x.ndim for a in axis) if ord is not None else None
    if isinstance(axis, (tuple, list)) and len(axis) != 1:
        raise ValueError(f"[{function}] axis must be one axis, a pair, or None, got {describe(axis)}")
    return None


def _restored(norms: ExTensor, ndim: int, axes: tuple[int, ...]) -> ExTensor:
    """The reduced axes with length 1, where they were."""
    return moveaxis(norms.reshape((*norms.shape, 1, 1)), (-2, -1), axes) if ndim else norms


@differentiable
@takes_complex
def norm(x: ExTensor, ord: Any = None, axis: Any = None, keepdims: bool = False) -> ExTensor:
    """The norm of a vector or a matrix, with NumPy's conventions.

    Args:
        x: a floating tensor.
        ord: as in :func:`vector_norm`, and as in :func:`matrix_norm` where ``axis`` is a pair or ``x`` a matrix; None is
            the root of the sum of squares.
        axis: one axis: vectors; a pair: matrices; None: all of ``x``.
        keepdims: keep the reduced axes with length 1.

    Example:
        >>> import extensor as et
        >>> et.linalg.norm(et.tensor([[3.0, 0.0], [0.0, -4.0]])).item()
        5.0
    """
    x = as_floating("norm", "x", x)
    keepdims = as_bool("norm", "keepdims", keepdims)
    axes = _pair("norm", x, ord, axis)
    if axes is None:
        order = _order("norm", 2 if ord is None else ord)
        along = as_axes("norm", axis, x.ndim)
        _not_empty("norm", x.shape, along, order)
        return kernels.vector_norm(x, order, along, keepdims)
    with one_call():
        found = matrix_norm(moveaxis(x, axes, (-2, -1)), _matrix_order("norm", ord))
        return _restored(found, x.ndim, axes) if keepdims else found


@backward_of(norm)
def norm_backward(
    grad_output: ExTensor, x: ExTensor, ord: Any = None, axis: Any = None, keepdims: bool = False
) -> ExTensor:
    """Gradient of :func:`norm`: that of :func:`vector_norm` or of :func:`matrix_norm`.

    Args:
        grad_output: the gradient of the norm.
        x: the input.
        ord, axis, keepdims: as given to :func:`norm`.

    Example:
        >>> import extensor as et
        >>> [round(v, 5) for v in et.linalg.norm_backward(et.tensor(1.0), et.tensor([3.0, -4.0])).tolist()]
        [0.6, -0.8]
    """
    x = as_floating("norm_backward", "x", x)
    keepdims = as_bool("norm_backward", "keepdims", keepdims)
    axes = _pair("norm_backward", x, ord, axis)
    if axes is None:
        order = _order("norm_backward", 2 if ord is None else ord)
        along = as_axes("norm_backward", axis, x.ndim)
        grad = as_grad("norm_backward", grad_output, reduced_shape(x.shape, along, keepdims))
        return vector_norm_backward(grad, x, vector_norm(x, order, along, keepdims), order, along, keepdims)
    grad = as_grad("norm_backward", grad_output, reduced_shape(x.shape, axes, keepdims))
    batch = tuple(n for i, n in enumerate(x.shape) if i not in axes)
    moved = moveaxis(x, axes, (-2, -1))
    found = matrix_norm_backward(grad.reshape(batch), moved, _matrix_order("norm_backward", ord))
    return moveaxis(found, (-2, -1), axes)


def _condition(function: str, x: Any, p: Any) -> tuple[ExTensor, Any]:
    x = as_matrix(function, "x", x)
    order = 2 if p is None else _matrix_order(function, p, "p")
    if order not in (2, -2):
        x = as_square(function, "x", x)
    if 0 in x.shape[-2:]:
        raise ValueError(f"[{function}] of an empty matrix is not defined (shape {x.shape})")
    return x, order


@differentiable
@takes_complex
def cond(x: ExTensor, p: Any = None) -> ExTensor:
    """The condition number: how much a relative error may grow when a system is solved.   y = |x| |x^-1|

    Args:
        x: a matrix, or a batch of them; square unless p is 2 or -2.
        p: the norm, as in :func:`matrix_norm`; None is 2. With 2 a singular matrix has inf, with the others it raises
            ``LinAlgError``.

    Example:
        >>> import extensor as et
        >>> et.linalg.cond(et.tensor([[4.0, 0.0], [0.0, 2.0]])).item()
        2.0
    """
    x, order = _condition("cond", x, p)
    with one_call():
        if order in (2, -2):
            values = svdvals(x)
            top, bottom = values[..., 0], values[..., -1]
            return divide(top, bottom) if order == 2 else divide(bottom, top)
        return matrix_norm(x, order) * matrix_norm(inv(x), order)


@backward_of(cond)
@computed_wide
def cond_backward(grad_output: ExTensor, x: ExTensor, p: Any = None) -> ExTensor:
    """Gradient of :func:`cond`: of the product of the two norms; with p 2 of s_max / s_min.

    Args:
        grad_output: the gradient of the condition number.
        x: the input.
        p: as given to :func:`cond`.

    Example:
        >>> import extensor as et
        >>> et.linalg.cond_backward(et.tensor(1.0), et.tensor([[4.0, 0.0], [0.0, 2.0]])).tolist()
        [[0.5, 0.0], [0.0, -1.0]]
    """
    x, order = _condition("cond_backward", x, p)
    grad = as_grad("cond_backward", grad_output, x.shape[:-2])
    if order in (2, -2):
        values = svdvals(x)
        column = grad.unsqueeze(-1)
        over, under = (max_reduce, min_reduce) if order == 2 else (min_reduce, max_reduce)
        over_back, under_back = (
            (max_reduce_backward, min_reduce_backward)
            if order == 2
            else (min_reduce_backward, max_reduce_backward)
        )
        top, bottom = over(values, -1, True), under(values, -1, True)
        by_top = over_back(divide(column, bottom), values, -1, True)
        by_bottom = under_back(-divide(column * top, bottom * bottom), values, -1, True)
        return svdvals_backward(by_top + by_bottom, x)
    inverse = inv(x)
    by_inverse = matrix_norm_backward(grad * matrix_norm(x, order), inverse, order)
    return matrix_norm_backward(grad * matrix_norm(inverse, order), x, order) + inv_backward(
        by_inverse, inverse
    )
