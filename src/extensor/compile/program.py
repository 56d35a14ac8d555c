"""A program: a recording made ready to be repeated.

The native side runs it from a description in plain tuples, with values numbered as inputs, constants, results of steps::

    (arguments,                                                # a tree of (args, kwargs)
     ((kind, owner, name, (dtype, shape), requires_grad), ...),  # inputs
     ((owner, whether it has a gradient), ...),                # conditions on leaves
     constants,
     ((kind, native, reference, expected, arguments, results, releases, commits), ...),
     ((kind, owner, name, value, ready), ...),                 # effects; value -1 is None
     result,                                                   # a tree
     ops, mode, whether it records, is_valid, save, restore,
     ((holder, key, value), ...))                              # Python values that must be what they were

A gradient that is an effect is complete after ``ready`` steps. If a run has a listener it is left then, and the listener called
with the leaf, while the other steps still run.

:class:`Runner` is the definition of a run; csrc/bindings/recorder/program.cpp takes the same steps, and a test holds the two
to the same results.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..autograd.drawing import Box
from ..graph import this_thread
from ..tensor import ExTensor
from .recording import Place, Recording, Step
from .runner import Runner
from .trees import Kind, Tree, flat, tensors_of, tree_of
from .watching import watches_of

try:
    from .._native import Program as _Native
except ModuleNotFoundError:
    _Native = Runner  # type: ignore[assignment,misc]

__all__ = ["Program"]

_SOURCES = {"argument": 0, "leaf": 1, "grad": 2, "attribute": 3}
_STEPS = {"kernel": 0, "guard": 1, "tuple": 2, "list": 3, "call": 4, "set_grad": 5, "update": 6}
_EFFECTS = {"assign": 0, "grad": 1, "attribute": 2}


class Program:
    """One kind of call of a compiled function, ready to be repeated.

    Attributes:
        shapes: of the tensors among the arguments.
        kernels: the names of its steps, in order.
        planned_bytes: the most memory that results of steps need at one time.
        boxes: what :func:`extensor.draw_graph` draws.
    """

    boxes: Callable[[], list[Box]]  # of the compiled function that keeps the program

    def __init__(
        self,
        fn: Callable[..., Any],
        recording: Recording,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        result: Any,
    ) -> None:
        self.recording = recording
        self.watches = watches_of(fn, (*args, *kwargs.values()))
        self.arguments_given = (args, kwargs)
        self.result = result
        self.shapes = tuple(tensor.shape for tensor in recording.arguments)
        self.kernels = tuple(step.name for step in recording.steps if step.kind in ("kernel", "call"))
        self._attribute_inputs()
        self.effects = self._effects()
        self._fingerprint = self._modules_now()
        for tensor in tensors_of(result):
            self._value(tensor)  # which may be a new constant: numbers hold from here on
        self.result_tree = tree_of(result, self._result_tensor)
        self.releases, self.planned_bytes = self._lifetimes()
        self.description = self._description()
        self._runner = _Native(self.description)
        self.run: Callable[..., Any] = self._runner.run
        # The recording has served: what it kept of the run may go.
        self.result = None
        recording.arguments = []
        recording._held = []
        recording._reads = []
        recording._replaced = []
        recording.constant_tensors = {}
        for leaf in recording.leaves.values():
            leaf.array = leaf.grad = None  # whose memory the next run may use again

    # The description

    def number(self, place: Place) -> int:
        """The number of a value."""
        kind, position = place
        if kind == "input":
            return position
        recording = self.recording
        start = len(recording.inputs)
        return start + position if kind == "constant" else start + len(recording.constants) + position

    moved: dict[Place, Place]  # constants that turned out to be inputs

    def _attribute_inputs(self) -> None:
        """Constants that are attributes of modules can be replaced between calls: they are inputs."""
        recording = self.recording
        held = {
            id(value._data): (module, name)
            for module in recording.modules.values()
            for name, value in vars(module).items()
            if type(value) is ExTensor
        }
        moved = self.moved = {}
        for position, tensor in recording.constant_tensors.items():
            found = recording.attribute_constants.get(position) or held.get(id(tensor._data))
            if found is not None:
                module, name = found
                moved[Place("constant", position)] = recording._input("attribute", module, name, tensor, -1)
                recording.constants[position] = None
        if not moved:
            return
        for step in recording.steps:
            step.arguments = [moved.get(place, place) for place in step.arguments]
        for key, (ref, place) in list(recording._places.items()):
            if place in moved:
                recording._places[key] = (ref, moved[place])

    def _effects(self) -> list[tuple[str, Any, str | None, Place | None]]:
        recording = self.recording
        found: list[tuple[str, Any, str | None, Place | None]] = []
        for leaf in recording.leaves.values():
            tensor = leaf.tensor
            if tensor._data is not leaf.array:
                found.append(("assign", leaf.owner, None, self._value(tensor)))
            if tensor._grad is not leaf.grad or leaf.grad_is_open or leaf.grad_set is not None:
                place = None if tensor._grad is None else self._value(tensor._grad)
                if place is None or place != leaf.grad_set:
                    found.append(("grad", leaf.owner, None, place))
        for owner, name in recording.attributes.values():
            value = vars(owner).get(name)
            if value is None or isinstance(value, ExTensor):
                found.append(("attribute", owner, name, None if value is None else self._value(value)))
        return found

    def _value(self, tensor: ExTensor) -> Place:
        return self.recording.find(tensor) or self.recording._constant(tensor._data)

    def _result_tensor(self, tensor: ExTensor) -> Tree:
        recording = self.recording
        for number, argument in enumerate(recording.arguments):
            if argument is tensor:
                return (Kind.OBJECT, None, number, False, None, ())
        if id(tensor) in recording.leaves:
            return (Kind.OBJECT, tensor, -1, False, None, ())
        place = self._value(tensor)
        return (Kind.TENSOR, None, self.number(place), bool(tensor._requires_grad), tensor._node, ())

    def _conditions(self) -> tuple[tuple[Any, bool], ...]:
        """Leaves that must have no gradient, because the run would otherwise have added to it."""
        return tuple(
            (leaf.owner, False)
            for leaf in self.recording.leaves.values()
            if leaf.grad is None
            and not leaf.grad_is_open
            and (leaf.grad_is_read or leaf.tensor._grad is not None or leaf.grad_set is not None)
        )

    def _lifetimes(self) -> tuple[list[list[int]], int]:
        """Per step the values that are not needed afterwards, and the most bytes of results alive at one time."""
        steps = self.recording.steps
        kept = {self.number(place) for *_, place in self.effects if place is not None}
        kept |= {t[2] for t in flat(self.result_tree) if t[0] == Kind.TENSOR}
        start = self.number(Place("result", 0))
        last: dict[int, int] = {}
        sizes: dict[int, int] = {}
        for i, step in enumerate(steps):
            for place in step.arguments:
                last[self.number(place)] = i
            for k, like in enumerate(step.results):
                number = start + step.first + k
                last[number] = i
                sizes[number] = 0 if like is None else like[0].itemsize * math.prod(like[1])
        releases: list[list[int]] = [[] for _ in steps]
        for number, i in last.items():
            if number not in kept and (number >= start or number < len(self.recording.inputs)):
                releases[i].append(number)
        alive = most = 0
        for i, step in enumerate(steps):
            alive += sum(sizes[start + step.first + k] for k in range(len(step.results)))
            most = max(most, alive)
            alive -= sum(sizes.get(number, 0) for number in releases[i])
        return releases, most

    def _description(self) -> tuple[Any, ...]:
        recording = self.recording
        mode = this_thread.mode
        generators = list(recording.generators.values())
        return (
            self._arguments_tree(),
            tuple((_SOURCES[s.kind], s.owner, s.name, s.array, s.requires_grad) for s in recording.inputs),
            self._conditions(),
            tuple(recording.constants),
            tuple(self._step(step, releases) for step, releases in zip(recording.steps, self.releases)),
            self._described_effects(),
            self.result_tree,
            tuple(recording.ops.values()),
            mode,
            this_thread.recording,
            self.is_valid,
            (lambda: [g.bit_generator.state for g in generators]) if generators else None,
            (lambda states: _restore(generators, states)) if generators else None,
            self.watches,
        )

    def _described_effects(self) -> tuple[tuple[Any, ...], ...]:
        """The effects, gradients first, in the order in which they are complete; not before the last guard."""
        steps = self.recording.steps
        guarded = max((i + 1 for i, step in enumerate(steps) if step.kind == "guard"), default=0)
        ready = {step.first + k: i + 1 for i, step in enumerate(steps) for k in range(len(step.results))}
        found = []
        for kind, owner, name, place in self.effects:
            number, at = -1 if place is None else self.number(place), len(steps) + 1
            if kind == "grad" and place is not None:
                at = max(ready[place.position], guarded) if place.kind == "result" else len(steps)
            found.append((_EFFECTS[kind], owner, name, number, at))
        return tuple(sorted(found, key=lambda effect: effect[4]))

    def _arguments_tree(self) -> Tree:
        args, kwargs = self.arguments_given
        numbers = iter(range(len(self.recording.arguments)))
        self.arguments_given = ((), {})

        def tensor(value: ExTensor) -> Tree:
            if type(value) is not ExTensor:
                return (Kind.OBJECT, value, -1, False, None, ())
            return (Kind.TENSOR, None, next(numbers), False, None, ())

        return (Kind.TUPLE, tuple, -1, False, None, (tree_of(args, tensor), tree_of(kwargs, tensor)))

    def _step(self, step: Step, releases: list[int]) -> tuple[Any, ...]:
        return (
            _STEPS["update" if step.moves is not None else step.kind],
            step.native,
            step.reference,
            step.expected,
            tuple(map(self.number, step.arguments)),
            tuple(step.results),
            tuple(releases),
            step.commits,
        )

    # Whether it still holds

    def is_valid(self) -> bool:
        """Whether the modules of the run are as they were: their modes, their parts, their settings."""
        now = self._modules_now()
        return len(now) == len(self._fingerprint) and all(_same(a, b) for a, b in zip(now, self._fingerprint))

    def _modules_now(self) -> list[Any]:
        recording, found = self.recording, []
        for module in recording.modules.values():
            for name, value in vars(module).items():
                if (id(module), name) in recording.attributes or type(value) is ExTensor:
                    continue  # values, not structure
                found.append((name, value if not isinstance(value, (list, dict)) else _elements(value)))
        return found

    def sync(self) -> None:
        """All that a run leaves is here already."""

    def times(self) -> tuple[list[float], int]:
        """Seconds of each step on average, and the number of runs."""
        return self._runner.times()

    def __repr__(self) -> str:
        return f"<program of {len(self.kernels)} kernels for shapes {', '.join(map(str, self.shapes)) or 'none'}>"


def _elements(value: Any) -> tuple[Any, ...]:
    return tuple(value.items()) if isinstance(value, dict) else tuple(value)


def _same(a: Any, b: Any) -> bool:
    """Whether two settings are the same object, or equal plain values."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    return isinstance(a, (bool, int, float, str)) and a == b


def _restore(generators: list[np.random.Generator], states: list[Any]) -> None:
    for generator, state in zip(generators, states):
        generator.bit_generator.state = state
