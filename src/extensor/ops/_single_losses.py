"""Losses written in functions of tensors: what a reduction makes of single losses, and of their gradient."""

from __future__ import annotations

import math
from typing import Any

from ..checks import as_grad
from ..tensor import ExTensor, Shape
from ._reduce_loss import as_reduction, loss_shape
from .broadcasting import broadcast_to
from .reduction import mean
from .reduction import sum as total

__all__ = ["reduced", "single_grads"]


def reduced(function: str, losses: ExTensor, reduction: Any) -> ExTensor:
    """The mean or the sum of single losses, or these."""
    wanted = as_reduction(function, reduction)
    if wanted == "none":
        return losses
    return mean(losses) if wanted == "mean" else total(losses)


def single_grads(function: str, grad_output: Any, shape: Shape, reduction: Any) -> ExTensor:
    """The gradient of every single loss."""
    wanted = as_reduction(function, reduction)
    grad = as_grad(function, grad_output, loss_shape(shape, wanted))
    if wanted == "none":
        return grad
    if wanted == "mean":
        grad = grad / max(math.prod(shape), 1)
    return broadcast_to(grad, shape)
