"""Where the time goes: every operation of a block, forward and backward, by function and by module."""

from __future__ import annotations

import functools
import json
import os
import threading
import weakref
from collections.abc import Iterable, Sequence
from time import perf_counter_ns
from typing import Any, NamedTuple

import numpy as np

from .._html import escaped, fragment, html_table
from ..graph import Branch, Node, caller, observe, this_thread
from ..tensor import ExTensor
from .engine import Walk, backward_name
from .figures import readable_bytes, readable_time, text_table
from .scopes import path_of, scopes
from .trees import leaves

__all__ = ["Event", "Profile", "Row", "profile"]


class Event(NamedTuple):
    """One call.

    Attributes:
        name: of the function.
        kind: ``"forward"``, ``"backward"``, ``"optimizer"``, or ``"module"`` for a module's whole forward pass.
        path: of the module it ran in; empty outside of modules.
        start, duration: nanoseconds, counted from the beginning of the profile.
        nbytes: new memory of the results; 0 for a view.
        shapes: of the results.
        place: file and line of the user's code, or empty.
    """

    name: str
    kind: str
    path: str
    start: int
    duration: int
    nbytes: int
    shapes: tuple[tuple[int, ...], ...]
    place: str


class Row(NamedTuple):
    """A line of a table: the calls of one function, or of one module.

    Attributes:
        name: of the function, or path of the module.
        calls: how many.
        forward, backward: nanoseconds; what runs inside a module counts as the module's.
        nbytes: new memory of the results.
    """

    name: str
    calls: int
    forward: int
    backward: int
    nbytes: int

    @property
    def total(self) -> int:
        """Nanoseconds in both directions."""
        return self.forward + self.backward


def profile() -> Profile:
    """A context that measures every operation of this thread, forward and backward, and every optimiser step.

    ``print(p)`` shows two tables, by function and by module; in a notebook ``p`` is shown as a page. ``p.by_op()`` and
    ``p.by_module()`` are their rows, ``p.events`` all calls, ``p.export_chrome_trace("trace.json")`` writes a timeline that
    chrome://tracing and https://ui.perfetto.dev open.

    Example:
        >>> import extensor as et
        >>> net = et.nn.Sequential(et.nn.Linear(2, 8, rng=0), et.nn.ReLU(), et.nn.Linear(8, 1, rng=1))
        >>> with et.profile() as p:
        ...     net(et.ones((3, 2))).sum().backward()
        >>> [(row.name, row.calls) for row in sorted(p.by_op())][:3]
        [('linear', 2), ('linear_backward', 2), ('relu', 1)]
        >>> [row.name for row in p.by_module()]
        ['Sequential', 'Sequential[0]', 'Sequential[1]', 'Sequential[2]']
    """
    return Profile()


class Profile:
    """What :func:`extensor.profile` measured. The same profile can be opened again, and goes on.

    Attributes:
        events: every call, in the order in which they ended.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.elapsed = 0  # nanoseconds inside the blocks
        self._origin = perf_counter_ns()
        self._opened = 0
        self._outer: tuple[Any, Any, Any] = (None, None, None)  # observer, walk and profile before
        self._paths: dict[tuple[int, ...], tuple[str, list[Any]]] = {}
        self._nodes: weakref.WeakKeyDictionary[Node, tuple[str, str]] = weakref.WeakKeyDictionary()

    def __enter__(self) -> Profile:
        if scopes.profile is not None:
            raise RuntimeError("[profile] another profile is open in this thread; close it first")
        self._outer = (this_thread.observer, this_thread.walk, scopes.profile)
        this_thread.observer = self._call
        this_thread.walk = self._walk
        scopes.profile = self
        self._opened = perf_counter_ns()
        return self

    def __exit__(self, *exception: object) -> None:
        self.elapsed += perf_counter_ns() - self._opened
        this_thread.observer, this_thread.walk, scopes.profile = self._outer

    # Measuring

    def _walk(self, *options: Any) -> Walk:
        """A walk of the kind that this thread makes otherwise, measured."""
        kind = self._outer[1] or Walk
        base, first = (kind.func, kind.args) if isinstance(kind, functools.partial) else (kind, ())
        made = _measuring(base)(*first, *options)
        made.measured_by = self
        return made

    def _call(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The observer: run the call, note it. What the op calls inside is part of it."""
        with observe(self._outer[0]):
            start = perf_counter_ns()
            result = op(*args, **kwargs)
            end = perf_counter_ns()
        path, place = self._path(), _line(caller())
        for t in leaves(result):
            node = t._node
            if node is not None:
                self._nodes[node.node if type(node) is Branch else node] = (path, place)
        self._add(op.__name__, "forward", path, start, end, result, (args, kwargs), place)
        return result

    def _path(self) -> str:
        running = scopes.running
        key = tuple(map(id, running))
        if key not in self._paths:
            self._paths[key] = (path_of(running), list(running))  # kept: an id must not come back for another
        return self._paths[key][0]

    def _add(
        self, name: str, kind: str, path: str, start: int, end: int, result: Any, given: Any, place: str
    ) -> None:
        made = list(leaves(_plain(result)))
        inputs = [t._array for t in leaves(_plain(given))]
        nbytes = sum(
            t.nbytes for t in made if not any(np.may_share_memory(t._array, array) for array in inputs)
        )
        shapes = tuple(t.shape for t in made)
        self.events.append(Event(name, kind, path, start - self._origin, end - start, nbytes, shapes, place))

    def add_module(self, start: int) -> None:
        """The innermost running module has ended; it began at ``start``."""
        path = self._path()
        self.events.append(
            Event(path, "module", path, start - self._origin, perf_counter_ns() - start, 0, (), "")
        )

    def add_step(self, name: str, start: int, params: Sequence[ExTensor]) -> None:
        """An optimiser has moved ``params``."""
        self._add(name, "optimizer", "", start, perf_counter_ns(), list(params), (), "")

    # Tables

    def by_op(self) -> list[Row]:
        """The functions, those that took longest first."""
        rows: dict[str, list[int]] = {}
        for e in self.events:
            if e.kind != "module":
                row = rows.setdefault(e.name, [0, 0, 0, 0])
                row[0] += 1
                row[2 if e.kind == "backward" else 1] += e.duration
                row[3] += e.nbytes
        return sorted((Row(name, *row) for name, row in rows.items()), key=lambda r: -r.total)

    def by_module(self) -> list[Row]:
        """The modules in the order in which they first ran, outer ones before inner ones."""
        spans = [e for e in self.events if e.kind == "module"]
        rows = {e.path: [0, 0, 0, 0] for e in sorted(spans, key=lambda e: e.start)}
        for e in self.events:
            if e.kind == "module":
                rows[e.path][0] += 1
                rows[e.path][1] += e.duration
                continue
            for path in _outer_paths(e.path):
                if path in rows:
                    rows[path][2] += e.duration if e.kind == "backward" else 0
                    rows[path][3] += e.nbytes
        return [Row(path, *row) for path, row in rows.items()]

    def time(self, kind: str) -> int:
        """Nanoseconds in all calls of a kind: ``"forward"``, ``"backward"`` or ``"optimizer"``."""
        return sum(e.duration for e in self.events if e.kind == kind)

    def __str__(self) -> str:
        if not self.events:
            return "nothing was measured"
        parts = [text_table(*table) for table in self._tables()]
        return "\n\n".join([*parts, self._totals()])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        if not self.events:
            return fragment('<p class="et-facts">nothing was measured</p>')
        tables = [
            html_table(*table, bars=[row.total / (max(r.total for r in rows) or 1) for row in rows])
            for table, rows in zip(self._tables(), (self.by_op(), self.by_module()))
        ]
        return fragment(f'<p class="et-facts">{escaped(self._totals())}</p>', *tables)

    def _totals(self) -> str:
        parts = {kind: self.time(kind) for kind in ("forward", "backward", "optimizer")}
        outside = self.elapsed - sum(parts.values())
        told = [f"{kind} {readable_time(t)}" for kind, t in parts.items() if t]
        told.append(f"outside of operations {readable_time(max(outside, 0))}")
        return f"total {readable_time(self.elapsed)}: {', '.join(told)}"

    def _tables(self) -> list[tuple[tuple[str, ...], list[tuple[str, ...]]]]:
        whole = max(sum(self.time(kind) for kind in ("forward", "backward", "optimizer")), 1)
        ops: list[tuple[str, ...]] = [
            (
                r.name, str(r.calls), readable_time(r.total), f"{100 * r.total / whole:.1f} %",
                readable_time(r.total // r.calls), readable_bytes(r.nbytes),
            )
            for r in self.by_op()
        ]  # fmt: skip
        modules: list[tuple[str, ...]] = [
            (
                r.name, str(r.calls), readable_time(r.forward), readable_time(r.backward), readable_time(r.total),
                readable_bytes(r.nbytes),
            )
            for r in self.by_module()
        ]  # fmt: skip
        tables: list[tuple[tuple[str, ...], list[tuple[str, ...]]]] = [
            (("operation", "calls", "time", "share", "mean", "memory"), ops)
        ]
        if modules:
            tables.append((("module", "calls", "forward", "backward", "time", "memory"), modules))
        return tables

    # A timeline

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the timeline as a JSON file that chrome://tracing and https://ui.perfetto.dev open.

        Args:
            path: the file to write, e.g. ``"trace.json"``.
        """
        thread = threading.get_native_id()
        process = os.getpid()
        events: list[dict[str, Any]] = [
            {"ph": "M", "name": "process_name", "pid": process, "tid": thread, "args": {"name": "ExTensor"}}
        ]
        for e in sorted(self.events, key=lambda e: (e.start, -e.duration)):
            details = {
                "module": e.path,
                "shapes": [list(s) for s in e.shapes],
                "bytes": e.nbytes,
                "line": e.place,
            }
            events.append({
                "ph": "X", "name": e.name, "cat": e.kind, "pid": process, "tid": thread,
                "ts": e.start / 1000, "dur": e.duration / 1000, "args": {k: v for k, v in details.items() if v},
            })  # fmt: skip
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"traceEvents": events, "displayTimeUnit": "ms"}, file)


class _Measuring(Walk):
    """A backward pass whose backward calls are measured."""

    measured_by: Profile

    def gradients(self, node: Node, grad: Any, needs: tuple[bool, ...] | None) -> Sequence[Any]:
        mine = self.measured_by
        with observe(None):
            start = perf_counter_ns()
            grads = super().gradients(node, grad, needs)
            end = perf_counter_ns()
        path, place = mine._nodes.get(node, ("", ""))
        mine._add(backward_name(node), "backward", path, start, end, list(grads), [grad], place)
        return grads

    def plus(self, a: ExTensor, b: ExTensor) -> ExTensor:
        with observe(None):
            start = perf_counter_ns()
            total = super().plus(a, b)
            end = perf_counter_ns()
        self.measured_by._add("accumulate", "backward", "", start, end, total, (), "")
        return total


@functools.cache
def _measuring(base: type[Walk]) -> type[_Measuring]:
    """The class of walks that do what ``base`` does, and measure."""
    return type("MeasuringWalk", (_Measuring, base), {})


def _plain(value: Any) -> Any:
    """Without what is no structure of tensors."""
    return value if isinstance(value, (ExTensor, list, tuple, dict)) else ()


def _outer_paths(path: str) -> Iterable[str]:
    """``Net``, ``Net.blocks``, ``Net.blocks[2]`` of ``Net.blocks[2]``."""
    return [path[:i] for i in range(1, len(path)) if path[i] in ".["] + ([path] if path else [])


def _line(place: tuple[str, int, str] | None) -> str:
    return f"{place[0]}:{place[1]}" if place else ""
