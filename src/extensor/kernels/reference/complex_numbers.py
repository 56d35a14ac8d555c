"""Parts of complex numbers."""

from __future__ import annotations

import numpy as np

from ..dispatch import kernel

__all__ = ["angle", "conj", "imag", "imag_backward", "real"]


@kernel(exact=True)
def conj(x):
    return np.conj(x)


@kernel(exact=True)
def real(x):
    return np.real(x)


@kernel(exact=True)
def imag(x):
    return np.imag(x)


@kernel(exact=True)
def imag_backward(g):
    made = np.zeros(g.shape, np.result_type(g, np.complex64))
    made.imag = g
    return made


@kernel
def angle(x):
    return np.asarray(np.angle(x))
