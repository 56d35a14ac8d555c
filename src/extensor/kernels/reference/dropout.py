"""Dropout: some elements are dropped, the others grow so that the mean stays."""

from __future__ import annotations

from ..dispatch import formula, kernel
from ..namespace import xp

__all__ = ["dropout", "dropout_backward"]


def kept(x, mask, p):
    """``x / (1 - p)`` where the mask is true, else an exact 0."""
    return xp.where(mask, x * (1 / (1 - p) if p < 1 else 0.0), 0.0)


@kernel
def dropout(x, mask, p):
    return kept(x, mask, p)


@formula
def dropout_backward(g, mask, p):
    return kept(g, mask, p)
