"""Determinants, each with its gradient."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..checks import as_grad, takes_complex
from ..dtypes import COMPLEX
from ..graph import backward_of, differentiable, for_complex
from ..kernels.reference import linalg as kernels
from ..ops._several import given_grads
from ..ops.casting import cast_like
from ..ops.complex_numbers import conj, imag
from ..tensor import ExTensor
from ._common import adjoint, as_square, computed_wide
from .solving import inv

__all__ = ["SlogdetResult", "det", "det_backward", "slogdet", "slogdet_backward"]


@differentiable
@takes_complex
def det(x: ExTensor) -> ExTensor:
    """The determinant of a square matrix, or of each of a batch.

    Example:
        >>> import extensor as et
        >>> round(et.linalg.det(et.tensor([[1.0, 2.0], [3.0, 4.0]])).item(), 5)
        -2.0
    """
    return kernels.det(as_square("det", "x", x))


@for_complex
def _det_formula(g: ExTensor, x: ExTensor) -> ExTensor:
    return (g * conj(det(x))).reshape((*x.shape[:-2], 1, 1)) * adjoint(inv(x))


@backward_of(det, formula=_det_formula)
def det_backward(grad_output: ExTensor, x: ExTensor) -> ExTensor:
    """Gradient of :func:`det`: the matrix of cofactors, of a singular matrix as well.   dx = dy det(x) x^-H

    A second derivative is found for regular matrices alone; others raise ``LinAlgError`` there.

    Example:
        >>> import extensor as et
        >>> et.linalg.det_backward(et.tensor(1.0), et.tensor([[3.0, 0.0], [0.0, 0.0]])).tolist()
        [[0.0, 0.0], [0.0, 3.0]]
    """
    x = as_square("det_backward", "x", x)
    return cast_like(kernels.det_backward(as_grad("det_backward", grad_output, x.shape[:-2]), x), x)


class SlogdetResult(NamedTuple):
    """A determinant in two parts: ``sign * exp(logabsdet)``.

    Attributes:
        sign: 1, -1, 0 for a singular matrix, or a complex number of length 1.
        logabsdet: the logarithm of its absolute value; -inf for a singular matrix.
    """

    sign: ExTensor
    logabsdet: ExTensor


@differentiable
@takes_complex
def slogdet(x: ExTensor) -> SlogdetResult:
    """Sign and logarithm of the determinant, which never overflow.   det(x) = sign exp(logabsdet)

    Example:
        >>> import extensor as et
        >>> et.linalg.slogdet(et.tensor([[1.0, 0.0], [0.0, -1.0]])).sign.item()
        -1.0
    """
    return SlogdetResult(*kernels.slogdet(as_square("slogdet", "x", x)))


@backward_of(slogdet, takes_none=True)
@computed_wide
def slogdet_backward(grad_output: tuple[ExTensor | None, ...], x: ExTensor) -> ExTensor:
    """Gradient of :func:`slogdet`.   dx = (dlog - i Im(conj(dsign) sign)) x^-H

    A real sign has the gradient 0. A singular matrix raises ``LinAlgError``: -inf has no gradient.

    Args:
        grad_output: the gradients of sign and logabsdet; None for 0.
        x: the input.

    Example:
        >>> import extensor as et
        >>> et.linalg.slogdet_backward((None, et.tensor(1.0)), et.tensor([[2.0]])).tolist()
        [[0.5]]
    """
    x = as_square("slogdet_backward", "x", x)
    batch = x.shape[:-2]
    by_sign, by_log = given_grads("slogdet_backward", grad_output, (batch, batch))
    scale = ExTensor(np.zeros(batch, x.dtype))
    if by_log is not None:
        scale = scale + by_log
    if by_sign is not None and x.dtype in COMPLEX:
        scale = scale - imag(conj(by_sign) * slogdet(x).sign) * 1j
    if not np.any(scale.numpy()) and not scale.requires_grad:
        return cast_like(x * 0, x)
    return cast_like(scale.reshape((*batch, 1, 1)) * adjoint(inv(x)), x)
