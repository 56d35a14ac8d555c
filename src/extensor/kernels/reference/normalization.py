"""Normalisation: rows brought to mean 0 and variance 1, then scaled and shifted. All of it in float64, rounded once.

``weight`` and ``bias`` may be None. The backward kernels return None where a gradient is not needed.
"""

from __future__ import annotations

import math

import numpy as np

from ..dispatch import kernel
from ..namespace import common_dtype, wide_dtype, xp

__all__ = [
    "batch_norm", "batch_norm_backward", "group_norm", "group_norm_backward",
    "layer_norm", "layer_norm_backward", "rms_norm", "rms_norm_backward",
]  # fmt: skip


def wide(*arrays):
    """The arrays in float64; None stays None."""
    return [None if a is None else a.astype(wide_dtype(a), copy=False) for a in arrays]


def row_mean(rows):
    """The mean over the last axis, kept; 0 where there are no elements."""
    return rows.sum(-1, keepdims=True) / max(rows.shape[-1], 1)


def tamed(rows, eps):
    """Rows whose squares are neither inf nor 0: times a power of two, which is returned, with ``eps`` to match."""
    most, limit = (
        np.finfo(rows.dtype).maxexp * n // 1024 for n in (465, 500)
    )  # exponents whose squares are safe
    largest = xp.abs(rows).max(-1, keepdims=True, initial=0)
    extreme = (largest > 2.0**most) | (largest < 2.0**-most)
    factor = xp.ldexp(xp.ones_like(largest), xp.where(extreme, -xp.frexp(largest)[1], 0).clip(-limit, limit))
    return rows * factor, eps * factor * factor, factor


def of_unit_size(rows, eps):
    """The rows with a mean square of 1, and what they were divided by, inverted."""
    rows, eps, factor = tamed(rows, eps)
    inverse = 1 / xp.sqrt(row_mean(rows * rows) + eps)
    return rows * inverse, inverse * factor


def normalised(rows, eps):
    """The rows with mean 0 and variance 1, and what they were divided by, inverted."""
    rows, eps, factor = tamed(rows, eps)
    unit, inverse = of_unit_size(rows - row_mean(rows), eps)
    return unit, inverse * factor


def normalised_backward(g, unit, inverse):
    """``g`` carried back through :func:`normalised`: without its mean and its part along ``unit``."""
    return inverse * (g - row_mean(g) - unit * row_mean(g * unit))


def affine(unit, weight, bias):
    y = unit if weight is None else unit * weight
    return y if bias is None else y + bias


def as_rows(x, start):
    """``x`` as a matrix: the axes before ``start`` in one, the others in one."""
    return x.reshape(math.prod(x.shape[:start]), math.prod(x.shape[start:]))


@kernel
def layer_norm(x, normalized_shape, weight, bias, eps):
    """Over the last axes, those of ``normalized_shape``."""
    start = x.ndim - len(normalized_shape)
    rows, w, b = wide(as_rows(x, start), weight, bias)
    unit, _ = normalised(rows, eps)
    y = affine(unit.reshape(x.shape), w, b)
    return y.astype(common_dtype(x, weight, bias), copy=False)


@kernel
def layer_norm_backward(g, x, normalized_shape, weight, eps, needs):
    start = x.ndim - len(normalized_shape)
    dtype = common_dtype(g, x, weight)
    rows, grad, w = wide(as_rows(x, start), as_rows(g, start), weight)
    unit, inverse = normalised(rows, eps)
    inner = x.shape[start:]
    scaled = grad if w is None else grad * w.reshape(-1)
    return (
        normalised_backward(scaled, unit, inverse).reshape(x.shape).astype(dtype) if needs[0] else None,
        (grad * unit).sum(0).reshape(inner).astype(dtype) if needs[1] else None,
        grad.sum(0).reshape(inner).astype(dtype) if needs[2] else None,
    )


@kernel
def rms_norm(x, normalized_shape, weight, eps):
    start = x.ndim - len(normalized_shape)
    rows, w = wide(as_rows(x, start), weight)
    unit, _ = of_unit_size(rows, eps)
    return affine(unit.reshape(x.shape), w, None).astype(common_dtype(x, weight), copy=False)


@kernel
def rms_norm_backward(g, x, normalized_shape, weight, eps, needs):
    start = x.ndim - len(normalized_shape)
    dtype = common_dtype(g, x, weight)
    rows, grad, w = wide(as_rows(x, start), as_rows(g, start), weight)
    unit, inverse = of_unit_size(rows, eps)
    scaled = grad if w is None else grad * w.reshape(-1)
    grad_x = inverse * (scaled - unit * row_mean(scaled * unit))
    return (
        grad_x.reshape(x.shape).astype(dtype) if needs[0] else None,
        (grad * unit).sum(0).reshape(x.shape[start:]).astype(dtype) if needs[1] else None,
    )


def per_channel(values, x):
    """A vector of one value per channel, to broadcast against ``x`` of shape (N, C, ...)."""
    return None if values is None else values.reshape(-1, *[1] * (x.ndim - 2))


def group_rows(x, groups):
    """``x`` of shape (N, C, ...) as (N * groups) rows."""
    n, channels, *inner = x.shape
    return x.reshape(n * groups, channels // max(groups, 1) * math.prod(inner))


@kernel
def group_norm(x, groups, weight, bias, eps):
    rows, w, b = wide(group_rows(x, groups), per_channel(weight, x), per_channel(bias, x))
    unit, _ = normalised(rows, eps)
    return affine(unit.reshape(x.shape), w, b).astype(common_dtype(x, weight, bias), copy=False)


@kernel
def group_norm_backward(g, x, groups, weight, eps, needs):
    dtype = common_dtype(g, x, weight)
    rows, grad, w = wide(group_rows(x, groups), g, per_channel(weight, x))
    unit, inverse = normalised(rows, eps)
    scaled = group_rows(affine(grad, w, None), groups)
    others = (0, *range(2, x.ndim))
    return (
        normalised_backward(scaled, unit, inverse).reshape(x.shape).astype(dtype) if needs[0] else None,
        (grad * unit.reshape(x.shape)).sum(others).astype(dtype) if needs[1] else None,
        grad.sum(others).astype(dtype) if needs[2] else None,
    )


def channel_rows(x):
    """``x`` of shape (N, C, ...) as C rows."""
    return xp.moveaxis(x, 1, 0).reshape(x.shape[1], x.shape[0] * math.prod(x.shape[2:]))


def from_channel_rows(rows, shape):
    """The inverse of :func:`channel_rows`."""
    return xp.moveaxis(rows.reshape(shape[1], shape[0], *shape[2:]), 0, 1)


def column(values):
    return None if values is None else values[:, None]


@kernel
def batch_norm(x, weight, bias, running_mean, running_var, training, momentum, eps):
    """(output, new running mean, new running variance); statistics that are None stay None."""
    rows, w, b, mean, var = wide(channel_rows(x), weight, bias, running_mean, running_var)
    new_mean, new_var = running_mean, running_var
    if training:
        unit, _ = normalised(rows, eps)
        if mean is not None:
            new_mean = ((1 - momentum) * mean + momentum * rows.mean(1)).astype(running_mean.dtype)
        if var is not None:  # the running variance is the unbiased one
            new_var = ((1 - momentum) * var + momentum * rows.var(1, ddof=1)).astype(running_var.dtype)
    else:
        unit = (rows - mean[:, None]) / xp.sqrt(var[:, None] + eps)
    y = from_channel_rows(affine(unit, column(w), column(b)), x.shape)
    return y.astype(common_dtype(x, weight, bias), copy=False), new_mean, new_var


@kernel
def batch_norm_backward(
    g, g_mean, g_var, x, weight, running_mean, running_var, training, momentum, eps, needs
):
    """``g_mean`` and ``g_var`` are the gradients of the new running statistics."""
    dtype = common_dtype(g, x, weight)
    rows, grad, w = wide(channel_rows(x), channel_rows(g), weight)
    scaled = grad if w is None else grad * w[:, None]
    if training:
        n = rows.shape[1]
        unit, inverse = normalised(rows, eps)
        grad_x = normalised_backward(scaled, unit, inverse)
        # mean = sum x / n;  var = sum (x - mean)^2 / (n - 1), unbiased
        grad_x = grad_x + momentum / n * g_mean[:, None]
        grad_x = grad_x + 2 * momentum / (n - 1) * g_var[:, None] * (unit / inverse)
    else:
        mean, var = wide(running_mean, running_var)
        inverse = 1 / xp.sqrt(var[:, None] + eps)
        unit, grad_x = (rows - mean[:, None]) * inverse, scaled * inverse
    return (
        from_channel_rows(grad_x, x.shape).astype(dtype) if needs[0] else None,
        (grad * unit).sum(1).astype(dtype) if needs[1] else None,
        grad.sum(1).astype(dtype) if needs[2] else None,
    )
