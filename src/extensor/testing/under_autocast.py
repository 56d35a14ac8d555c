"""Gradients of a call as it is made under autocast: casts, the call on their results, and a backward pass through both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..autograd.engine import backpropagate
from ..dtypes import float32
from ..graph import Op, autocast, set_recording
from ..tensor import ExTensor
from .calls import Call, floating_outputs
from .registry import Case

__all__ = ["gradients_under_autocast"]


def gradients_under_autocast(
    op: Op, case: Case, arrays: Sequence[np.ndarray], grads: Sequence[np.ndarray]
) -> tuple[Call, list[ExTensor | None]]:
    """A call with inputs of the half precision of ``arrays``, and a gradient for each of its inputs.

    A function that casts to the half type gets them in float32, as parameters are; one that widens gets them as they are.
    """
    half = arrays[0].dtype
    given = [a.astype(float32) for a in arrays] if op.autocasts == "half" else list(arrays)
    positions = [p for p in Call(op, case, given).positions if p is not None]
    call = Call(op, case, given, requires_grad=frozenset(positions))
    with set_recording(True), autocast(half):
        outputs = floating_outputs(op(*call.args, **call.kwargs))
    upstream: list[Any] = [ExTensor(np.asarray(g, o.dtype)) for g, o in zip(grads, outputs)]
    found = dict(
        zip(positions, backpropagate(outputs, upstream, [call.tensors[p] for p in positions]), strict=True)
    )
    return call, [None if p is None else found[p] for p in call.positions]
