"""A program on another device: its steps traced once into one function of XLA (``jax.jit``), and run there.

The steps split in two. Those that follow from the arguments alone, and that XLA cannot take, run here before each call, in
order: checks of indices, random masks, schedules. All others are one function of arguments, parameters, gradients, attributes,
optimiser states and learning rates. What it returns stays on the device: parameters, gradients and states hold device arrays
from the first repetition on, and come back when they are read, or all together by ``sync``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..devices import DeviceArray, brought_here, jax, kept_there, wide_types
from ..errors import CompileError
from ..graph import next_sequence
from ..kernels import KERNELS
from ..kernels.elsewhere import compute
from ..tensor import ExTensor
from .device_rules import Moves, clipped, is_clip, is_dropout, moves_of, scale_of
from .program import Program
from .recording import Place, Step
from .runner import Runner, owner_of
from .trees import Kind

__all__ = ["DeviceProgram"]


class DeviceProgram(Program):
    """One kind of call of a compiled function on another device.

    Args:
        place: the device, as :func:`extensor.devices.find_device` found it.
    """

    def __init__(self, place: Any, *recorded: Any) -> None:
        super().__init__(*recorded)
        recording = self.recording
        self.place = place
        self.runs = 0
        self._matcher = Runner(self.description)
        self._constants = [self._there(value) for value in recording.constants]
        self._moves = {i: moves_of(step) for i, step in enumerate(recording.steps) if step.moves is not None}
        self._here = self._steps_here()
        self._masks = {
            i: scale_of(call)
            for i, step in enumerate(recording.steps)
            if i not in self._here and is_dropout(call := self._call(step)) and step.kind == "call"
        }
        self._refuse_others()
        self._turns = sorted(self._here | set(self._moves) | set(self._masks))
        self._gradients = [
            (s.reference, self.number(s.arguments[0])) for s in recording.steps if s.kind == "set_grad"
        ]
        self._sent: dict[int, tuple[Any, Any]] = {}
        self._functions: dict[Any, Callable[..., Any]] = {}
        self.run = self._run

    # What runs where

    def _steps_here(self) -> set[int]:
        """The steps that run here: those XLA cannot take that follow from the arguments alone, and what they need."""
        steps, inputs = self.recording.steps, self.recording.inputs
        known = {
            Place("input", i)
            for i, source in enumerate(inputs)
            if source.kind == "argument" and source.requires_grad != 1
        }
        makers: dict[Place, int] = {}
        possible: set[int] = set()
        for i, step in enumerate(steps):
            for k in range(len(step.results)):
                makers[Place("result", step.first + k)] = i
            follows = all(place.kind == "constant" or place in known for place in step.arguments)
            if follows and step.moves is None and step.kind != "set_grad":
                possible.add(i)
                known.update(Place("result", step.first + k) for k in range(len(step.results)))
        wanted = [i for i in possible if steps[i].kind in ("guard", "call")]
        found: set[int] = set()
        while wanted:
            i = wanted.pop()
            if i not in found:
                found.add(i)
                wanted += [makers[place] for place in steps[i].arguments if place in makers]
        return found

    def _refuse_others(self) -> None:
        for i, step in enumerate(self.recording.steps):
            call, where = self._call(step), self._where(step)
            if i in self._here or i in self._moves or i in self._masks:
                continue
            if step.name in _UNKNOWN_SHAPES:
                raise CompileError(
                    f"[compile] {step.name}{where} has a result whose shape depends on elements, which {self._name} cannot have; "
                    "compute it outside of the function, or compile without device="
                )
            if step.kind == "call" and not is_clip(call):
                raise CompileError(
                    f"[compile] {step.name}{where} looks at elements in Python, which cannot run on {self._name}; "
                    "compute it outside of the function, or compile without device="
                )
            if step.kind == "guard" and (step.expected is not None or step.name not in _FLAGS):
                raise CompileError(
                    f"[compile] {step.name} asks a question that cannot be asked on {self._name}"
                )

    def _call(self, step: Step) -> Any:
        calls = self.recording.calls
        return calls[step.call] if 0 <= step.call < len(calls) else None

    def _where(self, step: Step) -> str:
        call = self._call(step)
        return f" ({call.place[0]}:{call.place[1]})" if call is not None and call.place else ""

    @property
    def _name(self) -> str:
        return f"jax:{self.place.platform}:{self.place.id}"

    def _there(self, value: Any) -> Any:
        """A constant: arrays stay NumPy's until they are traced."""
        return brought_here(value) if isinstance(value, np.ndarray) else value

    # A call

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any], kept: list[Any] | None = None) -> Any:
        tensors: list[ExTensor] = []
        values = self._matcher.read(args, kwargs, tensors)
        if values is NotImplemented:
            return NotImplemented
        save, restore = self.description[11:13]
        saved = None if save is None else save()
        found = self._run_here(values, tensors)
        if found is NotImplemented:
            if restore is not None:
                restore(saved)
            return NotImplemented
        made, moves, committed = found
        inputs = [self._sent_input(i, values[i]) for i in range(len(self.recording.inputs))]
        static = tuple(move.static() for move in moves)
        with wide_types(), jax().default_device(self.place):
            function = self._functions.get(static)
            if function is None:
                function = self._functions[static] = jax().jit(self._traced(moves, static))
            sound, arrays, results, updates = function(inputs, made, [move.dynamic() for move in moves])
        if sound is not None and not bool(sound):
            if committed:
                raise RuntimeError(
                    "[compile] a check failed after a schedule's step; run this function without compile"
                )
            if restore is not None:
                restore(saved)
            return NotImplemented
        self.runs += 1
        self._leave(arrays, tensors, moves, updates)
        return self._matcher.made(self.result_tree, _Results(results), tensors)

    def _run_here(self, values: list[Any], tensors: list[ExTensor]) -> Any:
        """The steps that run here, and what the optimisers start from when it is their turn."""
        made: dict[int, Any] = {}
        moves: list[Moves] = []
        committed = False
        known = {**dict(enumerate(values))}
        for i in self._turns:
            if i in self._moves:
                moves.append(self._moves[i].now())
                continue
            step = self.recording.steps[i]
            if i in self._masks:  # the mask does not depend on what it is laid over
                dtype, shape = step.results[0]  # type: ignore[misc]
                made[self.number(Place("result", step.first + 1))] = step.reference(np.ones(shape, dtype))[1]
                continue
            given = [
                brought_here(a) if isinstance(a, np.ndarray) else a
                for a in (known[self.number(p)] for p in step.arguments)
            ]
            start = self.number(Place("result", step.first))
            if step.kind in ("tuple", "list"):
                known[start] = tuple(given) if step.kind == "tuple" else given
                continue
            found = NotImplemented if step.native is None else step.native(*given)
            found = step.reference(*given) if found is NotImplemented else found
            if step.kind == "guard":
                if found != step.expected:
                    return NotImplemented
                continue
            committed = committed or step.commits
            for k, array in enumerate([found] if step.kind == "kernel" and len(step.results) == 1 else found):
                known[start + k] = array
                if array is not None:
                    made[start + k] = array
        return made, moves, committed

    def _sent_input(self, i: int, array: np.ndarray) -> Any:
        """What lives on the device stays there; what is replaced here is sent once."""
        if type(array) is DeviceArray:
            return array.held
        if self.recording.inputs[i].kind == "argument":
            return jax().device_put(array, self.place)
        known = self._sent.get(i)
        if known is None or known[0] is not array:
            with wide_types():
                known = self._sent[i] = (array, jax().device_put(array, self.place))
        return known[1]

    def _leave(
        self, arrays: dict[int, Any], tensors: list[ExTensor], moves: list[Moves], updates: list[Any]
    ) -> None:
        for owner, number in self._gradients:
            owner_of(owner, tensors)._grad = ExTensor(kept_there(arrays[number]))
        for move, (params, states) in zip(moves, updates):
            for param, array in zip(move.params, params):
                _assign(param, array)
            move.keep(states)
        for kind, owner, name, place in self.effects:
            array = None if place is None else self._effect(arrays, place)
            if kind == "attribute":
                vars(owner)[name] = None if array is None else ExTensor(array)
            elif kind == "grad":
                owner_of(owner, tensors)._grad = None if array is None else ExTensor(array)
            else:
                _assign(owner_of(owner, tensors), array.held if type(array) is DeviceArray else array)

    def _effect(self, arrays: dict[int, Any], place: Place) -> np.ndarray:
        value = arrays[self.number(place)]
        return value if isinstance(value, np.ndarray) else kept_there(value)

    def times(self) -> tuple[list[float], int]:
        """One step is all that can be told apart, and its time is the device's; and the number of runs."""
        return [], self.runs

    def sync(self) -> None:
        """Bring everything that the program leaves on the device back here."""
        for leaf in self.recording.leaves.values():
            for tensor in (leaf.tensor, leaf.tensor._grad):
                if tensor is not None:
                    _bring_here(tensor)
        for module in self.recording.modules.values():
            for value in vars(module).values():
                if isinstance(value, ExTensor):
                    _bring_here(value)
        for move in self._moves.values():
            for state in move.optimizer.state.values():
                for value in state.values():
                    if isinstance(value, ExTensor):
                        _bring_here(value)

    # The function

    def _computed(self, step: Step, given: list[Any]) -> Any:
        try:
            return compute(KERNELS[step.name], given)
        except jax().errors.JAXTypeError as error:
            where = self._where(step)
            raise CompileError(
                f"[compile] {step.name}{where} depends on elements in a way that {self._name} cannot compute "
                f"({type(error).__name__}); compute it outside of the function, or compile without device="
            ) from None

    def _traced(self, moves: list[Moves], static: tuple[Any, ...]) -> Callable[..., Any]:
        recording, number = self.recording, self.number
        steps_there = [(i, step) for i, step in enumerate(recording.steps) if i not in self._here]
        wanted = {number(place) for *_, place in self.effects if place is not None}
        wanted |= {value for _, value in self._gradients}
        results = [t[2] for t in _flat(self.result_tree) if t[0] == Kind.TENSOR]

        def run(inputs: list[Any], made: dict[int, Any], dynamic: list[Any]) -> Any:
            values = {**dict(enumerate([*inputs, *self._constants])), **made}
            flags, updates = [], []
            turns = iter(zip(moves, static, dynamic))
            for i, step in steps_there:
                given = [values[number(place)] for place in step.arguments]
                start = number(Place("result", step.first))
                if step.kind == "set_grad":
                    continue
                if step.kind == "guard":
                    flags.append(_FLAGS[step.name](*given))
                    continue
                if step.kind in ("tuple", "list"):
                    values[start] = tuple(given) if step.kind == "tuple" else given
                    continue
                if i in self._moves:
                    move, options, now = next(turns)
                    old, grads = (
                        [values[number(p)] for p in places] for places in (step.moves[2], step.moves[3])
                    )
                    found, states = move.traced(old, grads, options, now)
                    updates.append((found, states))
                elif i in self._masks:
                    mask = values[start + 1]
                    found = [compute(KERNELS["dropout"], [given[0], mask, self._masks[i]]), mask]
                elif step.kind == "call":
                    found = clipped(self._call(step), given)
                else:
                    found = self._computed(step, given)
                    found = [found] if len(step.results) == 1 else found
                for k, array in enumerate(found):
                    values[start + k] = array
            sound = None if not flags else jax().numpy.stack(flags).all()
            return sound, {k: values[k] for k in wanted}, {k: values[k] for k in results}, updates

        return run


def _bring_here(tensor: ExTensor) -> None:
    if type(tensor._data) is DeviceArray:
        tensor._array = tensor._data.fetch()


# Kernels whose results have as many elements as they happen to find.
_UNKNOWN_SHAPES = frozenset({"bincount", "nonzero", "unique"})


class _Results:
    """The values of a result by number, as arrays that tensors hold."""

    def __init__(self, found: dict[int, Any]) -> None:
        self.found = found

    def __getitem__(self, number: int) -> np.ndarray:
        return kept_there(self.found[number])


def _assign(param: Any, held: Any) -> None:
    param._array = held if isinstance(held, np.ndarray) else kept_there(held)
    param._replaced = next_sequence()


def _outside(x: Any, low: Any, high: Any, allowed: Any) -> Any:
    sound = jax().numpy.ones(x.shape, bool)
    if low is not None:
        sound = sound & ~(x < low)
    if high is not None:
        sound = sound & ~(x > high)
    if allowed is not None:
        sound = sound | (x == allowed)
    return sound.all()


_FLAGS: dict[str, Callable[..., Any]] = {
    "first_outside": _outside,
    "first_nan": lambda x: ~jax().numpy.isnan(x).any(),
    "first_unlike": lambda x, a, b: ((x == a) | (x == b)).all(),
}


def _flat(tree: Any) -> list[Any]:
    return [tree] + [part for child in tree[5] for part in _flat(child)]
