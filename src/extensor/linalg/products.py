"""Products, powers and the exponential of matrices, each with its gradient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

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
from ..kernels.reference import linalg as lapack
from ..ops._pairs import BOTH, BinaryGradients, Needs
from ..ops.arithmetic import multiply
from ..ops.broadcasting import sum_to_shape
from ..ops.casting import cast_like
from ..ops.complex_numbers import conj
from ..ops.joining import concatenate, stack
from ..ops.matrix import matmul
from ..ops.reduction import sum as summed
from ..ops.shape import moveaxis, swapaxes
from ..tensor import ExTensor, Shape
from ._common import adjoint, as_square, computed_wide, one_call
from .solving import inv, inv_backward

__all__ = [
    "cross", "cross_backward", "kron", "kron_backward", "matrix_exp", "matrix_exp_backward", "matrix_power",
    "matrix_power_backward", "matrix_transpose", "matrix_transpose_backward", "multi_dot", "multi_dot_backward", "vecdot",
    "vecdot_backward",
]  # fmt: skip


@differentiable
@takes_complex
def matrix_transpose(x: ExTensor) -> ExTensor:
    """Rows and columns of a matrix exchanged; a view.   y_ij = x_ji

    Example:
        >>> import extensor as et
        >>> et.linalg.matrix_transpose(et.ones((4, 2, 3))).shape
        (4, 3, 2)
    """
    x = as_tensor("matrix_transpose", "x", x)
    if x.ndim < 2:
        raise ValueError(f"[matrix_transpose] x must have at least two axes, got shape {x.shape}")
    return kernels.transpose(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


@backward_of(matrix_transpose)
def matrix_transpose_backward(grad_output: ExTensor) -> ExTensor:
    """Gradient of :func:`matrix_transpose`: exchanged again.   dx_ij = dy_ji

    Example:
        >>> import extensor as et
        >>> et.linalg.matrix_transpose_backward(et.ones((4, 3, 2))).shape
        (4, 2, 3)
    """
    grad = as_floating("matrix_transpose_backward", "grad_output", grad_output)
    if grad.ndim < 2:
        raise ValueError(
            f"[matrix_transpose_backward] grad_output must have at least two axes, got shape {grad.shape}"
        )
    return swapaxes(grad, -1, -2)


def _broadcast(function: str, a: Shape, b: Shape) -> Shape:
    try:
        return broadcast_shape(a, b)
    except ValueError:
        raise ValueError(f"[{function}] a and b do not broadcast (a: {a}, b: {b})") from None


def _pair(function: str, a: Any, b: Any, axis: Any) -> tuple[ExTensor, ExTensor, int, Shape]:
    """The operands, their axis counted from the end, and the shape they broadcast to."""
    a, b = as_tensor(function, "a", a), as_tensor(function, "b", b)
    shortest = min(a.ndim, b.ndim)
    if not shortest:
        raise ValueError(f"[{function}] a and b must be vectors, got shapes {a.shape} and {b.shape}")
    along = as_int(function, "axis", axis)
    if along >= 0:
        along = as_axis(function, along, max(a.ndim, b.ndim)) - max(a.ndim, b.ndim)
    if along < -shortest:
        raise ValueError(f"[{function}] axis {axis} is out of range for a tensor with {shortest} axes")
    if a.shape[along] != b.shape[along]:
        raise ValueError(
            f"[{function}] axis {axis} of a has length {a.shape[along]} but that of b {b.shape[along]} "
            f"(a: {a.shape}, b: {b.shape})"
        )
    return a, b, along, _broadcast(function, a.shape, b.shape)


def _wanted(function: str, name: str, value: ExTensor, needed: bool) -> None:
    if needed:
        differentiable_input(function, name, value)


def _vectors(function: str, a: Any, b: Any, axis: Any) -> tuple[ExTensor, ExTensor, int, Shape]:
    found = _pair(function, a, b, axis)
    if found[0].shape[found[2]] != 3:
        raise ValueError(
            f"[{function}] axis {axis} must have length 3 (a: {found[0].shape}, b: {found[1].shape})"
        )
    return found


def _crossed(a: ExTensor, b: ExTensor, axis: int) -> ExTensor:
    a0, a1, a2 = (moveaxis(a, axis, -1)[..., i] for i in range(3))
    b0, b1, b2 = (moveaxis(b, axis, -1)[..., i] for i in range(3))
    return moveaxis(stack([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0], -1), -1, axis)


@differentiable
@takes_complex
def cross(a: ExTensor, b: ExTensor, axis: int = -1) -> ExTensor:
    """The cross product of vectors of three numbers.   y = a x b

    Args:
        a, b: tensors that broadcast, with length 3 along ``axis``.
        axis: the axis of the vectors.

    Example:
        >>> import extensor as et
        >>> et.linalg.cross(et.tensor([1.0, 0.0, 0.0]), et.tensor([0.0, 1.0, 0.0])).tolist()
        [0.0, 0.0, 1.0]
    """
    a, b, along, _ = _vectors("cross", a, b, axis)
    with one_call():
        return _crossed(a, b, along)


@backward_of(cross, wrt=("a", "b"))
@computed_wide
def cross_backward(
    grad_output: ExTensor, a: ExTensor, b: ExTensor, axis: int = -1, *, needs: Needs = BOTH
) -> BinaryGradients:
    """Gradient of :func:`cross`.   da = conj(b) x dy,  db = dy x conj(a)

    Args:
        grad_output: the gradient of the product.
        a, b: the operands.
        axis: as given to :func:`cross`.
        needs: which of the two gradients are wanted; the other is None.

    Example:
        >>> import extensor as et
        >>> a, b = et.tensor([1.0, 0.0, 0.0]), et.tensor([0.0, 1.0, 0.0])
        >>> et.linalg.cross_backward(et.ones(3), a, b).grad_a.tolist()
        [1.0, 0.0, -1.0]
    """
    check_needs("cross_backward", needs)
    a, b, along, shape = _vectors("cross_backward", a, b, axis)
    _wanted("cross_backward", "a", a, needs[0])
    _wanted("cross_backward", "b", b, needs[1])
    grad = as_grad("cross_backward", grad_output, shape)
    return BinaryGradients(
        cast_like(sum_to_shape(_crossed(conj(b), grad, along), a.shape), a) if needs[0] else None,
        cast_like(sum_to_shape(_crossed(grad, conj(a), along), b.shape), b) if needs[1] else None,
    )


@differentiable
@takes_complex
def vecdot(a: ExTensor, b: ExTensor, axis: int = -1) -> ExTensor:
    """The scalar product of vectors.   y = sum_i conj(a_i) b_i

    Args:
        a, b: tensors that broadcast.
        axis: the axis of the vectors.

    Example:
        >>> import extensor as et
        >>> et.linalg.vecdot(et.tensor([1.0, 2.0]), et.tensor([3.0, 4.0])).item()
        11.0
    """
    a, b, along, _ = _pair("vecdot", a, b, axis)
    with one_call():
        left, right = moveaxis(conj(a), along, -1), moveaxis(b, along, -1)
        return matmul(left.unsqueeze(-2), right.unsqueeze(-1)).squeeze(-1).squeeze(-1)


@backward_of(vecdot, wrt=("a", "b"))
@computed_wide
def vecdot_backward(
    grad_output: ExTensor, a: ExTensor, b: ExTensor, axis: int = -1, *, needs: Needs = BOTH
) -> BinaryGradients:
    """Gradient of :func:`vecdot`.   da = conj(dy) b,  db = dy a

    Args:
        grad_output: the gradient of the product.
        a, b: the operands.
        axis: as given to :func:`vecdot`.
        needs: which of the two gradients are wanted; the other is None.

    Example:
        >>> import extensor as et
        >>> et.linalg.vecdot_backward(et.tensor(1.0), et.tensor([1.0, 2.0]), et.tensor([3.0, 4.0])).grad_a.tolist()
        [3.0, 4.0]
    """
    check_needs("vecdot_backward", needs)
    a, b, along, shape = _pair("vecdot_backward", a, b, axis)
    _wanted("vecdot_backward", "a", a, needs[0])
    _wanted("vecdot_backward", "b", b, needs[1])
    kept = list(shape)
    del kept[along]
    grad = as_grad("vecdot_backward", grad_output, tuple(kept)).unsqueeze(along)
    return BinaryGradients(
        cast_like(sum_to_shape(conj(grad) * b, a.shape), a) if needs[0] else None,
        cast_like(sum_to_shape(grad * a, b.shape), b) if needs[1] else None,
    )


def _interleaved(a: ExTensor, b: ExTensor) -> tuple[ExTensor, ExTensor, Shape, Shape]:
    """Both with as many axes; their shapes, and views that multiply to the blocks of the product."""
    ndim = max(a.ndim, b.ndim)
    left, right = (1,) * (ndim - a.ndim) + a.shape, (1,) * (ndim - b.ndim) + b.shape
    wide = a.reshape(tuple(n for length in left for n in (length, 1)))
    narrow = b.reshape(tuple(n for length in right for n in (1, length)))
    return wide, narrow, left, right


@differentiable
@takes_complex
def kron(a: ExTensor, b: ExTensor) -> ExTensor:
    """The Kronecker product: every element of ``a`` times all of ``b``, in blocks.

    Args:
        a, b: any tensors; the one with fewer axes gets ones in front.

    Example:
        >>> import extensor as et
        >>> et.linalg.kron(et.tensor([[1.0, 2.0]]), et.tensor([[1.0], [10.0]])).tolist()
        [[1.0, 2.0], [10.0, 20.0]]
    """
    a, b = as_tensor("kron", "a", a), as_tensor("kron", "b", b)
    with one_call():
        wide, narrow, left, right = _interleaved(a, b)
        return multiply(wide, narrow).reshape(tuple(m * n for m, n in zip(left, right)))


@backward_of(kron, wrt=("a", "b"))
@computed_wide
def kron_backward(grad_output: ExTensor, a: ExTensor, b: ExTensor, *, needs: Needs = BOTH) -> BinaryGradients:
    """Gradient of :func:`kron`: each block times the other operand, added up.

    Args:
        grad_output: the gradient of the product.
        a, b: the operands.
        needs: which of the two gradients are wanted; the other is None.

    Example:
        >>> import extensor as et
        >>> et.linalg.kron_backward(et.ones((2,)), et.tensor([3.0]), et.tensor([1.0, 2.0])).grad_a.tolist()
        [3.0]
    """
    check_needs("kron_backward", needs)
    a, b = as_tensor("kron_backward", "a", a), as_tensor("kron_backward", "b", b)
    _wanted("kron_backward", "a", a, needs[0])
    _wanted("kron_backward", "b", b, needs[1])
    wide, narrow, left, right = _interleaved(a, b)
    shape = tuple(m * n for m, n in zip(left, right))
    grad = as_grad("kron_backward", grad_output, shape).reshape(
        tuple(n for pair in zip(left, right) for n in pair)
    )
    odd, even = tuple(range(1, 2 * len(left), 2)), tuple(range(0, 2 * len(left), 2))
    return BinaryGradients(
        cast_like(summed(grad * conj(narrow), odd).reshape(a.shape), a) if needs[0] else None,
        cast_like(summed(grad * conj(wide), even).reshape(b.shape), b) if needs[1] else None,
    )


def _chain(function: str, tensors: Any) -> list[ExTensor]:
    """At least two tensors; matrices, and vectors at the ends."""
    if not isinstance(tensors, (list, tuple)):
        raise TypeError(f"[{function}] tensors must be a list or tuple of tensors, got {describe(tensors)}")
    found = [as_floating(function, f"tensors[{i}]", t) for i, t in enumerate(tensors)]
    if len(found) < 2:
        raise ValueError(f"[{function}] tensors must hold at least two, got {len(found)}")
    for i, t in enumerate(found):
        if t.ndim != 2 and not (t.ndim == 1 and i in (0, len(found) - 1)):
            raise ValueError(
                f"[{function}] tensors[{i}] must be a matrix (the ends may be vectors), got shape {t.shape}"
            )
    sides = [
        t.shape if t.ndim == 2 else (1, *t.shape) if i == 0 else (*t.shape, 1) for i, t in enumerate(found)
    ]
    for i, (left, right) in enumerate(zip(sides, sides[1:])):
        if left[1] != right[0]:
            raise ValueError(
                f"[{function}] tensors[{i}] has {left[1]} columns but tensors[{i + 1}] has {right[0]} rows"
            )
    return found


def _as_matrices(tensors: list[ExTensor]) -> list[ExTensor]:
    last = len(tensors) - 1
    return [
        t if t.ndim == 2 else t.unsqueeze(0) if i == 0 and last else t.unsqueeze(1)
        for i, t in enumerate(tensors)
    ]


def _multiplied(matrices: Sequence[ExTensor]) -> ExTensor:
    """The product in the order with the fewest multiplications."""
    n = len(matrices)
    sides = [matrices[0].shape[0], *(m.shape[1] for m in matrices)]
    cost = [[0.0] * n for _ in range(n)]
    cut = [[0] * n for _ in range(n)]
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            cost[i][j], cut[i][j] = min(
                (cost[i][k] + cost[k + 1][j] + sides[i] * sides[k + 1] * sides[j + 1], k) for k in range(i, j)
            )

    def product(i: int, j: int) -> ExTensor:
        return matrices[i] if i == j else matmul(product(i, cut[i][j]), product(cut[i][j] + 1, j))

    return product(0, n - 1)


def _chain_shape(tensors: Sequence[ExTensor]) -> Shape:
    return (*tensors[0].shape[:-1], *tensors[-1].shape[1:])


@differentiable
@takes_complex
def multi_dot(tensors: Sequence[ExTensor]) -> ExTensor:
    """The product of several matrices, in the order with the fewest multiplications.   y = a b c ...

    Args:
        tensors: at least two matrices; the first may be a row and the last a column, given as vectors.

    Example:
        >>> import extensor as et
        >>> et.linalg.multi_dot([et.ones((2, 3)), et.ones((3, 4)), et.ones(4)]).tolist()
        [12.0, 12.0]
    """
    found = _chain("multi_dot", tensors)
    with one_call():
        return _multiplied(_as_matrices(found)).reshape(_chain_shape(found))


@backward_of(multi_dot, each="tensors")
@computed_wide
def multi_dot_backward(grad_output: ExTensor, tensors: Sequence[ExTensor]) -> list[ExTensor]:
    """Gradients of :func:`multi_dot`.   d tensors[i] = (what is left of it)^H dy (what is right of it)^H

    Example:
        >>> import extensor as et
        >>> grads = et.linalg.multi_dot_backward(et.ones(2), [et.ones((2, 3)), et.ones(3)])
        >>> grads[0].shape, grads[1].tolist()
        ((2, 3), [2.0, 2.0, 2.0])
    """
    found = _chain("multi_dot_backward", tensors)
    grad = as_grad("multi_dot_backward", grad_output, _chain_shape(found))
    matrices = _as_matrices(found)
    grad = grad.reshape((matrices[0].shape[0], matrices[-1].shape[1]))
    grads = []
    for i, tensor in enumerate(found):
        left = [adjoint(m) for m in reversed(matrices[:i])]
        right = [adjoint(m) for m in reversed(matrices[i + 1 :])]
        parts = [*left, grad, *right]
        grads.append(cast_like(_multiplied(parts).reshape(tensor.shape), tensor))
    return grads


def _power_steps(x: ExTensor, n: int) -> tuple[list[ExTensor], list[int]]:
    """x, x**2, x**4, ... and which of them x**n is the product of; n at least 1."""
    squares = [x]
    while 2 ** len(squares) <= n:
        squares.append(matmul(squares[-1], squares[-1]))
    return squares, [i for i in range(len(squares)) if n >> i & 1]


@differentiable
@takes_complex
def matrix_power(x: ExTensor, n: int) -> ExTensor:
    """A square matrix multiplied with itself n times.   y = x x ... x

    Args:
        x: a square matrix, or a batch of them.
        n: a whole number; 0 gives the unit matrix, a negative one powers of the inverse.

    Example:
        >>> import extensor as et
        >>> et.linalg.matrix_power(et.tensor([[1.0, 1.0], [0.0, 1.0]]), 3).tolist()
        [[1.0, 3.0], [0.0, 1.0]]
    """
    x, n = as_square("matrix_power", "x", x), as_int("matrix_power", "n", n)
    if n == 0:
        return ExTensor(np.broadcast_to(np.eye(x.shape[-1], dtype=x.dtype), x.shape).copy())
    with one_call():
        squares, used = _power_steps(inv(x) if n < 0 else x, abs(n))
        result = squares[used[0]]
        for i in used[1:]:
            result = matmul(result, squares[i])
        return result


@backward_of(matrix_power)
@computed_wide
def matrix_power_backward(grad_output: ExTensor, x: ExTensor, n: int) -> ExTensor:
    """Gradient of :func:`matrix_power`.   dx = sum_k (x^H)**k dy (x^H)**(n - 1 - k)

    Args:
        grad_output: the gradient of the power.
        x: the input.
        n: as given to :func:`matrix_power`.

    Example:
        >>> import extensor as et
        >>> et.linalg.matrix_power_backward(et.ones((1, 1)), et.tensor([[3.0]]), 2).tolist()
        [[6.0]]
    """
    x, n = as_square("matrix_power_backward", "x", x), as_int("matrix_power_backward", "n", n)
    grad = as_grad("matrix_power_backward", grad_output, x.shape)
    if n == 0:
        return x * 0
    base = inv(x) if n < 0 else x
    squares, used = _power_steps(base, abs(n))
    partial = [squares[used[0]]]
    for i in used[1:]:
        partial.append(matmul(partial[-1], squares[i]))
    by_square: list[ExTensor | None] = [None] * len(squares)
    for position in range(len(used) - 1, 0, -1):
        i = used[position]
        by_square[i] = matmul(adjoint(partial[position - 1]), grad)
        grad = matmul(grad, adjoint(squares[i]))
    by_square[used[0]] = grad
    arrived: ExTensor | None = None
    for i in range(len(squares) - 1, -1, -1):
        if arrived is not None:  # through squares[i + 1] = squares[i] squares[i]
            turned = adjoint(squares[i])
            through = matmul(arrived, turned) + matmul(turned, arrived)
            arrived = through if by_square[i] is None else through + by_square[i]
        else:
            arrived = by_square[i]
    assert arrived is not None
    return inv_backward(arrived, base) if n < 0 else arrived


@differentiable
@takes_complex
def matrix_exp(x: ExTensor) -> ExTensor:
    """The exponential of a square matrix.   y = 1 + x + x**2 / 2 + x**3 / 6 + ...

    Example:
        >>> import extensor as et
        >>> et.linalg.matrix_exp(et.zeros((2, 2))).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    return lapack.matrix_exp(as_square("matrix_exp", "x", x))


@backward_of(matrix_exp)
@computed_wide
def matrix_exp_backward(grad_output: ExTensor, x: ExTensor) -> ExTensor:
    """Gradient of :func:`matrix_exp`: the upper right block of the exponential of [[x^H, dy], [0, x^H]].

    Example:
        >>> import extensor as et
        >>> et.linalg.matrix_exp_backward(et.ones((1, 1)), et.zeros((1, 1))).tolist()
        [[1.0]]
    """
    x = as_square("matrix_exp_backward", "x", x)
    grad = as_grad("matrix_exp_backward", grad_output, x.shape)
    turned, n = adjoint(x), x.shape[-1]
    top, bottom = concatenate([turned, grad], -1), concatenate([turned * 0, turned], -1)
    return cast_like(matrix_exp(concatenate([top, bottom], -2))[..., :n, n:], x)
