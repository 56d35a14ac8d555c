"""The extension fft of the standard: :mod:`extensor.fft` with the standard's signatures."""

from __future__ import annotations

from typing import Any

from .. import fft as ours
from ..tensor import ExTensor
from ._shapes_of_calls import as_cpu

__all__ = [
    "fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn", "rfft", "rfftfreq", "rfftn",
]  # fmt: skip


def fft(x: ExTensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> ExTensor:
    """The Fourier transform along an axis."""
    return ours.fft(x, n, axis, norm)


def ifft(x: ExTensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> ExTensor:
    """Its inverse along an axis."""
    return ours.ifft(x, n, axis, norm)


def rfft(x: ExTensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> ExTensor:
    """The Fourier transform of real numbers along an axis."""
    return ours.rfft(x, n, axis, norm)


def irfft(x: ExTensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> ExTensor:
    """Its inverse along an axis."""
    return ours.irfft(x, n, axis, norm)


def hfft(x: ExTensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> ExTensor:
    """The Fourier transform of a signal with a real spectrum along an axis."""
    return ours.hfft(x, n, axis, norm)


def ihfft(x: ExTensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> ExTensor:
    """Its inverse along an axis."""
    return ours.ihfft(x, n, axis, norm)


def fftn(x: ExTensor, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> ExTensor:
    """The Fourier transform along several axes."""
    return ours.fftn(x, s, axes, norm)


def ifftn(x: ExTensor, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> ExTensor:
    """Its inverse along several axes."""
    return ours.ifftn(x, s, axes, norm)


def rfftn(x: ExTensor, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> ExTensor:
    """The Fourier transform of real numbers along several axes."""
    return ours.rfftn(x, s, axes, norm)


def irfftn(x: ExTensor, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> ExTensor:
    """Its inverse along several axes."""
    return ours.irfftn(x, s, axes, norm)


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> ExTensor:
    """The frequencies of a transform."""
    as_cpu("fftfreq", device)
    return ours.fftfreq(n, d, dtype)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> ExTensor:
    """The frequencies of a transform."""
    as_cpu("rfftfreq", device)
    return ours.rfftfreq(n, d, dtype)


def fftshift(x: ExTensor, /, *, axes: Any = None) -> ExTensor:
    """The zero frequency moved to the middle."""
    return ours.fftshift(x, axes)


def ifftshift(x: ExTensor, /, *, axes: Any = None) -> ExTensor:
    """The zero frequency moved to the front."""
    return ours.ifftshift(x, axes)
