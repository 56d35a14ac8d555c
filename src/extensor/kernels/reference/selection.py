"""Choosing between two operands."""

from __future__ import annotations

import numpy as np

from ..dispatch import kernel
from .broadcasting import summed_to

__all__ = ["where", "where_backward"]


@kernel(exact=True)
def where(condition, a, b):
    return np.where(condition, a, b)


@kernel
def where_backward(g, condition, shape_a, shape_b, needs):
    zero = np.zeros((), g.dtype)
    return (
        summed_to(np.where(condition, g, zero), shape_a) if needs[0] else None,
        summed_to(np.where(condition, zero, g), shape_b) if needs[1] else None,
    )
