"""One run of a function, as the list of public calls it made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..graph import no_grad, observe
from ..nn import Module
from ..tensor import ExTensor

__all__ = ["Step", "Trace", "array_key", "needed_steps", "tensors_in", "trace"]


@dataclass
class Step:
    """One call: the function, what it was given and what it gave."""

    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: Any
    outputs: list[Any] = field(default_factory=list)  # the result, or its parts

    def __post_init__(self) -> None:
        several = isinstance(self.result, (list, tuple))
        self.outputs = list(self.result) if several else [self.result]

    @property
    def name(self) -> str:
        """The function's name."""
        return str(self.function.__name__)


class Trace:
    """The calls of one run, and the names of the tensors that came in.

    Attributes:
        inputs: names of the inputs.
        steps: the calls in order.
        known: id of an input's, parameter's or buffer's array -> its kind and name.
        result: what the function returned.
    """

    sees_opaque = True

    def __init__(self, decompositions: Mapping[str, Callable[..., Any]] | None = None) -> None:
        self.inputs: list[str] = []
        self.given: list[Any] = []
        self.steps: list[Step] = []
        self.known: dict[int, tuple[str, str]] = {}
        self.kept: list[Any] = []  # keeps the ids valid
        self.result: Any = None
        self._decompositions = decompositions or {}

    def name(self, kind: str, name: str, value: Any) -> None:
        """Remember an input, a parameter or a buffer."""
        key = array_key(value)
        if key is not None:
            self.kept.append(value)
            self.known.setdefault(key, (kind, name))

    def call(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The observer: run the call, remember it. What has a decomposition is called as that instead."""
        if op.__name__ in self._decompositions:
            found = self._decompositions[op.__name__](*args, **kwargs)
            if found is not NotImplemented:
                return found
        with observe(None):
            result = op(*args, **kwargs)
        result = self._own(args, kwargs, result)
        self.steps.append(Step(op, args, kwargs, result))
        self.kept.append((args, kwargs, result))
        return result

    def _own(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Any:
        """Results that share the very array of an input get one of their own, so that names are never mixed up."""
        taken = {array_key(v) for v in tensors_in((args, kwargs))}

        def fresh(value: Any) -> Any:
            if isinstance(value, ExTensor) and array_key(value) in taken:
                return ExTensor(value._array.view())
            return value

        if isinstance(result, ExTensor):
            return fresh(result)
        if isinstance(result, tuple) and hasattr(result, "_fields"):
            return type(result)(*map(fresh, result))
        return type(result)(map(fresh, result)) if isinstance(result, (list, tuple)) else result


def array_key(value: Any) -> int | None:
    """What a tensor and its detached twin have in common."""
    if isinstance(value, ExTensor):
        return id(value._array)
    return id(value) if isinstance(value, np.ndarray) else None


def tensors_in(tree: Any) -> list[ExTensor]:
    """The tensors inside nested lists, tuples and dicts."""
    if isinstance(tree, ExTensor):
        return [tree]
    if isinstance(tree, dict):
        tree = list(tree.values())
    return [t for part in tree for t in tensors_in(part)] if isinstance(tree, (list, tuple)) else []


def needed_steps(found: Trace) -> set[int]:
    """The positions of the calls whose results reach what the function returned."""
    wanted = {array_key(t) for t in tensors_in(found.result)}
    needed: set[int] = set()
    for number, step in reversed(list(enumerate(found.steps))):
        if any(array_key(o) in wanted for o in step.outputs):
            needed.add(number)
            wanted |= {array_key(t) for t in tensors_in((step.args, step.kwargs))}
    return needed


def trace(
    function: Callable[..., Any], inputs: Sequence[Any], names: Sequence[str],
    decompositions: Mapping[str, Callable[..., Any]] | None = None,
) -> Trace:  # fmt: skip
    """Run a function once, in evaluation mode and without gradients, and write down what it called."""
    found = Trace(decompositions)
    found.inputs, found.given = list(names), list(inputs)
    for name, value in zip(names, inputs):
        found.name("input", name, value)
    modes = []
    if isinstance(function, Module):
        for name, parameter in function.named_parameters():
            found.name("parameter", name, parameter)
        for name, buffer in function.named_buffers():
            found.name("buffer", name, buffer)
        modes = [(module, module.training) for module in function.modules()]
    try:
        for module, _ in modes:
            module.training = False
        with no_grad(), observe(found.call):
            found.result = function(*inputs)
    finally:
        for module, mode in modes:
            module.training = mode
    return found
