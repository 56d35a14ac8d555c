"""Optimiser steps as pure functions of parameter and gradient."""

from __future__ import annotations

from typing import Any

from .. import kernels
from ..ops._checks import as_floating, as_number
from ..tensor import ExTensor

__all__ = ["sgd_step"]


def sgd_step(param: ExTensor, grad: ExTensor, lr: Any) -> ExTensor:
    """One step of gradient descent.   y = param - lr * grad

    Args:
        param: the parameter; it stays as it is.
        grad: its gradient, of the same shape.
        lr: the learning rate, not negative.

    Returns:
        The new parameter: a leaf without history, with the dtype and ``requires_grad`` of ``param``.

    Example:
        >>> import extensor as et
        >>> et.sgd_step(et.tensor([1.0, 2.0]), et.tensor([10.0, -10.0]), lr=0.25).tolist()
        [-1.5, 4.5]
    """
    param, grad = as_floating("sgd_step", "param", param), as_floating("sgd_step", "grad", grad)
    if grad.shape != param.shape:
        raise ValueError(f"[sgd_step] grad has shape {grad.shape} but param has shape {param.shape}")
    rate = as_number("sgd_step", "lr", lr)
    if not 0 <= rate < float("inf"):
        raise ValueError(f"[sgd_step] lr must be a finite number that is not negative, got {rate}")
    stepped = kernels.sgd_step(
        param, grad if grad.dtype == param.dtype else kernels.astype(grad, param.dtype), rate
    )
    return ExTensor(stepped._array, param.requires_grad)
