"""Quantiles and linear interpolation, each with its gradient."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..checks import as_axes, as_bool, as_floating, as_grad, as_tensor, check_needs, reduced_shape
from ..graph import backward_of, differentiable
from ..kernels.reference import sorting as kernels
from ..tensor import ExTensor, Shape
from ._wide import computed_wide
from .casting import cast_like
from .creation import zeros
from .indexing import index_add
from .selection import where
from .shape import moveaxis
from .sorting import sort_backward

__all__ = [
    "InterpGradients", "interp", "interp_backward", "median", "median_backward", "quantile", "quantile_backward",
]  # fmt: skip

Axis = int | tuple[int, ...] | None


def _levels(function: str, q: Any) -> np.ndarray:
    exact = isinstance(q, float) or (isinstance(q, (list, tuple)) and all(isinstance(v, float) for v in q))
    levels = np.asarray(q if exact else as_tensor(function, "q", q).numpy(), np.float64)
    if levels.ndim > 1:
        raise ValueError(f"[{function}] q must be a number or a vector, got shape {levels.shape}")
    if not ((levels >= 0) & (levels <= 1)).all():
        raise ValueError(f"[{function}] q must lie between 0 and 1, got {levels.tolist()}")
    return levels


def _rows(x: ExTensor, axes: tuple[int, ...]) -> ExTensor:
    """The slices that are reduced, along one last axis."""
    kept = [i for i in range(x.ndim) if i not in axes]
    moved = moveaxis(x, axes, tuple(range(x.ndim - len(axes), x.ndim)))
    length = int(np.prod([x.shape[i] for i in axes], dtype=np.int64))
    return moved.reshape((*(x.shape[i] for i in kept), length))


def _neighbours(function: str, levels: np.ndarray, length: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The two places of a sorted row that each level lies between, and how far towards the second."""
    if not length:
        raise ValueError(f"[{function}] of nothing is not defined")
    place = levels.reshape(-1) * (length - 1)
    low = np.floor(place).astype(np.int64)
    return low, np.minimum(low + 1, length - 1), place - low


def _result(function: str, levels: np.ndarray, x: Shape, axes: tuple[int, ...], keepdims: bool) -> Shape:
    return (*levels.shape, *reduced_shape(x, axes, keepdims))


def _quantile(function: str, x: Any, levels: np.ndarray, axis: Axis, keepdims: Any) -> ExTensor:
    x = as_floating(function, "x", x).detach()
    axes, keepdims = as_axes(function, axis, x.ndim), as_bool(function, "keepdims", keepdims)
    rows = kernels.sort(_rows(x, axes), x.ndim - len(axes))
    low, high, part = _neighbours(function, levels, rows.shape[-1])
    array = rows.numpy()
    below, above = (array[..., places].astype(np.float64) for places in (low, high))
    with np.errstate(invalid="ignore"):
        found = np.where(part == 0, below, below + (above - below) * part)
    found = np.where(np.isnan(array[..., -1:].astype(np.float64)), np.nan, found)  # nan is sorted last
    shape = _result(function, levels, x.shape, axes, keepdims)
    return ExTensor(np.moveaxis(found, -1, 0).reshape(shape).astype(x.dtype))


def _quantile_backward(
    function: str, grad_output: Any, x: Any, levels: np.ndarray, axis: Axis, keepdims: Any
) -> ExTensor:
    x = as_floating(function, "x", x)
    axes, keepdims = as_axes(function, axis, x.ndim), as_bool(function, "keepdims", keepdims)
    rows = _rows(x, axes)
    low, high, part = _neighbours(function, levels, rows.shape[-1])
    grad = as_grad(function, grad_output, _result(function, levels, x.shape, axes, keepdims))
    columns = moveaxis(grad.reshape((levels.size, *rows.shape[:-1])), 0, -1)
    weight = ExTensor(part.astype(x.dtype))
    ordered = index_add(zeros(rows.shape, x.dtype), (..., low), columns * (1 - weight))
    ordered = index_add(ordered, (..., high), columns * weight)
    missing = np.isnan(rows.numpy()).any(-1, keepdims=True)
    found = sort_backward(ordered, rows, -1)
    if missing.any():
        found = where(np.broadcast_to(missing, found.shape), found * float("nan"), found)
    kept = [i for i in range(x.ndim) if i not in axes]
    moved = found.reshape((*(x.shape[i] for i in kept), *(x.shape[i] for i in axes)))
    return cast_like(moveaxis(moved, tuple(range(x.ndim - len(axes), x.ndim)), axes), x)


@differentiable
def quantile(x: ExTensor, q: Any, axis: Axis = None, keepdims: bool = False) -> ExTensor:
    """The value below which a part ``q`` of the elements lies, interpolated between neighbours; nan where there is one.

    Args:
        x: a floating tensor.
        q: a number between 0 and 1, or a vector of them, which becomes the first axis of the result.
        axis: the axis or axes; None for all.
        keepdims: keep the reduced axes with length 1.

    Example:
        >>> import extensor as et
        >>> et.quantile(et.tensor([1.0, 2.0, 3.0, 4.0]), 0.5).item()
        2.5
    """
    return _quantile("quantile", x, _levels("quantile", q), axis, keepdims)


@backward_of(quantile)
@computed_wide
def quantile_backward(
    grad_output: ExTensor, x: ExTensor, q: Any, axis: Axis = None, keepdims: bool = False
) -> ExTensor:
    """Gradient of :func:`quantile`: to the two elements it lies between, by their distance; of equal ones the first.

    Args:
        grad_output: the gradient of the quantile.
        x: the input.
        q, axis, keepdims: as given to :func:`quantile`.

    Example:
        >>> import extensor as et
        >>> et.quantile_backward(et.tensor(1.0), et.tensor([1.0, 4.0, 2.0, 3.0]), 0.5).tolist()
        [0.0, 0.0, 0.5, 0.5]
    """
    levels = _levels("quantile_backward", q)
    return _quantile_backward("quantile_backward", grad_output, x, levels, axis, keepdims)


_HALF = np.asarray(0.5)


@differentiable
def median(x: ExTensor, axis: Axis = None, keepdims: bool = False) -> ExTensor:
    """The middle element, or the mean of the two middle ones; nan where there is one.

    Args:
        x: a floating tensor.
        axis: the axis or axes; None for all.
        keepdims: keep the reduced axes with length 1.

    Example:
        >>> import extensor as et
        >>> et.median(et.tensor([1.0, 9.0, 2.0])).item()
        2.0
    """
    return _quantile("median", x, _HALF, axis, keepdims)


@backward_of(median)
@computed_wide
def median_backward(
    grad_output: ExTensor, x: ExTensor, axis: Axis = None, keepdims: bool = False
) -> ExTensor:
    """Gradient of :func:`median`: to the middle element, or half to each of the two; of equal ones the first.

    Args:
        grad_output: the gradient of the median.
        x: the input.
        axis, keepdims: as given to :func:`median`.

    Example:
        >>> import extensor as et
        >>> et.median_backward(et.tensor(1.0), et.tensor([1.0, 9.0, 2.0])).tolist()
        [0.0, 0.0, 1.0]
    """
    return _quantile_backward("median_backward", grad_output, x, _HALF, axis, keepdims)


class InterpGradients(NamedTuple):
    """The gradients of :func:`interp`; None where ``needs`` says that it is not wanted."""

    grad_x: ExTensor | None
    grad_xp: ExTensor | None
    grad_fp: ExTensor | None


def _knots(function: str, x: Any, xp: Any, fp: Any) -> tuple[ExTensor, ExTensor, ExTensor]:
    found = [as_floating(function, name, value) for name, value in (("x", x), ("xp", xp), ("fp", fp))]
    if found[1].ndim != 1 or found[1].shape != found[2].shape or not found[1].size:
        raise ValueError(
            f"[{function}] xp and fp must be vectors of one length, at least 1 (xp: {found[1].shape}, fp: {found[2].shape})"
        )
    if found[1].size > 1 and not (np.diff(found[1].numpy().astype(np.float64)) > 0).all():
        raise ValueError(f"[{function}] xp must be ascending")
    return found[0], found[1], found[2]


def _between(x: ExTensor, xp: ExTensor) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The left knot of each x, and whether x lies left or right of all knots."""
    points, knots = x.numpy().astype(np.float64), xp.numpy().astype(np.float64)
    left = np.clip(np.searchsorted(knots, points, "right") - 1, 0, max(len(knots) - 2, 0))
    return left, points < knots[0], points >= knots[-1]


@differentiable
def interp(x: ExTensor, xp: ExTensor, fp: ExTensor) -> ExTensor:
    """Straight lines between the points (xp, fp); beyond the ends the values there.

    Args:
        x: where to evaluate.
        xp: the places of the points, ascending.
        fp: their values.

    Example:
        >>> import extensor as et
        >>> et.interp(et.tensor([0.5]), et.tensor([0.0, 1.0]), et.tensor([10.0, 20.0])).tolist()
        [15.0]
    """
    x, xp, fp = _knots("interp", x, xp, fp)
    points, knots, values = (np.asarray(t.numpy(), np.float64) for t in (x, xp, fp))
    found = np.interp(points, knots, values)
    return ExTensor(
        np.asarray(found).astype(
            np.result_type(x.numpy(), xp.numpy(), fp.numpy()) if x.dtype.kind == "f" else x.dtype
        )
    )


@backward_of(interp, wrt=("x", "xp", "fp"))
@computed_wide
def interp_backward(
    grad_output: ExTensor,
    x: ExTensor,
    xp: ExTensor,
    fp: ExTensor,
    *,
    needs: tuple[bool, bool, bool] = (True, True, True),
) -> InterpGradients:
    """Gradient of :func:`interp`: the slope for x, minus that for the knots, and to the values by their distance.

    At a knot the slope is that of the right side, beyond the ends 0.

    Args:
        grad_output: the gradient of the values.
        x, xp, fp: the inputs.
        needs: which gradients are wanted; the others are None.

    Example:
        >>> import extensor as et
        >>> et.interp_backward(et.ones(1), et.tensor([0.5]), et.tensor([0.0, 1.0]), et.tensor([10.0, 20.0])).grad_x.tolist()
        [10.0]
    """
    check_needs("interp_backward", needs, 3)
    x, xp, fp = _knots("interp_backward", x, xp, fp)
    grad = as_grad("interp_backward", grad_output, x.shape)
    left, below, above = _between(x, xp)
    right = np.minimum(left + 1, xp.size - 1)
    if xp.size == 1:
        total = index_add(
            zeros(fp.shape, fp.dtype), (np.zeros(x.size, np.int64),), grad.reshape((x.size,)).astype(fp.dtype)
        )
        return InterpGradients(
            x * 0 if needs[0] else None, xp * 0 if needs[1] else None, total if needs[2] else None
        )
    x0, x1, f0, f1 = xp[left], xp[right], fp[left], fp[right]
    outside = below | above
    width = x1 - x0
    slope = where(outside, 0.0, (f1 - f0) / width)
    part = where(below, 0.0, where(above, 1.0, (x - x0) / width))

    def gathered(at_left: ExTensor, at_right: ExTensor, like: ExTensor) -> ExTensor:
        made = zeros(like.shape, at_left.dtype)
        made = index_add(made, (left.reshape(-1),), at_left.reshape((x.size,)))
        return cast_like(index_add(made, (right.reshape(-1),), at_right.reshape((x.size,))), like)

    return InterpGradients(
        cast_like(grad * slope, x) if needs[0] else None,
        gathered(grad * slope * (part - 1), grad * slope * part * -1.0, xp) if needs[1] else None,
        gathered(grad * (1 - part), grad * part, fp) if needs[2] else None,
    )
