"""Plans: what the body of an op decided for one kind of call, for the native side to repeat.

A kind of call is the op, the dtype and shape of each tensor, the value of each option and the modes of the thread: all that a
body can look at (``csrc/bindings/recorder/key.hpp``). The second call of a kind runs the body while its kernel calls are
listed (the first merely runs it: many kinds come only once). If everything it computed came from kernels, on its own inputs
and on attributes that are part of the kind, then repeating those kernel calls *is* running the body, and that list is the
plan. A body that looks at the elements of a tensor (``x._array``) or computes anything itself has no plan and runs as it is
written, every time.

A kernel that returns no array answers a question about elements ("is a label out of range?"). It is a guard: the plan asks
again, and another answer sends the call to the body.

What :func:`make_plan` returns to the native side, with values numbered as leaves, constants, results of steps::

    (constants,
     ((kind, native kernel or None, reference, arguments, number of results, expected answer, shapes), ...),
     (container or None, results),
     outcome,                                          # graph.ops.outcome_of
     (saved, edges, options, shape, casts) or None)    # of the node, if the call is recorded; edge -1 is None
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..tensor import ExTensor
from .ops import outcome_of

try:
    from .._native import clear_plans, enable_plans, plan_counts, set_plan_maker
except ModuleNotFoundError:
    from .._pure import clear_plans, enable_plans, plan_counts, set_plan_maker

__all__ = ["clear_plans", "make_plan", "plan_counts", "run_bodies"]

_STATIC = frozenset({bool, int, float, str, type(None), type(...)})
_MOST_VALUES, _MOST_PARTS = 150, 64  # plan.cpp has room for a few more


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


class _Values:
    """The numbered values of a plan in the making, as pairs (kind, position)."""

    def __init__(self, leaves: tuple[Any, ...]) -> None:
        self.leaves = leaves
        self.constants: list[Any] = []
        self.steps: list[tuple[Any, ...]] = []
        self.results = 0
        self.places: dict[int, tuple[str, int]] = {}
        for i, leaf in enumerate(leaves):
            self.places.setdefault(id(leaf._data if isinstance(leaf, ExTensor) else leaf), ("leaf", i))

    def constant(self, value: Any) -> tuple[str, int]:
        self.constants.append(value)
        return ("constant", len(self.constants) - 1)

    def of(self, value: Any) -> tuple[str, int]:
        """Where an argument of a kernel comes from."""
        found = self.places.get(id(value))
        if found is not None:
            return found
        if is_static(value):
            return self.constant(value)
        if type(value) in (tuple, list):
            self.steps.append((type(value).__name__, None, None, [self.of(v) for v in value], 1, None, None))
            return self._result()
        raise _NotRepeatable

    def _result(self) -> tuple[str, int]:
        self.results += 1
        return ("result", self.results - 1)

    def add_call(self, kernel: Any, arguments: list[Any], result: Any) -> None:
        given = [self.of(value) for value in arguments]
        call = (kernel.native, kernel.by_reference, given)
        if isinstance(result, np.ndarray):
            self.steps.append(("kernel", *call, 1, None, (result.shape,)))
            self.places[id(result)] = self._result()
        elif isinstance(result, (tuple, list)) and any(isinstance(r, np.ndarray) for r in result):
            if len(result) == 1 or not all(r is None or isinstance(r, np.ndarray) for r in result):
                raise _NotRepeatable
            self.steps.append(
                ("kernel", *call, len(result), None, tuple(None if r is None else r.shape for r in result))
            )
            for r in result:
                place = self._result()
                if r is not None:
                    self.places[id(r)] = place
        elif is_static(result):
            self.steps.append(("guard", *call, 0, result, None))
        else:
            raise _NotRepeatable

    def number(self, place: tuple[str, int]) -> int:
        kind, position = place
        start = {"leaf": 0, "constant": len(self.leaves), "result": len(self.leaves) + len(self.constants)}
        return start[kind] + position


def make_plan(leaves: tuple[Any, ...], calls: list[Any], output: Any) -> tuple[Any, ...] | None:
    """The plan of a call with ``leaves`` whose body made the kernel ``calls`` and returned ``output``; None without one."""
    values = _Values(leaves)
    try:
        for call in calls:
            values.add_call(*call)
        container, parts = _returned(output)
        results = [_result_of(values, part) for part in parts]
        record = _record_of(values, output) if container is None else None
        _check_uses(values, [*results, *(record[0] if record else ())])
    except _NotRepeatable:
        return None
    if len(values.leaves) + len(values.constants) + values.results > _MOST_VALUES:
        return None
    number = values.number
    # What the last kernel returns, nobody decided upon.
    last = max((i for i, step in enumerate(values.steps) if step[0] == "kernel"), default=-1)
    steps = tuple(
        (kind, native, reference, tuple(map(number, given)), count, expected, None if i == last else shapes)
        for i, (kind, native, reference, given, count, expected, shapes) in enumerate(values.steps)
    )
    if record is not None:
        saved, *rest = record
        record = (tuple(map(number, saved)), *rest)
    return (
        tuple(values.constants),
        steps,
        (container, tuple(map(number, results))),
        outcome_of(output),
        record,
    )


def _check_uses(values: _Values, kept: list[tuple[str, int]]) -> None:
    """Whatever was computed counts, and numbers that are no part of the kind went to kernels as they are."""
    used = {*kept, *(place for step in values.steps for place in step[3])}
    result = 0
    for kind, *_, count, _, _ in values.steps:
        if kind == "kernel" and not any(("result", i) in used for i in range(result, result + count)):
            raise _NotRepeatable  # it belongs to somebody else: a hook, a callback
        result += count
    if any(type(leaf) is float and ("leaf", i) not in used for i, leaf in enumerate(values.leaves)):
        raise _NotRepeatable
    if len(kept) > _MOST_PARTS or any(len(step[3]) > _MOST_PARTS for step in values.steps):
        raise _NotRepeatable


def is_static(value: Any) -> bool:
    """Whether a value is the same for every call of a kind, once it was the same for one."""
    kind = type(value)
    if kind in _STATIC or isinstance(value, (np.dtype, type)):
        return True
    if kind is slice:
        return all(map(is_static, (value.start, value.stop, value.step)))
    return isinstance(value, tuple) and all(map(is_static, value))


def _returned(output: Any) -> tuple[Any, Any]:
    if isinstance(output, ExTensor):
        return None, [output]
    if not isinstance(output, (tuple, list)) or any(getattr(p, "_node", None) is not None for p in output):
        raise _NotRepeatable  # the recorded results of several are made in Python
    return type(output), output


def _result_of(values: _Values, part: Any) -> tuple[str, int]:
    if not isinstance(part, ExTensor):
        if is_static(part):
            return values.constant(part)
        raise _NotRepeatable
    for i, leaf in enumerate(values.leaves):
        if leaf is part:
            return ("leaf", i)
    place = values.places.get(id(part._data))
    if place is None or (place[0] == "leaf" and part._node is None):
        raise _NotRepeatable  # an array of its own making, or another tensor of an input's array
    return place


def _record_of(values: _Values, output: ExTensor) -> tuple[Any, ...] | None:
    node = output._node
    if node is None or any(leaf is output for leaf in values.leaves):
        return None
    arrays = [id(leaf._data) for leaf in values.leaves if isinstance(leaf, ExTensor)]
    if len(set(arrays)) != len(arrays):
        raise _NotRepeatable  # several tensors of one array: whose history it is, the array does not tell
    tensors = {id(leaf): ("leaf", i) for i, leaf in reversed(list(enumerate(values.leaves)))}
    saved = []
    for value in node.saved:
        place = tensors.get(id(value))
        if place is None and isinstance(value, ExTensor):
            place = values.places.get(id(value._data))  # a result, kept without its history
            if place is None or place[0] != "result":
                raise _NotRepeatable
        elif place is None:
            if not is_static(value):
                raise _NotRepeatable
            place = values.constant(value)
        saved.append(place)
    if not is_static(tuple((node.options or {}).values())):
        raise _NotRepeatable
    edges = []
    for edge in node.edges:
        found = -1
        if edge is not None:
            matches = [
                i
                for i, leaf in enumerate(values.leaves)
                if isinstance(leaf, ExTensor) and (leaf is edge or leaf._node is edge)
            ]
            if len(matches) != 1:
                raise _NotRepeatable  # several tensors of one node: which one it was, the node does not tell
            found = matches[0]
        edges.append(found)
    return saved, tuple(edges), node.options, node.shape, node.casts


set_plan_maker(make_plan)
