"""Several tensors into one, one into several, and one repeated."""

from __future__ import annotations

from itertools import pairwise

from ..dispatch import kernel
from ..namespace import assigned, xp, zeros

__all__ = ["concatenate", "pad", "split", "stack", "tile"]


@kernel(exact=True)
def concatenate(tensors, axis, dtype):
    """The elements arrive in the result's dtype."""
    return xp.concatenate(tensors, axis, dtype=dtype)


@kernel(exact=True)
def stack(tensors, axis, dtype):
    return xp.stack(tensors, axis, dtype=dtype)


@kernel(exact=True)
def split(x, bounds, axis):
    """Views of ``x`` between neighbouring ``bounds`` along ``axis``; the bounds run from 0 to its length."""
    before = (slice(None),) * axis
    return [x[(*before, slice(low, high))] for low, high in pairwise(bounds)]


@kernel(exact=True)
def tile(x, reps):
    """One repetition count per axis of ``x``."""
    interleaved = [n for pair in zip(reps, x.shape) for n in pair]
    axes = x.reshape([n for length in x.shape for n in (1, length)])
    return xp.broadcast_to(axes, interleaved).reshape([r * n for r, n in zip(reps, x.shape)])


@kernel(exact=True)
def pad(x, widths, mode, values):
    """(before, after) widths and values per axis; the mode is "constant". Where two axes pad the same corner the later one decides."""
    out = zeros([n + before + after for n, (before, after) in zip(x.shape, widths)], x.dtype, x)
    inner = [slice(before, before + n) for n, (before, _) in zip(x.shape, widths)]
    out = assigned(out, tuple(inner), x)
    for axis, ((before, _), (low, high)) in enumerate(zip(widths, values)):
        # axes before this one are already padded, axes after it are still bare
        region = [slice(None)] * (axis + 1) + inner[axis + 1 :]
        region[axis] = slice(0, before)
        out = assigned(out, tuple(region), low)
        region[axis] = slice(before + x.shape[axis], None)
        out = assigned(out, tuple(region), high)
    return out
