"""The update rules of optimisers."""

from __future__ import annotations

from ..dispatch import kernel

__all__ = ["sgd_step"]


@kernel
def sgd_step(param, grad, lr):
    return param - lr * grad
