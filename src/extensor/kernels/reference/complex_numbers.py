"""Parts of complex numbers."""

from __future__ import annotations

import numpy as np

from ..dispatch import kernel
from ..namespace import common_dtype, namespace_of, xp

__all__ = ["angle", "conj", "imag", "imag_backward", "real"]


@kernel(exact=True)
def conj(x):
    return xp.conj(x)


@kernel(exact=True)
def real(x):
    return xp.real(x)


@kernel(exact=True)
def imag(x):
    return xp.imag(x)


def paired(real, imag):
    """Complex numbers of two parts; ``real + 1j * imag``, as other libraries have it, would make a nan of an infinity."""
    dtype = common_dtype(real, np.complex64)
    if namespace_of(real, imag) is not np:
        return (real + 1j * imag).astype(dtype)
    made = np.empty(real.shape, dtype)
    made.real, made.imag = real, imag
    return made


@kernel(exact=True)
def imag_backward(g):
    return paired(xp.zeros_like(g), g)


@kernel
def angle(x):
    return xp.asarray(xp.angle(x))
