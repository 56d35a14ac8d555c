"""The singular value decomposition with its gradient, and what is made of singular values."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..checks import as_bool, as_grad, takes_complex
from ..dtypes import COMPLEX, HALF, float32
from ..graph import backward_of, differentiable, for_complex
from ..kernels.reference import linalg as kernels
from ..ops._several import given_grads
from ..ops.casting import cast_like
from ..ops.complex_numbers import imag
from ..ops.diagonals import diag_embed, diagonal
from ..ops.elementwise import square
from ..ops.matrix import matmul
from ..ops.selection import where
from ..tensor import ExTensor
from ._common import LinAlgError, adjoint, as_matrix, as_tolerance, computed_wide, run
from ._degenerate import quotient, size_of

__all__ = ["SVDResult", "matrix_rank", "svd", "svd_backward", "svdvals", "svdvals_backward"]

_NO_CONVERGENCE = "the singular values did not converge"


class SVDResult(NamedTuple):
    """A matrix as a product ``U diag(S) Vh``.

    Attributes:
        U: orthonormal columns.
        S: the singular values, the largest first, never negative.
        Vh: orthonormal rows.
    """

    U: ExTensor
    S: ExTensor
    Vh: ExTensor


@differentiable
@takes_complex
def svd(x: ExTensor, full_matrices: bool = True) -> SVDResult:
    """The singular value decomposition.   x = U diag(S) Vh

    Args:
        x: a matrix, or a batch of them; nan and inf give nan.
        full_matrices: make U and Vh square; else they have as many columns and rows as there are singular values.

    Example:
        >>> import extensor as et
        >>> et.linalg.svd(et.tensor([[3.0, 0.0], [0.0, -4.0]])).S.tolist()
        [4.0, 3.0]
    """
    x = as_matrix("svd", "x", x)
    full = as_bool("svd", "full_matrices", full_matrices)
    return SVDResult(*run("svd", _NO_CONVERGENCE, kernels.svd, x, full))


def _skew(x: ExTensor) -> ExTensor:
    return x - adjoint(x)


def _svd_gradient(gu: Any, gs: Any, gvh: Any, u: ExTensor, s: ExTensor, vh: ExTensor) -> ExTensor:
    """The gradient from the reduced decomposition.

    With A = (U^H dU - h.c.) / E,  B = (V^H dV - h.c.) / E,  E_jk = s_k**2 - s_j**2, off the diagonal:
    dx = U (A S + S B + diag(dS)) V^H + (1 - U U^H) dU S^-1 V^H + U S^-1 dV^H (1 - V V^H)
    """
    rows, columns = s.unsqueeze(-1), s.unsqueeze(-2)
    uh, v = adjoint(u), adjoint(vh)
    inner = cast_like(diag_embed(s * 0 if gs is None else gs), u)
    top = s.numpy().max(-1, initial=0.0)[..., None, None]
    weight = size_of(gu, gvh)
    if gu is not None or gvh is not None:
        one = ExTensor(np.eye(s.shape[-1], dtype=s.dtype))
        turned = [
            t
            for t in (
                None if gu is None else matmul(uh, gu),
                None if gvh is None else matmul(vh, adjoint(gvh)),
            )
            if t is not None
        ]
        sizes = sum(np.abs(t.numpy()) for t in turned)
        involved = np.maximum(sizes, np.swapaxes(sizes, -1, -2))
        by_u = None if gu is None else _skew(turned[0])
        by_v = None if gvh is None else _skew(turned[-1])
        parts = (
            [by_u * columns]
            if by_v is None
            else [by_v * rows]
            if by_u is None
            else [by_u * columns, by_v * rows]
        )
        both = parts[0] if len(parts) == 1 else parts[0] + parts[1]
        difference = (square(columns) - square(rows)) * (1 - one) + one
        scale = top * top * (1 - one.numpy())
        inner = inner + quotient(both * (1 - one), difference, scale, involved, weight)
        if (
            u.dtype in COMPLEX
        ):  # the phase of each vector; a loss that does not depend on it has the same from U and V
            spin = imag(diagonal(by_u if by_u is not None else -by_v)) * 0.5  # type: ignore[operator]
            inner = inner + diag_embed(quotient(spin, s, top[..., 0], np.abs(spin.numpy()), weight) * 1j)
    found = matmul(matmul(u, inner), vh)
    if gu is not None and u.shape[-2] > s.shape[-1]:
        outside = gu - matmul(u, matmul(uh, gu))
        found = found + matmul(quotient(outside, columns, top, np.abs(outside.numpy()), weight), vh)
    if gvh is not None and vh.shape[-1] > s.shape[-1]:
        outside = gvh - matmul(matmul(gvh, v), vh)
        found = found + matmul(u, quotient(outside, rows, top, np.abs(outside.numpy()), weight))
    return found


def _reduced(
    function: str, grads: Any, x: ExTensor, u: ExTensor, s: ExTensor, vh: ExTensor
) -> tuple[Any, ...]:
    """The gradients and results of the reduced decomposition."""
    gu, gs, gvh = given_grads(function, grads, (u.shape, s.shape, vh.shape))
    k = s.shape[-1]
    for name, grad, count in (("U", gu, u.shape[-1]), ("Vh", gvh, vh.shape[-2])):
        if grad is not None and count > k:
            array = grad.numpy()
            if np.any(array[..., k:] if name == "U" else array[..., k:, :]):
                raise NotImplementedError(
                    f"[{function}] has no gradient for the columns that full_matrices=True added to {name}; "
                    "use full_matrices=False"
                )
    gu = None if gu is None else gu[..., :k]
    gvh = None if gvh is None else gvh[..., :k, :]
    return gu, gs, gvh, u[..., :k], s, vh[..., :k, :]


@for_complex
def _svd_formula(
    grads: Any, x: ExTensor, U: ExTensor, S: ExTensor, Vh: ExTensor, full_matrices: bool = True
) -> ExTensor:
    return cast_like(_svd_gradient(*_reduced("svd_backward", grads, x, *svd(x, full_matrices))), x)


@backward_of(svd, from_results=("U", "S", "Vh"), takes_none=True, formula=_svd_formula)
def svd_backward(
    grad_output: tuple[ExTensor | None, ...],
    x: ExTensor,
    U: ExTensor,
    S: ExTensor,
    Vh: ExTensor,
    full_matrices: bool = True,
) -> ExTensor:
    """Gradient of :func:`svd`.

    dx = U (A S + S B + diag(dS)) V^H + (1 - U U^H) dU S^-1 V^H + U S^-1 dV^H (1 - V V^H),
    A_jk = (U^H dU - dU^H U)_jk / (s_k**2 - s_j**2),  B the same of V

    Singular vectors of equal singular values are arbitrary up to a rotation: a loss that uses them has the gradient nan
    there. The singular values alone (dU and dV None or 0) always have a finite one.

    Args:
        grad_output: the gradients of U, S and Vh; None for 0.
        x: the input.
        U, S, Vh: the forward's results.
        full_matrices: as given to :func:`svd`; the columns it adds are arbitrary and have no gradient.

    Example:
        >>> import extensor as et
        >>> x = et.tensor([[3.0, 0.0], [0.0, 4.0]])
        >>> et.linalg.svd_backward((None, et.ones(2), None), x, *et.linalg.svd(x)).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    x, u, vh = (as_matrix("svd_backward", n, v) for n, v in (("x", x), ("U", U), ("Vh", Vh)))
    as_bool("svd_backward", "full_matrices", full_matrices)
    s = as_grad("svd_backward", S, (*x.shape[:-2], min(x.shape[-2:])))
    if x.dtype in HALF:  # the rounded factors are too coarse to divide by their differences
        wide = x.astype(float32)
        given = given_grads("svd_backward", grad_output, (u.shape, s.shape, vh.shape))
        grads = [None if g is None else g.astype(float32) for g in given]
        return cast_like(_svd_formula(grads, wide, u, s, vh, full_matrices), x)
    return cast_like(_svd_gradient(*_reduced("svd_backward", grad_output, x, u, s, vh)), x)


@differentiable
@takes_complex
def svdvals(x: ExTensor) -> ExTensor:
    """The singular values of a matrix, the largest first.

    Example:
        >>> import extensor as et
        >>> et.linalg.svdvals(et.tensor([[3.0, 0.0], [0.0, -4.0]])).tolist()
        [4.0, 3.0]
    """
    return run("svdvals", _NO_CONVERGENCE, kernels.svdvals, as_matrix("svdvals", "x", x))


@backward_of(svdvals)
@computed_wide
def svdvals_backward(grad_output: ExTensor, x: ExTensor) -> ExTensor:
    """Gradient of :func:`svdvals`, finite at equal singular values too.   dx = U diag(dy) Vh

    A singular value that is zero to working precision has the gradient 0, as the absolute value has it.

    Example:
        >>> import extensor as et
        >>> et.linalg.svdvals_backward(et.ones(2), et.tensor([[3.0, 0.0], [0.0, -4.0]])).tolist()
        [[1.0, 0.0], [0.0, -1.0]]
    """
    x = as_matrix("svdvals_backward", "x", x)
    grad = as_grad("svdvals_backward", grad_output, (*x.shape[:-2], min(x.shape[-2:])))
    u, s, vh = svd(x, False)
    sizes = s.numpy()
    zero = sizes <= as_tolerance("svdvals_backward", "rtol", None, x) * sizes.max(
        -1, initial=0, keepdims=True
    )
    return cast_like(matmul(u * where(zero, 0.0, grad).unsqueeze(-2), vh), x)


@takes_complex
def matrix_rank(x: ExTensor, rtol: Any = None) -> ExTensor:
    """How many singular values of a matrix are not zero, int64.

    Args:
        x: a matrix, or a batch of them.
        rtol: singular values up to ``rtol`` times the largest count as zero; by default the longer side times eps.

    Example:
        >>> import extensor as et
        >>> et.linalg.matrix_rank(et.ones((3, 3))).item()
        1
    """
    x = as_matrix("matrix_rank", "x", x)
    tolerance = as_tolerance("matrix_rank", "rtol", rtol, x)
    values = run("matrix_rank", _NO_CONVERGENCE, kernels.svdvals, x)
    if np.isnan(values.numpy()).any():
        raise LinAlgError(f"[matrix_rank] x holds nan or inf: it has no rank (shape {x.shape})")
    return kernels.matrix_rank(values, tolerance)
