"""Functions of the bits of integers and booleans."""

from __future__ import annotations

from ..dispatch import kernel
from ..namespace import xp

__all__ = [
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
]


@kernel(exact=True)
def bitwise_and(a, b):
    return xp.bitwise_and(a, b)


@kernel(exact=True)
def bitwise_or(a, b):
    return xp.bitwise_or(a, b)


@kernel(exact=True)
def bitwise_xor(a, b):
    return xp.bitwise_xor(a, b)


@kernel(exact=True)
def bitwise_left_shift(a, b):
    return xp.left_shift(a, b)


@kernel(exact=True)
def bitwise_right_shift(a, b):
    return xp.right_shift(a, b)


@kernel(exact=True)
def bitwise_invert(x):
    return xp.invert(x)
