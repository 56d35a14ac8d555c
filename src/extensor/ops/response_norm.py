"""Local response normalisation across channels, rotary positions, and their gradients."""

from __future__ import annotations

from typing import Any

from ..checks import as_bool, as_floating, as_grad, as_int, as_number, differentiable_input
from ..graph import backward_of, differentiable
from ..tensor import ExTensor, Shape
from ._reduce_loss import as_finite
from ._wide import computed_wide, forward_wide
from .arithmetic import power
from .casting import cast_like
from .elementwise import square
from .joining import concatenate, pad, split, stack
from .shape import reshape

__all__ = [
    "local_response_norm", "local_response_norm_backward", "rotary_embedding", "rotary_embedding_backward",
]  # fmt: skip


def _neighbours(function: str, x: ExTensor, size: Any) -> int:
    found = as_int(function, "size", size)
    if found < 1:
        raise ValueError(f"[{function}] size must be at least 1, got {found}")
    as_number(function, "size", found)  # it divides
    if x.ndim < 2:
        raise ValueError(f"[{function}] x must have channels along axis 1, got shape {x.shape}")
    return found


def _window_sum(x: ExTensor, size: int, reverse: bool = False) -> ExTensor:
    """The sum over ``size`` neighbouring channels; ``reverse`` is the adjoint."""
    channels = x.shape[1]
    furthest = max(channels - 1, 0)  # a wider window has nothing but zeros more
    before, after = min(size // 2, furthest), min((size - 1) // 2, furthest)
    if reverse:
        before, after = after, before
    padded = pad(x, [(0, 0), (before, after), *((0, 0),) * (x.ndim - 2)])
    found = padded[:, :channels]
    for i in range(1, before + 1 + after):
        found = found + padded[:, i : i + channels]
    return found


@differentiable
@forward_wide
def local_response_norm(
    x: ExTensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> ExTensor:
    """Each element divided by the size of its neighbours in other channels.   y = x / (k + alpha * mean of x**2)**beta

    Args:
        x: shape (N, C, ...).
        size: over how many channels the mean is taken; beyond the ends there are zeros.
        alpha, beta, k: as in the formula.

    Example:
        >>> import extensor as et
        >>> et.local_response_norm(et.ones((1, 2, 1)), 2, alpha=2.0, beta=1.0).tolist()
        [[[0.5], [0.3333333432674408]]]
    """
    x = as_floating("local_response_norm", "x", x)
    count = _neighbours("local_response_norm", x, size)
    scale, exponent, start = _factors("local_response_norm", alpha, beta, k)
    return x * power(start + _window_sum(square(x), count) * (scale / count), -exponent)


def _factors(function: str, alpha: Any, beta: Any, k: Any) -> tuple[float, float, float]:
    return as_finite(function, "alpha", alpha), as_finite(function, "beta", beta), as_finite(function, "k", k)


@backward_of(local_response_norm)
@computed_wide
def local_response_norm_backward(
    grad_output: ExTensor, x: ExTensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> ExTensor:
    """Gradient of :func:`local_response_norm`.   dx = dy s**-beta - (2 alpha beta / size) x * window sum of dy x s**(-beta - 1)

    Example:
        >>> import extensor as et
        >>> et.local_response_norm_backward(et.ones((1, 1, 1)), et.ones((1, 1, 1)), 1, alpha=1.0, beta=1.0).tolist()
        [[[0.0]]]
    """
    function = "local_response_norm_backward"
    x = differentiable_input(function, "x", x)
    count = _neighbours(function, x, size)
    scale, exponent, start = _factors(function, alpha, beta, k)
    grad = as_grad(function, grad_output, x.shape)
    s = start + _window_sum(square(x), count) * (scale / count)
    pulled = _window_sum(grad * x * power(s, -exponent - 1), count, reverse=True)
    return cast_like(grad * power(s, -exponent) - x * pulled * (2 * scale * exponent / count), x)


def _angles(function: str, x: Shape, cos: Any, sin: Any) -> tuple[ExTensor, ExTensor]:
    """Cosines and sines that broadcast to half the features of x."""
    c, s = as_floating(function, "cos", cos), as_floating(function, "sin", sin)
    if not x or x[-1] % 2:
        raise ValueError(f"[{function}] the last axis of x must have an even length (x: {x})")
    half = (*x[:-1], x[-1] // 2)
    for name, value in (("cos", c), ("sin", s)):
        fits = value.ndim <= len(half) and all(n in (1, m) for n, m in zip(value.shape[::-1], half[::-1]))
        if not fits:
            raise ValueError(
                f"[{function}] {name} of shape {value.shape} does not broadcast to {half}, half of x {x}"
            )
    return c, s


def _turned(x: ExTensor, cos: ExTensor, sin: ExTensor, interleaved: bool) -> ExTensor:
    if interleaved:
        pairs = reshape(x, (*x.shape[:-1], x.shape[-1] // 2, 2))
        a, b = pairs[..., 0], pairs[..., 1]
        return reshape(stack([a * cos - b * sin, b * cos + a * sin], -1), x.shape)
    a, b = split(x, 2, -1)
    return concatenate([a * cos - b * sin, b * cos + a * sin], -1)


@differentiable
def rotary_embedding(x: ExTensor, cos: ExTensor, sin: ExTensor, interleaved: bool = False) -> ExTensor:
    """Pairs of features turned in the plane by the angle of their position.   (a, b) to (a cos - b sin, b cos + a sin)

    Args:
        x: queries or keys of shape (..., L, D), D even.
        cos, sin: of the angles, (L, D / 2) or what broadcasts to half of x; they have no gradient. The result has x's dtype.
        interleaved: whether neighbours (0, 1), (2, 3), ... are pairs, instead of features i and i + D / 2.

    Example:
        >>> import extensor as et
        >>> et.rotary_embedding(et.tensor([[1.0, 0.0]]), et.tensor([[0.0]]), et.tensor([[1.0]])).tolist()
        [[0.0, 1.0]]
    """
    x = as_floating("rotary_embedding", "x", x)
    c, s = _angles("rotary_embedding", x.shape, cos, sin)
    return cast_like(_turned(x, c, s, as_bool("rotary_embedding", "interleaved", interleaved)), x)


@backward_of(rotary_embedding)
def rotary_embedding_backward(
    grad_output: ExTensor, cos: ExTensor, sin: ExTensor, interleaved: bool = False
) -> ExTensor:
    """Gradient of :func:`rotary_embedding`: turned back.   dx = turn of dy by minus the angle

    Example:
        >>> import extensor as et
        >>> et.rotary_embedding_backward(et.tensor([[0.0, 1.0]]), et.tensor([[0.0]]), et.tensor([[1.0]])).tolist()
        [[1.0, 0.0]]
    """
    grad = as_floating("rotary_embedding_backward", "grad_output", grad_output)
    c, s = _angles("rotary_embedding_backward", grad.shape, cos, sin)
    return cast_like(
        _turned(grad, c, -s, as_bool("rotary_embedding_backward", "interleaved", interleaved)), grad
    )
