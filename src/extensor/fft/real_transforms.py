"""Fourier transforms between real numbers and half spectra, each with its gradient."""

from __future__ import annotations

from typing import Any

from ..checks import as_floating, takes_complex
from ..graph import backward_of, differentiable
from ..kernels import conj as conj_kernel
from ..kernels.reference import fft as kernels
from ..ops.complex_numbers import conj
from ..tensor import ExTensor
from ._transforms import (
    Plan,
    as_real,
    forward_plan,
    half_backward,
    half_inverse_backward,
    plan_1d,
    plan_nd,
)
from .complex_transforms import fftn, ifftn

__all__ = [
    "hfft", "hfft_backward", "ihfft", "ihfft_backward", "irfft", "irfft_backward", "irfftn", "irfftn_backward", "rfft", "rfft_backward", "rfftn", "rfftn_backward"
]  # fmt: skip


@differentiable
@takes_complex
def rfft(x: ExTensor, n: Any = None, axis: int = -1, norm: str = "backward") -> ExTensor:
    """The Fourier transform of real numbers along an axis: the half of the spectrum, the other is its conjugate.

    Args:
        x: a real tensor.
        n: how many points to transform along the axis; longer ones are cut, shorter ones filled up with zeros.
        axis: the axis.
        norm: which direction divides by n: "backward" the inverse, "forward" the transform, "ortho" both by sqrt(n).

    Example:
        >>> import extensor as et
        >>> et.fft.rfft(et.tensor([1.0, 2.0, 3.0, 2.0])).tolist()
        [(8+0j), (-2+0j), 0j]
    """
    x = as_real("rfft", x)
    return forward_plan("rfft", x, kernels.half_fft, plan_1d("rfft", x.shape, n, axis, norm))


@backward_of(rfft)
def rfft_backward(
    grad_output: ExTensor, x: ExTensor, n: Any = None, axis: int = -1, norm: str = "backward"
) -> ExTensor:
    """Gradient of :func:`rfft`: the real part of the inverse without its division, the other half zero.

    Args:
        grad_output: the gradient of the half spectrum.
        x: the input.
        n, axis, norm: as given to :func:`rfft`.

    Example:
        >>> import extensor as et
        >>> et.fft.rfft_backward(et.ones(2, et.complex64), et.ones(2)).tolist()
        [2.0, 0.0]
    """
    x = as_real("rfft_backward", x)
    plan = plan_1d("rfft_backward", x.shape, n, axis, norm)
    return half_backward("rfft_backward", grad_output, x, plan, ifftn)


@differentiable
@takes_complex
def irfft(x: ExTensor, n: Any = None, axis: int = -1, norm: str = "backward") -> ExTensor:
    """The real numbers along an axis whose Fourier transform has this half of a spectrum; the inverse of :func:`rfft`.

    Args:
        x: the half of a spectrum.
        n: how many points the result has along the axis; by default 2 (m - 1) for an input of m.
        axis: the axis.
        norm: which direction divides by n: "backward" the inverse, "forward" the transform, "ortho" both by sqrt(n).

    Example:
        >>> import extensor as et
        >>> et.fft.irfft(et.tensor([8.0, -2.0, 0.0])).tolist()
        [1.0, 2.0, 3.0, 2.0]
    """
    x = as_floating("irfft", "x", x)
    return forward_plan(
        "irfft", x, kernels.half_fft_inverse, plan_1d("irfft", x.shape, n, axis, norm, half=True)
    )


@backward_of(irfft)
def irfft_backward(
    grad_output: ExTensor, x: ExTensor, n: Any = None, axis: int = -1, norm: str = "backward"
) -> ExTensor:
    """Gradient of :func:`irfft`: the real transform, inner frequencies twice, for they stand for two.

    Args:
        grad_output: the gradient of the real numbers.
        x: the half spectrum.
        n, axis, norm: as given to :func:`irfft`.

    Example:
        >>> import extensor as et
        >>> et.fft.irfft_backward(et.tensor([1.0, 0.0, 0.0, 0.0]), et.ones(3)).tolist()
        [0.25, 0.5, 0.25]
    """
    x = as_floating("irfft_backward", "x", x)
    plan = plan_1d("irfft_backward", x.shape, n, axis, norm, half=True)
    return half_inverse_backward("irfft_backward", grad_output, x, plan, rfftn, fftn)


@differentiable
@takes_complex
def rfftn(x: ExTensor, s: Any = None, axes: Any = None, norm: str = "backward") -> ExTensor:
    """The Fourier transform of real numbers along several axes: the half of the spectrum, the other is its conjugate.

    Args:
        x: a real tensor.
        s: how many points to transform along each axis; longer ones are cut, shorter ones filled up with zeros.
        axes: the axes; all of them, or the last len(s); the last one is halved.
        norm: which direction divides by n: "backward" the inverse, "forward" the transform, "ortho" both by sqrt(n).

    Example:
        >>> import extensor as et
        >>> et.fft.rfftn(et.tensor([1.0, 2.0, 3.0, 2.0])).tolist()
        [(8+0j), (-2+0j), 0j]
    """
    x = as_real("rfftn", x)
    return forward_plan("rfftn", x, kernels.half_fft, plan_nd("rfftn", x.shape, s, axes, norm))


@backward_of(rfftn)
def rfftn_backward(
    grad_output: ExTensor, x: ExTensor, s: Any = None, axes: Any = None, norm: str = "backward"
) -> ExTensor:
    """Gradient of :func:`rfftn`: the real part of the inverse without its division, the other half zero.

    Args:
        grad_output: the gradient of the half spectrum.
        x: the input.
        s, axes, norm: as given to :func:`rfftn`.

    Example:
        >>> import extensor as et
        >>> et.fft.rfftn_backward(et.ones(2, et.complex64), et.ones(2)).tolist()
        [2.0, 0.0]
    """
    x = as_real("rfftn_backward", x)
    plan = plan_nd("rfftn_backward", x.shape, s, axes, norm)
    return half_backward("rfftn_backward", grad_output, x, plan, ifftn)


@differentiable
@takes_complex
def irfftn(x: ExTensor, s: Any = None, axes: Any = None, norm: str = "backward") -> ExTensor:
    """The real numbers along several axes whose Fourier transform has this half of a spectrum; the inverse of :func:`rfftn`.

    Args:
        x: the half of a spectrum.
        s: how many points the result has along each axis; by default 2 (m - 1) along the last.
        axes: the axes; all of them, or the last len(s); the last one is the halved one.
        norm: which direction divides by n: "backward" the inverse, "forward" the transform, "ortho" both by sqrt(n).

    Example:
        >>> import extensor as et
        >>> et.fft.irfftn(et.tensor([8.0, -2.0, 0.0])).tolist()
        [1.0, 2.0, 3.0, 2.0]
    """
    x = as_floating("irfftn", "x", x)
    return forward_plan(
        "irfftn", x, kernels.half_fft_inverse, plan_nd("irfftn", x.shape, s, axes, norm, half=True)
    )


@backward_of(irfftn)
def irfftn_backward(
    grad_output: ExTensor, x: ExTensor, s: Any = None, axes: Any = None, norm: str = "backward"
) -> ExTensor:
    """Gradient of :func:`irfftn`: the real transform, inner frequencies twice, for they stand for two.

    Args:
        grad_output: the gradient of the real numbers.
        x: the half spectrum.
        s, axes, norm: as given to :func:`irfftn`.

    Example:
        >>> import extensor as et
        >>> et.fft.irfftn_backward(et.tensor([1.0, 0.0, 0.0, 0.0]), et.ones(3)).tolist()
        [0.25, 0.5, 0.25]
    """
    x = as_floating("irfftn_backward", "x", x)
    plan = plan_nd("irfftn_backward", x.shape, s, axes, norm, half=True)
    return half_inverse_backward("irfftn_backward", grad_output, x, plan, rfftn, fftn)


@differentiable
@takes_complex
def hfft(x: ExTensor, n: Any = None, axis: int = -1, norm: str = "backward") -> ExTensor:
    """The Fourier transform of a signal whose spectrum is real, from its first half.

    Args:
        x: the first half of the signal.
        n: how many points the result has along the axis; by default 2 (m - 1) for an input of m.
        axis: the axis.
        norm: which direction divides by n: "backward" the inverse, "forward" the transform, "ortho" both by sqrt(n).

    Example:
        >>> import extensor as et
        >>> et.fft.hfft(et.tensor([1.0, 2.0, 3.0])).tolist()
        [8.0, -2.0, 0.0, -2.0]
    """
    x = as_floating("hfft", "x", x)
    plan = plan_1d("hfft", x.shape, n, axis, norm, half=True)
    return forward_plan(
        "hfft", conj_kernel(x), kernels.half_fft_inverse, Plan(plan.lengths, plan.axes, plan.opposite)
    )


@backward_of(hfft)
def hfft_backward(
    grad_output: ExTensor, x: ExTensor, n: Any = None, axis: int = -1, norm: str = "backward"
) -> ExTensor:
    """Gradient of :func:`hfft`: that of :func:`irfft` of the conjugate, conjugated.

    Args:
        grad_output: the gradient of the spectrum.
        x: the first half of the signal.
        n, axis, norm: as given to :func:`hfft`.

    Example:
        >>> import extensor as et
        >>> et.fft.hfft_backward(et.tensor([1.0, 0.0, 0.0, 0.0]), et.ones(3)).tolist()
        [1.0, 2.0, 1.0]
    """
    x = as_floating("hfft_backward", "x", x)
    plan = plan_1d("hfft_backward", x.shape, n, axis, norm, half=True)
    turned = Plan(plan.lengths, plan.axes, plan.opposite)
    return conj(half_inverse_backward("hfft_backward", grad_output, conj(x), turned, rfftn, fftn))


@differentiable
@takes_complex
def ihfft(x: ExTensor, n: Any = None, axis: int = -1, norm: str = "backward") -> ExTensor:
    """The first half of the signal that has this real spectrum; the inverse of :func:`hfft`.

    Args:
        x: a real tensor.
        n: how many points to transform along the axis; longer ones are cut, shorter ones filled up with zeros.
        axis: the axis.
        norm: which direction divides by n: "backward" the inverse, "forward" the transform, "ortho" both by sqrt(n).

    Example:
        >>> import extensor as et
        >>> et.real(et.fft.ihfft(et.tensor([8.0, -2.0, 0.0, -2.0]))).tolist()
        [1.0, 2.0, 3.0]
    """
    x = as_real("ihfft", x)
    plan = plan_1d("ihfft", x.shape, n, axis, norm)
    return conj_kernel(
        forward_plan("ihfft", x, kernels.half_fft, Plan(plan.lengths, plan.axes, plan.opposite))
    )


@backward_of(ihfft)
def ihfft_backward(
    grad_output: ExTensor, x: ExTensor, n: Any = None, axis: int = -1, norm: str = "backward"
) -> ExTensor:
    """Gradient of :func:`ihfft`: that of :func:`rfft`, of the conjugate of the gradient.

    Args:
        grad_output: the gradient of the half signal.
        x: the spectrum.
        n, axis, norm: as given to :func:`ihfft`.

    Example:
        >>> import extensor as et
        >>> et.fft.ihfft_backward(et.ones(2, et.complex64), et.ones(2)).tolist()
        [1.0, 0.0]
    """
    x = as_real("ihfft_backward", x)
    plan = plan_1d("ihfft_backward", x.shape, n, axis, norm)
    grad = conj(as_floating("ihfft_backward", "grad_output", grad_output))
    return half_backward("ihfft_backward", grad, x, Plan(plan.lengths, plan.axes, plan.opposite), ifftn)
