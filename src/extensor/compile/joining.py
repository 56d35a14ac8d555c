"""Steps of an inference program that run as one: a convolution, the batch norm behind it, a shortcut's sum and relu.

Only what keeps the bits is joined: the joined kernel computes what its parts compute, in their order, with one pass over memory
instead of one for each. It also keeps what it made of its weight (transformed, or packed) as long as it is given the same array.
Training steps are left alone: their weights are new every time, and their gradients need what lies between.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..tensor import ExTensor
from .recording import Place, Recording, Step
from .trees import tensors_of

try:
    from .._native import joined_conv2d
except ModuleNotFoundError:
    joined_conv2d = None  # type: ignore[assignment]

__all__ = ["join_steps"]


def join_steps(recording: Recording, result: Any) -> None:
    """Join what can be joined, if the run has changed no parameter and no gradient."""
    if joined_conv2d is None or recording.committed or not _is_inference(recording):
        return
    uses = Counter(_places(recording, result))
    steps = recording.steps
    joined: list[Step | None] = []
    while len(joined) < len(steps):
        chain = _Chain(recording, steps, len(joined), uses)
        joined += [chain.step(), *[None] * (len(chain.parts) - 1)] if chain.parts else [steps[len(joined)]]
    recording.steps = [step for step in joined if step is not None]


def _is_inference(recording: Recording) -> bool:
    return all(
        leaf.tensor._data is leaf.array and leaf.tensor._grad is leaf.grad and leaf.grad_set is None
        for leaf in recording.leaves.values()
    )


def _places(recording: Recording, result: Any) -> Iterator[Place]:
    """Every use of a value: by steps, in the result, and as what is left in attributes."""
    for step in recording.steps:
        yield from step.arguments
    left = [vars(owner).get(name) for owner, name in recording.attributes.values()]
    for tensor in tensors_of((result, [t for t in left if isinstance(t, ExTensor)])):
        place = recording.find(tensor)
        if place is not None:
            yield place


class _Chain:
    """The steps from ``start`` on that go with a convolution; no parts where there is none."""

    def __init__(self, recording: Recording, steps: list[Step], start: int, uses: Counter[Place]) -> None:
        self.recording, self.parts = recording, []
        self.norm: Step | None = None
        self.added: Place | None = None
        self.has_relu = False
        first = steps[start]
        if (
            first.kind != "kernel"
            or first.name != "conv2d"
            or first.results[0] is None
            or first.results[0][0] != np.float32
        ):
            return
        self.parts = [first]
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

    def _takes(self, step: Step, made: Place) -> bool:
        """Whether the step is the next one of the chain."""
        if self.norm is None:
            if (
                step.name == "batch_norm"
                and step.arguments[0] == made
                and self._value(step.arguments[5]) is False
            ):
                self.norm = step
                return True
            return False
        if self.has_relu or step.results != self.parts[0].results:
            return False
        if step.name == "relu":
            self.has_relu = True
            return True
        if step.name != "add" or self.added is not None:
            return False
        other = step.arguments[1 - step.arguments.index(made)]
        self.added = other if self._is_like_result(other) else None
        return self.added is not None

    def _value(self, place: Place) -> Any:
        return self.recording.constants[place.position] if place.kind == "constant" else None

    def _is_like_result(self, place: Place) -> bool:
        """Whether a value has the shape and dtype of the convolution's, and is there before it."""
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

    def step(self) -> Step:
        """All of it as one step, whose results are None but for the last."""
        keep = self.recording._constant
        results: list[Any] = [None for part in self.parts for _ in part.results]
        last = self.parts[-1]
        end = len(results) - len(last.results)  # a batch norm's statistics come behind its result
        results[end] = last.results[0]
        if self.norm is None:
            after = [keep(None), keep(None), keep(None), keep(None), keep(0.0)]
        else:
            _, weight, bias, mean, variance, _, _, eps = self.norm.arguments
            after = [weight, bias, mean, variance, eps]
        more = [
            keep(None) if self.added is None else self.added,
            keep(self.has_relu),
            keep(end),
            keep(len(results) - end - 1),
        ]
        arguments = [*self.parts[0].arguments, *after, *more]
        name = " + ".join(part.name for part in self.parts)
        return Step(
            "kernel", name, joined_conv2d(), _one_by_one(self.recording, self.parts, arguments, end, len(results)), arguments, results,
            first=self.parts[0].first, call=last.call,
        )  # fmt: skip


def _one_by_one(recording: Recording, parts: list[Step], arguments: list[Place], end: int, count: int) -> Any:
    """The definition of a joined step: its parts, one after the other."""

    def where(place: Place) -> Any:
        """A function of the given values and those computed so far."""
        if place.kind == "result" and place.position >= parts[0].first:
            return lambda given, made: made[place.position]
        if place in arguments:
            position = arguments.index(place)
            return lambda given, made: given[position]
        value = recording.constants[place.position]
        return lambda given, made: value

    calls = [(part, [where(place) for place in part.arguments]) for part in parts]

    def run(*given: Any) -> Any:
        made: dict[int, Any] = {}
        for part, places in calls:
            values = [place(given, made) for place in places]
            found = NotImplemented if part.native is None else part.native(*values)
            if found is NotImplemented:
                found = part.reference(*values)
            made[part.first] = found if len(part.results) == 1 else found[0]
        result = [None] * count
        result[end] = made[parts[-1].first]
        return tuple(result) if count > 1 else result[0]

    return run
