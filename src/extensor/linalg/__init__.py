"""Linear algebra by LAPACK: solving, decomposing, norms and products, batched, each function with its gradient.

A matrix that a function cannot handle (singular, not positive definite) raises :class:`LinAlgError`, a ValueError.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from .._habits import LINALG as _LINALG
from .._habits import missing_from as _missing_from
from ..ops.diagonals import diagonal, diagonal_backward, trace, trace_backward
from ..ops.matrix import (
    matmul,
    matmul_backward,
    outer,
    outer_backward,
    tensordot,
    tensordot_backward,
)
from ._common import LinAlgError
from .decompositions import *  # noqa: F403
from .determinants import *  # noqa: F403
from .eigenvalues import *  # noqa: F403
from .norms import *  # noqa: F403
from .products import *  # noqa: F403
from .singular_values import *  # noqa: F403
from .solving import *  # noqa: F403

__all__ = [  # noqa: F405
    "LinAlgError",
    # systems
    "inv", "inv_backward", "solve", "solve_backward", "triangular_solve", "triangular_solve_backward", "pinv",
    "pinv_backward", "lstsq", "lstsq_backward", "LstsqResult",
    # determinants
    "det", "det_backward", "slogdet", "slogdet_backward", "SlogdetResult",
    # decompositions
    "cholesky", "cholesky_backward", "qr", "qr_backward", "QRResult", "svd", "svd_backward", "SVDResult", "svdvals",
    "svdvals_backward", "eigh", "eigh_backward", "EighResult", "eigvalsh", "eigvalsh_backward", "eig", "eig_backward",
    "EigResult", "eigvals", "eigvals_backward",
    # norms
    "norm", "norm_backward", "vector_norm", "vector_norm_backward", "matrix_norm", "matrix_norm_backward", "cond",
    "cond_backward", "matrix_rank",
    # products
    "matmul", "matmul_backward", "tensordot", "tensordot_backward", "outer", "outer_backward", "vecdot",
    "vecdot_backward", "cross", "cross_backward", "kron", "kron_backward", "multi_dot", "multi_dot_backward",
    "matrix_power", "matrix_power_backward", "matrix_exp", "matrix_exp_backward", "matrix_transpose",
    "matrix_transpose_backward", "diagonal", "diagonal_backward", "trace", "trace_backward",
]  # fmt: skip

if not _TYPE_CHECKING:
    __getattr__ = _missing_from(__name__, _LINALG)
