"""Steps of an inference program that run as one: a convolution, the batch norm behind it, a shortcut's sum and relu; a convolution
and relu; or a linear map, and the activation or the shortcut's sum behind it.

Only what keeps the bits is fused: the fused kernel computes what its parts compute, in their order, with one pass over memory
instead of one for each. It also keeps what it made of its weight (transformed, or packed) as long as it is given the same array.
Training steps are left alone: their weights are new every time, and their gradients need what lies between.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..tensor import ExTensor
from .recording import Place, Recording, Step
from .trees import tensors_of

try:
    from .._native import fused_conv2d, fused_linear
except ModuleNotFoundError:
    fused_conv2d = fused_linear = None  # type: ignore[assignment]

__all__ = ["fuse_steps", "held_places", "one_by_one"]


def fuse_steps(recording: Recording, result: Any) -> None:
    """Fuse what can be fused, if the run has changed no parameter and no gradient."""
    if fused_conv2d is None or recording.committed or not _is_inference(recording):
        return
    uses = Counter(place for step in recording.steps for place in step.arguments)
    uses.update(held_places(recording, result))
    steps = recording.steps
    fused: list[Step | None] = []
    while len(fused) < len(steps):
        first = steps[len(fused)]
        kind = _CHAINS.get(first.name) if first.kind == "kernel" and _is_float32(first) else None
        if kind is None:
            fused.append(first)
            continue
        chain = kind(recording, steps, len(fused), uses)
        fused += [chain.step(), *[None] * (len(chain.parts) - 1)]
    recording.steps = [step for step in fused if step is not None]


def _is_inference(recording: Recording) -> bool:
    return all(
        leaf.tensor._data is leaf.array and leaf.tensor._grad is leaf.grad and leaf.grad_set is None
        for leaf in recording.leaves.values()
    )


def held_places(recording: Recording, result: Any) -> Iterator[Place]:
    """What the run leaves behind: in its result, in attributes, as parameters and gradients."""
    left = [vars(owner).get(name) for owner, name in recording.attributes.values()]
    for leaf in recording.leaves.values():
        left += [leaf.tensor, leaf.tensor._grad]
    for tensor in tensors_of((result, [t for t in left if isinstance(t, ExTensor)])):
        place = recording.find(tensor)
        if place is not None:
            yield place


def _is_float32(step: Step) -> bool:
    return step.results[0] is not None and step.results[0][0] == np.float32


class _Chain(ABC):
    """The steps from ``start`` on that run as one."""

    def __init__(self, recording: Recording, steps: list[Step], start: int, uses: Counter[Place]) -> None:
        self.recording, self.parts = recording, [steps[start]]
        self.added: Place | None = None
        for step in steps[start + 1 : start + 4]:
            made = Place("result", self.parts[-1].first)
            if (
                step.kind != "kernel"
                or uses[made] != 1
                or made not in step.arguments
                or not self._takes(step, made)
            ):
                return
            self.parts.append(step)

    @abstractmethod
    def _takes(self, step: Step, made: Place) -> bool:
        """Whether the step is the next one of the chain."""

    @abstractmethod
    def _fused(self, end: int, count: int) -> tuple[Any, list[Place]]:
        """The kernel, and its arguments: the result is number ``end`` of ``count``."""

    def step(self) -> Step:
        """All of it as one step, whose results are None but for the last."""
        results: list[Any] = [None for part in self.parts for _ in part.results]
        last = self.parts[-1]
        end = len(results) - len(last.results)  # a batch norm's statistics come behind its result
        results[end] = last.results[0]
        kernel, arguments = self._fused(end, len(results))
        name = " + ".join(part.name for part in self.parts)
        wanted = [None] * end + [last.first] + [None] * (len(results) - end - 1)
        reference = one_by_one(self.recording, self.parts, arguments, wanted)
        first = self.parts[0].first
        return Step("kernel", name, kernel, reference, arguments, results, first=first, call=last.call)

    def _takes_sum(self, step: Step, made: Place) -> bool:
        """Whether the step adds what is there before the chain to its result."""
        if step.name != "add" or self.added is not None or step.results != self.parts[0].results:
            return False
        other = step.arguments[1 - step.arguments.index(made)]
        self.added = other if self._is_like_result(other) else None
        return self.added is not None

    def _added(self) -> Place:
        return self.recording._constant(None) if self.added is None else self.added

    def _value(self, place: Place) -> Any:
        return self.recording.constants[place.position] if place.kind == "constant" else None

    def _is_like_result(self, place: Place) -> bool:
        """Whether a value has the shape and dtype of the first step's, and is there before it."""
        wanted = self.parts[0].results[0]
        if place.kind == "input":
            return self.recording.inputs[place.position].array == wanted
        if place.kind == "constant":
            return False
        for step in self.recording.steps:
            if step.first <= place.position < step.first + len(step.results):
                return (
                    step.results[place.position - step.first] == wanted
                    and place.position < self.parts[0].first
                )
        return False


class _ConvChain(_Chain):
    """A convolution, batch norm, sum, relu; or a convolution, relu."""

    norm: Step | None = None
    has_relu = False

    def _takes(self, step: Step, made: Place) -> bool:
        if self.has_relu:
            return False
        if step.name == "batch_norm":
            if (
                self.norm is not None
                or step.arguments[0] != made
                or self._value(step.arguments[5]) is not False
            ):
                return False
            self.norm = step
            return True
        if step.results != self.parts[0].results:
            return False
        if step.name == "relu":
            self.has_relu = True
            return True
        return self.norm is not None and self._takes_sum(step, made)

    def _fused(self, end: int, count: int) -> tuple[Any, list[Place]]:
        keep = self.recording._constant
        if self.norm is None:
            after = [keep(None), keep(None), keep(None), keep(None), keep(0.0)]
        else:
            _, weight, bias, mean, variance, _, _, eps = self.norm.arguments
            after = [weight, bias, mean, variance, eps]
        more = [self._added(), keep(self.has_relu), keep(end), keep(count - end - 1)]
        return fused_conv2d(), [*self.parts[0].arguments, *after, *more]


class _LinearChain(_Chain):
    """A linear map, then relu, gelu or a sum."""

    activation: str | None = None

    def _takes(self, step: Step, made: Place) -> bool:
        if len(self.parts) > 1:
            return False
        if step.name == "relu":
            self.activation = "relu"
        elif step.name == "gelu":
            self.activation = "gelu_tanh" if self._value(step.arguments[1]) else "gelu"
        return self.activation is not None or self._takes_sum(step, made)

    def _fused(self, end: int, count: int) -> tuple[Any, list[Place]]:
        keep = self.recording._constant
        return fused_linear(), [*self.parts[0].arguments, keep(self.activation), self._added(), keep(end)]


_CHAINS: dict[str, type[_Chain]] = {"conv2d": _ConvChain, "linear": _LinearChain}


def one_by_one(
    recording: Recording, parts: list[Step], arguments: list[Place], wanted: list[int | None]
) -> Any:
    """The definition of a fused step: its parts, one after the other. It returns the results with these positions."""
    own = {part.first + k for part in parts for k in range(len(part.results))}

    def where(place: Place) -> Any:
        """A function of the given values and those computed so far."""
        if place.kind == "result" and place.position in own:
            return lambda given, made: made[place.position]
        if place in arguments:
            position = arguments.index(place)
            return lambda given, made: given[position]
        value = recording.constants[place.position]
        return lambda given, made: value

    calls = [(part, part.first, [where(place) for place in part.arguments]) for part in parts]

    def run(*given: Any) -> Any:
        made: dict[int | None, Any] = {None: None}
        for part, first, places in calls:
            values = [place(given, made) for place in places]
            found = NotImplemented if part.native is None else part.native(*values)
            if found is NotImplemented:
                found = part.reference(*values)
            made.update(enumerate([found] if len(part.results) == 1 else found, first))
        result = tuple(made[position] for position in wanted)
        return result if len(wanted) > 1 else result[0]

    return run
