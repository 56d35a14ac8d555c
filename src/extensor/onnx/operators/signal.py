"""Fourier transforms and windows."""

from __future__ import annotations

from typing import Any

import numpy as np

import extensor as et

from ..proto import array_of, as_value, check_bytes, dtype_of
from ..table import operator
from .shape import padded

__all__: list[str] = []


def _number(value: Any) -> Any:
    return array_of(value).reshape(-1)[0].item()


@operator("DFT", since=20, fixed=("length", "axis"))
def dft(x: Any, length: Any = None, axis: Any = None, *, inverse: int = 0, onesided: int = 0) -> Any:
    """The discrete Fourier transform along an axis; real and imaginary parts are the last axis."""
    along = -2 if axis is None else int(_number(axis))
    return transformed(
        x, None if length is None else int(_number(length)), along, bool(inverse), bool(onesided)
    )


@operator("DFT", since=17, fixed=("length",))
def dft_first(x: Any, length: Any = None, *, axis: int = 1, inverse: int = 0, onesided: int = 0) -> Any:
    """The discrete Fourier transform, with its axis as an attribute."""
    return transformed(
        x, None if length is None else int(_number(length)), axis, bool(inverse), bool(onesided)
    )


def transformed(x: Any, length: int | None, axis: int, inverse: bool, onesided: bool) -> Any:
    """A product with the matrix of cosines and sines, so that gradients flow; real and imaginary parts are the last axis.

    One-sided forwards gives the first half; backwards it takes the first half and gives real numbers.
    """
    along = axis % x.ndim
    parts = x.shape[-1]
    if parts not in (1, 2) or along == x.ndim - 1:
        raise ValueError(f"[DFT] the last axis must be the real and imaginary part, got shape {x.shape}")
    half = inverse and onesided
    size = length if length is not None else (2 * (x.shape[along] - 1) if half else x.shape[along])
    given = size // 2 + 1 if half else size
    check_bytes("DFT", [size, size], 8)
    widths = [(0, 0)] * x.ndim
    widths[along] = (0, given - x.shape[along])
    x = et.moveaxis(padded(x, widths), along, -2)  # (..., time, parts)
    rows = size if half else size // 2 + 1 if onesided else size
    angle = 2 * np.pi * (np.outer(np.arange(rows), np.arange(given)) % size) / size
    factor = 1 / size if inverse else 1.0
    fold = np.ones(given)
    if half:  # the other half is the mirror image
        fold[1 : (size + 1) // 2] = 2
    cos = as_value((np.cos(angle) * factor * fold).astype(x.dtype))
    sin = as_value((np.sin(angle) * factor * fold * (1 if inverse else -1)).astype(x.dtype))
    real = x[..., 0]
    out_real, out_imaginary = et.inner(real, cos), et.inner(real, sin)
    if parts == 2:
        imaginary = x[..., 1]
        out_real, out_imaginary = (
            out_real - et.inner(imaginary, sin),
            out_imaginary + et.inner(imaginary, cos),
        )
    results = [out_real] if half else [out_real, out_imaginary]
    return et.moveaxis(et.stack(results, -1), -2, along)


@operator("STFT", fixed=("step", "frame_length"))
def stft(signal: Any, step: Any, window: Any = None, frame_length: Any = None, *, onesided: int = 1) -> Any:
    """The Fourier transforms of frames of a signal."""
    hop = int(_number(step))
    size = int(_number(frame_length)) if frame_length is not None else window.shape[0]
    if hop < 1 or not 1 <= size <= signal.shape[1]:
        raise ValueError(f"[STFT] cannot cut {signal.shape[1]} numbers into frames of {size} every {hop}")
    count = (signal.shape[1] - size) // hop + 1
    places = np.arange(count)[:, None] * hop + np.arange(size)
    if signal.ndim == 2:
        signal = et.expand_dims(signal, -1)
    frames = et.take(signal, places, 1)  # (batch, frames, size, parts)
    if window is not None:
        frames = frames * window.reshape((-1, 1))
    return transformed(frames, None, 2, False, bool(onesided))


def _window(name: str, size: Any, periodic: int, number: int, weights: tuple[float, ...]) -> Any:
    count = int(_number(size))
    check_bytes(name, [count], 8)
    span = count if periodic else count - 1
    angle = 2 * np.pi * np.arange(count) / max(span, 1)
    found = sum(w * (-1) ** i * np.cos(i * angle) for i, w in enumerate(weights))
    return as_value(np.asarray(found).astype(dtype_of(number)))


@operator("HannWindow")
def hann_window(size: Any, *, output_datatype: int = 1, periodic: int = 1) -> Any:
    """A raised cosine."""
    return _window("HannWindow", size, periodic, output_datatype, (0.5, 0.5))


@operator("HammingWindow")
def hamming_window(size: Any, *, output_datatype: int = 1, periodic: int = 1) -> Any:
    """A raised cosine that does not quite reach 0."""
    return _window("HammingWindow", size, periodic, output_datatype, (25 / 46, 21 / 46))


@operator("BlackmanWindow")
def blackman_window(size: Any, *, output_datatype: int = 1, periodic: int = 1) -> Any:
    """Two cosines."""
    return _window("BlackmanWindow", size, periodic, output_datatype, (0.42, 0.5, 0.08))


@operator("MelWeightMatrix")
def mel_weight_matrix(
    bins: Any, length: Any, rate: Any, lower: Any, upper: Any, *, output_datatype: int = 1
) -> Any:
    """Triangles over the frequencies of a spectrum, evenly spaced on the mel scale."""
    count, size, hertz = int(_number(bins)), int(_number(length)), int(_number(rate))
    check_bytes("MelWeightMatrix", [size // 2 + 1, count], 8)
    low, high = (2595 * np.log10(1 + float(_number(v)) / 700) for v in (lower, upper))
    edges = low + np.arange(count + 2) * ((high - low) / (count + 2))
    places = np.floor((size + 1) * (700 * (10 ** (edges / 2595) - 1)) / hertz).astype(np.int64)
    found = np.zeros((size // 2 + 1, count))
    for i, (start, middle, end) in enumerate(zip(places, places[1:], places[2:])):
        up = np.arange(start, middle + 1) if middle > start else np.array([middle])
        found[up, i] = (up - start) / (middle - start) if middle > start else 1
        down = np.arange(middle, end)
        if end > middle:
            found[down, i] = (end - down) / (end - middle)
    return as_value(found.astype(dtype_of(output_datatype)))
