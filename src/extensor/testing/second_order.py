"""Second derivatives: the recorded backward differentiated again, beside differences of the plain backward."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from ..autograd.engine import backpropagate
from ..graph import Op, set_recording
from ..tensor import ExTensor
from .calls import Call, floating_outputs
from .numerical import central_differences, random_gradient
from .registry import Case

__all__ = ["SecondDerivative", "second_derivatives"]


class SecondDerivative(NamedTuple):
    """The gradient of ``sum_k weights_k * gradient_k`` with respect to one input or one upstream gradient."""

    name: str
    analytic: np.ndarray
    numerical: np.ndarray


def second_derivatives(
    op: Op, case: Case, arrays: Sequence[np.ndarray], grads: Sequence[np.ndarray], rng: np.random.Generator
) -> Iterator[SecondDerivative]:
    """For each input of a call, and each upstream gradient, the second derivative in both ways."""
    plain = Call(op, case, arrays)
    output = plain.forward()
    positions = [p for p in plain.positions if p is not None]
    weights = [random_gradient(rng, arrays[p].shape, arrays[p].dtype.kind) for p in positions]

    def gradients(arrays: Sequence[np.ndarray], grads: Sequence[np.ndarray]) -> list[np.ndarray]:
        call = Call(op, case, arrays)
        found = call.gradients(call.forward(), grads)
        return [g.numpy() for g, p in zip(found, call.positions) if p is not None]

    recorded = Call(op, case, arrays, requires_grad=frozenset(positions))
    upstream = [ExTensor(grad, True) for grad in grads]
    inputs = [recorded.tensors[p] for p in positions]
    with set_recording(True):
        result = op(*recorded.args, **recorded.kwargs)
    first = backpropagate(floating_outputs(result), upstream, inputs, retain_graph=True, create_graph=True)
    starts = [(g, ExTensor(w)) for g, w in zip(first, weights) if g is not None and g.requires_grad]
    second = backpropagate(
        [g for g, _ in starts], [w for _, w in starts], [*inputs, *upstream], retain_graph=True
    )

    for p, found in zip(positions, second):
        name = recorded.names[recorded.positions.index(p)]
        with_input = partial(_replaced, arrays, p)
        difference = central_differences(lambda x: gradients(with_input(x), grads), arrays[p], weights)  # noqa: B023
        yield SecondDerivative(name, _array(found, difference), difference)
    for i, found in enumerate(second[len(positions) :]):
        name = "grad_output" if isinstance(output, ExTensor) else f"grad_output[{i}]"
        with_grad = partial(_replaced, grads, i)
        difference = central_differences(lambda g: gradients(arrays, with_grad(g)), grads[i], weights)  # noqa: B023
        yield SecondDerivative(name, _array(found, difference), difference)


def _replaced(arrays: Sequence[np.ndarray], position: int, array: np.ndarray) -> list[np.ndarray]:
    return [*arrays[:position], array, *arrays[position + 1 :]]


def _array(found: ExTensor | None, like: np.ndarray) -> np.ndarray:
    return np.zeros(like.shape, like.dtype) if found is None else found.numpy()
