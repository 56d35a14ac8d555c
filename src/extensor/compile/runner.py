"""The run of a program, step by step: the definition, and what runs where the native module is absent."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from ..graph import next_sequence, this_thread
from ..tensor import ExTensor
from .trees import Kind

__all__ = ["Runner", "owner_of"]

_NOTHING = object()


class _Differs(Exception):
    """The call is of another kind, or a guard has another answer."""


class Runner:
    """Runs a description; see :mod:`.program` for its parts."""

    def __init__(self, description: tuple[Any, ...]) -> None:
        (
            self.arguments, self.inputs, self.conditions, self.constants, self.steps, self.effects, self.result, ops,
            self.mode, self.records, self.is_valid, self.save, self.restore, self.watches,
        ) = description  # fmt: skip
        self.bodies = [(op, op.fn, getattr(op.fn, "__code__", None)) for op in ops]
        self.runs = 0
        self.seconds = [0.0] * len(self.steps)

    def run(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        kept: list[Any] | None = None,
        listener: Callable[[Any], None] | None = None,
    ) -> Any:
        """The result of a call; NotImplemented where it is of another kind.

        Results of steps go to ``kept``; ``listener`` is called with each leaf whose gradient is complete.
        """
        tensors: list[ExTensor] = []
        values = self.read(args, kwargs, tensors)
        if values is NotImplemented:
            return NotImplemented
        saved = None if self.save is None else self.save()
        committed, left = False, 0
        self.runs += 1
        for place, step in enumerate(self.steps):
            started = perf_counter()
            try:
                self._take(step, values, tensors, kept)
            except Exception as problem:
                if not isinstance(problem, _Differs) and (committed or isinstance(problem, MemoryError)):
                    raise  # what else is wrong, the function itself knows how to say
                if committed:
                    raise RuntimeError(
                        "[compile] a shape or a check changed after the optimiser's step or after gradients were handed on; "
                        "run this function without compile"
                    ) from None
                if self.restore is not None:
                    self.restore(saved)
                return NotImplemented
            self.seconds[place] += perf_counter() - started
            committed = committed or step[7]
            for number in step[6]:
                values[number] = None
            while listener is not None and left < len(self.effects) and self.effects[left][4] <= place + 1:
                committed = True
                _leave(self.effects[left], values, tensors)
                listener(owner_of(self.effects[left][1], tensors))
                left += 1
        for effect in self.effects[left:]:
            _leave(effect, values, tensors)
        return self.made(self.result, values, tensors)

    def times(self) -> tuple[list[float], int]:
        """Seconds of each step on average, and the number of runs."""
        return [seconds / max(self.runs, 1) for seconds in self.seconds], self.runs

    def read(self, args: tuple[Any, ...], kwargs: dict[str, Any], tensors: list[ExTensor]) -> Any:
        """The inputs and constants of a call, whose tensors are added to the list; NotImplemented for another kind."""
        try:
            return self._read(args, kwargs, tensors)
        except _Differs:
            return NotImplemented

    def _read(self, args: tuple[Any, ...], kwargs: dict[str, Any], tensors: list[ExTensor]) -> list[Any]:
        mode = this_thread.mode
        if this_thread.recording != self.records or mode != self.mode or this_thread.observer is not None:
            raise _Differs
        if any(op.fn is not fn or getattr(fn, "__code__", None) is not code for op, fn, code in self.bodies):
            raise _Differs
        for tree, given in zip(self.arguments[5], (args, kwargs)):
            self._match(tree, given, tensors)
        if not self.is_valid() or not all(_is_as_it_was(*watch) for watch in self.watches):
            raise _Differs
        for owner, present in self.conditions:
            if (owner_of(owner, tensors)._grad is not None) != present:
                raise _Differs
        values: list[Any] = []
        for kind, owner, name, (dtype, shape), requires_grad in self.inputs:
            if kind == 3:
                holder = vars(owner).get(name)
            else:
                holder = owner_of(owner, tensors)
                if requires_grad >= 0 and bool(holder._requires_grad) != bool(requires_grad):
                    raise _Differs
                if kind == 0 and holder._requires_grad and holder._node is not None:
                    raise _Differs  # its history goes on outside
                holder = holder._grad if kind == 2 else holder
            if not isinstance(holder, ExTensor) or holder.dtype != dtype or holder.shape != shape:
                raise _Differs
            values.append(holder._data)
        values.extend(self.constants)
        return values

    def _match(self, tree: Any, given: Any, tensors: list[ExTensor]) -> None:
        kind, what, *_, children = tree
        if kind == Kind.TENSOR:
            if not isinstance(given, ExTensor):
                raise _Differs
            tensors.append(given)
        elif kind == Kind.OBJECT:
            if given is not what:
                raise _Differs
        elif kind == Kind.VALUE:
            if given is not what and not (type(given) is type(what) and given == what):
                raise _Differs
        elif kind == Kind.DICT:
            if type(given) is not dict or len(given) != len(what):
                raise _Differs
            for key, child in zip(what, children):
                self._match(child, given.get(key, _NOTHING), tensors)
        else:
            if type(given) is not what or len(given) != len(children):
                raise _Differs
            for child, part in zip(children, given):
                self._match(child, part, tensors)

    def _take(self, step: Any, values: list[Any], tensors: list[ExTensor], kept: list[Any] | None) -> None:
        kind, native, reference, expected, arguments, results, _, _ = step
        given = [values[number] for number in arguments]
        if kind == 5:
            owner_of(reference, tensors)._grad = ExTensor(given[0])
            return
        if kind in (2, 3):
            values.append(tuple(given) if kind == 2 else given)
            return
        found = NotImplemented if native is None else native(*given)
        if found is NotImplemented:
            found = reference(*given)
        if kind == 1:
            if found != expected:
                raise _Differs
            return
        if kept is not None:
            kept.append(found)
        made = [found] if kind == 0 and len(results) == 1 else list(found)
        for array, like in zip(made, results, strict=True):
            fits = (
                array is None
                if like is None
                else isinstance(array, np.ndarray) and (array.dtype, array.shape) == like
            )
            if not fits:
                raise _Differs
        values.extend(made)

    def made(self, tree: Any, values: Any, tensors: list[ExTensor]) -> Any:
        """The result of a call, from the values by number."""
        kind, what, number, requires_grad, node, children = tree
        if kind == Kind.TENSOR:
            return ExTensor(values[number], requires_grad, node)
        if kind == Kind.OBJECT:
            return tensors[number] if number >= 0 else what
        if kind == Kind.VALUE:
            return what
        parts = [self.made(child, values, tensors) for child in children]
        if kind == Kind.DICT:
            return dict(zip(what, parts))
        if kind == Kind.LIST:
            return parts
        return what(*parts) if hasattr(what, "_fields") else what(parts)


def _leave(effect: tuple[Any, ...], values: list[Any], tensors: list[ExTensor]) -> None:
    kind, owner, name, number, _ = effect
    array = None if number < 0 else values[number]
    if kind == 2:
        vars(owner)[name] = None if array is None else ExTensor(array)
    elif kind == 1:
        owner_of(owner, tensors)._grad = None if array is None else ExTensor(array)
    else:
        parameter: Any = owner_of(owner, tensors)
        parameter._array = array
        parameter._replaced = next_sequence()


def _is_as_it_was(holder: Any, key: Any, value: Any) -> bool:
    now = holder.cell_contents if key is None else holder.get(key, _NOTHING)
    return now is value or (type(now) is type(value) and now == value)


def owner_of(owner: Any, tensors: list[ExTensor]) -> Any:
    """The tensor itself, or the argument of that number."""
    return tensors[owner] if type(owner) is int else owner
