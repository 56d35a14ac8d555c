"""Linear algebra by LAPACK, through NumPy; axes before the last two are a batch.

A matrix that a method cannot handle raises ``numpy.linalg.LinAlgError``; the functions above give it a name and a shape.
Of a matrix with a nan or an inf the decompositions are nan, whatever LAPACK says; its neighbours in a batch are not.
"""

from __future__ import annotations

import functools
import importlib
import math

import numpy as np

from ...checks import broadcast_shape
from ..dispatch import kernel
from ..namespace import as_whole, common_dtype, namespace_of, wide_dtype, xp

__all__ = [
    "cholesky", "det", "det_backward", "eig", "eigh", "eigvals", "eigvalsh", "inv", "matrix_exp", "matrix_rank", "pinv", "qr",
    "slogdet", "solve", "svd", "svdvals", "triangular_solve", "vector_norm",
]  # fmt: skip

BLOCK = 32  # below this size a triangular block is solved by LU
MANY_SMALL = 16  # up to this size many matrices are solved row by row


def adjoint(x):
    """Rows and columns exchanged, conjugated."""
    return xp.swapaxes(x, -1, -2).conj()


def hermitian(x):
    """The part of ``x`` that equals its own adjoint."""
    half = x * x.dtype.type(0.5)
    return half + (adjoint(half) if x.dtype.kind == "c" else xp.swapaxes(half, -1, -2))


def where_finite(method, x):
    """``method(x)``, with nan for the matrices that are not finite."""
    finite = xp.isfinite(x)
    if namespace_of(x) is np and finite.all():
        return method(x)
    bad = ~finite.all((-2, -1))
    unit = xp.eye(*x.shape[-2:], dtype=x.dtype)
    found = method(xp.where(bad[..., None, None], unit, x))
    parts = [
        xp.where(xp.expand_dims(bad, tuple(range(bad.ndim, y.ndim))), np.nan, y).astype(y.dtype)
        for y in _parts(found)
    ]
    return tuple(parts) if isinstance(found, tuple) else parts[0]


def _parts(found):
    return found if isinstance(found, tuple) else (found,)


@kernel
def inv(x):
    return xp.linalg.inv(x)


@kernel
def solve(a, b):
    dtype = common_dtype(a, b)
    return xp.linalg.solve(a.astype(dtype, copy=False), b.astype(dtype, copy=False))


@kernel
def triangular_solve(a, b, upper, unit_diagonal):
    dtype = common_dtype(a, b)
    a, b = a.astype(dtype, copy=False), b.astype(dtype, copy=False)
    n, count = a.shape[-1], math.prod(broadcast_shape(a.shape[:-2], b.shape[:-2]))
    if namespace_of(a, b) is np:  # elsewhere a singular matrix has a solution that is not finite
        if not unit_diagonal and (np.diagonal(a, 0, -2, -1) == 0).any():
            raise np.linalg.LinAlgError("a zero on the diagonal")
        if n <= MANY_SMALL and count >= 4 * n:
            return _row_by_row(a, b, upper, unit_diagonal)
        lapack = _lapack() if count == 1 and n else None
        if lapack is not None:
            return _by_lapack(lapack, a.reshape(n, n), b.reshape(n, -1), upper, unit_diagonal).reshape(
                (*broadcast_shape(a.shape[:-2], b.shape[:-2]), n, b.shape[-1])
            )
    a = xp.triu(a) if upper else xp.tril(a)
    if unit_diagonal:
        a = a - a * xp.eye(n, dtype=a.dtype) + xp.eye(n, dtype=a.dtype)
    return _substituted(a, b, upper)


@functools.cache
def _lapack():
    """SciPy's LAPACK, where there is SciPy; loading it takes a while."""
    try:
        return importlib.import_module("scipy.linalg.lapack")
    except ImportError:
        return None


_PREFIX = {"f": {4: "s", 8: "d"}, "c": {8: "c", 16: "z"}}


def _by_lapack(lapack, a, b, upper, unit_diagonal):
    """One matrix by LAPACK's trtrs. Rows in memory are its columns: it sees the transpose, of the other triangle."""
    solve_triangle = getattr(lapack, f"{_PREFIX[a.dtype.kind][a.dtype.itemsize]}trtrs")
    turned = a.flags.c_contiguous
    found, _ = solve_triangle(
        a.T if turned else a,
        b,
        lower=upper if turned else not upper,
        trans=int(turned),
        unitdiag=unit_diagonal,
    )
    return np.ascontiguousarray(found)


def _row_by_row(a, b, upper, unit_diagonal):
    """Many small matrices: one row of all of them after the other."""
    n = a.shape[-1]
    shape = (*broadcast_shape(a.shape[:-2], b.shape[:-2]), n, b.shape[-1])
    x = np.array(np.broadcast_to(b, shape))
    for i in range(n - 1, -1, -1) if upper else range(n):
        known = slice(i + 1, n) if upper else slice(0, i)
        if i != (n - 1 if upper else 0):
            x[..., i, :] -= (a[..., i, known, None] * x[..., known, :]).sum(-2)
        if not unit_diagonal:
            x[..., i, :] /= a[..., i, i, None]
    return x


def _substituted(a, b, upper):
    """Back substitution by halves: the work is in matrix products."""
    n = a.shape[-1]
    if n <= BLOCK:
        return xp.linalg.solve(a, b)
    k = n // 2
    if upper:
        below = _substituted(a[..., k:, k:], b[..., k:, :], upper)
        above = _substituted(a[..., :k, :k], b[..., :k, :] - a[..., :k, k:] @ below, upper)
    else:
        above = _substituted(a[..., :k, :k], b[..., :k, :], upper)
        below = _substituted(a[..., k:, k:], b[..., k:, :] - a[..., k:, :k] @ above, upper)
    return xp.concatenate([above, below], -2)


@kernel
def det(x):
    return xp.asarray(xp.linalg.det(x))


@kernel
def slogdet(x):
    return tuple(map(xp.asarray, xp.linalg.slogdet(x)))


@kernel
def det_backward(g, x):
    # The matrix of cofactors. By the inverse where that is exact, else by the singular values: they need no division.
    n = x.shape[-1]
    if not x.size:
        return xp.zeros_like(x)
    if namespace_of(x) is not np:
        return g[..., None, None] * _cofactors(x)
    limit = 1 / (10 * n * np.finfo(x.dtype).eps)
    flat, cofactors = x.reshape(-1, n, n), np.empty(x.shape, x.dtype).reshape(-1, n, n)
    for i, matrix in enumerate(flat):
        try:
            inverse = xp.linalg.inv(matrix)
            sure = xp.abs(matrix).sum(0).max() * xp.abs(inverse).sum(0).max() < limit
        except np.linalg.LinAlgError:
            sure = False
        cofactors[i] = adjoint(xp.linalg.det(matrix) * inverse) if sure else _cofactors(matrix)
    return g[..., None, None] * cofactors.reshape(x.shape)


def _cofactors(x):
    """Of matrices of any rank."""
    u, s, vh = where_finite(lambda m: tuple(xp.linalg.svd(m)), x)
    ones = xp.ones_like(s[..., :1])
    before = xp.concatenate([ones, s], -1).cumprod(-1)[..., :-1]
    after = xp.concatenate([ones, s[..., ::-1]], -1).cumprod(-1)[..., :-1][..., ::-1]
    sign = xp.linalg.det(u) * xp.linalg.det(vh)
    return xp.conj(sign)[..., None, None] * ((u * (before * after)[..., None, :]) @ vh)


@kernel
def cholesky(x, upper):
    return where_finite(lambda m: xp.linalg.cholesky(hermitian(m), upper=upper), x)


@kernel
def qr(x, mode):
    return tuple(xp.linalg.qr(x, mode))


@kernel
def svd(x, full_matrices):
    return where_finite(lambda m: tuple(xp.linalg.svd(m, full_matrices)), x)


@kernel
def svdvals(x):
    return where_finite(lambda m: xp.linalg.svd(m, compute_uv=False), x)


@kernel
def eigh(x):
    return where_finite(lambda m: tuple(xp.linalg.eigh(hermitian(m))), x)


@kernel
def eigvalsh(x):
    return where_finite(lambda m: xp.linalg.eigvalsh(hermitian(m)), x)


@kernel
def eig(x):
    values, vectors = where_finite(lambda m: tuple(xp.linalg.eig(m)), x)
    dtype = common_dtype(x, np.complex64)
    return values.astype(dtype), vectors.astype(dtype)


@kernel
def eigvals(x):
    # LAPACK finds eigenvalues alone in another order; the gradient needs them beside their vectors
    return where_finite(lambda m: xp.linalg.eig(m)[0], x).astype(common_dtype(x, np.complex64))


@kernel
def pinv(x, rtol):
    u, s, vh = where_finite(lambda m: tuple(xp.linalg.svd(m, full_matrices=False)), x)
    kept = s > xp.asarray(rtol)[..., None] * s.max(-1, keepdims=True, initial=0)
    inverse = xp.where(kept, 1 / xp.where(kept, s, 1), 0 * s).astype(s.dtype)
    return adjoint(vh) @ (inverse[..., None] * adjoint(u))


@kernel
def vector_norm(x, ord, axes, keepdims):
    sizes = xp.abs(x)
    dtype = sizes.dtype
    if ord in (np.inf, -np.inf):
        return (
            sizes.max(axes, keepdims=keepdims, initial=0) if ord > 0 else sizes.min(axes, keepdims=keepdims)
        )
    if ord == 0:
        return xp.asarray((sizes != 0).sum(axes, keepdims=keepdims)).astype(dtype)
    sizes = sizes.astype(wide_dtype(sizes), copy=False)
    if ord == 1:
        found = sizes.sum(axes, keepdims=keepdims)
    elif ord == 2:
        found = xp.sqrt(xp.square(sizes).sum(axes, keepdims=keepdims))
    else:
        found = (sizes**ord).sum(axes, keepdims=keepdims) ** (1 / ord)
    return xp.asarray(found).astype(dtype)


@kernel
def matrix_rank(s, rtol):
    return as_whole((s > xp.asarray(rtol)[..., None] * s.max(-1, keepdims=True, initial=0)).sum(-1))


# Padé coefficients of exp of degree 13, and the norm up to which they are exact in float64
PADE = (
    64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0, 10559470521600.0,
    670442572800.0, 33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0,
)  # fmt: skip
PADE_NORM = 5.371920351148152
MOST_HALVINGS = 16  # exp of a norm above 5 * 2**16 is not finite


@kernel
def matrix_exp(x):
    # Scaling and squaring: exp(x) = exp(x / 2**k)**(2**k), the inner one by a quotient of polynomials.
    if not x.size:
        return x.copy()
    dtype = x.dtype
    x = x.astype(common_dtype(x, np.float64), copy=False)
    norms = xp.abs(x).sum(-2).max(-1)
    finite = xp.isfinite(norms)
    if namespace_of(x) is not np or not finite.all():
        x = xp.where(finite[..., None, None], x, 0)
    halvings = xp.ceil(xp.log2(xp.maximum(xp.where(finite, norms, 0) / PADE_NORM, 1))).astype(int)
    x = x / (2.0**halvings)[..., None, None]
    unit = xp.eye(x.shape[-1], dtype=x.dtype)
    x2 = x @ x
    x4 = x2 @ x2
    x6 = x4 @ x2
    b = PADE
    odd = x @ (x6 @ (b[13] * x6 + b[11] * x4 + b[9] * x2) + b[7] * x6 + b[5] * x4 + b[3] * x2 + b[1] * unit)
    even = x6 @ (b[12] * x6 + b[10] * x4 + b[8] * x2) + b[6] * x6 + b[4] * x4 + b[2] * x2 + b[0] * unit
    y = xp.linalg.solve(even - odd, even + odd)
    # where the norms are not known yet: as often as a dtype has exponents
    most = int(halvings.max(initial=0)) if namespace_of(x) is np else MOST_HALVINGS
    for step in range(most):
        y = xp.where((step < halvings)[..., None, None], y @ y, y)
    return xp.where(finite[..., None, None], y, np.nan).astype(dtype)
