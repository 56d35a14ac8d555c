"""New shapes and orders for the same elements; views where NumPy gives views."""

from __future__ import annotations

import numpy as np

from ..dispatch import kernel

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
    return np.flip(x, axes)


@kernel(exact=True)
def roll(x, shifts, axes):
    """One shift per axis."""
    return np.roll(x, shifts, axes) if axes else x
