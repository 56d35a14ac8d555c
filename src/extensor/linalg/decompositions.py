"""Cholesky and QR decompositions, each with its gradient."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..checks import as_bool, as_grad, takes_complex
from ..dtypes import HALF, float32
from ..errors import describe
from ..graph import backward_of, differentiable, for_complex
from ..kernels.reference import linalg as kernels
from ..ops._several import as_grads
from ..ops.casting import cast_like
from ..ops.complex_numbers import real
from ..ops.diagonals import diag_embed, diagonal, tril, triu
from ..ops.joining import concatenate
from ..ops.matrix import matmul
from ..tensor import ExTensor
from ._common import LinAlgError, adjoint, as_matrix, as_square, computed_wide, hermitian, run
from .solving import triangular_solve

__all__ = ["QRResult", "cholesky", "cholesky_backward", "qr", "qr_backward"]


@differentiable
@takes_complex
def cholesky(x: ExTensor, upper: bool = False) -> ExTensor:
    """The triangular factor of a positive definite matrix.   y y^H = (x + x^H) / 2

    A matrix that is not positive definite raises ``LinAlgError``.

    Args:
        x: a symmetric (Hermitian) matrix, or a batch of them; what is not symmetric of it is left out.
        upper: the upper factor instead, y^H y = x.

    Example:
        >>> import extensor as et
        >>> et.linalg.cholesky(et.tensor([[4.0, 2.0], [2.0, 5.0]])).tolist()
        [[2.0, 0.0], [1.0, 2.0]]
    """
    x = as_square("cholesky", "x", x)
    upper = as_bool("cholesky", "upper", upper)
    return run("cholesky", "x is not positive definite", kernels.cholesky, x, upper)


@backward_of(cholesky, from_output=True)
@computed_wide
def cholesky_backward(grad_output: ExTensor, output: ExTensor, upper: bool = False) -> ExTensor:
    """Gradient of :func:`cholesky` from its output y; it is symmetric, as the input is.

    dx = sym(y^-H t(y^H dy) y^-1),  t: the lower triangle with half of the diagonal

    Args:
        grad_output: the gradient of the factor.
        output: the factor.
        upper: as given to :func:`cholesky`.

    Example:
        >>> import extensor as et
        >>> et.linalg.cholesky_backward(et.ones((1, 1)), et.tensor([[2.0]])).tolist()
        [[0.25]]
    """
    y = as_square("cholesky_backward", "output", output)
    grad = as_grad("cholesky_backward", grad_output, y.shape)
    if as_bool("cholesky_backward", "upper", upper):
        y, grad = adjoint(y), adjoint(grad)
    inner = tril(matmul(adjoint(y), grad))
    inner = hermitian(inner - diag_embed(diagonal(inner)) * 0.5)
    turned = adjoint(y)
    half = triangular_solve(turned, inner, True)  # y^-H inner
    return hermitian(adjoint(triangular_solve(turned, adjoint(half), True)))


class QRResult(NamedTuple):
    """A matrix as a product ``Q R``.

    Attributes:
        Q: orthonormal columns.
        R: an upper triangle.
    """

    Q: ExTensor
    R: ExTensor


def _mode(function: str, mode: Any) -> str:
    if not isinstance(mode, str) or mode not in ("reduced", "complete"):
        raise ValueError(f'[{function}] mode must be "reduced" or "complete", got {describe(mode)}')
    return str(mode)


@differentiable
@takes_complex
def qr(x: ExTensor, mode: str = "reduced") -> QRResult:
    """Orthonormal columns times an upper triangle.   x = Q R

    Args:
        x: a matrix, or a batch of them.
        mode: "reduced": Q has as many columns as the shorter side of x; "complete": Q is square.

    Example:
        >>> import extensor as et
        >>> Q, R = et.linalg.qr(et.tensor([[3.0, 1.0], [4.0, 2.0]]))
        >>> [[round(abs(v), 4) for v in row] for row in R.tolist()]
        [[5.0, 2.2], [0.0, 0.4]]
    """
    mode = _mode("qr", mode)
    return QRResult(*kernels.qr(as_matrix("qr", "x", x), mode))


def _square_qr_gradient(gq: ExTensor, gr: ExTensor, q: ExTensor, r: ExTensor) -> ExTensor:
    """dx = (dQ + Q s) R^-H,  s: Hermitian with the upper triangle of dR R^H - Q^H dQ; R square."""
    inner = matmul(gr, adjoint(r)) - matmul(adjoint(q), gq)
    above = triu(inner, 1)
    inner = above + adjoint(above) + diag_embed(cast_like(real(diagonal(inner)), inner))
    try:
        return adjoint(triangular_solve(r, adjoint(gq + matmul(q, inner)), True))
    except LinAlgError:
        raise LinAlgError(
            f"[qr_backward] x does not have full rank: Q is not differentiable there (R: {r.shape})"
        ) from None


def _qr_gradient(grads: Any, x: ExTensor, q: ExTensor, r: ExTensor, mode: str) -> ExTensor:
    rows, columns = x.shape[-2:]
    if mode == "complete" and rows > columns:
        raise NotImplementedError(
            f'[qr_backward] has no gradient for mode="complete" of a tall matrix {x.shape}; use mode="reduced"'
        )
    gq, gr = as_grads("qr_backward", grads, (q.shape, r.shape), x.dtype)
    if not x.size:
        return x * 0
    if rows >= columns:
        return _square_qr_gradient(gq, gr, q, r)
    # x = [a | b] with a square: a = Q U, b = Q V; the gradient of V reaches Q through V = Q^H b
    first, rest = gr[..., :rows], gr[..., rows:]
    by_a = _square_qr_gradient(gq + matmul(x[..., rows:], adjoint(rest)), first, q, r[..., :rows])
    return concatenate([by_a, matmul(q, rest)], -1)


@for_complex
def _qr_formula(grads: Any, x: ExTensor, Q: ExTensor, R: ExTensor, mode: str = "reduced") -> ExTensor:
    return cast_like(_qr_gradient(grads, x, *qr(x, mode), mode), x)


@backward_of(qr, from_results=("Q", "R"), takes_none=True, formula=_qr_formula)
def qr_backward(
    grad_output: tuple[ExTensor | None, ...], x: ExTensor, Q: ExTensor, R: ExTensor, mode: str = "reduced"
) -> ExTensor:
    """Gradient of :func:`qr`, where the leading columns are independent; else ``LinAlgError``.

    dx = (dQ + Q s) R^-H,  s: Hermitian with the upper triangle of dR R^H - Q^H dQ

    Args:
        grad_output: the gradients of Q and R; None for 0.
        x: the input.
        Q, R: the forward's results.
        mode: as given to :func:`qr`; "complete" of a tall matrix has no gradient (the added columns are arbitrary).

    Example:
        >>> import extensor as et
        >>> Q, R = et.linalg.qr(et.tensor([[-2.0]]))
        >>> et.linalg.qr_backward((None, et.ones((1, 1))), et.tensor([[-2.0]]), Q, R).tolist() == Q.tolist()
        True
    """
    mode = _mode("qr_backward", mode)
    x, q, r = (as_matrix("qr_backward", n, v) for n, v in (("x", x), ("Q", Q), ("R", R)))
    if x.dtype in HALF:  # the rounded factors are too coarse
        grads = [g.astype(float32) for g in as_grads("qr_backward", grad_output, (q.shape, r.shape), float32)]
        return cast_like(_qr_formula(grads, x.astype(float32), q, r, mode), x)
    return cast_like(_qr_gradient(grad_output, x, q, r, mode), x)
