"""Functions of the bits of integers and booleans; they have no gradient."""

from __future__ import annotations

from typing import Any

from ..checks import as_tensor
from ..graph import undifferentiated
from ..kernels.reference import bitwise as kernels
from ..tensor import ExTensor
from ._binary import binary

__all__ = [
    "bitwise_and", "bitwise_invert", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
]  # fmt: skip


def _bits(function: str, kernel: Any, a: Any, b: Any, *, booleans: bool = True) -> ExTensor:
    for name, value in (("a", a), ("b", b)):
        kind = (
            "b"
            if type(value) is bool
            else "i"
            if type(value) is int
            else as_tensor(function, name, value).dtype.kind
        )
        if kind not in ("biu" if booleans else "iu"):
            raise TypeError(
                f"[{function}] {name} must be integer{' or boolean' if booleans else ''}, got {kind!r} numbers"
            )
    if type(a) in (bool, int) and type(b) in (bool, int):
        a = as_tensor(function, "a", a)
    return binary(function, kernel, a, b)


@undifferentiated
def bitwise_and(a: Any, b: Any) -> ExTensor:
    """The bits that are set in both.

    Example:
        >>> import extensor as et
        >>> et.bitwise_and(et.tensor([6]), 3).tolist()
        [2]
    """
    return _bits("bitwise_and", kernels.bitwise_and, a, b)


@undifferentiated
def bitwise_or(a: Any, b: Any) -> ExTensor:
    """The bits that are set in either.

    Example:
        >>> import extensor as et
        >>> et.bitwise_or(et.tensor([6]), 3).tolist()
        [7]
    """
    return _bits("bitwise_or", kernels.bitwise_or, a, b)


@undifferentiated
def bitwise_xor(a: Any, b: Any) -> ExTensor:
    """The bits that are set in one of the two.

    Example:
        >>> import extensor as et
        >>> et.bitwise_xor(et.tensor([6]), 3).tolist()
        [5]
    """
    return _bits("bitwise_xor", kernels.bitwise_xor, a, b)


@undifferentiated
def bitwise_left_shift(a: Any, b: Any) -> ExTensor:
    """The bits of ``a`` moved up by ``b`` places.

    Example:
        >>> import extensor as et
        >>> et.bitwise_left_shift(et.tensor([3]), 2).tolist()
        [12]
    """
    return _bits("bitwise_left_shift", kernels.bitwise_left_shift, a, b, booleans=False)


@undifferentiated
def bitwise_right_shift(a: Any, b: Any) -> ExTensor:
    """The bits of ``a`` moved down by ``b`` places.

    Example:
        >>> import extensor as et
        >>> et.bitwise_right_shift(et.tensor([12]), 2).tolist()
        [3]
    """
    return _bits("bitwise_right_shift", kernels.bitwise_right_shift, a, b, booleans=False)


@undifferentiated
def bitwise_invert(x: Any) -> ExTensor:
    """Every bit turned over.

    Example:
        >>> import extensor as et
        >>> et.bitwise_invert(et.tensor([0, 5])).tolist()
        [-1, -6]
    """
    x = as_tensor("bitwise_invert", "x", x)
    if x.dtype.kind not in "biu":
        raise TypeError(f"[bitwise_invert] x must be integer or boolean, got {x.dtype}")
    return kernels.bitwise_invert(x)
