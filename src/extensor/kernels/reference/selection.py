"""Choosing between two operands."""

from __future__ import annotations

import numpy as np

from ...dtypes import bfloat16, promote
from ..dispatch import formula, kernel
from ..namespace import xp
from .broadcasting import summed_to

__all__ = ["where", "where_backward"]


@kernel(exact=True)
def where(condition, a, b):
    dtypes = [x.dtype for x in (a, b) if isinstance(x, np.ndarray)]
    if bfloat16 in dtypes:  # which NumPy does not promote
        wanted = promote(*dtypes)
        a, b = xp.asarray(a).astype(wanted), xp.asarray(b).astype(wanted)
    return xp.where(condition, a, b)


@formula
def where_backward(g, condition, shape_a, shape_b, needs):
    return (
        summed_to(xp.where(condition, g, 0.0), shape_a) if needs[0] else None,
        summed_to(xp.where(condition, 0.0, g), shape_b) if needs[1] else None,
    )
