"""The functions that are defined for complex numbers."""

from __future__ import annotations

__all__ = ["TAKES_COMPLEX"]

_WITH_GRADIENT = """
    astype copy add subtract multiply divide power negate abs square reciprocal round where
    exp expm1 log log1p log2 log10 sqrt sin cos tan asin acos atan sinh cosh tanh
    conj real imag angle
    matmul dot inner outer tensordot einsum transpose
    sum mean prod cumsum cumprod
    broadcast_to sum_to_shape reshape squeeze unsqueeze expand_dims flatten ravel moveaxis swapaxes flip roll permute
    concatenate stack split tile repeat pad index index_add index_set take take_along_axis
    tril triu diag diag_embed diagonal trace diff meshgrid unstack broadcast_arrays hstack vstack dstack column_stack gather scatter scatter_add
    inv solve triangular_solve pinv lstsq det slogdet cholesky qr svd svdvals eigh eigvalsh eig eigvals
    norm vector_norm matrix_norm cond cross kron multi_dot matrix_power matrix_exp matrix_transpose vecdot
    fft ifft rfft irfft fft2 ifft2 fftn ifftn rfftn irfftn hfft ihfft fftshift ifftshift
    asinh acosh atanh
"""
_WITHOUT = """
    asarray tensor zeros_like ones_like empty_like full_like equal not_equal isnan isinf isfinite any all count_nonzero
    matrix_rank sign nonzero isclose allclose logical_and logical_or logical_xor logical_not isin
    unique unique_all unique_counts unique_inverse unique_values
"""

TAKES_COMPLEX = frozenset(
    [*_WITH_GRADIENT.split(), *(f"{name}_backward" for name in _WITH_GRADIENT.split()), *_WITHOUT.split()]
)
