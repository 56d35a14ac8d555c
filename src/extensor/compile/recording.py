"""The recording of a function: one eager run, and everything it computed, read and changed.

The run is an ordinary one. Around each call of an op its kernel calls are listed; if the op did nothing but call kernels on
tensors it was given, those calls become steps of the program. An op that looks at elements or draws random numbers is one
step: the op itself. What is not computed in the run is read afresh by every later one if it can change (arguments,
parameters, gradients, attributes of modules), and is a constant if it cannot.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..autograd.scopes import scopes
from ..devices import DeviceArray, device_of
from ..errors import CompileError
from ..graph import (
    Branch,
    Recorder,
    caller,
    this_thread,
)
from ..graph.plans import is_static
from ..ops._generators import is_replaying
from ..tensor import ExTensor
from .trees import fill, tensors_of

__all__ = ["Call", "Leaf", "Place", "Recording", "Source", "Step"]


class _Opaque(Exception):
    """What an op did is more than kernel calls on its own inputs: the op itself is the step."""


class Place(NamedTuple):
    """Where a value comes from: ``"input"``, ``"constant"`` or ``"result"``, and its position among those."""

    kind: str
    position: int


class Source(NamedTuple):
    """An input: ``"argument"``, ``"leaf"``, ``"grad"`` or ``"attribute"``."""

    kind: str
    owner: Any  # a tensor, the number of an argument, or an object with attributes
    name: str | None
    array: tuple[Any, tuple[int, ...]]  # dtype and shape
    requires_grad: int  # 0, 1, or -1 where it does not matter


@dataclass
class Step:
    """One step of a program."""

    kind: str  # "kernel", "guard", "tuple", "list", "call" or "set_grad"
    name: str
    native: Any
    reference: Any
    arguments: list[Place]
    results: list[tuple[Any, tuple[int, ...]] | None]
    expected: Any = None
    commits: bool = False
    first: int = 0  # position of the first result
    call: int = -1  # number of the call that it belongs to
    moves: Any = None  # of an optimiser's step: it, its parameters, where they and their gradients come from


@dataclass
class Call:
    """One call of a public function, as the source of a program shows it."""

    function: Any
    args: Any  # with places where tensors stood
    kwargs: Any
    results: Any  # likewise
    shapes: list[tuple[int, ...]]
    place: tuple[str, int, str] | None
    kind: str = "op"  # or "repeat", "change", "step"


@dataclass
class Leaf:
    """A leaf tensor that the run used or changed, as it was when it was first seen."""

    tensor: ExTensor
    owner: Any  # the tensor, or the number of the argument that it is
    array: Any
    grad: Any
    grad_is_read: bool = False
    grad_is_open: bool = False  # it was replaced before anybody looked: whatever it was does not matter
    opened_at: int | None = None  # how many steps there were by then
    grad_set: Place | None = None  # what the steps have set it to


class Recording(Recorder):
    """One recorded run. It is the observer of its thread, except inside of what it calls itself.

    Args:
        arguments: the tensors among the arguments, in order; those that a caller may replace by others.
        tolerant: reading a value does not raise, it ends the recording.
    """

    def __init__(self, arguments: Sequence[ExTensor], tolerant: bool) -> None:
        self.steps: list[Step] = []
        self.calls: list[Call] = []
        self.inputs: list[Source] = []
        self.constants: list[Any] = []
        self.constant_tensors: dict[int, ExTensor] = {}
        self.attribute_constants: dict[int, tuple[Any, str]] = {}
        self.leaves: dict[int, Leaf] = {}
        self.attributes: dict[tuple[int, str], tuple[Any, str]] = {}
        self.modules: dict[int, Any] = {}
        self.ops: dict[int, Any] = {}
        self.generators: dict[int, np.random.Generator] = {}
        self.changed: dict[int, Any] = {}  # objects that steps change: optimisers, schedules
        self.results = 0
        self.failure: tuple[str, tuple[str, int, str] | None] | None = None
        self.committed = False
        self.tolerant = tolerant
        self.arguments = list(arguments)
        self.values: list[Any] | None = None  # what the steps computed, for comparisons
        self._places: dict[int, tuple[weakref.ref[Any], Place]] = {}
        self._grads: dict[int, Leaf] = {}
        self._stray: list[Any] = []
        self._reads: list[tuple[ExTensor, tuple[str, int, str] | None]] = []
        self._replaced: list[ExTensor] = []  # attributes as they were
        self._casts: dict[tuple[Place, Any], Place] = {}
        self._guards: dict[Any, int] = {}  # what was asked of which arrays, by which step
        self._held: list[Any] = []
        for number, tensor in enumerate(arguments):
            if tensor._requires_grad:
                self._add_leaf(tensor, number)
            else:
                self._known(tensor._data, self._input("argument", number, None, tensor, 0))

    # The run

    @contextmanager
    def running(self) -> Iterator[None]:
        """The block in which this thread is recorded."""
        profile, scopes.profile = scopes.profile, self
        before = this_thread.observer, this_thread.reader, this_thread.trace
        try:
            this_thread.observer, this_thread.reader, this_thread.trace = self, self._read, self._stray
            yield
        finally:
            this_thread.observer, this_thread.reader, this_thread.trace = before
            scopes.profile = profile

    @contextmanager
    def _paused(self, trace: list[Any] | None = None) -> Iterator[None]:
        before = this_thread.observer, this_thread.reader, this_thread.trace
        profile, scopes.profile = scopes.profile, None
        try:
            this_thread.observer, this_thread.reader, this_thread.trace = None, None, trace
            yield
        finally:
            this_thread.observer, this_thread.reader, this_thread.trace = before
            scopes.profile = profile

    def fail(self, reason: str) -> None:
        """The run cannot be repeated; it goes on, unrecorded."""
        if self.failure is None:
            self.failure = (reason, caller())
        self._held.clear()

    def _read(self, tensor: ExTensor) -> None:
        """The elements of a tensor are looked at outside of ops."""
        if self.failure is not None:
            return
        known = self._find(tensor._data)
        if tensor._node is None and (tensor._requires_grad or type(tensor) is not ExTensor):
            self.refuse("the value of a parameter was read")
            return
        if known is None and id(tensor) not in self.leaves and id(tensor._data) not in self._grads:
            self._reads.append((tensor, caller()))  # a constant of the recording, unless a module holds it
            return
        if known is not None and known.kind == "constant":
            self._reads.append((tensor, caller()))
            return
        self.refuse("the value of a tensor was read")

    def refuse(self, reason: str, place: tuple[str, int, str] | None = None) -> None:
        if self.tolerant:
            self.fail(reason)
            return
        place = place or caller()
        where = f" at {place[0]}:{place[1]} in {place[2]}" if place else ""
        raise CompileError(
            f"[compile] {reason}{where}: it would be the same in every later call. Return the tensor and read it outside, compute with extensor.where, or compile with fallback=True"
        )

    def add_module(self, start: int) -> None:
        """The forward of a module has ended (told as to a profile)."""
        module = scopes.running[-1]
        self.modules[id(module)] = module
        if getattr(module, "_hooks", None) is not None:
            self.fail(f"{type(module).__name__} has hooks, which would not be called")

    # What the library tells

    def __call__(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self.failure is not None:
            with self._paused():
                return op.call(*args, **kwargs)
        self._check_stray()
        described = fill((args, kwargs), self._place_of)
        trace: list[Any] = []
        read_before, this_thread.values_read = this_thread.values_read, False
        try:
            with self._paused(trace):
                result = op.call(*args, **kwargs)
        finally:
            was_read, this_thread.values_read = this_thread.values_read, read_before
        self.ops[id(op)] = op
        try:
            if was_read:
                raise _Opaque
            self._add_kernels(op, trace, result)
        except _Opaque:
            result = self._add_opaque(op, args, kwargs, result)
        self._add_call(op, described, result, "op")
        return result

    def repeat(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], changes: bool
    ) -> Any:
        if self.failure is not None:
            with self._paused():
                return function(*args, **kwargs)
        self._check_stray()
        described = fill((args, kwargs), self._place_of)
        places = [self._place_of(tensor) for tensor in tensors_of((args, kwargs))]
        with self._paused():
            result = function(*args, **kwargs)
        result = fill(result, self._as_result)
        made = [t._data for t in tensors_of(result)]
        self._note_generators((args, kwargs))
        step = self._step("call", function.__name__, None, _again(function, args, kwargs), places, made)
        step.commits = changes
        if changes:
            self.changed.update({id(part): part for part in _parts(args) if hasattr(part, "__dict__")})
        self.committed |= changes
        self._add_call(function, described, result, "change" if changes else "repeat")
        return result

    def step(
        self, optimizer: Any, params: list[Any], function: Callable[[], Any], parts: tuple[Any, Any]
    ) -> Any:
        if self.failure is not None:
            with self._paused():
                return function()
        self._check_stray()
        moving, grads = [], []
        for p in params:
            leaf = self._add_leaf(p, p)
            if p._grad is None:
                leaf.grad_is_read |= leaf.grad is None
                continue
            moving.append(p)
            place = self._place_of(p._grad)
            grads.append(place)
            if place.kind != "input" or self.inputs[place.position].owner is not leaf.owner:
                self._append(
                    Step(
                        "set_grad",
                        "grad",
                        None,
                        leaf.owner,
                        [place],
                        [],
                        leaf.opened_at,
                        commits=True,
                        call=len(self.calls),
                    )
                )
                leaf.grad_set = place
        self.changed[id(optimizer)] = optimizer
        with self._paused():
            result = function()

        def again() -> tuple[Any, ...]:
            function()
            return tuple(p._data for p in moving)

        made = [p._data for p in moving]
        name = f"{type(optimizer).__name__}.step"
        before = [self._leaf_place(p) for p in moving]
        taken = self._step("call", name, None, again, [], made, commits=True)
        taken.expected = (optimizer, *parts, tuple(moving))  # what a native run makes of it
        taken.moves = (optimizer, moving, before, grads)
        for p in moving:
            self.leaves[id(p)].array = p._data
        self.committed = True
        described: Any = (before, [self.leaves[id(p)].grad_set for p in moving]), {}
        self._add_call(optimizer, described, [ExTensor(a) for a in made], "step")
        return result

    def note_use(self, tensor: Any) -> None:
        if (
            self.failure is None
            and tensor._node is None
            and (tensor._requires_grad or type(tensor) is not ExTensor)
        ):
            self._place_of(tensor)

    def note_leaf(self, leaf: Any) -> None:
        if self.failure is None and id(leaf) not in self.leaves and self._find(leaf._data) is None:
            made = self._add_leaf(leaf, leaf)
            made.grad_is_open = True
            made.opened_at = len(self.steps)

    def note_attribute(self, owner: Any, name: str, value: Any) -> None:
        key = (id(owner), name)
        if self.failure is not None or key in self.attributes:
            return
        before = vars(owner).get(name)
        self.modules[id(owner)] = owner
        if not isinstance(value, ExTensor) and not isinstance(before, ExTensor):
            if (
                self.tolerant and value is not before
            ):  # otherwise the caller knows: it happens only while recording
                self.fail(f"{type(owner).__name__}.{name} is set in the function")
            return
        self.attributes[key] = (owner, name)
        if not isinstance(before, ExTensor):
            return
        self._replaced.append(before)
        place = self._find(before._data)
        if place is None:
            self._known(before._data, self._input("attribute", owner, name, before, -1))
            self._held.append(before)
        elif place.kind == "constant":  # it was used before it was replaced
            self.attribute_constants[place.position] = (owner, name)

    # Places

    def _find(self, array: Any) -> Place | None:
        found = self._places.get(id(array))
        return found[1] if found is not None and found[0]() is array else None

    def find(self, tensor: ExTensor) -> Place | None:
        """Where the value of a tensor comes from; None for what the run did not meet."""
        return self._find(tensor._data)

    def _known(self, array: Any, place: Place) -> Place:
        self._places[id(array)] = (weakref.ref(array), place)
        return place

    def _input(self, kind: str, owner: Any, name: str | None, like: ExTensor, requires_grad: int) -> Place:
        self.inputs.append(Source(kind, owner, name, (like.dtype, like.shape), requires_grad))
        return Place("input", len(self.inputs) - 1)

    def _add_leaf(self, tensor: Any, owner: Any) -> Leaf:
        leaf = self.leaves.get(id(tensor))
        if leaf is None:
            leaf = self.leaves[id(tensor)] = Leaf(tensor, owner, tensor._data, tensor._grad)
            kind = "argument" if isinstance(owner, int) else "leaf"
            self._known(
                tensor._data, self._input(kind, owner, None, tensor, int(bool(tensor._requires_grad)))
            )
            if tensor._grad is not None:
                self._grads[id(tensor._grad._data)] = leaf
        return leaf

    def _leaf_place(self, tensor: Any) -> Place | None:
        array = self.leaves[id(tensor)].array
        return self._find(array)

    def _place_of(self, tensor: ExTensor) -> Place:
        place = self._find(tensor._data)
        if place is not None:
            return place
        if type(tensor._data) is DeviceArray:
            self.fail(
                f"a tensor on another device ({device_of(tensor._data)}) was used; compile with device="
            )
        leaf = self._grads.get(id(tensor._data))
        if leaf is not None and leaf.grad is not None and leaf.grad._data is tensor._data:
            leaf.grad_is_read = True
            return self._known(tensor._data, self._input("grad", leaf.owner, None, tensor, -1))
        if tensor._node is None and (tensor._requires_grad or type(tensor) is not ExTensor):
            self._add_leaf(tensor, tensor)
            found = self._find(tensor._data)
            assert found is not None
            return found
        if tensor._node is not None and tensor._requires_grad:
            self.fail("a tensor that was computed outside, with its history, was used")
        place = self._constant(tensor._data)
        self.constant_tensors[place.position] = tensor
        return place

    def _constant(self, value: Any) -> Place:
        self.constants.append(value)
        place = Place("constant", len(self.constants) - 1)
        return self._known(value, place) if isinstance(value, np.ndarray) else place

    # Steps

    def _append(self, step: Step) -> Step:
        step.first = self.results
        self.results += len(step.results)
        self.steps.append(step)
        return step

    def _step(
        self, kind: str, name: str, native: Any, reference: Any, arguments: list[Place], made: list[Any], commits: bool = False
    ) -> Step:  # fmt: skip
        """A step whose results are the arrays ``made``."""
        step = Step(
            kind,
            name,
            native,
            reference,
            arguments,
            [_like(a) for a in made],
            commits=commits,
            call=len(self.calls),
        )
        self._append(step)
        for i, array in enumerate(made):
            if array is not None and self._find(array) is None:
                self._known(array, Place("result", step.first + i))
        if self.values is not None and kind != "guard":
            self.values.append((step, made))
        return step

    def _add_kernels(self, op: Any, trace: list[Any], result: Any) -> None:
        """The kernel calls of an op as steps, if they are all that it did."""
        steps, results, constants = len(self.steps), self.results, len(self.constants)
        values = 0 if self.values is None else len(self.values)
        try:
            for kernel, given, made in trace:
                self._add_kernel(kernel, given, made)
            for tensor in tensors_of(result):
                if self._find(tensor._data) is None:
                    raise _Opaque  # an array of its own making
        except _Opaque:
            del self.steps[steps:]
            del self.constants[constants:]
            self.results = results
            self._casts = {key: place for key, place in self._casts.items() if place.position < results}
            self._guards = {key: step for key, step in self._guards.items() if step < steps}
            if self.values is not None:
                del self.values[values:]
            for key, (_, place) in list(self._places.items()):
                late = place.kind == "result" and place.position >= results
                if late or (place.kind == "constant" and place.position >= constants):
                    del self._places[key]
            raise

    def _add_kernel(self, kernel: Any, given: list[Any], made: Any) -> None:
        arguments = [self._argument(value) for value in given]
        if (
            kernel.name == "astype" and arguments[0].kind == "input"
        ):  # a parameter under autocast: once, not once per use
            key = (arguments[0], given[1])
            if key in self._casts:
                self._known(made, self._casts[key])
                return
            self._casts[key] = Place("result", self.results)
        if kernel.name == "reshape" and made.shape == given[0].shape and made.strides == given[0].strides:
            self._known(made, arguments[0])  # the array itself will do
            return
        if isinstance(made, np.ndarray):
            self._step("kernel", kernel.name, kernel.native, kernel.by_reference, arguments, [made])
        elif isinstance(made, (tuple, list)) and any(isinstance(m, np.ndarray) for m in made):
            if len(made) == 1 or not all(m is None or isinstance(m, np.ndarray) for m in made):
                raise _Opaque
            self._step("kernel", kernel.name, kernel.native, kernel.by_reference, arguments, list(made))
        elif is_static(made) and not self.committed:
            asked = (kernel.name, tuple(map(self._asked, given, arguments)))
            if asked in self._guards:  # nothing changes an array: the answer is the same
                return
            self._guards[asked] = len(self.steps)
            step = self._step("guard", kernel.name, kernel.native, kernel.by_reference, arguments, [])
            step.expected = made
        else:
            raise _Opaque

    @staticmethod
    def _asked(value: Any, place: Place) -> Any:
        return place if isinstance(value, np.ndarray) else repr(value)

    def _argument(self, value: Any) -> Place:
        if isinstance(value, np.ndarray):
            place = self._find(value)
            if place is None:
                raise _Opaque
            return place
        if is_static(value):
            return self._constant(value)
        if type(value) in (tuple, list):
            parts = [self._argument(v) for v in value]
            kind = type(value).__name__
            step = self._append(Step(kind, kind, None, None, parts, [None], call=len(self.calls)))
            return Place("result", step.first)
        raise _Opaque

    def _add_opaque(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Any:
        """The op itself as a step. Its result, told from an argument that it may be this time."""
        if any(not isinstance(part, ExTensor) and part is not None for part in _parts(result)):
            self.fail(f"{op.__name__} returned a Python value that depends on elements")
            return result
        if getattr(op, "is_backward", False) and this_thread.recording:
            self.fail(f"{op.__name__} looks at elements, and is itself differentiated")
            return result
        passed = [t for t in tensors_of(result) if self._find(t._data) is not None]
        if any(t._node is None and t._requires_grad for t in passed):
            self.fail(f"{op.__name__} looked at elements and returned a parameter as it is")
            return result
        if any(t._node is not None and op.rule.output_positions for t in passed):
            self.fail(
                f"{op.__name__} looked at elements and returned an argument that its gradient saves as its result"
            )
            return result
        result = fill(result, self._as_result)
        self._note_generators((args, kwargs))
        places = [self._place_of(tensor) for tensor in tensors_of((args, kwargs))]
        made = [t._data for t in tensors_of(result)]
        self._step("call", op.__name__, None, _again(op.fn, args, kwargs), places, made)
        return result

    def _as_result(self, tensor: ExTensor) -> ExTensor:
        """A tensor that a step returned. One that it handed through this time (gradients that needed no clipping) becomes one
        of its own: another time it is not what was given."""
        if self._find(tensor._data) is None:
            return tensor
        return ExTensor(tensor._data.view(), tensor._node is not None, tensor._node)

    def _note_generators(self, thing: Any) -> None:
        for part in _parts(thing):
            if isinstance(part, np.random.Generator):
                self.generators[id(part)] = part
                if is_replaying():  # a step would draw new numbers, where these are those of the forward pass
                    self.fail("a checkpointed segment draws random numbers (dropout), which are repeated")

    def _check_stray(self) -> None:
        if not self._stray:
            return
        stray = [
            kernel.name
            for kernel, given, _ in self._stray
            if any(isinstance(g, np.ndarray) for g in _parts(given))
        ]
        self._stray.clear()  # one that takes no tensors makes the same constant every time
        if stray:
            self.fail(f"the kernel {stray[0]} was called outside of every function that can be repeated")

    # What the source shows

    def _add_call(self, function: Any, described: Any, result: Any, kind: str) -> None:
        shapes = [t.shape for t in tensors_of(result)]
        args, kwargs = described
        made = fill(result, self.find)
        self.calls.append(Call(function, args, kwargs, made, shapes, caller(), kind))

    # The end

    def finish(self, result: Any) -> None:
        """Look at what the run has left behind."""
        self._check_stray()
        held = {id(value) for module in self.modules.values() for value in vars(module).values()}
        held |= set(map(id, self._replaced))
        for tensor, place in self._reads:
            if self.failure is None and id(tensor) in held:
                self.refuse("the value of a module's tensor was read", place)
        for leaf in self.leaves.values():
            grad = leaf.tensor._grad
            if grad is not None and grad is not leaf.grad and grad._node is not None:
                self.fail("a gradient has a history that goes on outside (create_graph=True)")
        for tensor in tensors_of(result):
            node = tensor._node
            node = node.node if isinstance(node, Branch) else node
            if tensor._requires_grad and node is not None and node.saved is not None:
                self.fail("a result is differentiated outside of the function")


def _again(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[..., Any]:
    """A function of arrays that calls ``function`` with tensors of them in the places where tensors stood."""
    holes = fill((args, kwargs), lambda _: ExTensor(_HOLE))

    def call(*arrays: Any) -> tuple[Any, ...]:
        given = iter(arrays)
        own_args, own_kwargs = fill(holes, lambda _: ExTensor(next(given)))
        before, this_thread.recording = this_thread.recording, False
        try:
            result = function(*own_args, **own_kwargs)
        finally:
            this_thread.recording = before
        return tuple(t._data for t in tensors_of(result))

    return call


_HOLE = np.zeros(())


def _like(array: Any) -> tuple[Any, tuple[int, ...]] | None:
    return None if array is None else (array.dtype, array.shape)


def _parts(thing: Any) -> Iterator[Any]:
    if isinstance(thing, (list, tuple)):
        for part in thing:
            yield from _parts(part)
    elif isinstance(thing, dict):
        yield from _parts(list(thing.values()))
    else:
        yield thing
