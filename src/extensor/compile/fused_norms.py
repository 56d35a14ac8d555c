"""Steps of a training program that run as one: a batch norm, a shortcut's sum and relu; and on the way back the sum of two
gradients, relu and the batch norm.

Each of them alone reads and writes whole tensors and computes next to nothing. Fused, a channel is added up, normalised, summed
and cut off while it is in the cache. The fused kernel computes what its parts compute, in their order, so the bits stay. The
tensor in front of relu is never written: relu_backward asks where it is above zero, and what relu returned is so in the same places.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .fusion import held_places, one_by_one
from .recording import Place, Recording, Step

__all__ = ["fuse_norms"]


class _Fused(NamedTuple):
    """A step that stands for several."""

    step: Step
    positions: list[int]  # of its results, as they were recorded
    at: int  # the position of the step whose turn it takes
    parts: list[int]


def fuse_norms(recording: Recording, result: Any) -> None:
    """Fuse the batch norms of a recording with what lies behind them."""
    if not any(step.name == "batch_norm" and step.native is not None for step in recording.steps):
        return
    found = _Norms(recording, result)
    fused = [*found.forward(), *found.backward()]
    if fused:
        _put_in(recording, fused)


class _Norms:
    """The batch norms of a recording, and who makes and uses which value."""

    def __init__(self, recording: Recording, result: Any) -> None:
        self.recording, self.steps = recording, recording.steps
        self.held = set(held_places(recording, result))
        self.taken: set[int] = set()  # the parts of what is fused already
        self.users: dict[Place, list[int]] = defaultdict(list)
        self.maker: dict[Place, int] = {}
        for i, step in enumerate(self.steps):
            for place in set(step.arguments):
                self.users[place].append(i)
            for k in range(len(step.results)):
                self.maker[Place("result", step.first + k)] = i

    def forward(self) -> list[_Fused]:
        made = [self._behind(i) for i, step in enumerate(self.steps) if self._is(step, "batch_norm")]
        return [fused for fused in made if fused is not None]

    def backward(self) -> list[_Fused]:
        made = [self._before(i) for i, step in enumerate(self.steps) if self._is(step, "relu_backward")]
        return [fused for fused in made if fused is not None]

    # y = relu(batch_norm(x) [+ shortcut])

    def _behind(self, at: int) -> _Fused | None:
        norm = self.steps[at]
        if self._value(norm.arguments[5]) is not True or not _has_channels(norm):
            return None
        parts, added = [at], self.recording._constant(None)
        follower = self._only_user(norm)
        if follower is not None and follower not in self.taken and self.steps[follower].name == "add":
            add = self.steps[follower]
            added = add.arguments[add.arguments[0] == _made(norm)]
            if (
                added == _made(norm)
                or self._like(added) != norm.results[0]
                or add.results != norm.results[:1]
            ):
                return None
            parts.append(follower)
            follower = self._only_user(add)
        if follower is None or follower in self.taken or not self._is(self.steps[follower], "relu"):
            return None
        parts.append(follower)
        statistics = [Place("result", norm.first + k) for k in (1, 2)]
        if any(user <= follower for place in statistics for user in self.users[place]):
            return None
        relu = self.steps[follower]
        for part in parts[:-1]:  # what relu_backward asks of them, it may ask of relu's result
            for user in self.users[_made(self.steps[part])]:
                if user not in parts:
                    self._give(user, 1, _made(relu))
        arguments = [*norm.arguments, added, self.recording._constant(True)]
        return self._fused(parts, follower, arguments, [relu.first, norm.first + 1, norm.first + 2])

    def _only_user(self, step: Step) -> int | None:
        """The one step that needs the first result, besides relu_backward, which needs its sign."""
        place = _made(step)
        users = [
            i
            for i in self.users[place]
            if not (self._is(self.steps[i], "relu_backward") and self.steps[i].arguments[0] != place)
        ]
        return users[0] if len(users) == 1 and place not in self.held else None

    # batch_norm_backward(relu_backward(g [+ other], y), ...)

    def _before(self, at: int) -> _Fused | None:
        relu = self.steps[at]
        norms = [i for i in self.users[_made(relu)] if self._is_norm_of(self.steps[i], _made(relu))]
        if len(norms) != 1 or not _has_channels(relu):
            return None
        norm = self.steps[norms[0]]
        parts, given = [at, norms[0]], list(norm.arguments)
        nothing = self.recording._constant(None)
        for k in (1, 2):  # the gradients of the statistics, which nobody differentiates as a rule
            maker = self.maker.get(given[k])
            if maker is not None and self.steps[maker].name == "zeros" and self.users[given[k]] == [norms[0]]:
                parts.insert(0, maker)
                given[k] = nothing
        given[0], passed = relu.arguments
        added = nothing
        add = self.maker.get(given[0])
        if add is not None and self.steps[add].name == "add" and self.users[given[0]] == [at]:
            pair = self.steps[add].arguments
            if given[0] not in self.held and all(self._like(place) == relu.results[0] for place in pair):
                parts.insert(0, add)
                given[0], added = pair
        if any(self.maker.get(place, -1) >= at for place in (*given, passed, added)):
            return None  # it is not there yet
        others = set(self.users[_made(relu)]) - set(parts)
        keeps = bool(others) or _made(relu) in self.held
        arguments = [*given, passed, added, self.recording._constant(keeps)]
        positions = [*range(norm.first, norm.first + 3), relu.first]
        return self._fused(parts, at, arguments, positions, keeps)

    def _is_norm_of(self, step: Step, gradient: Place) -> bool:
        return (
            self._is(step, "batch_norm_backward")
            and step.arguments[0] == gradient
            and gradient not in step.arguments[1:]
            and self._value(step.arguments[7]) is True
        )

    # Both

    def _fused(
        self, parts: list[int], at: int, arguments: list[Place], positions: list[int], keeps: bool = True
    ) -> _Fused:
        self.taken.update(parts)
        steps = [self.steps[i] for i in parts]
        shapes = {step.first + k: like for step in steps for k, like in enumerate(step.results)}
        results = [shapes[position] for position in positions]
        wanted: list[int | None] = list(positions)
        if not keeps:
            results[-1] = wanted[-1] = None
        norm = next(step for step in steps if step.name.startswith("batch_norm"))
        name = " + ".join(step.name for step in steps if step.name != "zeros")
        reference = one_by_one(self.recording, steps, arguments, wanted)
        step = Step("kernel", name, norm.native, reference, arguments, results, call=steps[-1].call)
        return _Fused(step, positions, at, parts)

    def _give(self, user: int, k: int, place: Place) -> None:
        step = self.steps[user]
        self.users[step.arguments[k]].remove(user)
        step.arguments[k] = place
        self.users[place].append(user)

    @staticmethod
    def _is(step: Step, name: str) -> bool:
        return step.kind == "kernel" and step.name == name and step.native is not None

    def _value(self, place: Place) -> Any:
        return self.recording.constants[place.position] if place.kind == "constant" else None

    def _like(self, place: Place) -> Any:
        """Dtype and shape of a value; None for a constant."""
        if place.kind == "input":
            return self.recording.inputs[place.position].array
        if place.kind == "constant":
            return None
        step = self.steps[self.maker[place]]
        return step.results[place.position - step.first]


def _made(step: Step) -> Place:
    return Place("result", step.first)


def _has_channels(step: Step) -> bool:
    """Whether the result is one that the native kernel normalises."""
    like = step.results[0]
    return like is not None and like[0] in (np.float32, np.float64) and len(like[1]) > 2


def _put_in(recording: Recording, fused: list[_Fused]) -> None:
    """Replace the parts by the fused steps, and number all results in the order in which they come now."""
    gone = {part for each in fused for part in each.parts}
    at = {each.at: each for each in fused}
    order: list[int] = []
    steps: list[Step] = []
    turn: list[int] = []  # of each step that was there: how many of the steps now come before it
    for i, step in enumerate(recording.steps):
        turn.append(len(steps))
        if i in at:
            steps.append(at[i].step)
            positions = at[i].positions
        elif i in gone:
            continue
        else:
            steps.append(step)
            positions = list(range(step.first, step.first + len(step.results)))
        steps[-1].first = len(order)
        order += positions
    known = set(order)
    order += [position for position in range(recording.results) if position not in known]  # names, no values
    number = {position: i for i, position in enumerate(order)}

    def moved(place: Place) -> Place:
        return Place("result", number[place.position]) if place.kind == "result" else place

    for step in steps:
        step.arguments = [moved(place) for place in step.arguments]
        if step.moves is not None:
            step.moves = _with_places(step.moves, moved)
        if step.kind == "set_grad" and step.expected is not None:
            step.expected = turn[step.expected] if step.expected < len(turn) else len(steps)
    recording.steps = steps
    recording._places = {key: (ref, moved(place)) for key, (ref, place) in recording._places.items()}
    for leaf in recording.leaves.values():
        leaf.grad_set = None if leaf.grad_set is None else moved(leaf.grad_set)
    for call in recording.calls:
        call.args, call.kwargs, call.results = _with_places((call.args, call.kwargs, call.results), moved)


def _with_places(thing: Any, moved: Callable[[Place], Place]) -> Any:
    """A structure with other places."""
    if isinstance(thing, Place):
        return moved(thing)
    if type(thing) is dict:
        return {key: _with_places(value, moved) for key, value in thing.items()}
    if isinstance(thing, (list, tuple)):
        parts = [_with_places(part, moved) for part in thing]
        return type(thing)(*parts) if hasattr(thing, "_fields") else type(thing)(parts)
    return thing
