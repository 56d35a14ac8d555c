"""Fourier transforms by pocketfft, through NumPy; ``lengths`` and ``axes`` are tuples that belong together."""

from __future__ import annotations

from ..dispatch import kernel
from ..namespace import xp

__all__ = ["complex_fft", "half_fft", "half_fft_inverse"]


@kernel
def complex_fft(x, lengths, axes, norm, inverse):
    return (xp.fft.ifftn if inverse else xp.fft.fftn)(x, lengths, axes, norm)


@kernel
def half_fft(x, lengths, axes, norm):
    return xp.fft.rfftn(x, lengths, axes, norm)


@kernel
def half_fft_inverse(x, lengths, axes, norm):
    if x.size == 0:  # NumPy 2.4 reads the first element of an axis that has none
        shape = list(x.shape)
        for axis, length in zip(axes, lengths):
            shape[axis] = length
        return xp.zeros(shape, xp.empty(0, x.dtype).real.dtype)
    return xp.fft.irfftn(x, lengths, axes, norm)
