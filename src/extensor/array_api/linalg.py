"""The extension linalg of the standard: :mod:`extensor.linalg` with the standard's signatures."""

from __future__ import annotations

from typing import Any

from .. import linalg as ours
from .. import ops
from ..dtypes import as_dtype
from ..tensor import ExTensor
from ._arrays import matmul, matrix_transpose, tensordot, vecdot
from ._shapes_of_calls import unary

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power",
    "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot", "trace", "vecdot",
    "vector_norm",
]  # fmt: skip

det, eig, eigh, eigvals, eigvalsh, inv, slogdet, svdvals = map(
    unary, (ours.det, ours.eig, ours.eigh, ours.eigvals, ours.eigvalsh, ours.inv, ours.slogdet, ours.svdvals)
)


def cholesky(x: ExTensor, /, *, upper: bool = False) -> ExTensor:
    """The triangular factor of a positive definite matrix."""
    return ours.cholesky(x, upper)


def cross(x1: ExTensor, x2: ExTensor, /, *, axis: int = -1) -> ExTensor:
    """The cross product of vectors of three numbers."""
    return ours.cross(x1, x2, axis)


def diagonal(x: ExTensor, /, *, offset: int = 0) -> ExTensor:
    """The diagonal of a matrix."""
    return ops.diagonal(x, offset)


def matrix_norm(x: ExTensor, /, *, keepdims: bool = False, ord: Any = "fro") -> ExTensor:
    """The norm of a matrix."""
    return ours.matrix_norm(x, ord, keepdims)


def matrix_power(x: ExTensor, n: int, /) -> ExTensor:
    """A square matrix multiplied with itself."""
    return ours.matrix_power(x, n)


def matrix_rank(x: ExTensor, /, *, rtol: Any = None) -> ExTensor:
    """How many singular values are not zero."""
    return ours.matrix_rank(x, rtol)


def outer(x1: ExTensor, x2: ExTensor, /) -> ExTensor:
    """Every element of one vector times every element of the other."""
    return ops.outer(x1, x2)


def pinv(x: ExTensor, /, *, rtol: Any = None) -> ExTensor:
    """The pseudo-inverse of a matrix."""
    return ours.pinv(x, rtol)


def qr(x: ExTensor, /, *, mode: str = "reduced") -> Any:
    """Orthonormal columns times an upper triangle."""
    return ours.qr(x, mode)


def solve(x1: ExTensor, x2: ExTensor, /) -> ExTensor:
    """The solution of a linear system."""
    return ours.solve(x1, x2)


def svd(x: ExTensor, /, *, full_matrices: bool = True) -> Any:
    """The singular value decomposition."""
    return ours.svd(x, full_matrices)


def trace(x: ExTensor, /, *, offset: int = 0, dtype: Any = None) -> ExTensor:
    """The sum along a diagonal."""
    if dtype is None:
        return ops.trace(x, offset)
    wanted = as_dtype("trace", dtype)
    return ops.astype(ops.trace(ops.astype(x, wanted), offset), wanted)


def vector_norm(x: ExTensor, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> ExTensor:
    """The length of vectors."""
    return ours.vector_norm(x, ord, axis, keepdims)
