"""Questions about the elements of a tensor. Their answers are no arrays, so a plan asks them again (see graph.plans)."""

from __future__ import annotations

import numpy as np

from ..dispatch import kernel
from ..namespace import xp

__all__ = ["first_nan", "first_outside", "first_unlike"]


def _first(marked):
    return tuple(int(i) for i in xp.argwhere(marked)[0]) if marked.any() else None


@kernel(exact=True)
def first_outside(x, low, high, allowed):
    """The position of the first element below ``low`` or above ``high`` (None: no bound) that is not ``allowed``; or None."""
    marked = xp.zeros(x.shape, np.bool_)
    if low is not None:
        marked = marked | (x < low)
    if high is not None:
        marked = marked | (x > high)
    if allowed is not None:
        marked = marked & (x != allowed)
    return _first(marked)


@kernel(exact=True)
def first_unlike(x, a, b):
    """The position of the first element that is neither ``a`` nor ``b``; or None."""
    return _first((x != a) & (x != b))


@kernel(exact=True)
def first_nan(x):
    """The position of the first nan; or None."""
    return _first(x != x)
