"""The inputs of a transform: opened for a walk that ends at them, checked, and put together again as gradients."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import numpy as np

from ..dtypes import FLOATING
from ..errors import describe
from ..graph import Op, attach, backward_of, differentiable, levels, set_recording, this_thread
from ..ops.joining import stack
from ..tensor import ExTensor
from .batching.batched import Batched, Level, batched, lifted, outside_levels, raw, rewrapped
from .engine import backpropagate, outside
from .trees import closed, leaves, map_leaves, opened, pairs, settle

__all__ = [
    "Sources", "check_callable", "detached", "floating_outputs", "linked", "matched", "nesting", "positions_of",
    "transforming", "with_values",
]  # fmt: skip


class _Nesting(threading.local):
    depth = 0


nesting = _Nesting()


@contextmanager
def transforming() -> Iterator[None]:
    """Inside: recording is on, and inner transforms know that their results may be differentiated."""
    nesting.depth += 1
    try:
        with set_recording(True):
            yield
    finally:
        nesting.depth -= 1


@differentiable
def source(x: ExTensor) -> ExTensor:
    """The same values under a new node: where a backward pass of a transform ends."""
    return x


@backward_of(source)
def source_backward(grad_output: ExTensor) -> ExTensor:
    """Gradient of :func:`source`.   dx = dy"""
    return grad_output


def linked(x: ExTensor) -> ExTensor:
    """The same values under a new node; the gradient goes on to ``x`` if it requires one."""
    inside = raw(x)
    wanted = inside.requires_grad and this_thread.recording
    made: ExTensor = attach(cast(Op, source), ((), None), [inside], [wanted], inside)
    return rewrapped(made, x)


class Sources:
    """The inputs of a transform, opened: the same structures with fresh nodes.

    Tensors of integers and booleans (labels, indices) pass through; they have no gradient, and None stands in its place.
    Under vmap each example has gradients of its own: what is the same for all examples becomes one per example here.
    """

    def __init__(self, function: str, trees: Sequence[Any]) -> None:
        self.function = function
        self.levels = tuple(levels.running)
        self.tensors: list[ExTensor] = []
        self.given = trees
        inside = [opened(tree) for tree in trees]
        self.outer = this_thread.recording and any(t.requires_grad for tree in inside for t in leaves(tree))
        self.values = [map_leaves(self._open, tree) for tree in inside]
        self.trees = [closed(tree, values) for tree, values in zip(trees, self.values)]
        if not self.tensors:
            whole = next((t.dtype for tree in self.values for t in leaves(tree)), None)
            if whole is not None:
                raise TypeError(
                    f"[{function}] a tensor of dtype {whole} has no gradient; use a floating dtype"
                )
            raise TypeError(
                f"[{function}] found no tensor to differentiate with respect to in {describe(trees)}"
            )

    def _open(self, x: ExTensor) -> ExTensor:
        if x.dtype not in FLOATING:
            return x
        made = linked(lifted(x, self.levels))
        self.tensors.append(made)
        return made

    @contextmanager
    def running(self) -> Iterator[None]:
        """For the call of the function: see :func:`transforming`; what modules keep (running statistics) is kept."""
        with transforming():
            yield
        for tree, made in zip(self.given, self.trees):
            settle(tree, made)

    @property
    def nodes(self) -> list[Any]:
        return [raw(t)._node for t in self.tensors]

    def walk(
        self,
        outputs: Sequence[ExTensor],
        grads: Sequence[ExTensor],
        *,
        retain: bool = False,
        create: bool | None = None,
    ) -> list[ExTensor]:
        """The gradients of the sources; zeros where an output does not depend on one."""
        if create is None:
            create = self.must_record(outputs, grads)
        inner = next((g.level for g in grads if isinstance(g, Batched) and g.level not in self.levels), None)
        if inner is not None:
            return self._walk_each(inner, outputs, grads, create)
        starts = [raw(lifted(o, self.levels)) for o in outputs]
        arriving = [raw(lifted(g, self.levels)) for g in grads]
        with outside_levels():
            found = backpropagate(
                starts, arriving, self.nodes, retain_graph=retain or create, create_graph=create
            )
        return [
            ExTensor(np.zeros(t.shape, t.dtype)) if g is None else rewrapped(g, t)
            for g, t in zip(found, self.tensors)
        ]

    def _walk_each(
        self, level: Level, outputs: Sequence[ExTensor], grads: Sequence[ExTensor], create: bool
    ) -> list[ExTensor]:
        """Gradients of a vmap that began after the recording: a walk for each of its examples."""
        rows = [
            self.walk(outputs, [g.batch[i] if level.has(g) else g for g in grads], retain=True, create=create)  # type: ignore[attr-defined]
            for i in range(level.size)
        ]
        if not rows:
            return [batched(ExTensor(np.zeros((0, *t.shape), t.dtype)), level) for t in self.tensors]
        return [batched(stack(list(column)), level) for column in zip(*rows)]

    def must_record(self, outputs: Sequence[ExTensor], grads: Sequence[ExTensor]) -> bool:
        if nesting.depth > 0 or self.outer or any(g.requires_grad for g in grads):
            return True
        return this_thread.recording and bool(outside([raw(o) for o in outputs], self.nodes[0].sequence))

    def rebuild(self, values: Sequence[Any]) -> list[Any]:
        """The structures of the inputs with ``values`` in place of the tensors, and None for whole numbers."""
        remaining = iter(values)

        def place(x: ExTensor) -> Any:
            return next(remaining) if x.dtype in FLOATING else None

        return [map_leaves(place, tree, _without_gradient) for tree in self.values]


def _without_gradient(value: Any) -> Any:
    """What stands for something that is no tensor in a structure of gradients."""
    return None if isinstance(value, (int, np.integer, np.bool_)) else value


def positions_of(function: str, argnums: Any, count: int) -> tuple[int, ...]:
    """The arguments that ``argnums`` names, counted from the front."""
    wanted = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    for i in wanted:
        if not isinstance(i, int) or isinstance(i, bool):
            raise TypeError(
                f"[{function}] argnums must be an int or a tuple of ints, got {describe(argnums)}"
            )
        if not -count <= i < count:
            raise ValueError(
                f"[{function}] argnums {i} is out of range for a call with {count} positional arguments"
            )
    return tuple(i % count for i in wanted)


def with_values(args: Sequence[Any], positions: Sequence[int], values: Sequence[Any]) -> list[Any]:
    """The arguments with other values at some positions."""
    replaced = list(args)
    for i, value in zip(positions, values):
        replaced[i] = value
    return replaced


def check_callable(function: str, fn: Any) -> None:
    """Refuse what is no function."""
    if not callable(fn):
        raise TypeError(f"[{function}] fn must be a function, got {describe(fn)}")


def detached(tree: Any) -> Any:
    """Results without the nodes of a transform's own graph, unless somebody outside can differentiate them."""
    return map_leaves(lambda t: t.detach() if t.requires_grad else t, tree)


def floating_outputs(name: str, out: Any) -> list[ExTensor]:
    """The outputs that have gradients."""
    outputs = [t for t in leaves(out) if t.dtype in FLOATING]
    if not outputs:
        raise TypeError(f"[{name}] fn must return tensors of a floating dtype, got {describe(out)}")
    return outputs


def matched(name: str, what: str, of: str, tree: Any, given: Any) -> list[ExTensor]:
    """One tensor of ``given`` for each floating tensor of ``tree``, checked; whole numbers have None there, or zeros."""
    found: list[ExTensor] = []
    try:
        beside = list(pairs(tree, map_leaves(lambda t: t, given)))
    except ValueError as error:
        raise ValueError(
            f"[{name}] {what}s must be structured like the {of}s: {error}, got {describe(given)}"
        ) from None
    for t, value in beside:
        if t.dtype not in FLOATING:
            if value is not None and not (isinstance(value, ExTensor) and not value.numpy().any()):
                raise ValueError(
                    f"[{name}] the {what} of the {of} of dtype {t.dtype} must be None, got {describe(value)}"
                )
        elif not isinstance(value, ExTensor):
            raise ValueError(
                f"[{name}] a {what} must be a tensor of shape {t.shape} like its {of}, got {describe(value)}"
            )
        elif value.shape != t.shape:
            raise ValueError(f"[{name}] a {what} has shape {value.shape} but its {of} has shape {t.shape}")
        else:
            found.append(value if value.dtype == t.dtype else value.astype(t.dtype))
    return found
