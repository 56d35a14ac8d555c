"""Products of matrices and tensors, the transpose, and their gradients, with NumPy's conventions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import kernels
from ..checks import (
    as_axis,
    as_floating,
    as_grad,
    as_int,
    as_tensor,
    broadcast_shape,
    check_needs,
    differentiable_input,
    takes_complex,
)
from ..errors import describe
from ..graph import backward_of, differentiable
from ..tensor import ExTensor, Shape
from ._pairs import BOTH, BinaryGradients, Needs
from .arithmetic import multiply_backward
from .casting import cast_like, in_one_dtype
from .complex_numbers import conj

__all__ = [
    "matmul", "matmul_backward", "transpose", "transpose_backward", "dot", "dot_backward",
    "outer", "outer_backward", "inner", "inner_backward", "tensordot", "tensordot_backward",
]  # fmt: skip


def _pair(function: str, a: Any, b: Any, needs: Needs) -> tuple[ExTensor, ExTensor]:
    """The operands of a backward; one whose gradient is wanted must be floating."""
    return (
        differentiable_input(function, "a", a) if needs[0] else as_tensor(function, "a", a),
        differentiable_input(function, "b", b) if needs[1] else as_tensor(function, "b", b),
    )


def _matmul_shape(function: str, a: Shape, b: Shape) -> Shape:
    if not a or not b:
        name = "b" if a else "a"
        raise ValueError(
            f"[{function}] {name} is 0-d; a matrix product needs an axis, use multiply (a: {a}, b: {b})"
        )
    rows = b[-2] if len(b) > 1 else b[0]
    if a[-1] != rows:
        raise ValueError(f"[{function}] a has {a[-1]} columns but b has {rows} rows (a: {a}, b: {b})")
    try:
        batch = broadcast_shape(a[:-2], b[:-2])
    except ValueError:
        raise ValueError(
            f"[{function}] the batches {a[:-2]} and {b[:-2]} do not broadcast (a: {a}, b: {b})"
        ) from None
    return (*batch, *a[-2:-1], *(b[-1:] if len(b) > 1 else ()))


@differentiable
@takes_complex
def matmul(a: ExTensor, b: ExTensor) -> ExTensor:
    """Matrix product.   y_ij = sum_k a_ik b_kj

    A 1-d ``a`` is a row and a 1-d ``b`` a column, and that axis is gone from the result; axes before the
    last two are a batch and broadcast.

    Args:
        a, b: tensors with at least one axis.

    Example:
        >>> import extensor as et
        >>> et.matmul(et.tensor([[1.0, 2.0], [3.0, 4.0]]), et.tensor([10.0, 1.0])).tolist()
        [12.0, 34.0]
    """
    a, b = as_tensor("matmul", "a", a), as_tensor("matmul", "b", b)
    _matmul_shape("matmul", a.shape, b.shape)
    return kernels.matmul(*in_one_dtype(a, b))


@backward_of(matmul, wrt=("a", "b"))
def matmul_backward(
    grad_output: ExTensor, a: ExTensor, b: ExTensor, *, needs: Needs = BOTH
) -> BinaryGradients:
    """Gradient of :func:`matmul`.   da = dy @ b.mT,  db = a.mT @ dy,  each summed over broadcast batches

    Args:
        grad_output: the gradient of the product.
        a, b: the operands.
        needs: which of the two gradients are wanted; the other is None.

    Example:
        >>> import extensor as et
        >>> grad_a, grad_b = et.matmul_backward(et.ones((1, 1)), et.tensor([[1.0, 2.0]]), et.tensor([[3.0], [4.0]]))
        >>> grad_a.tolist(), grad_b.tolist()
        ([[3.0, 4.0]], [[1.0], [2.0]])
    """
    check_needs("matmul_backward", needs)
    a, b = _pair("matmul_backward", a, b, needs)
    grad = as_grad("matmul_backward", grad_output, _matmul_shape("matmul_backward", a.shape, b.shape))
    grad_a, grad_b = kernels.matmul_backward(*in_one_dtype(grad, a, b), needs)
    return BinaryGradients(cast_like(grad_a, a), cast_like(grad_b, b))


def _permutation(function: str, axes: Any, ndim: int) -> tuple[int, ...]:
    """``axes`` counted from the front; None reverses them."""
    if axes is None:
        return tuple(range(ndim))[::-1]
    if not isinstance(axes, (tuple, list)):
        axes = (axes,)
    found = []
    for axis in axes:
        position = as_int(function, "axes", axis)
        if not -ndim <= position < ndim:
            raise ValueError(
                f"[{function}] axes {tuple(axes)}: {position} is out of range for a tensor with {ndim} axes"
            )
        found.append(position % ndim)
    if sorted(found) != list(range(ndim)):
        raise ValueError(f"[{function}] axes {tuple(axes)} must name each of the {ndim} axes once")
    return tuple(found)


@differentiable
@takes_complex
def transpose(x: ExTensor, axes: Sequence[int] | None = None) -> ExTensor:
    """``x`` with its axes in another order; a view, nothing is copied.

    Args:
        x: any tensor.
        axes: axis ``i`` of the result is axis ``axes[i]`` of ``x``; None reverses the axes.

    Example:
        >>> import extensor as et
        >>> et.transpose(et.tensor([[1.0, 2.0], [3.0, 4.0]])).tolist()
        [[1.0, 3.0], [2.0, 4.0]]
    """
    x = as_tensor("transpose", "x", x)
    return kernels.transpose(x, _permutation("transpose", axes, x.ndim))


@backward_of(transpose)
def transpose_backward(grad_output: ExTensor, axes: Sequence[int] | None = None) -> ExTensor:
    """Gradient of :func:`transpose`: the inverse permutation.   dx = transpose(dy, argsort(axes))

    Args:
        grad_output: the gradient of the transpose.
        axes: as given to :func:`transpose`.

    Example:
        >>> import extensor as et
        >>> et.transpose_backward(et.ones((2, 3, 4)), axes=(1, 2, 0)).shape
        (4, 2, 3)
    """
    grad = as_floating("transpose_backward", "grad_output", grad_output)
    if axes is None:
        return transpose(grad)
    order = _permutation("transpose_backward", axes, grad.ndim)
    return transpose(grad, tuple(sorted(range(grad.ndim), key=order.__getitem__)))


class _Contraction:
    """Which axes of two tensors are multiplied and summed, and which ones remain."""

    def __init__(
        self, function: str, a: Shape, b: Shape, axes_a: Sequence[int], axes_b: Sequence[int]
    ) -> None:
        lengths_a, lengths_b = [a[i] for i in axes_a], [b[i] for i in axes_b]
        if lengths_a != lengths_b:
            raise ValueError(
                f"[{function}] axes {tuple(axes_a)} of a have lengths {tuple(lengths_a)} but axes {tuple(axes_b)} of b "
                f"have {tuple(lengths_b)} (a: {a}, b: {b})"
            )
        self.axes_a, self.axes_b = tuple(axes_a), tuple(axes_b)
        self.free_a = tuple(i for i in range(len(a)) if i not in axes_a)
        self.free_b = tuple(i for i in range(len(b)) if i not in axes_b)
        self.shape = (*(a[i] for i in self.free_a), *(b[i] for i in self.free_b))

    def forward(self, a: ExTensor, b: ExTensor) -> ExTensor:
        """One matrix product: the free axes of ``a`` are its rows, those of ``b`` its columns."""
        length = math.prod(a.shape[i] for i in self.axes_a)
        rows = math.prod(a.shape[i] for i in self.free_a)
        columns = math.prod(b.shape[i] for i in self.free_b)
        left = kernels.reshape(kernels.permute(a, (*self.free_a, *self.axes_a)), (rows, length))
        right = kernels.reshape(kernels.permute(b, (*self.axes_b, *self.free_b)), (length, columns))
        return kernels.reshape(kernels.matmul(*in_one_dtype(left, right)), self.shape)

    def backward(self, grad: ExTensor, a: ExTensor, b: ExTensor, needs: Needs) -> BinaryGradients:
        """Each gradient is a contraction of ``grad`` with the other operand, its axes put in order."""
        rows, columns = range(len(self.free_a)), range(len(self.free_a), grad.ndim)
        grad_a = grad_b = None
        if needs[0]:
            found = tensordot(grad, conj(b), (columns, self.free_b))
            places = dict(zip(self.free_a, rows)) | _ranks(self.axes_a, self.axes_b, len(rows))
            grad_a = cast_like(transpose(found, [places[i] for i in range(a.ndim)]), a)
        if needs[1]:
            found = tensordot(conj(a), grad, (self.free_a, rows))
            places = _ranks(self.axes_b, self.axes_a, 0) | dict(
                zip(self.free_b, range(len(self.axes_b), b.ndim))
            )
            grad_b = cast_like(transpose(found, [places[i] for i in range(b.ndim)]), b)
        return BinaryGradients(grad_a, grad_b)


def _ranks(axes: Sequence[int], partners: Sequence[int], start: int) -> dict[int, int]:
    """Where each of ``axes`` stands when their partners stand in ascending order from ``start``."""
    return {axis: start + sorted(partners).index(partner) for axis, partner in zip(axes, partners)}


def _contraction(function: str, a: Shape, b: Shape, axes: Any) -> _Contraction:
    """The contraction that ``axes`` of :func:`tensordot` asks for."""
    if not isinstance(axes, (tuple, list)):
        n = as_int(function, "axes", axes)
        if not 0 <= n <= min(len(a), len(b)):
            raise ValueError(
                f"[{function}] axes={n}: a has {len(a)} axes and b has {len(b)} (a: {a}, b: {b})"
            )
        return _Contraction(function, a, b, range(len(a) - n, len(a)), range(n))
    if len(axes) != 2:
        raise ValueError(
            f"[{function}] axes must be an int or a pair of axes or tuples of axes, got {describe(axes)}"
        )
    sides = []
    for side, shape in zip(axes, (a, b)):
        listed = side if isinstance(side, (tuple, list, range)) else (side,)
        sides.append([as_axis(function, axis, len(shape)) for axis in listed])
        if len(set(sides[-1])) != len(sides[-1]):
            raise ValueError(f"[{function}] axes {tuple(listed)} names an axis twice")
    if len(sides[0]) != len(sides[1]):
        raise ValueError(
            f"[{function}] axes names {len(sides[0])} axes of a but {len(sides[1])} of b: {describe(axes)}"
        )
    return _Contraction(function, a, b, *sides)


@differentiable
@takes_complex
def tensordot(a: ExTensor, b: ExTensor, axes: Any = 2) -> ExTensor:
    """Sum of products over chosen axes; the free axes of ``a``, then those of ``b`` remain.

    Args:
        a, b: any tensors.
        axes: an int n: the last n axes of ``a`` with the first n of ``b``, in order. Or a pair: the axes of
            ``a`` and the axes of ``b`` they meet, each an int or a tuple of ints.

    Example:
        >>> import extensor as et
        >>> et.tensordot(et.ones((2, 3, 4)), et.ones((4, 3, 5)), axes=((1, 2), (1, 0))).shape
        (2, 5)
    """
    a, b = as_tensor("tensordot", "a", a), as_tensor("tensordot", "b", b)
    return _contraction("tensordot", a.shape, b.shape, axes).forward(a, b)


@backward_of(tensordot, wrt=("a", "b"))
def tensordot_backward(
    grad_output: ExTensor, a: ExTensor, b: ExTensor, axes: Any = 2, *, needs: Needs = BOTH
) -> BinaryGradients:
    """Gradient of :func:`tensordot`: da contracts dy with the free axes of b, db with those of a.

    Args:
        grad_output: the gradient of the product.
        a, b: the operands.
        axes: as given to :func:`tensordot`.
        needs: which of the two gradients are wanted; the other is None.

    Example:
        >>> import extensor as et
        >>> grad_a, grad_b = et.tensordot_backward(et.tensor(1.0), et.ones((2, 3)), et.ones((2, 3)))
        >>> grad_a.shape, grad_b.shape
        ((2, 3), (2, 3))
    """
    check_needs("tensordot_backward", needs)
    a, b = _pair("tensordot_backward", a, b, needs)
    contraction = _contraction("tensordot_backward", a.shape, b.shape, axes)
    return contraction.backward(as_grad("tensordot_backward", grad_output, contraction.shape), a, b, needs)


def _last_with(function: str, a: Shape, b: Shape, partner: int) -> _Contraction:
    """The last axis of ``a`` with axis ``partner`` of ``b``."""
    if a[-1] != b[partner]:
        raise ValueError(
            f"[{function}] the last axis of a has length {a[-1]} but axis {partner} of b has {b[partner]} (a: {a}, b: {b})"
        )
    return _Contraction(function, a, b, (len(a) - 1,), (len(b) + partner,))


def _dot(function: str, a: Shape, b: Shape) -> _Contraction:
    return _last_with(function, a, b, -2 if len(b) > 1 else -1)


@differentiable
@takes_complex
def dot(a: ExTensor, b: ExTensor) -> ExTensor:
    """Sum of products over the last axis of ``a`` and the second to last (or only) axis of ``b``.

    Of two vectors the scalar product, of two matrices the matrix product; with a number the multiple.
    Unlike :func:`matmul`, more axes are not a batch: each of ``a`` meets each of ``b``.

    Args:
        a, b: any tensors.

    Example:
        >>> import extensor as et
        >>> et.dot(et.tensor([1.0, 2.0]), et.tensor([3.0, 4.0])).item()
        11.0
    """
    a, b = as_tensor("dot", "a", a), as_tensor("dot", "b", b)
    if not a.ndim or not b.ndim:
        return kernels.multiply(a, b)
    contraction = _dot("dot", a.shape, b.shape)
    return kernels.dot(*in_one_dtype(a, b)) if b.ndim <= 2 else contraction.forward(a, b)


@backward_of(dot, wrt=("a", "b"))
def dot_backward(grad_output: ExTensor, a: ExTensor, b: ExTensor, *, needs: Needs = BOTH) -> BinaryGradients:
    """Gradient of :func:`dot`.   For vectors: da = dy * b,  db = dy * a

    Args:
        grad_output: the gradient of the product.
        a, b: the operands.
        needs: which of the two gradients are wanted; the other is None.

    Example:
        >>> import extensor as et
        >>> et.dot_backward(et.tensor(1.0), et.tensor([1.0, 2.0]), et.tensor([3.0, 4.0])).grad_a.tolist()
        [3.0, 4.0]
    """
    check_needs("dot_backward", needs)
    a, b = _pair("dot_backward", a, b, needs)
    if not a.ndim or not b.ndim:
        grad = as_grad("dot_backward", grad_output, a.shape or b.shape)
        return multiply_backward(grad, a, b, needs=needs)
    contraction = _dot("dot_backward", a.shape, b.shape)
    grad = as_grad("dot_backward", grad_output, contraction.shape)
    return (
        matmul_backward(grad, a, b, needs=needs) if b.ndim <= 2 else contraction.backward(grad, a, b, needs)
    )


@differentiable
@takes_complex
def inner(a: ExTensor, b: ExTensor) -> ExTensor:
    """Sum of products over the last axes.   y_ij = sum_k a_ik b_jk

    Args:
        a, b: tensors with the same last length; with a number, the multiple.

    Example:
        >>> import extensor as et
        >>> et.inner(et.ones((2, 3)), et.ones((4, 3))).shape
        (2, 4)
    """
    a, b = as_tensor("inner", "a", a), as_tensor("inner", "b", b)
    if not a.ndim or not b.ndim:
        return kernels.multiply(a, b)
    contraction = _last_with("inner", a.shape, b.shape, -1)
    return kernels.inner(*in_one_dtype(a, b)) if b.ndim == 1 else contraction.forward(a, b)


@backward_of(inner, wrt=("a", "b"))
def inner_backward(
    grad_output: ExTensor, a: ExTensor, b: ExTensor, *, needs: Needs = BOTH
) -> BinaryGradients:
    """Gradient of :func:`inner`.   da_ik = sum_j dy_ij b_jk,  db_jk = sum_i dy_ij a_ik

    Args:
        grad_output: the gradient of the product.
        a, b: the operands.
        needs: which of the two gradients are wanted; the other is None.

    Example:
        >>> import extensor as et
        >>> et.inner_backward(et.tensor(1.0), et.tensor([1.0, 2.0]), et.tensor([3.0, 4.0])).grad_b.tolist()
        [1.0, 2.0]
    """
    check_needs("inner_backward", needs)
    a, b = _pair("inner_backward", a, b, needs)
    if not a.ndim or not b.ndim:
        grad = as_grad("inner_backward", grad_output, a.shape or b.shape)
        return multiply_backward(grad, a, b, needs=needs)
    contraction = _last_with("inner_backward", a.shape, b.shape, -1)
    grad = as_grad("inner_backward", grad_output, contraction.shape)
    return (
        matmul_backward(grad, a, b, needs=needs) if b.ndim == 1 else contraction.backward(grad, a, b, needs)
    )


@differentiable
@takes_complex
def outer(a: ExTensor, b: ExTensor) -> ExTensor:
    """Every element of ``a`` times every element of ``b``, both flattened.   y_ij = a_i b_j

    Args:
        a, b: any tensors.

    Example:
        >>> import extensor as et
        >>> et.outer(et.tensor([1.0, 2.0]), et.tensor([3.0, 4.0])).tolist()
        [[3.0, 4.0], [6.0, 8.0]]
    """
    a, b = as_tensor("outer", "a", a), as_tensor("outer", "b", b)
    return kernels.multiply(kernels.reshape(a, (a.size, 1)), kernels.reshape(b, (b.size,)))


@backward_of(outer, wrt=("a", "b"))
def outer_backward(
    grad_output: ExTensor, a: ExTensor, b: ExTensor, *, needs: Needs = BOTH
) -> BinaryGradients:
    """Gradient of :func:`outer`.   da = dy @ b,  db = a @ dy

    Args:
        grad_output: the gradient of the product.
        a, b: the operands.
        needs: which of the two gradients are wanted; the other is None.

    Example:
        >>> import extensor as et
        >>> et.outer_backward(et.ones((2, 2)), et.tensor([1.0, 2.0]), et.tensor([3.0, 4.0])).grad_a.tolist()
        [7.0, 7.0]
    """
    check_needs("outer_backward", needs)
    a, b = _pair("outer_backward", a, b, needs)
    grad = as_grad("outer_backward", grad_output, (a.size, b.size))
    return BinaryGradients(
        cast_like(matmul(grad, conj(b).reshape((b.size,))).reshape(a.shape), a) if needs[0] else None,
        cast_like(matmul(conj(a).reshape((a.size,)), grad).reshape(b.shape), b) if needs[1] else None,
    )
