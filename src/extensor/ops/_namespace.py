"""What the references of gradients compute with on tensors, so that they are recorded (see kernels.namespace).

Functions of NumPy's names come first, then the primitives: helpers of the references that are not differentiated line by line.
"""

from __future__ import annotations

import functools
import math
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..kernels.reference import loss_metric
from ..tensor import ExTensor, Shape
from . import arithmetic, comparison, elementwise, exponential, trigonometric
from .activation import sigmoid, softplus
from .broadcasting import broadcast_to, sum_to_shape
from .complex_numbers import conj
from .indexing import take_along_axis, take_along_axis_backward, take_backward
from .joining import pad, stack
from .reduction import cumsum, mean
from .selection import where
from .shape import expand_dims, flip, swapaxes
from .softmax import softmax


def _triplet_margins(near: ExTensor, far: ExTensor, swapped: ExTensor, *options: Any) -> tuple[ExTensor, ...]:
    """Constants: the gradient does not depend on how far a row is from its margin."""
    arrays = near._array, far._array, swapped._array
    with np.errstate(all="ignore"):
        return tuple(map(ExTensor, loss_metric.triplet_margins(*arrays, *options)))


def _passed(grad: Any, x: Any, keep: Any) -> ExTensor:
    """``grad`` where ``keep`` holds, 0 elsewhere, nan where x is nan, to every order."""
    missing = np.asarray(np.isnan(x._array))
    if missing.any():
        grad = grad * ExTensor(np.where(missing, x._array, np.ones((), x.dtype)))
        keep = keep | ExTensor(missing)
    return where(keep, grad, 0.0)


def _tanh_softplus(x: ExTensor) -> tuple[ExTensor, ExTensor]:
    u = softplus(x)
    return trigonometric.tanh(u), 4 * sigmoid(2 * u) * sigmoid(-2 * u)


def _normal_cdf(x: ExTensor) -> ExTensor:
    return (1 + trigonometric.erf(x * math.sqrt(0.5))) / 2


def _row_sum(x: ExTensor, axis: int) -> ExTensor:
    return x.sum(axis if x.ndim else None, keepdims=True)


def _placed(g: ExTensor, order: np.ndarray, shape: Shape, axis: int) -> ExTensor:
    """Each place takes its element of g; one that nothing goes to takes the 0 behind them."""
    k = order.shape[axis]
    sources = np.full(shape, k)
    np.put_along_axis(
        sources, order, np.arange(k).reshape([-1 if i == axis else 1 for i in range(len(shape))]), axis
    )
    if k < shape[axis]:
        g = pad(g, [(0, int(i == axis)) for i in range(len(shape))])
    return take_along_axis(g, ExTensor(sources), axis)


def _given_back(
    g: ExTensor, length: int, positions: ExTensor, weights: ExTensor | None, axis: int
) -> ExTensor:
    """Tap by tap: what each element gives back is added up where it was taken."""
    shape = (*g.shape[:axis], length, *g.shape[axis + 1 :])
    beside = [-1 if i == axis else 1 for i in range(g.ndim)]
    parts = []
    for k in range(positions.shape[0]):
        share = g if weights is None else g * weights[k].reshape(beside).astype(g.dtype)
        parts.append(take_backward(share, shape, positions[k], axis))
    return functools.reduce(arithmetic.add, parts)


def _direction(d: ExTensor, p: float) -> ExTensor:
    """The gradient of the p-norm over the last axis; 0 where the norm is 0."""
    if p in (1, math.inf):  # piecewise constant
        with np.errstate(all="ignore"):
            return ExTensor(loss_metric.direction(d._array, p))
    zero = comparison.equal(d, 0)
    size = where(zero, 1.0, d.abs())
    powers = where(zero, 0.0, size**p).sum(-1, keepdims=True)
    length = where(comparison.equal(powers, 0), 1.0, powers) ** (1 / p)
    if p == 2:
        return d / length
    return d * where(zero, 0.0, size ** (p - 2)) / length ** (p - 1)


NAMESPACE = SimpleNamespace(
    abs=elementwise.abs,
    broadcast_to=broadcast_to,
    clip=elementwise.clip,
    conj=conj,
    cos=trigonometric.cos,
    cosh=trigonometric.cosh,
    exp=exponential.exp,
    expand_dims=expand_dims,
    flip=flip,
    floor_divide=arithmetic.floor_divide,
    isnan=comparison.isnan,
    log=exponential.log,
    maximum=arithmetic.maximum,
    power=arithmetic.power,
    sign=elementwise.sign,
    sin=trigonometric.sin,
    sinh=trigonometric.sinh,
    swapaxes=swapaxes,
    sqrt=exponential.sqrt,
    square=elementwise.square,
    stack=stack,
    take_along_axis=take_along_axis,
    tan=trigonometric.tan,
    where=where,
    # primitives
    below=lambda x: where(x > 0, 0.0, x),  # at 0 the minimum would share its gradient
    centered=lambda x, axes: x - mean(x, axes, keepdims=True),
    direction=_direction,
    given_back=_given_back,
    gaussian=lambda t, half: exponential.exp(elementwise.square(t) * -half),
    logistic=sigmoid,
    normal_cdf=_normal_cdf,
    passed=_passed,
    placed=_placed,
    probabilities=softmax,
    put_back=lambda shares, places, pixels: take_along_axis_backward(
        shares, (*shares.shape[:2], pixels), places, 2
    ),
    running_sum=cumsum,
    row_sum=_row_sum,
    softplus=lambda x: softplus(x, threshold=math.inf),
    summed_to=sum_to_shape,
    triplet_margins=_triplet_margins,
    tanh_softplus=_tanh_softplus,
    total=lambda x: x.sum(),
)
