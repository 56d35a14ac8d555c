"""Changing the dtype."""

from __future__ import annotations

import numpy as np

from ..dispatch import kernel

__all__ = ["astype"]


@kernel(exact=True)
def astype(x, dtype):
    if x.dtype.kind == "c" and np.dtype(dtype).kind in "fiuV":  # bfloat16 is of kind V
        x = x.real
    return x.astype(dtype)
