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
    return np.fft.irfftn(x, lengths, axes, norm)
