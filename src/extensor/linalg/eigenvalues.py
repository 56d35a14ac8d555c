"""Eigenvalues and eigenvectors, each with its gradient."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..checks import as_grad, takes_complex
from ..dtypes import COMPLEX, HALF, float32
from ..graph import backward_of, differentiable, for_complex
from ..kernels.dispatch import widen
from ..kernels.reference import linalg as kernels
from ..ops._several import given_grads
from ..ops.casting import cast_like
from ..ops.complex_numbers import conj, real
from ..ops.diagonals import diag_embed, diagonal
from ..ops.matrix import matmul
from ..tensor import ExTensor
from ._common import adjoint, as_matrix, as_square, computed_wide, hermitian, run
from ._degenerate import quotient, size_of
from .solving import solve

__all__ = [
    "EigResult", "EighResult", "eig", "eig_backward", "eigh", "eigh_backward", "eigvals", "eigvals_backward", "eigvalsh",
    "eigvalsh_backward",
]  # fmt: skip

_NO_CONVERGENCE = "the eigenvalues did not converge"


class EighResult(NamedTuple):
    """The eigenvalues of a symmetric matrix, the smallest first, and orthonormal eigenvectors in columns."""

    eigenvalues: ExTensor
    eigenvectors: ExTensor


@differentiable
@takes_complex
def eigh(x: ExTensor) -> EighResult:
    """Eigenvalues and eigenvectors of a symmetric (Hermitian) matrix.   (x + x^H) / 2 = V diag(w) V^H

    Args:
        x: a matrix, or a batch of them; what is not symmetric of it is left out.

    Example:
        >>> import extensor as et
        >>> et.linalg.eigh(et.tensor([[3.0, 0.0], [0.0, -4.0]])).eigenvalues.tolist()
        [-4.0, 3.0]
    """
    x = as_square("eigh", "x", x)
    return EighResult(*run("eigh", _NO_CONVERGENCE, kernels.eigh, x))


def _involved(turned: ExTensor) -> np.ndarray:
    """For each pair of vectors the size of the gradients that mix them."""
    sizes = np.abs(turned.numpy())
    return np.maximum(sizes, np.swapaxes(sizes, -1, -2))


def _eigh_gradient(grads: Any, w: ExTensor, v: ExTensor) -> ExTensor:
    gw, gv = grads
    inner = cast_like(diag_embed(w * 0 if gw is None else gw), v)
    if gv is not None:
        n = w.shape[-1]
        one = ExTensor(np.eye(n, dtype=w.dtype))
        rows, columns = w.unsqueeze(-1), w.unsqueeze(-2)
        turned = matmul(adjoint(v), gv)
        involved = _involved(turned)
        # only its skew part can belong to a change of orthonormal vectors
        turned = (turned - adjoint(turned)) * 0.5 * (1 - one)
        scale = np.abs(w.numpy()).max(-1, initial=0.0)[..., None, None] * (1 - np.eye(n))
        difference = (columns - rows) * (1 - one) + one
        inner = inner + quotient(turned, difference, scale, involved, size_of(gv))
    return hermitian(matmul(matmul(v, inner), adjoint(v)))


def _eigh_grads(grads: Any, w: ExTensor, v: ExTensor) -> Any:
    return given_grads("eigh_backward", grads, (w.shape, v.shape))


@for_complex
def _eigh_formula(grads: Any, x: ExTensor, eigenvalues: ExTensor, eigenvectors: ExTensor) -> ExTensor:
    w, v = eigh(x)
    return cast_like(_eigh_gradient(_eigh_grads(grads, w, v), w, v), x)


@backward_of(eigh, from_results=("eigenvalues", "eigenvectors"), takes_none=True, formula=_eigh_formula)
def eigh_backward(
    grad_output: tuple[ExTensor | None, ...], x: ExTensor, eigenvalues: ExTensor, eigenvectors: ExTensor
) -> ExTensor:
    """Gradient of :func:`eigh`; it is symmetric, as the input is.

    dx = V (diag(dw) + (V^H dV)_jk / (w_k - w_j)) V^H

    Eigenvectors of equal eigenvalues are arbitrary up to a rotation: a loss that uses them has the gradient nan there.
    The eigenvalues alone (dV None or 0) always have a finite one.

    Args:
        grad_output: the gradients of eigenvalues and eigenvectors; None for 0.
        x: the input.
        eigenvalues, eigenvectors: the forward's results.

    Example:
        >>> import extensor as et
        >>> x = et.eye(2)
        >>> et.linalg.eigh_backward((et.ones(2), None), x, *et.linalg.eigh(x)).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    x, v = as_square("eigh_backward", "x", x), as_matrix("eigh_backward", "eigenvectors", eigenvectors)
    w = as_grad("eigh_backward", eigenvalues, x.shape[:-1])
    if x.dtype in HALF:  # the rounded values are too coarse to divide by their differences
        grads = [None if g is None else g.astype(float32) for g in _eigh_grads(grad_output, w, v)]
        return cast_like(_eigh_formula(grads, x.astype(float32), w, v), x)
    return cast_like(_eigh_gradient(_eigh_grads(grad_output, w, v), widen(w), widen(v)), x)


@differentiable
@takes_complex
def eigvalsh(x: ExTensor) -> ExTensor:
    """The eigenvalues of a symmetric (Hermitian) matrix, the smallest first.

    Args:
        x: a matrix, or a batch of them; what is not symmetric of it is left out.

    Example:
        >>> import extensor as et
        >>> et.linalg.eigvalsh(et.tensor([[3.0, 0.0], [0.0, -4.0]])).tolist()
        [-4.0, 3.0]
    """
    x = as_square("eigvalsh", "x", x)
    return run("eigvalsh", _NO_CONVERGENCE, kernels.eigvalsh, x)


@backward_of(eigvalsh)
@computed_wide
def eigvalsh_backward(grad_output: ExTensor, x: ExTensor) -> ExTensor:
    """Gradient of :func:`eigvalsh`, finite at equal eigenvalues too.   dx = V diag(dy) V^H

    Example:
        >>> import extensor as et
        >>> et.linalg.eigvalsh_backward(et.ones(2), et.eye(2)).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    x = as_square("eigvalsh_backward", "x", x)
    grad = as_grad("eigvalsh_backward", grad_output, x.shape[:-1])
    v = eigh(x).eigenvectors
    return cast_like(hermitian(matmul(v * grad.unsqueeze(-2), adjoint(v))), x)


class EigResult(NamedTuple):
    """The eigenvalues of a matrix and its eigenvectors of length 1 in columns; always complex."""

    eigenvalues: ExTensor
    eigenvectors: ExTensor


@differentiable
@takes_complex
def eig(x: ExTensor) -> EigResult:
    """Eigenvalues and eigenvectors of a square matrix, complex, in no order.   x V = V diag(w)

    Args:
        x: a matrix, or a batch of them; nan and inf give nan.

    Example:
        >>> import extensor as et
        >>> et.linalg.eig(et.tensor([[0.0, 1.0], [-1.0, 0.0]])).eigenvalues.tolist()
        [1j, -1j]
    """
    x = as_square("eig", "x", x)
    return EigResult(*run("eig", _NO_CONVERGENCE, kernels.eig, x))


def _eig_gradient(grads: Any, x: ExTensor, w: ExTensor, v: ExTensor) -> ExTensor:
    gw, gv = grads
    inner = diag_embed(w * 0 if gw is None else gw)
    vh = adjoint(v)
    if gv is not None:
        n = w.shape[-1]
        one = ExTensor(np.eye(n, dtype=x.numpy().real.dtype))
        turned = matmul(vh, gv)
        # the part of dV along each vector changes its length, which is 1
        turned = (turned - matmul(vh, v) * real(diagonal(turned)).unsqueeze(-2)) * (1 - one)
        difference = conj(w.unsqueeze(-2) - w.unsqueeze(-1)) * (1 - one) + one
        scale = np.abs(w.numpy()).max(-1, initial=0.0)[..., None, None] * (1 - np.eye(n))
        inner = inner + quotient(turned, difference, scale, _involved(turned), size_of(gv))
    found = solve(vh, matmul(inner, vh))
    return found if x.dtype in COMPLEX else real(found)


def _eig_grads(grads: Any, w: ExTensor, v: ExTensor) -> Any:
    return given_grads("eig_backward", grads, (w.shape, v.shape))


@for_complex
def _eig_formula(grads: Any, x: ExTensor, eigenvalues: ExTensor, eigenvectors: ExTensor) -> ExTensor:
    w, v = eig(x)
    return cast_like(_eig_gradient(_eig_grads(grads, w, v), x, w, v), x)


@backward_of(eig, from_results=("eigenvalues", "eigenvectors"), takes_none=True, formula=_eig_formula)
def eig_backward(
    grad_output: tuple[ExTensor | None, ...], x: ExTensor, eigenvalues: ExTensor, eigenvectors: ExTensor
) -> ExTensor:
    """Gradient of :func:`eig`.

    dx = V^-H (diag(dw) + (V^H dV - V^H V Re diag(V^H dV))_jk / conj(w_k - w_j)) V^H

    Equal eigenvalues as in :func:`eigh_backward`; a matrix without a full set of eigenvectors raises ``LinAlgError``.

    Args:
        grad_output: the gradients of eigenvalues and eigenvectors, complex; None for 0.
        x: the input.
        eigenvalues, eigenvectors: the forward's results.

    Example:
        >>> import extensor as et
        >>> x = et.tensor([[2.0]])
        >>> et.linalg.eig_backward((et.ones(1, et.complex64), None), x, *et.linalg.eig(x)).tolist()
        [[1.0]]
    """
    x, v = as_square("eig_backward", "x", x), as_matrix("eig_backward", "eigenvectors", eigenvectors)
    w = as_grad("eig_backward", eigenvalues, x.shape[:-1])
    return cast_like(_eig_gradient(_eig_grads(grad_output, w, v), x, w, v), x)


@differentiable
@takes_complex
def eigvals(x: ExTensor) -> ExTensor:
    """The eigenvalues of a square matrix, complex, in no order.

    Example:
        >>> import extensor as et
        >>> et.linalg.eigvals(et.tensor([[0.0, 1.0], [-1.0, 0.0]])).tolist()
        [1j, -1j]
    """
    x = as_square("eigvals", "x", x)
    return run("eigvals", _NO_CONVERGENCE, kernels.eigvals, x)


@backward_of(eigvals)
def eigvals_backward(grad_output: ExTensor, x: ExTensor) -> ExTensor:
    """Gradient of :func:`eigvals`.   dx = V^-H diag(dy) V^H

    Example:
        >>> import extensor as et
        >>> et.linalg.eigvals_backward(et.ones(1, et.complex64), et.tensor([[2.0]])).tolist()
        [[1.0]]
    """
    x = as_square("eigvals_backward", "x", x)
    grad = as_grad("eigvals_backward", grad_output, x.shape[:-1])
    w, v = eig(x)
    return cast_like(_eig_gradient((grad, None), x, w, v), x)
