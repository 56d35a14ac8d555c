"""Nonlinear functions of one tensor."""

from __future__ import annotations

from typing import Any

import numpy as np

import extensor as et

from ...dtypes import FLOATING
from ..proto import array_of, as_value
from ..table import operator

__all__: list[str] = []


@operator("Relu")
def relu(x: Any, *, consumed_inputs: Any = None) -> Any:
    """max(x, 0)"""
    return et.relu(x) if x.dtype in FLOATING else et.maximum(x, et.zeros_like(x))


@operator("LeakyRelu")
def leaky_relu(x: Any, *, alpha: float = 0.01, consumed_inputs: Any = None) -> Any:
    """x, or alpha x where x is negative."""
    return et.leaky_relu(x, alpha)


@operator("PRelu")
def prelu(x: Any, slope: Any, *, consumed_inputs: Any = None, opset: int = 9) -> Any:
    """x, or slope x where x is negative; the slope broadcasts."""
    if opset < 7 and slope.ndim == 1 and slope.size > 1:
        slope = slope.reshape((-1, *(1,) * (x.ndim - 2)))
    if x.dtype not in FLOATING:
        return et.where(et.greater(x, 0), x, x * slope)
    return et.where(et.greater(x, 0), x, x * slope)


@operator("ThresholdedRelu")
def thresholded_relu(x: Any, *, alpha: float = 1.0) -> Any:
    """x where it is above alpha, else 0."""
    return et.where(et.greater(x, alpha), x, et.zeros_like(x))


@operator("Elu")
def elu(x: Any, *, alpha: float = 1.0, consumed_inputs: Any = None) -> Any:
    """x, or alpha (e^x - 1) where x is negative."""
    return et.elu(x, alpha)


@operator("Celu")
def celu(x: Any, *, alpha: float = 1.0) -> Any:
    """max(0, x) + min(0, alpha (e^(x / alpha) - 1))"""
    return et.relu(x) + et.minimum(alpha * et.expm1(et.minimum(x, 0.0) / alpha), 0.0)


@operator("Selu")
def selu(
    x: Any,
    *,
    alpha: float = 1.6732631921768188,
    gamma: float = 1.0507010221481323,
    consumed_inputs: Any = None,
) -> Any:
    """gamma times the ELU with alpha."""
    if abs(alpha - 1.6732632) < 1e-6 and abs(gamma - 1.0507010) < 1e-6:
        return et.selu(x)
    return gamma * et.elu(x, alpha)


@operator("Sigmoid")
def sigmoid(x: Any, *, consumed_inputs: Any = None) -> Any:
    """1 / (1 + e^-x)"""
    return et.sigmoid(x)


@operator("HardSigmoid")
def hard_sigmoid(x: Any, *, alpha: float = 0.2, beta: float = 0.5, consumed_inputs: Any = None) -> Any:
    """alpha x + beta, held between 0 and 1."""
    return et.clip(x * alpha + beta, 0.0, 1.0)


@operator("HardSwish")
def hard_swish(x: Any) -> Any:
    """x times the hard sigmoid of slope 1/6."""
    return et.hard_swish(x)


@operator("Swish")
def swish(x: Any, *, alpha: float = 1.0) -> Any:
    """x sigmoid(alpha x)"""
    return et.silu(x) if alpha == 1 else x * et.sigmoid(x * alpha)


@operator("SwiGLU")
def swiglu(a: Any, b: Any, *, alpha: float = 1.0) -> Any:
    """swish(a) b"""
    return swish(a, alpha=alpha) * b


@operator("Gelu")
def gelu(x: Any, *, approximate: str = "none") -> Any:
    """x times the normal distribution function; ``tanh`` is the approximate form."""
    return et.gelu(x, approximate == "tanh")


@operator("Mish")
def mish(x: Any) -> Any:
    """x tanh(softplus x)"""
    return et.mish(x)


@operator("Softplus")
def softplus(x: Any) -> Any:
    """log(1 + e^x)"""
    return et.softplus(x)


@operator("Softsign")
def softsign(x: Any) -> Any:
    """x / (1 + |x|)"""
    return x / (1 + et.abs(x))


@operator("Shrink")
def shrink(x: Any, *, lambd: float = 0.5, bias: float = 0.0) -> Any:
    """Towards 0 by ``bias``; 0 where |x| is at most ``lambd``."""
    if x.dtype not in FLOATING:
        a = array_of(x)
        return as_value(np.where(a < -lambd, a + bias, np.where(a > lambd, a - bias, 0)).astype(a.dtype))
    zero = et.zeros_like(x)
    return et.where(et.less(x, -lambd), x + bias, et.where(et.greater(x, lambd), x - bias, zero))


# Distributions


@operator("Softmax")
def softmax(x: Any, *, axis: int | None = None, opset: int = 13) -> Any:
    """Probabilities along an axis; before operator set 13, over all axes from ``axis`` on together."""
    if opset >= 13:
        return et.softmax(x, -1 if axis is None else axis)
    return _together(x, 1 if axis is None else axis, lambda rows: et.softmax(rows, -1))


@operator("LogSoftmax")
def log_softmax(x: Any, *, axis: int | None = None, opset: int = 13) -> Any:
    """The logarithms of the softmax."""
    if opset >= 13:
        return et.log_softmax(x, -1 if axis is None else axis)
    return _together(x, 1 if axis is None else axis, lambda rows: et.log_softmax(rows, -1))


@operator("Hardmax")
def hardmax(x: Any, *, axis: int | None = None, opset: int = 13) -> Any:
    """1 at the first maximum, else 0."""

    def of_rows(rows: Any, along: int = -1) -> Any:
        best = et.argmax(rows, along, True)
        places = et.arange(rows.shape[along]).reshape((-1, *(1,) * (rows.ndim - 1 - along % rows.ndim)))
        return et.astype(et.equal(places, best), rows.dtype)

    if opset >= 13:
        return of_rows(x, -1 if axis is None else axis)
    return _together(x, 1 if axis is None else axis, of_rows)


def _together(x: Any, axis: int, function: Any) -> Any:
    """A function of rows, where a row is everything from ``axis`` on."""
    front = int(np.prod(x.shape[: axis % x.ndim if x.ndim else 0], dtype=np.int64))
    return function(x.reshape((front, -1))).reshape(x.shape)
