"""New shapes and orders for the same elements; views where NumPy gives views."""

from __future__ import annotations

from ..dispatch import kernel
from ..namespace import xp

__all__ = ["flip", "permute", "reshape", "roll", "swapaxes"]


@kernel(exact=True)
def reshape(x, shape):
    return x.reshape(shape)


@kernel(exact=True)
def permute(x, axes):
    return x.transpose(axes)


@kernel(exact=True)
def swapaxes(x, axis1, axis2):
    return x.swapaxes(axis1, axis2)


@kernel(exact=True)
def flip(x, axes):
    return xp.flip(x, axes)


@kernel(exact=True)
def roll(x, shifts, axes):
    """One shift per axis."""
    return xp.roll(x, shifts, axes) if axes else x
