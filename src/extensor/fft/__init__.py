"""Fourier transforms by pocketfft, each with its gradient.

float32 gives complex64, float64 complex128. The gradient of a transform is its adjoint, a transform again.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from .._habits import missing_from as _missing_from
from .complex_transforms import *  # noqa: F403
from .frequencies import *  # noqa: F403
from .real_transforms import *  # noqa: F403

__all__ = [  # noqa: F405
    "fft", "fft_backward", "ifft", "ifft_backward", "rfft", "rfft_backward", "irfft", "irfft_backward", "hfft",
    "hfft_backward", "ihfft", "ihfft_backward", "fft2", "fft2_backward", "ifft2", "ifft2_backward", "fftn", "fftn_backward",
    "ifftn", "ifftn_backward", "rfftn", "rfftn_backward", "irfftn", "irfftn_backward", "fftfreq", "rfftfreq", "fftshift",
    "fftshift_backward", "ifftshift", "ifftshift_backward",
]  # fmt: skip

if not _TYPE_CHECKING:
    __getattr__ = _missing_from(__name__, {})
