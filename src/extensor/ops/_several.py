"""Functions with several results: the gradients that arrive at them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import kernels
from ..checks import as_floating
from ..tensor import ExTensor, Shape


def given_grads(function: str, value: Any, shapes: Sequence[Shape | None]) -> list[ExTensor | None]:
    """One gradient per result that has one: from a tuple or list of them, or from the first alone.

    A result whose shape is None has no gradient. One that is left out is None.
    """
    given = list(value) if isinstance(value, (list, tuple)) else [value]
    if value is None:
        raise TypeError(
            f"[{function}] grad_output must be a tensor, or a tuple with one for each result, got None"
        )
    found = [
        None
        if grad is None or (i < len(shapes) and shapes[i] is None)
        else as_floating(function, "grad_output", grad)
        for i, grad in enumerate(given)
    ]
    if isinstance(value, (list, tuple)) and len(found) != len(shapes):
        raise ValueError(
            f"[{function}] grad_output has {len(found)} elements but the forward has {len(shapes)} results"
        )
    found += [None] * (len(shapes) - len(found))
    for i, (grad, shape) in enumerate(zip(found, shapes)):
        if grad is not None and grad.shape != shape:
            raise ValueError(
                f"[{function}] grad_output[{i}] has shape {grad.shape} but that result has shape {shape}"
            )
    return [grad for grad, shape in zip(found, shapes) if shape is not None]


def as_grads(function: str, value: Any, shapes: Sequence[Shape | None], dtype: Any) -> list[ExTensor]:
    """:func:`given_grads` with zeros of ``dtype`` for gradients that are None or left out."""
    grads = given_grads(function, value, shapes)
    wanted = [shape for shape in shapes if shape is not None]
    return [kernels.zeros(shape, dtype) if grad is None else grad for grad, shape in zip(grads, wanted)]
