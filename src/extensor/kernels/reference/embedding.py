"""Rows of a table, and the adjoint: adding at rows that may repeat. Sums of float32 add up in float64.

``indices`` are int64 and already within 0 .. rows - 1.
"""

from __future__ import annotations

from ..dispatch import kernel
from ..namespace import assigned, zeros
from .indexing import added_at

__all__ = ["embedding", "embedding_backward"]


@kernel(exact=True)
def embedding(indices, weight, padding_idx):
    """The padding counts for the gradient alone."""
    return weight[indices]


@kernel
def embedding_backward(g, indices, shape, padding_idx):
    """The row ``padding_idx`` gets nothing; it may be None."""
    total = added_at(zeros(shape, g.dtype, g), (indices,), g)
    if padding_idx is not None:
        total = assigned(total, padding_idx, 0)
    return total
