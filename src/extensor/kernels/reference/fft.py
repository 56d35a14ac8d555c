"""Fourier transforms by pocketfft, through NumPy; ``lengths`` and ``axes`` are tuples that belong together."""

from __future__ import annotations

import numpy as np

from ..dispatch import kernel

__all__ = ["complex_fft", "half_fft", "half_fft_inverse"]


@kernel
def complex_fft(x, lengths, axes, norm, inverse):
    return (np.fft.ifftn if inverse else np.fft.fftn)(x, lengths, axes, norm)


@kernel
def half_fft(x, lengths, axes, norm):
    return np.fft.rfftn(x, lengths, axes, norm)


@kernel
def half_fft_inverse(x, lengths, axes, norm):
    if x.size == 0:  # NumPy 2.4 reads the first element of an axis that has none
        shape = list(x.shape)
        for axis, length in zip(axes, lengths):
            shape[axis] = length
        return np.zeros(shape, np.empty(0, x.dtype).real.dtype)
    return np.fft.irfftn(x, lengths, axes, norm)
