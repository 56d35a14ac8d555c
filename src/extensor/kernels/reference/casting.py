"""Changing the dtype."""

from __future__ import annotations

from ..dispatch import kernel

__all__ = ["astype"]


@kernel(exact=True)
def astype(x, dtype):
    return x.astype(dtype)
