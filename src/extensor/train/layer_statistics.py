"""How large the gradients of the layers are, and how far a step moves their parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..nn import Module
from ..tensor import ExTensor

__all__ = ["gradient_norms", "update_ratios", "values_of"]


def _norm(array: np.ndarray) -> float:
    return float(np.sqrt(np.square(array, dtype=np.float64).sum()))


def values_of(model: Module) -> dict[str, ExTensor]:
    """The parameters of a model as they are now; later steps replace them and leave these alone."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def gradient_norms(model: Module) -> dict[str, float]:
    """The norm of the gradient of each parameter that has one."""
    return {name: _norm(p.grad.numpy()) for name, p in model.named_parameters() if p.grad is not None}


def update_ratios(model: Module, before: Mapping[str, ExTensor]) -> dict[str, Any]:
    """|new - old| / |old| for each parameter; None where the old one was 0."""
    found = {}
    for name, parameter in model.named_parameters():
        old = before[name].numpy().astype(np.float64)
        size = _norm(old)
        found[name] = _norm(parameter.numpy() - old) / size if size else None
    return found
