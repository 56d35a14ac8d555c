"""Losses of the difference d = p - t. The backward kernels return the gradient of ``p``; that of ``t`` is its negative."""

from __future__ import annotations

import numpy as np

from ..dispatch import kernel
from .loss_reduction import reduced, upstream

__all__ = [
    "mean_squared_error", "mean_squared_error_backward", "mean_absolute_error", "mean_absolute_error_backward",
    "smooth_l1", "smooth_l1_backward", "huber", "huber_backward",
]  # fmt: skip


@kernel
def mean_squared_error(p, t, reduction):
    return reduced(np.square(p - t), reduction)


@kernel
def mean_squared_error_backward(g, p, t, reduction):
    return upstream(g, reduction, p.size) * (2 * (p - t))


@kernel
def mean_absolute_error(p, t, reduction):
    return reduced(np.abs(p - t), reduction)


@kernel
def mean_absolute_error_backward(g, p, t, reduction):
    return upstream(g, reduction, p.size) * np.sign(p - t)


@kernel
def smooth_l1(p, t, beta, reduction):
    z = np.abs(p - t)
    near = 0.5 * z * z / (beta or 1)  # beta = 0 is the absolute error: nothing is near
    return reduced(np.where(z < beta, near, z - 0.5 * beta), reduction)


@kernel
def smooth_l1_backward(g, p, t, beta, reduction):
    d = p - t
    return upstream(g, reduction, p.size) * (np.clip(d / beta, -1, 1) if beta else np.sign(d))


@kernel
def huber(p, t, delta, reduction):
    z = np.abs(p - t)
    return reduced(np.where(z <= delta, 0.5 * z * z, delta * (z - 0.5 * delta)), reduction)


@kernel
def huber_backward(g, p, t, delta, reduction):
    return upstream(g, reduction, p.size) * np.clip(p - t, -delta, delta)
