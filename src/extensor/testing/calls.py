"""One call of a pair: a case of the registry as tensors of a dtype, through the forward and the public backward."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..dtypes import FLOATING
from ..graph import Op, no_grad
from ..tensor import ExTensor
from .complex_values import WIDE, widened
from .registry import Case

__all__ = ["Call", "floating_arrays", "strided"]


def strided(array: np.ndarray) -> np.ndarray:
    """The same elements in memory that is not contiguous: gaps along the last axis, axes in reverse order."""
    return np.repeat(array.T, 2, axis=0)[::2].T if array.ndim else array


def floating_arrays(case: Case) -> list[np.ndarray]:
    """The float64 and complex128 arrays of a case, those in lists included, in the order of the arguments."""
    found: list[np.ndarray] = []
    _replace(case, found.append)
    return found


def _replace(case: Case, make: Callable[[np.ndarray], Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments with ``make(array)`` for each float64 array, and tensors for the arrays of other dtypes."""

    def walk(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return make(value) if value.dtype in WIDE else ExTensor(value)
        if type(value) in (list, tuple):
            return type(value)(map(walk, value))
        return value

    return tuple(map(walk, case.args)), {name: walk(value) for name, value in case.kwargs.items()}


class Call:
    """A case with its floating inputs taken from ``arrays``, already in the dtype and the layout to be tested.

    Attributes:
        inputs: the tensors that have gradients, in the order of the backward's results.
        names: what they are called, for people: ``a``, ``tensors[1]``.
        positions: where each is found in ``arrays``; None for an argument that is absent or a plain number.
            ``requires_grad`` holds the positions to be recorded.
    """

    def __init__(
        self, op: Op, case: Case, arrays: Sequence[np.ndarray], requires_grad: frozenset[int] = frozenset()
    ) -> None:
        self.op = op
        self.arrays = arrays
        self.tensors: list[ExTensor] = []

        def next_tensor(_: np.ndarray) -> ExTensor:
            position = len(self.tensors)
            self.tensors.append(ExTensor(arrays[position], position in requires_grad))
            return self.tensors[-1]

        self.args, self.kwargs = _replace(case, next_tensor)
        rule = op.rule
        self.bound = rule.bind(self.args, self.kwargs)
        self.inputs = rule.inputs(self.bound)
        self.names = [
            f"{name}[{i}]" if rule.each else name
            for name in rule.targets
            for i in range(len(self.bound[name]) if rule.each else 1)
        ]
        self.positions = [self._position(value) for value in self.inputs]

    def _position(self, value: Any) -> int | None:
        return next((i for i, tensor in enumerate(self.tensors) if tensor is value), None)

    def forward(self) -> Any:
        """The forward's result."""
        with no_grad():
            return self.op(*self.args, **self.kwargs)

    def values(self) -> list[np.ndarray]:
        """The floating outputs of the forward as float64 or complex128 arrays."""
        return [widened(output.numpy()) for output in floating_outputs(self.forward())]

    def gradients(self, output: Any, grads: Sequence[np.ndarray]) -> list[Any]:
        """What the public backward returns for the upstream gradients ``grads``, one for each floating output."""
        rule = self.op.rule
        with no_grad():
            return list(rule.gradients(upstream(output, grads), *rule.arguments(self.bound, output)))


def floating_outputs(output: Any) -> list[ExTensor]:
    """The results of a forward that have gradients."""
    outputs = [output] if isinstance(output, ExTensor) else output
    return [value for value in outputs if isinstance(value, ExTensor) and value.dtype in FLOATING]


def upstream(output: Any, grads: Sequence[np.ndarray]) -> Any:
    """Upstream gradients in the form the backward takes them: a tensor, or a list with one for each output."""
    if isinstance(output, ExTensor):
        return ExTensor(np.asarray(grads[0], output.dtype))
    left = iter(grads)
    return [
        ExTensor(np.asarray(next(left), value.dtype))
        if isinstance(value, ExTensor) and value.dtype in FLOATING
        else None
        for value in output
    ]
