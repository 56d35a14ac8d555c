"""What the losses share: the reduction, inputs that must match, and values that must lie in a range."""

from __future__ import annotations

import math
from typing import Any

from .. import kernels
from ..checks import as_floating, as_number, as_tensor, broadcast_shape
from ..errors import describe
from ..tensor import ExTensor, Shape
from .casting import cast_like

REDUCTIONS = ("mean", "sum", "none")


def as_reduction(function: str, reduction: Any) -> str:
    """One of the three reductions."""
    if isinstance(reduction, str) and reduction in REDUCTIONS:
        return reduction
    raise ValueError(f'[{function}] reduction must be "mean", "sum" or "none", got {describe(reduction)}')


def matched(function: str, **values: Any) -> list[ExTensor]:
    """The named arguments as floating tensors of one shape: a loss never broadcasts."""
    found = [as_floating(function, name, value) for name, value in values.items()]
    if any(x.shape != found[0].shape for x in found):
        shapes = ", ".join(f"{name}: {x.shape}" for name, x in zip(values, found))
        raise ValueError(
            f"[{function}] {' and '.join(values)} must have the same shape, a loss does not broadcast ({shapes})"
        )
    return found


def loss_shape(shape: Shape, reduction: str) -> Shape:
    """The shape of a loss whose single losses have ``shape``."""
    return shape if reduction == "none" else ()


def as_weight(function: str, name: str, weight: Any, shape: Shape) -> ExTensor | None:
    """An optional weight that broadcasts to the predictions."""
    if weight is None:
        return None
    found = as_floating(function, name, weight)
    try:
        fits = broadcast_shape(found.shape, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"[{function}] {name} of shape {found.shape} does not broadcast to the predictions' shape {shape}"
        )
    return found


def as_positive(function: str, name: str, value: Any, zero: bool = False) -> float:
    """A number above zero; zero itself only if ``zero`` says so."""
    found = as_number(function, name, value)
    if found > 0 or (zero and found == 0):
        return found
    raise ValueError(f"[{function}] {name} must be {'zero or positive' if zero else 'positive'}, got {found}")


def as_finite(function: str, name: str, value: Any) -> float:
    """A finite number."""
    found = as_number(function, name, value)
    if math.isfinite(found):
        return found
    raise ValueError(f"[{function}] {name} must be finite, got {found}")


def refuse(function: str, name: str, x: ExTensor, place: tuple[int, ...] | None, rule: str) -> None:
    """Raise for the element at ``place`` that a guard has found, if any."""
    if place is not None:
        raise ValueError(f"[{function}] {name} must {rule}, got {x._array[place]} at index {place}")


def check_probabilities(function: str, **values: ExTensor) -> None:
    """Every element lies in [0, 1] or is nan."""
    for name, x in values.items():
        refuse(function, name, x, kernels.first_outside(x, 0, 1, None), "lie in [0, 1]")


def as_signs(function: str, targets: Any, shape: Shape, like: ExTensor) -> ExTensor:
    """Labels -1 and 1 of any number type, in the dtype of the predictions."""
    found = as_tensor(function, "targets", targets)
    if found.shape != shape:
        raise ValueError(
            f"[{function}] targets has shape {found.shape} but must have {shape}; a loss does not broadcast"
        )
    refuse(function, "targets", found, kernels.first_unlike(found, -1, 1), "be -1 or 1")
    return cast_like(found, like)
