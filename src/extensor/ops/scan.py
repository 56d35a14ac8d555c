"""Running products, extremes, sums and differences along an axis, each with its gradient."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..checks import (
    as_axis,
    as_floating,
    as_grad,
    as_int,
    as_integers,
    as_tensor,
    differentiable_input,
    takes_complex,
)
from ..graph import backward_of, differentiable
from ..kernels.reference import scan as kernels
from ..tensor import ExTensor, Indices
from ._several import given_grads
from ._wide import computed_wide
from .casting import cast_like
from .complex_numbers import conj
from .exponential import exp
from .indexing import take_along_axis_backward
from .joining import pad
from .reduction import cumsum
from .reduction import sum as summed
from .selection import where
from .shape import flip, moveaxis

__all__ = [
    "CumulativeResult", "cummax", "cummax_backward", "cummin", "cummin_backward", "cumprod", "cumprod_backward", "diff",
    "diff_backward", "logcumsumexp", "logcumsumexp_backward",
]  # fmt: skip


@differentiable
@takes_complex
def cumprod(x: ExTensor, axis: int = -1) -> ExTensor:
    """The products of all elements up to each.   y_j = x_0 x_1 ... x_j

    Args:
        x: any tensor; integers multiply in int64.
        axis: the axis to run along.

    Example:
        >>> import extensor as et
        >>> et.cumprod(et.tensor([1.0, 2.0, 3.0])).tolist()
        [1.0, 2.0, 6.0]
    """
    x = as_tensor("cumprod", "x", x)
    return kernels.cumprod(x, as_axis("cumprod", axis, x.ndim))


@backward_of(cumprod)
@computed_wide
def cumprod_backward(grad_output: ExTensor, x: ExTensor, axis: int = -1) -> ExTensor:
    """Gradient of :func:`cumprod`, right with zeros.   dx_k = sum_(j >= k) dy_j y_j / x_k

    Args:
        grad_output: the gradient of the products.
        x: the input.
        axis: as given to :func:`cumprod`.

    Example:
        >>> import extensor as et
        >>> et.cumprod_backward(et.ones(3), et.tensor([1.0, 0.0, 3.0])).tolist()
        [1.0, 4.0, 0.0]
    """
    x = differentiable_input("cumprod_backward", "x", x)
    along = as_axis("cumprod_backward", axis, x.ndim)
    g = moveaxis(as_grad("cumprod_backward", grad_output, x.shape), along, -1)
    z = conj(moveaxis(x, along, -1))
    if x.size and not (x.numpy() == 0).any():
        found = flip(cumsum(flip(g * cumprod(z), -1), -1), -1) / z
    else:  # without the division: for each k the products with x_k left out
        n = z.shape[-1]
        out = ExTensor(np.eye(n, dtype=bool))
        others = cumprod(where(out, 1.0, z.unsqueeze(-2)), -1)
        later = ExTensor(np.triu(np.ones((n, n), dtype=bool)))
        found = summed(where(later, others * g.unsqueeze(-2), 0.0), -1)
    return cast_like(moveaxis(found, -1, along), x)


class CumulativeResult(NamedTuple):
    """Running extremes and where they stand; of equal ones the last."""

    values: ExTensor
    indices: ExTensor


def _extremes(function: str, kernel: Any, x: Any, axis: Any) -> CumulativeResult:
    x = as_tensor(function, "x", x)
    along = as_axis(function, axis, x.ndim)
    running = kernel(x, along)
    return CumulativeResult(running, kernels.cumulative_arg(x, running, along))


def _extremes_backward(function: str, grad_output: Any, x: Any, indices: Any, axis: Any) -> ExTensor:
    x = differentiable_input(function, "x", x)
    along = as_axis(function, axis, x.ndim)
    (grad,) = given_grads(function, grad_output, (x.shape, None))
    if grad is None:
        return x * 0
    places = as_integers(function, "indices", indices)
    if places.shape != x.shape:
        raise ValueError(f"[{function}] indices must have the shape {x.shape} of x, got {places.shape}")
    return cast_like(take_along_axis_backward(grad, x.shape, places, along), x)


@differentiable
def cummax(x: ExTensor, axis: int = -1) -> CumulativeResult:
    """The largest element up to each, and where it stands; a nan stays.   y_j = max(x_0, ..., x_j)

    Args:
        x: any tensor.
        axis: the axis to run along.

    Example:
        >>> import extensor as et
        >>> et.cummax(et.tensor([1.0, 3.0, 2.0])).values.tolist()
        [1.0, 3.0, 3.0]
    """
    return _extremes("cummax", kernels.cummax, x, axis)


@backward_of(cummax, from_results=("indices",), takes_none=True)
def cummax_backward(grad_output: Any, x: ExTensor, indices: Indices, axis: int = -1) -> ExTensor:
    """Gradient of :func:`cummax`: to where each maximum stands.

    Args:
        grad_output: the gradients of values and indices (None).
        x: the input.
        indices: the forward's indices.
        axis: as given to :func:`cummax`.

    Example:
        >>> import extensor as et
        >>> x = et.tensor([1.0, 3.0, 2.0])
        >>> et.cummax_backward((et.ones(3), None), x, et.cummax(x).indices).tolist()
        [1.0, 2.0, 0.0]
    """
    return _extremes_backward("cummax_backward", grad_output, x, indices, axis)


@differentiable
def cummin(x: ExTensor, axis: int = -1) -> CumulativeResult:
    """The smallest element up to each, and where it stands; a nan stays.   y_j = min(x_0, ..., x_j)

    Args:
        x: any tensor.
        axis: the axis to run along.

    Example:
        >>> import extensor as et
        >>> et.cummin(et.tensor([3.0, 1.0, 2.0])).values.tolist()
        [3.0, 1.0, 1.0]
    """
    return _extremes("cummin", kernels.cummin, x, axis)


@backward_of(cummin, from_results=("indices",), takes_none=True)
def cummin_backward(grad_output: Any, x: ExTensor, indices: Indices, axis: int = -1) -> ExTensor:
    """Gradient of :func:`cummin`: to where each minimum stands.

    Args:
        grad_output: the gradients of values and indices (None).
        x: the input.
        indices: the forward's indices.
        axis: as given to :func:`cummin`.

    Example:
        >>> import extensor as et
        >>> x = et.tensor([3.0, 1.0, 2.0])
        >>> et.cummin_backward((et.ones(3), None), x, et.cummin(x).indices).tolist()
        [1.0, 2.0, 0.0]
    """
    return _extremes_backward("cummin_backward", grad_output, x, indices, axis)


@differentiable
def logcumsumexp(x: ExTensor, axis: int = -1) -> ExTensor:
    """The logarithms of running sums of exponentials.   y_j = log(exp(x_0) + ... + exp(x_j))

    Args:
        x: a floating tensor.
        axis: the axis to run along.

    Example:
        >>> import extensor as et
        >>> et.logcumsumexp(et.tensor([0.0, 0.0])).tolist()
        [0.0, 0.6931471824645996]
    """
    x = as_floating("logcumsumexp", "x", x)
    return kernels.logcumsumexp(x, as_axis("logcumsumexp", axis, x.ndim))


def _logcumsumexp_formula(g: ExTensor, x: ExTensor, axis: int = -1) -> ExTensor:
    z, y = moveaxis(x, axis, -1), moveaxis(logcumsumexp(x, axis), axis, -1)
    later = ExTensor(np.triu(np.ones((z.shape[-1],) * 2, dtype=bool)))
    difference = where(later, z.unsqueeze(-1) - y.unsqueeze(-2), float("-inf"))
    return moveaxis(summed(exp(difference) * moveaxis(g, axis, -1).unsqueeze(-2), -1), -1, axis)


@backward_of(logcumsumexp, formula=_logcumsumexp_formula)
def logcumsumexp_backward(grad_output: ExTensor, x: ExTensor, axis: int = -1) -> ExTensor:
    """Gradient of :func:`logcumsumexp`.   dx_k = sum_(j >= k) dy_j exp(x_k - y_j)

    Args:
        grad_output: the gradient of the result.
        x: the input.
        axis: as given to :func:`logcumsumexp`.

    Example:
        >>> import extensor as et
        >>> [round(v, 5) for v in et.logcumsumexp_backward(et.ones(2), et.zeros(2)).tolist()]
        [1.5, 0.5]
    """
    x = differentiable_input("logcumsumexp_backward", "x", x)
    along = as_axis("logcumsumexp_backward", axis, x.ndim)
    grad = as_grad("logcumsumexp_backward", grad_output, x.shape)
    return cast_like(kernels.logcumsumexp_backward(grad, x, along), x)


def _times(function: str, n: Any, length: int) -> int:
    count = as_int(function, "n", n)
    if not 0 <= count <= length:
        raise ValueError(
            f"[{function}] n must lie between 0 and the length {length} of the axis, got {count}"
        )
    return count


@differentiable
@takes_complex
def diff(x: ExTensor, n: int = 1, axis: int = -1) -> ExTensor:
    """The differences of neighbours.   y_i = x_(i + 1) - x_i

    Args:
        x: any tensor but boolean ones.
        n: how often to take differences.
        axis: the axis.

    Example:
        >>> import extensor as et
        >>> et.diff(et.tensor([1.0, 4.0, 9.0])).tolist()
        [3.0, 5.0]
    """
    x = as_tensor("diff", "x", x)
    if x.dtype.kind == "b":
        raise TypeError("[diff] x is boolean; use x.astype(extensor.int8)")
    along = as_axis("diff", axis, x.ndim)
    return kernels.diff(x, _times("diff", n, x.shape[along]), along)


@backward_of(diff)
@computed_wide
def diff_backward(grad_output: ExTensor, x: ExTensor, n: int = 1, axis: int = -1) -> ExTensor:
    """Gradient of :func:`diff`.   dx_i = dy_(i - 1) - dy_i, n times

    Args:
        grad_output: the gradient of the differences.
        x: the input.
        n, axis: as given to :func:`diff`.

    Example:
        >>> import extensor as et
        >>> et.diff_backward(et.ones(2), et.ones(3)).tolist()
        [-1.0, 0.0, 1.0]
    """
    x = differentiable_input("diff_backward", "x", x)
    along = as_axis("diff_backward", axis, x.ndim)
    times = _times("diff_backward", n, x.shape[along])
    shape = tuple(length - times if i == along else length for i, length in enumerate(x.shape))
    grad = as_grad("diff_backward", grad_output, shape)
    for _ in range(times):
        before, after = (
            [(side if i == along else (0, 0)) for i in range(x.ndim)] for side in ((1, 0), (0, 1))
        )
        grad = pad(grad, before) - pad(grad, after)
    return cast_like(grad, x)
