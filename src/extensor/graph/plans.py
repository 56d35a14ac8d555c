"""Plans: what the body of an op decided for one kind of call, for the native side to repeat.

A kind of call is the op, the dtype and shape of each tensor, the value of each option and the modes of the thread: all that a
body can look at (``csrc/bindings/recorder/key.hpp``). The second call of a kind runs the body while its kernel calls are
listed (the first merely runs it: many kinds come only once). If everything it computed came from kernels, on its own inputs
and on attributes that are part of the kind, then repeating those kernel calls *is* running the body, and that list is the
plan. A body that looks at the elements of a tensor (``x._array``) or computes anything itself has no plan and runs as it is
written, every time.

A kernel that returns no array answers a question about elements ("is a label out of range?"). It is a guard: the plan asks
again, and another answer sends the call to the body.

What :func:`make_plan` returns to the native side, with values numbered as leaves, then results of steps; constants are -1, -2, ...::

    (constants,
     ((kind, native kernel or None, reference, arguments, number of results, answer or shapes), ...),
     (container or None, results),
     outcome,                                          # graph.ops.outcome_of
     (saved, edges, options, shape, casts) or None)    # of the node, if the call is recorded; edge -1 is None
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import NoneType
from typing import Any

import numpy as np

from .._core import clear_plans, enable_plans, plan_counts, register
from ..tensor import ExTensor
from .ops import outcome_of

__all__ = ["clear_plans", "make_plan", "plan_counts", "run_bodies"]

_STATIC = frozenset({bool, int, float, str, type(None), type(...)})
_RETURNED = frozenset({np.ndarray, NoneType})


@contextmanager
def run_bodies() -> Iterator[None]:
    """A context in which every call runs its body, in all threads; for tests and for ``extensor verify``."""
    before = enable_plans(False)
    try:
        yield
    finally:
        enable_plans(before)


class _NotRepeatable(Exception):
    """The body did more than call kernels on its own inputs."""


class _Plan:
    """A plan in the making: the numbers of its values, and its steps."""

    def __init__(self, leaves: tuple[Any, ...]) -> None:
        self.leaves = leaves
        self.constants: list[Any] = []
        self.steps: list[tuple[Any, ...]] = []
        self.count = len(leaves)  # of leaves and results
        self.used: set[int] = set()
        self.own: dict[int, int] = {}  # the leaves themselves
        self.places: dict[int, int] = {}  # what kernels get of them, and what they return
        for i, leaf in enumerate(leaves):
            self.own.setdefault(id(leaf), i)
            self.places.setdefault(id(leaf._data if isinstance(leaf, ExTensor) else leaf), i)

    def constant(self, value: Any) -> int:
        """The number of something that is the same for every call of the kind."""
        if not is_static(value):
            raise _NotRepeatable
        self.constants.append(value)
        return -len(self.constants)

    def of(self, value: Any) -> int:
        """The number of an argument of a kernel."""
        found = self.places.get(id(value))
        if found is not None:
            return found
        if type(value) is list or (type(value) is tuple and not is_static(value)):
            return self.add_step(type(value).__name__, None, None, value, 1, None)
        return self.constant(value)

    def outside(self, value: Any, may_share: bool = False) -> int:
        """The number of a value as the caller sees it: a leaf itself, a constant, or a tensor of what a step returned.

        Another tensor of an input's array has lost its history; only a recorded result ``may_share`` it.
        """
        found = self.own.get(id(value))
        if found is not None:
            return found
        if not isinstance(value, ExTensor):
            return self.constant(value)
        found = self.places.get(id(value._data))
        if found is None or (found < len(self.leaves) and not may_share):
            raise _NotRepeatable
        return found

    def add_step(self, kind: str, native: Any, reference: Any, given: Any, count: int, known: Any) -> int:
        """Another step; returns the number of its first result."""
        arguments = tuple(map(self.of, given))
        self.used.update(arguments)
        self.steps.append((kind, native, reference, arguments, count, known))
        self.count += count
        return self.count - count

    def add_call(self, kernel: Any, given: list[Any], result: Any) -> None:
        """A kernel was called, and returned arrays or the answer to a question."""
        several = isinstance(result, (tuple, list))
        results = result if several else (result,)
        kinds = set(map(type, results))
        if np.ndarray not in kinds and is_static(result):
            self.add_step("guard", kernel.native, kernel.by_reference, given, 0, result)
            return
        if not kinds <= _RETURNED or (several and len(results) == 1):
            raise _NotRepeatable
        shapes = tuple([None if r is None else r.shape for r in results])
        first = self.add_step("kernel", kernel.native, kernel.by_reference, given, len(results), shapes)
        for place, made in enumerate(results, first):
            if made is not None:
                self.places[id(made)] = place


def make_plan(leaves: tuple[Any, ...], calls: list[Any], output: Any) -> tuple[Any, ...] | None:
    """The plan of a call with ``leaves`` whose body made the kernel ``calls`` and returned ``output``; None without one."""
    plan = _Plan(leaves)
    try:
        for call in calls:
            plan.add_call(*call)
        container, record = None, None
        if isinstance(output, ExTensor):
            results: tuple[int, ...] = (plan.outside(output, may_share=output._node is not None),)
            record = _record_of(plan, output)
        elif isinstance(output, (tuple, list)) and not any(getattr(part, "_node", None) for part in output):
            container, results = type(output), tuple(map(plan.outside, output))
        else:
            return None  # the recorded results of several are made in Python
        _check_uses(plan, results if record is None else results + record[0])
    except _NotRepeatable:
        return None
    return tuple(plan.constants), tuple(plan.steps), (container, results), outcome_of(output), record


def _check_uses(plan: _Plan, kept: tuple[int, ...]) -> None:
    """Whatever was computed counts, numbers that are no part of the kind went to kernels as they are."""
    plan.used.update(kept)
    place, last = len(plan.leaves), None
    for at, (kind, *_, count, _) in enumerate(plan.steps):
        if kind == "kernel":
            last = at
            if plan.used.isdisjoint(range(place, place + count)):
                raise _NotRepeatable  # it belongs to somebody else: a hook, a callback
        place += count
    for i, leaf in enumerate(plan.leaves):
        if type(leaf) is float and i not in plan.used:
            raise _NotRepeatable
    if last is not None:  # what the last kernel returns, nobody decided upon
        plan.steps[last] = (*plan.steps[last][:-1], None)


def is_static(value: Any) -> bool:
    """Whether a value is the same for every call of a kind, once it was the same for one."""
    if type(value) in _STATIC:
        return True
    if isinstance(value, tuple):
        return all(map(is_static, value))
    if type(value) is slice:
        return is_static((value.start, value.stop, value.step))
    return isinstance(value, (np.dtype, type))


def _record_of(plan: _Plan, output: ExTensor) -> tuple[Any, ...] | None:
    node = output._node
    if node is None or id(output) in plan.own:
        return None
    tensors = [leaf for leaf in plan.leaves if isinstance(leaf, ExTensor)]
    if len({id(t._data) for t in tensors}) != len(tensors):
        raise _NotRepeatable  # several tensors of one array: whose history it is, the array does not tell
    if node.options and not is_static(tuple(node.options.values())):
        raise _NotRepeatable
    edges = tuple([-1 if edge is None else _edge_at(tensors, plan, edge) for edge in node.edges])
    return tuple(map(plan.outside, node.saved)), edges, node.options, node.shape, node.casts


def _edge_at(tensors: list[ExTensor], plan: _Plan, edge: Any) -> int:
    """The leaf that an edge comes from. Several tensors may have one node: which one it was, the node does not tell."""
    found = [leaf for leaf in tensors if leaf is edge or leaf._node is edge]
    if len(found) != 1:
        raise _NotRepeatable
    return plan.own[id(found[0])]


register(make_plan=make_plan)
