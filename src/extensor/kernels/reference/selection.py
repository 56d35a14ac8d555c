"""Choosing between two operands."""

from __future__ import annotations

import numpy as np

from ...dtypes import bfloat16, promote
from ..dispatch import kernel
from .broadcasting import summed_to

__all__ = ["where", "where_backward"]


@kernel(exact=True)
def where(condition, a, b):
    dtypes = [x.dtype for x in (a, b) if isinstance(x, np.ndarray)]
    if bfloat16 in dtypes:  # which NumPy does not promote
        wanted = promote(*dtypes)
        a, b = np.asarray(a).astype(wanted), np.asarray(b).astype(wanted)
    return np.where(condition, a, b)


@kernel
def where_backward(g, condition, shape_a, shape_b, needs):
    zero = np.zeros((), g.dtype)
    return (
        summed_to(np.where(condition, g, zero), shape_a) if needs[0] else None,
        summed_to(np.where(condition, zero, g), shape_b) if needs[1] else None,
    )
