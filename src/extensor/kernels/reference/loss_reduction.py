"""From the losses of single elements to the loss, and back. Not kernels: the helpers of the loss kernels."""

from __future__ import annotations

from ..namespace import primitive, wide_dtype


@primitive
def total(x):
    """The sum of all elements; float32 adds up in float64, and stays there."""
    return x.sum(dtype=wide_dtype(x))


def reduced(loss, reduction, count=None):
    """The losses themselves, their sum, or their mean over ``count`` (all of them if None)."""
    if reduction == "none":
        return loss
    value = total(loss)
    if reduction == "mean":
        value = value / (loss.size if count is None else count)
    return value.astype(loss.dtype)


def upstream(g, reduction, count):
    """What arrives at each single loss when ``g`` arrives at the loss."""
    if reduction != "mean":
        return g
    if isinstance(count, int):
        return g / max(count, 1)  # without any losses there is nothing that a quotient could arrive at
    return (g / count).astype(g.dtype)
