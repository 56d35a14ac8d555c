"""Losses of the difference d = p - t. The backward kernels return the gradient of ``p``; that of ``t`` is its negative."""

from __future__ import annotations

from ..dispatch import formula, kernel
from ..namespace import xp
from .loss_reduction import reduced, upstream

__all__ = [
    "mean_squared_error", "mean_squared_error_backward", "mean_absolute_error", "mean_absolute_error_backward",
    "smooth_l1", "smooth_l1_backward", "huber", "huber_backward",
]  # fmt: skip


@kernel
def mean_squared_error(p, t, reduction):
    return reduced(xp.square(p - t), reduction)


@formula
def mean_squared_error_backward(g, p, t, reduction):
    return upstream(g, reduction, p.size) * (2 * (p - t))


@kernel
def mean_absolute_error(p, t, reduction):
    return reduced(xp.abs(p - t), reduction)


@formula
def mean_absolute_error_backward(g, p, t, reduction):
    return upstream(g, reduction, p.size) * xp.sign(p - t)


@kernel
def smooth_l1(p, t, beta, reduction):
    z = xp.abs(p - t)
    near = 0.5 * z * z / (beta or 1)  # beta = 0 is the absolute error: nothing is near
    return reduced(xp.where(z < beta, near, z - 0.5 * beta), reduction)


@formula
def smooth_l1_backward(g, p, t, beta, reduction):
    d = p - t
    return upstream(g, reduction, p.size) * (xp.clip(d / beta, -1, 1) if beta else xp.sign(d))


@kernel
def huber(p, t, delta, reduction):
    z = xp.abs(p - t)
    return reduced(xp.where(z <= delta, 0.5 * z * z, delta * (z - 0.5 * delta)), reduction)


@formula
def huber_backward(g, p, t, delta, reduction):
    return upstream(g, reduction, p.size) * xp.clip(p - t, -delta, delta)
