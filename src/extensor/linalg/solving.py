"""Inverses and linear systems, each with its gradient."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..checks import as_bool, as_floating, as_grad, broadcast_shape, check_needs, takes_complex
from ..dtypes import HALF, float32, promote
from ..graph import backward_of, differentiable
from ..kernels.reference import linalg as kernels
from ..ops._pairs import BOTH, BinaryGradients, Needs
from ..ops._several import given_grads
from ..ops.broadcasting import sum_to_shape
from ..ops.casting import cast_like
from ..ops.complex_numbers import conj, real
from ..ops.creation import eye
from ..ops.diagonals import tril, triu
from ..ops.matrix import matmul
from ..ops.reduction import sum as summed
from ..tensor import ExTensor, Shape
from ._common import adjoint, as_matrix, as_square, as_tolerance, computed_wide, one_call, run
from .singular_values import svdvals_backward

__all__ = [
    "LstsqResult", "inv", "inv_backward", "lstsq", "lstsq_backward", "pinv", "pinv_backward", "solve", "solve_backward",
    "triangular_solve", "triangular_solve_backward",
]  # fmt: skip


@differentiable
@takes_complex
def inv(x: ExTensor) -> ExTensor:
    """The inverse of a square matrix, or of each of a batch.   y x = x y = 1

    A singular matrix raises ``LinAlgError``. To solve a system use :func:`solve`, which is faster and more exact.

    Example:
        >>> import extensor as et
        >>> et.linalg.inv(et.tensor([[2.0, 0.0], [0.0, 4.0]])).tolist()
        [[0.5, 0.0], [0.0, 0.25]]
    """
    return run("inv", "x is singular: it has no inverse, use pinv", kernels.inv, as_square("inv", "x", x))


@backward_of(inv, from_output=True)
@computed_wide
def inv_backward(grad_output: ExTensor, output: ExTensor) -> ExTensor:
    """Gradient of :func:`inv` from its output y.   dx = -y^H dy y^H

    Example:
        >>> import extensor as et
        >>> et.linalg.inv_backward(et.ones((1, 1)), et.tensor([[0.5]])).tolist()
        [[-0.25]]
    """
    y = as_square("inv_backward", "output", output)
    turned = adjoint(y)
    return -matmul(matmul(turned, as_grad("inv_backward", grad_output, y.shape)), turned)


def _system(function: str, a: Any, b: Any) -> tuple[ExTensor, ExTensor]:
    """A square matrix and right sides that fit it."""
    a, b = as_square(function, "a", a), as_floating(function, "b", b)
    if not b.ndim:
        raise ValueError(f"[{function}] b must be a vector or columns, got a 0-d tensor")
    rows = b.shape[0] if b.ndim == 1 else b.shape[-2]
    if rows != a.shape[-1]:
        raise ValueError(
            f"[{function}] a has {a.shape[-1]} rows but b has {rows} (a: {a.shape}, b: {b.shape})"
        )
    _solution_shape(function, a.shape, b.shape)
    return a, b


def _solution_shape(function: str, a: Shape, b: Shape) -> Shape:
    if len(b) == 1:
        return (*a[:-2], *b)
    try:
        return (*broadcast_shape(a[:-2], b[:-2]), *b[-2:])
    except ValueError:
        raise ValueError(
            f"[{function}] the batches {a[:-2]} and {b[:-2]} do not broadcast (a: {a}, b: {b})"
        ) from None


@differentiable
@takes_complex
def solve(a: ExTensor, b: ExTensor) -> ExTensor:
    """The solution of a linear system.   a y = b

    Args:
        a: a square matrix, or a batch of them. A singular one raises ``LinAlgError``.
        b: a vector if it has one axis, else matrices whose columns are the right sides; batches broadcast.

    Example:
        >>> import extensor as et
        >>> et.linalg.solve(et.tensor([[2.0, 0.0], [0.0, 4.0]]), et.tensor([2.0, 2.0])).tolist()
        [1.0, 0.5]
    """
    a, b = _system("solve", a, b)
    return run("solve", "a is singular: the system has no single solution, use lstsq", kernels.solve, a, b)


@backward_of(solve, wrt=("a", "b"), from_output=True)
@computed_wide
def solve_backward(
    grad_output: ExTensor, a: ExTensor, b: ExTensor, output: ExTensor, *, needs: Needs = BOTH
) -> BinaryGradients:
    """Gradient of :func:`solve` from its output y.   db = a^-H dy,  da = -db y^H

    Args:
        grad_output: the gradient of the solution.
        a, b: the matrix and the right sides.
        output: the solution.
        needs: which of the two gradients are wanted; the other is None.

    Example:
        >>> import extensor as et
        >>> a, b = et.tensor([[2.0]]), et.tensor([6.0])
        >>> grad_a, grad_b = et.linalg.solve_backward(et.ones(1), a, b, et.linalg.solve(a, b))
        >>> grad_a.tolist(), grad_b.tolist()
        ([[-1.5]], [0.5])
    """
    check_needs("solve_backward", needs)
    a, b = _system("solve_backward", a, b)
    shape = _solution_shape("solve_backward", a.shape, b.shape)
    grad = as_grad("solve_backward", grad_output, shape)
    y = as_grad_like("solve_backward", "output", output, shape)
    if b.ndim == 1:
        grad, y = grad.unsqueeze(-1), y.unsqueeze(-1)
    columns = solve(adjoint(a), grad)
    grad_b = columns.squeeze(-1) if b.ndim == 1 else columns
    return BinaryGradients(
        cast_like(sum_to_shape(-matmul(columns, adjoint(y)), a.shape), a) if needs[0] else None,
        cast_like(sum_to_shape(grad_b, b.shape), b) if needs[1] else None,
    )


def as_grad_like(function: str, name: str, value: Any, shape: Shape) -> ExTensor:
    """A saved result: floating, of the shape it must have."""
    found = as_floating(function, name, value)
    if found.shape != shape:
        raise ValueError(f"[{function}] {name} must have shape {shape}, got {found.shape}")
    return found


def _triangular(function: str, a: Any, b: Any) -> tuple[ExTensor, ExTensor]:
    a, b = _system(function, a, b)
    if b.ndim == 1:
        raise ValueError(f"[{function}] b must have columns, got shape {b.shape}; use b.unsqueeze(-1)")
    return a, b


@differentiable
@takes_complex
def triangular_solve(a: ExTensor, b: ExTensor, upper: bool = False, unit_diagonal: bool = False) -> ExTensor:
    """The solution of a triangular system, by substitution.   a y = b

    Args:
        a: square matrices of which only one triangle is read; a zero on the diagonal raises ``LinAlgError``.
        b: matrices whose columns are the right sides; batches broadcast.
        upper: whether the upper triangle is the one.
        unit_diagonal: take the diagonal as ones, whatever it holds.

    Example:
        >>> import extensor as et
        >>> et.linalg.triangular_solve(et.tensor([[2.0, 9.0], [1.0, 1.0]]), et.tensor([[2.0], [3.0]])).tolist()
        [[1.0], [2.0]]
    """
    a, b = _triangular("triangular_solve", a, b)
    upper = as_bool("triangular_solve", "upper", upper)
    unit = as_bool("triangular_solve", "unit_diagonal", unit_diagonal)
    return run(
        "triangular_solve", "a has a zero on its diagonal", kernels.triangular_solve, a, b, upper, unit
    )


@backward_of(triangular_solve, wrt=("a", "b"), from_output=True)
@computed_wide
def triangular_solve_backward(
    grad_output: ExTensor,
    a: ExTensor,
    b: ExTensor,
    output: ExTensor,
    upper: bool = False,
    unit_diagonal: bool = False,
    *,
    needs: Needs = BOTH,
) -> BinaryGradients:
    """Gradient of :func:`triangular_solve` from its output y.   db = a^-H dy,  da = the triangle of -db y^H

    Args:
        grad_output: the gradient of the solution.
        a, b: the matrix and the right sides.
        output: the solution.
        upper, unit_diagonal: as given to :func:`triangular_solve`.
        needs: which of the two gradients are wanted; the other is None.

    Example:
        >>> import extensor as et
        >>> a, b = et.tensor([[2.0]]), et.tensor([[6.0]])
        >>> et.linalg.triangular_solve_backward(et.ones((1, 1)), a, b, et.tensor([[3.0]])).grad_a.tolist()
        [[-1.5]]
    """
    name = "triangular_solve_backward"
    check_needs(name, needs)
    a, b = _triangular(name, a, b)
    upper, unit = as_bool(name, "upper", upper), as_bool(name, "unit_diagonal", unit_diagonal)
    shape = _solution_shape(name, a.shape, b.shape)
    grad, y = as_grad(name, grad_output, shape), as_grad_like(name, "output", output, shape)
    columns = triangular_solve(adjoint(a), grad, not upper, unit)
    grad_a = None
    if needs[0]:
        whole = sum_to_shape(-matmul(columns, adjoint(y)), a.shape)
        grad_a = triu(whole, int(unit)) if upper else tril(whole, -int(unit))
    return BinaryGradients(
        cast_like(grad_a, a), cast_like(sum_to_shape(columns, b.shape), b) if needs[1] else None
    )


_NO_CONVERGENCE = "the singular values did not converge"


@differentiable
@takes_complex
def pinv(x: ExTensor, rtol: Any = None) -> ExTensor:
    """The pseudo-inverse of a matrix of any shape and rank, by its singular values.   y = V S^-1 U^H

    Args:
        x: a matrix, or a batch of them.
        rtol: singular values up to ``rtol`` times the largest count as zero; by default the longer side times eps.

    Example:
        >>> import extensor as et
        >>> et.linalg.pinv(et.tensor([[2.0, 0.0], [0.0, 0.0]])).tolist()
        [[0.5, 0.0], [0.0, 0.0]]
    """
    x = as_matrix("pinv", "x", x)
    return run("pinv", _NO_CONVERGENCE, kernels.pinv, x, as_tolerance("pinv", "rtol", rtol, x))


@backward_of(pinv, from_output=True)
@computed_wide
def pinv_backward(grad_output: ExTensor, x: ExTensor, output: ExTensor) -> ExTensor:
    """Gradient of :func:`pinv` from its output y, where the rank does not change.

    dx = -y^H dy y^H + (1 - x y) dy^H y y^H + y^H y dy^H (1 - y x)

    Example:
        >>> import extensor as et
        >>> et.linalg.pinv_backward(et.ones((1, 1)), et.tensor([[2.0]]), et.tensor([[0.5]])).tolist()
        [[-0.25]]
    """
    x = as_matrix("pinv_backward", "x", x)
    turned_shape = (*x.shape[:-2], x.shape[-1], x.shape[-2])
    y = as_grad_like("pinv_backward", "output", output, turned_shape)
    g = as_grad("pinv_backward", grad_output, turned_shape)
    rows, columns = eye(x.shape[-2], dtype=x.dtype), eye(x.shape[-1], dtype=x.dtype)
    yh, gh = adjoint(y), adjoint(g)
    return (
        matmul(matmul(rows - matmul(x, y), gh), matmul(y, yh))
        + matmul(matmul(yh, y), matmul(gh, columns - matmul(y, x)))
        - matmul(matmul(yh, g), yh)
    )


class LstsqResult(NamedTuple):
    """A solution by least squares.

    Attributes:
        solution: the shortest of the solutions with the smallest residuals.
        residuals: ``sum |b - a y|**2`` of each column.
        rank: the rank of ``a``, int64.
        singular_values: of ``a``, the largest first.
    """

    solution: ExTensor
    residuals: ExTensor
    rank: ExTensor
    singular_values: ExTensor


def _least_squares(function: str, a: Any, b: Any) -> tuple[ExTensor, ExTensor]:
    a, b = as_matrix(function, "a", a), as_floating(function, "b", b)
    if (
        b.ndim not in (1, a.ndim)
        or (b.ndim > 1 and b.shape[:-2] != a.shape[:-2])
        or (b.ndim == 1 and a.ndim > 2)
    ):
        raise ValueError(
            f"[{function}] b must be a vector beside one matrix, or columns with the batch of a (a: {a.shape}, b: {b.shape})"
        )
    rows = b.shape[0] if b.ndim == 1 else b.shape[-2]
    if rows != a.shape[-2]:
        raise ValueError(
            f"[{function}] a has {a.shape[-2]} rows but b has {rows} (a: {a.shape}, b: {b.shape})"
        )
    return a, b


@differentiable
@takes_complex
def lstsq(a: ExTensor, b: ExTensor, rcond: Any = None) -> LstsqResult:
    """The solution of a linear system by least squares, of any shape and rank.   min |a y - b|

    Args:
        a: a matrix, or a batch of them.
        b: a vector, or matrices whose columns are the right sides, with the batch of ``a``.
        rcond: singular values up to ``rcond`` times the largest count as zero; by default the longer side times eps.

    Example:
        >>> import extensor as et
        >>> a, b = et.tensor([[1.0], [1.0]]), et.tensor([1.0, 3.0])
        >>> [round(v, 5) for v in et.linalg.lstsq(a, b).solution.tolist()]
        [2.0]
    """
    a, b = _least_squares("lstsq", a, b)
    tolerance = as_tolerance("lstsq", "rcond", rcond, a)
    dtype = promote(a.dtype, b.dtype)
    with one_call():
        wide = [v.astype(float32) if v.dtype in HALF else v for v in (a, b)]  # several steps, rounded once
        values = run("lstsq", _NO_CONVERGENCE, kernels.svdvals, wide[0])
        solution = matmul(run("lstsq", _NO_CONVERGENCE, kernels.pinv, wide[0], tolerance), wide[1])
        missed = wide[1] - matmul(wide[0], solution)
        residuals = summed(real(missed * conj(missed)), -1 if b.ndim == 1 else -2)
        rank = kernels.matrix_rank(values, tolerance)
        if dtype in HALF:
            solution, residuals, values = (v.astype(dtype) for v in (solution, residuals, values))
    return LstsqResult(solution, residuals, rank, values)


@backward_of(lstsq, wrt=("a", "b"), takes_none=True)
@computed_wide
def lstsq_backward(
    grad_output: tuple[ExTensor | None, ...],
    a: ExTensor,
    b: ExTensor,
    rcond: Any = None,
    *,
    needs: Needs = BOTH,
) -> BinaryGradients:
    """Gradient of :func:`lstsq`, where the rank does not change.

    db = p^H dy + 2 dr e,  da = that of the pseudo-inverse p for dy b^H, and - 2 dr e y^H;   e = b - a y

    Args:
        grad_output: the gradients of solution, residuals, rank (None) and singular values; None for 0.
        a, b: the matrix and the right sides.
        rcond: as given to :func:`lstsq`.
        needs: which of the two gradients are wanted; the other is None.

    Example:
        >>> import extensor as et
        >>> a, b = et.tensor([[2.0]]), et.tensor([6.0])
        >>> grad_a, grad_b = et.linalg.lstsq_backward((et.ones(1), None, None, None), a, b)
        >>> round(grad_a.item(), 5), round(grad_b.item(), 5)
        (-1.5, 0.5)
    """
    name = "lstsq_backward"
    check_needs(name, needs)
    a, b = _least_squares(name, a, b)
    vector = b.ndim == 1
    columns = b.unsqueeze(-1) if vector else b
    shape = (*columns.shape[:-2], a.shape[-1], columns.shape[-1])
    short = min(a.shape[-2:])
    left = () if vector else (*columns.shape[:-2], columns.shape[-1])
    given = given_grads(
        name, grad_output, ((shape[-2],) if vector else shape, left, None, (*a.shape[:-2], short))
    )
    inverse = pinv(a, as_tolerance(name, "rcond", rcond, a))
    zero_a, zero_b = a * 0, columns * 0
    grad_a, grad_b = zero_a, zero_b
    if given[0] is not None:
        g = given[0].unsqueeze(-1) if vector else given[0]
        grad_b = grad_b + matmul(adjoint(inverse), g)
        if needs[0]:
            grad_a = grad_a + pinv_backward(matmul(g, adjoint(columns)), a, inverse)
    if given[1] is not None:
        g = given[1].reshape((*columns.shape[:-2], 1, columns.shape[-1]))
        y = matmul(inverse, columns)
        missed = (columns - matmul(a, y)) * g * 2
        grad_b = grad_b + missed
        grad_a = grad_a - matmul(missed, adjoint(y))
    if given[2] is not None and needs[0]:
        grad_a = grad_a + svdvals_backward(given[2], a)
    return BinaryGradients(
        cast_like(grad_a, a) if needs[0] else None,
        cast_like(grad_b.reshape(b.shape), b) if needs[1] else None,
    )
