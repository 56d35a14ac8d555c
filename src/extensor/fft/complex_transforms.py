"""Fourier transforms of complex numbers, each with its gradient."""

from __future__ import annotations

from typing import Any

from ..checks import as_floating, takes_complex
from ..graph import backward_of, differentiable
from ..tensor import ExTensor
from ._transforms import (
    complex_backward,
    plan_1d,
    plan_nd,
    run_complex,
)

__all__ = [
    "fft", "fft_backward", "fft2", "fft2_backward", "fftn", "fftn_backward", "ifft", "ifft_backward", "ifft2", "ifft2_backward", "ifftn", "ifftn_backward"
]  # fmt: skip


@differentiable
@takes_complex
def fft(x: ExTensor, n: Any = None, axis: int = -1, norm: str = "backward") -> ExTensor:
    """The discrete Fourier transform along an axis.   y_k = sum_j x_j exp(-2 pi i j k / n)

    Args:
        x: a floating tensor; a real one counts as complex.
        n: how many points to transform along the axis; longer ones are cut, shorter ones filled up with zeros.
        axis: the axis.
        norm: which direction divides by n: "backward" the inverse, "forward" the transform, "ortho" both by sqrt(n).

    Example:
        >>> import extensor as et
        >>> et.fft.fft(et.tensor([1.0, 2.0])).tolist()
        [(3+0j), (-1+0j)]
    """
    x = as_floating("fft", "x", x)
    return run_complex("fft", x, plan_1d("fft", x.shape, n, axis, norm), False)


@backward_of(fft)
def fft_backward(
    grad_output: ExTensor, x: ExTensor, n: Any = None, axis: int = -1, norm: str = "backward"
) -> ExTensor:
    """Gradient of :func:`fft`: its adjoint, the other direction without the other's division.   dx = n ifft(dy)

    Args:
        grad_output: the gradient of the transform.
        x: the input.
        n, axis, norm: as given to :func:`fft`.

    Example:
        >>> import extensor as et
        >>> et.fft.fft_backward(et.ones(2, et.complex64), et.tensor([1.0, 2.0])).tolist()
        [2.0, 0.0]
    """
    x = as_floating("fft_backward", "x", x)
    plan = plan_1d("fft_backward", x.shape, n, axis, norm)
    return complex_backward("fft_backward", grad_output, x, plan, ifftn)


@differentiable
@takes_complex
def ifft(x: ExTensor, n: Any = None, axis: int = -1, norm: str = "backward") -> ExTensor:
    """The inverse of the discrete Fourier transform along an axis.   y_j = 1/n sum_k x_k exp(2 pi i j k / n)

    Args:
        x: a floating tensor; a real one counts as complex.
        n: how many points to transform along the axis; longer ones are cut, shorter ones filled up with zeros.
        axis: the axis.
        norm: which direction divides by n: "backward" the inverse, "forward" the transform, "ortho" both by sqrt(n).

    Example:
        >>> import extensor as et
        >>> et.fft.ifft(et.tensor([3.0, -1.0])).tolist()
        [(1+0j), (2+0j)]
    """
    x = as_floating("ifft", "x", x)
    return run_complex("ifft", x, plan_1d("ifft", x.shape, n, axis, norm), True)


@backward_of(ifft)
def ifft_backward(
    grad_output: ExTensor, x: ExTensor, n: Any = None, axis: int = -1, norm: str = "backward"
) -> ExTensor:
    """Gradient of :func:`ifft`: its adjoint, the other direction without the other's division.   dx = fft(dy) / n

    Args:
        grad_output: the gradient of the transform.
        x: the input.
        n, axis, norm: as given to :func:`ifft`.

    Example:
        >>> import extensor as et
        >>> et.fft.ifft_backward(et.ones(2, et.complex64), et.tensor([1.0, 2.0])).tolist()
        [1.0, 0.0]
    """
    x = as_floating("ifft_backward", "x", x)
    plan = plan_1d("ifft_backward", x.shape, n, axis, norm)
    return complex_backward("ifft_backward", grad_output, x, plan, fftn)


@differentiable
@takes_complex
def fftn(x: ExTensor, s: Any = None, axes: Any = None, norm: str = "backward") -> ExTensor:
    """The discrete Fourier transform along several axes.

    Args:
        x: a floating tensor; a real one counts as complex.
        s: how many points to transform along each axis; longer ones are cut, shorter ones filled up with zeros.
        axes: the axes; all of them, or the last len(s).
        norm: which direction divides by n: "backward" the inverse, "forward" the transform, "ortho" both by sqrt(n).

    Example:
        >>> import extensor as et
        >>> et.fft.fftn(et.ones((2, 2))).tolist()
        [[(4+0j), 0j], [0j, 0j]]
    """
    x = as_floating("fftn", "x", x)
    return run_complex("fftn", x, plan_nd("fftn", x.shape, s, axes, norm), False)


@backward_of(fftn)
def fftn_backward(
    grad_output: ExTensor, x: ExTensor, s: Any = None, axes: Any = None, norm: str = "backward"
) -> ExTensor:
    """Gradient of :func:`fftn`: its adjoint, the other direction without the other's division.

    Args:
        grad_output: the gradient of the transform.
        x: the input.
        s, axes, norm: as given to :func:`fftn`.

    Example:
        >>> import extensor as et
        >>> et.fft.fftn_backward(et.ones((1, 2), et.complex64), et.ones((1, 2))).tolist()
        [[2.0, 0.0]]
    """
    x = as_floating("fftn_backward", "x", x)
    plan = plan_nd("fftn_backward", x.shape, s, axes, norm)
    return complex_backward("fftn_backward", grad_output, x, plan, ifftn)


@differentiable
@takes_complex
def ifftn(x: ExTensor, s: Any = None, axes: Any = None, norm: str = "backward") -> ExTensor:
    """The inverse of the discrete Fourier transform along several axes.

    Args:
        x: a floating tensor; a real one counts as complex.
        s: how many points to transform along each axis; longer ones are cut, shorter ones filled up with zeros.
        axes: the axes; all of them, or the last len(s).
        norm: which direction divides by n: "backward" the inverse, "forward" the transform, "ortho" both by sqrt(n).

    Example:
        >>> import extensor as et
        >>> et.fft.ifftn(et.ones((2, 2))).tolist()
        [[(1+0j), 0j], [0j, 0j]]
    """
    x = as_floating("ifftn", "x", x)
    return run_complex("ifftn", x, plan_nd("ifftn", x.shape, s, axes, norm), True)


@backward_of(ifftn)
def ifftn_backward(
    grad_output: ExTensor, x: ExTensor, s: Any = None, axes: Any = None, norm: str = "backward"
) -> ExTensor:
    """Gradient of :func:`ifftn`: its adjoint, the other direction without the other's division.

    Args:
        grad_output: the gradient of the transform.
        x: the input.
        s, axes, norm: as given to :func:`ifftn`.

    Example:
        >>> import extensor as et
        >>> et.fft.ifftn_backward(et.ones((1, 2), et.complex64), et.ones((1, 2))).tolist()
        [[1.0, 0.0]]
    """
    x = as_floating("ifftn_backward", "x", x)
    plan = plan_nd("ifftn_backward", x.shape, s, axes, norm)
    return complex_backward("ifftn_backward", grad_output, x, plan, fftn)


@differentiable
@takes_complex
def fft2(x: ExTensor, s: Any = None, axes: Any = (-2, -1), norm: str = "backward") -> ExTensor:
    """The discrete Fourier transform along two axes.

    Args:
        x: a floating tensor; a real one counts as complex.
        s: how many points to transform along each axis; longer ones are cut, shorter ones filled up with zeros.
        axes: the axes; the last two.
        norm: which direction divides by n: "backward" the inverse, "forward" the transform, "ortho" both by sqrt(n).

    Example:
        >>> import extensor as et
        >>> et.fft.fft2(et.ones((2, 2))).tolist()
        [[(4+0j), 0j], [0j, 0j]]
    """
    x = as_floating("fft2", "x", x)
    return run_complex("fft2", x, plan_nd("fft2", x.shape, s, axes, norm), False)


@backward_of(fft2)
def fft2_backward(
    grad_output: ExTensor, x: ExTensor, s: Any = None, axes: Any = (-2, -1), norm: str = "backward"
) -> ExTensor:
    """Gradient of :func:`fft2`: its adjoint, the other direction without the other's division.

    Args:
        grad_output: the gradient of the transform.
        x: the input.
        s, axes, norm: as given to :func:`fft2`.

    Example:
        >>> import extensor as et
        >>> et.fft.fft2_backward(et.ones((1, 2), et.complex64), et.ones((1, 2))).tolist()
        [[2.0, 0.0]]
    """
    x = as_floating("fft2_backward", "x", x)
    plan = plan_nd("fft2_backward", x.shape, s, axes, norm)
    return complex_backward("fft2_backward", grad_output, x, plan, ifftn)


@differentiable
@takes_complex
def ifft2(x: ExTensor, s: Any = None, axes: Any = (-2, -1), norm: str = "backward") -> ExTensor:
    """The inverse of the discrete Fourier transform along two axes.

    Args:
        x: a floating tensor; a real one counts as complex.
        s: how many points to transform along each axis; longer ones are cut, shorter ones filled up with zeros.
        axes: the axes; the last two.
        norm: which direction divides by n: "backward" the inverse, "forward" the transform, "ortho" both by sqrt(n).

    Example:
        >>> import extensor as et
        >>> et.fft.ifft2(et.ones((2, 2))).tolist()
        [[(1+0j), 0j], [0j, 0j]]
    """
    x = as_floating("ifft2", "x", x)
    return run_complex("ifft2", x, plan_nd("ifft2", x.shape, s, axes, norm), True)


@backward_of(ifft2)
def ifft2_backward(
    grad_output: ExTensor, x: ExTensor, s: Any = None, axes: Any = (-2, -1), norm: str = "backward"
) -> ExTensor:
    """Gradient of :func:`ifft2`: its adjoint, the other direction without the other's division.

    Args:
        grad_output: the gradient of the transform.
        x: the input.
        s, axes, norm: as given to :func:`ifft2`.

    Example:
        >>> import extensor as et
        >>> et.fft.ifft2_backward(et.ones((1, 2), et.complex64), et.ones((1, 2))).tolist()
        [[1.0, 0.0]]
    """
    x = as_floating("ifft2_backward", "x", x)
    plan = plan_nd("ifft2_backward", x.shape, s, axes, norm)
    return complex_backward("ifft2_backward", grad_output, x, plan, fftn)
