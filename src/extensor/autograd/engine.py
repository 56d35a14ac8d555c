"""The backward pass: from outputs to leaves, one public backward function per recorded node.

Nodes are visited in the reverse order of their recording, so a node is reached only after everything that
used its result. The walk is a loop, not a recursion, and lets go of what a node saved as soon as it is done.

:class:`Walk` is the definition. A walk that nobody watches and that is not recorded takes the same steps natively
(csrc/bindings/recorder/walk.cpp); a test holds the two to the same bits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import Any

import numpy as np

from ..dtypes import FLOATING, HALF, float32
from ..errors import GraphError
from ..graph import Branch, Node, this_thread
from ..ops.arithmetic import add
from ..ops.casting import astype
from ..tensor import ExTensor
from .retained import retained, waiting_at

try:
    from .._native import set_helpers, walk_back
except ModuleNotFoundError:
    walk_back = None  # type: ignore[assignment]

__all__ = ["Walk", "backpropagate", "check_grad_output", "outside", "walks"]


def backpropagate(
    outputs: Sequence[ExTensor],
    grad_outputs: Sequence[ExTensor],
    targets: Sequence[Any] | None = None,
    *,
    retain_graph: bool = False,
    create_graph: bool = False,
) -> list[ExTensor | None]:
    """Carry gradients back from ``outputs``.

    Args:
        outputs: recorded tensors.
        grad_outputs: the gradient that arrives at each of them.
        targets: nodes or leaf tensors whose gradients are returned, in order (None where nothing arrives).
            Without targets, every leaf that requires a gradient accumulates into its ``.grad``.
        retain_graph: keep what the nodes saved, for another walk.
        create_graph: record the walk itself, so that its results can be differentiated.
    """
    before, mode = this_thread.recording, this_thread.mode
    try:  # an interrupt may come right after the state changed
        this_thread.recording = create_graph
        this_thread.mode = 0  # gradients know no autocast
        watched = walks.kind is not Walk or (targets is None and bool(retained))
        if walk_back is not None and not (watched or create_graph):
            wanted = None if targets is None else list(targets)
            return walk_back(list(outputs), list(grad_outputs), wanted, retain_graph)
        walk = walks.kind(targets, retain_graph, create_graph)
        for output, grad in zip(outputs, grad_outputs):
            if output._requires_grad:
                walk.add(output if output._node is None else output._node, grad)
        walk.run()
        if targets is not None:
            return [walk.rounded(id(target), walk.found.get(id(target))) for target in targets]
        for leaf, grad in walk.leaves.values():
            _accumulate(leaf, grad)
        return []
    finally:
        this_thread.recording = before
        this_thread.mode = mode


def _accumulate(leaf: ExTensor, grad: ExTensor) -> None:
    leaf._grad = grad if leaf._grad is None else _widened(leaf._grad) + _widened(grad)


def _widened(grad: ExTensor) -> ExTensor:
    """A gradient that others are added to: half precision adds up in float32, and ``.grad`` rounds once."""
    return grad.astype(float32) if grad.dtype in HALF else grad


class Walk:
    """One backward pass. A subclass may watch it: see :mod:`.anomaly` and :mod:`.source`."""

    def __init__(self, targets: Sequence[Any] | None, retain_graph: bool, create_graph: bool) -> None:
        self.pending: dict[Any, Any] = {}  # node -> gradient that has arrived so far
        self.queue: list[tuple[int, Any]] = []
        self.leaves: dict[int, tuple[ExTensor, ExTensor]] = {}
        self.halves: dict[
            Any, Any
        ] = {}  # node or id of a leaf -> the dtype of a sum that is kept in float32 meanwhile
        self.found: dict[int, ExTensor] = {}
        self.targets = None if targets is None else {id(t) for t in targets}
        # Nothing recorded before the first target can lead to one.
        self.oldest = (
            -1 if targets is None else min((getattr(t, "sequence", -1) for t in targets), default=-1)
        )
        self.retain = retain_graph
        self.create = create_graph

    def add(self, edge: Any, grad: ExTensor) -> None:
        """A gradient has arrived at a node or a leaf."""
        if isinstance(edge, ExTensor):
            key = id(edge)
            if self.targets is not None:
                if key in self.targets:
                    self.found[key] = self.joined(key, self.found[key], grad) if key in self.found else grad
            else:
                before = self.leaves.get(key)
                self.leaves[key] = (edge, grad if before is None else self.joined(key, before[1], grad))
            return
        before = self.pending.get(edge)
        if before is not None:
            self.pending[edge] = self.joined(edge, before, grad)
            return
        sequence = edge.sequence
        if sequence >= self.oldest:
            self.pending[edge] = grad
            heappush(self.queue, (-sequence, edge))

    def joined(self, key: Any, before: ExTensor, grad: ExTensor) -> ExTensor:
        """Two gradients that meet; half precision adds up in float32 until the sum is complete."""
        if grad.dtype in HALF:
            self.halves[key] = grad.dtype
            grad = self.cast(grad, float32)
            before = self.cast(before, float32) if before.dtype in HALF else before
        return self.plus(before, grad)

    def plus(self, a: ExTensor, b: ExTensor) -> ExTensor:
        """The sum of two gradients."""
        return a + b

    def rounded(self, key: Any, grad: Any) -> Any:
        """A sum that is complete, in the dtype of what was added."""
        dtype = self.halves.get(key)
        return grad if dtype is None else self.cast(grad, dtype)

    def run(self) -> None:
        queue, pending, targets, retain = self.queue, self.pending, self.targets, self.retain
        gradients = self.gradients
        while queue:
            node = heappop(queue)[1]
            grad = pending.pop(node)
            if self.halves:
                grad = self.rounded(node, grad)
            if retained and targets is None and node in retained:
                for waiting in waiting_at(node):
                    _accumulate(waiting, grad)
            if targets is not None and id(node) in targets:
                self.found[id(node)] = grad
                continue
            if type(node) is Branch:
                self._collect(node, grad)
                continue
            if node.outputs is not None:
                grad = _complete(grad, node)
            edges = node.edges
            check_usable(node)
            if targets is not None:
                edges = tuple(e if self._leads_somewhere(e) else None for e in edges)
            needs = None if None not in edges else tuple(e is not None for e in edges)
            if needs is None or True in needs:
                self._hand_on(node, edges, gradients(node, grad, needs))
            if not retain:
                node.saved = None

    def gradients(self, node: Node, grad: Any, needs: tuple[bool, ...] | None) -> Sequence[Any]:
        """What the node's public backward returns, one gradient per edge."""
        rule = node.op.rule
        if not self.create:
            return rule.gradients(grad, node.saved, node.options, needs)
        if not node.op.is_custom:
            return rule.gradients(grad, self.saved(node), node.options, needs)
        # Every gradient is linear in grad_output: one that does not depend on it was not recorded.
        probe = [
            g if g._requires_grad else ExTensor(g._data, True)
            for g in (grad if type(grad) is list else [grad])
        ]
        grads = rule.gradients(
            probe if type(grad) is list else probe[0], self.saved(node), node.options, needs
        )
        for g in grads:
            if isinstance(g, ExTensor) and not g._requires_grad and g._array.any():
                raise NotImplementedError(
                    f"[{backward_name(node)}] cannot be differentiated again, because it does not compute with ExTensor "
                    f"functions; write it with them, or give it a gradient: @differentiable(backward=...) "
                    f"on {backward_name(node)}"
                )
        return grads

    def _leads_somewhere(self, edge: Any) -> bool:
        if edge is None or isinstance(edge, ExTensor):
            return edge is not None and id(edge) in self.targets  # type: ignore[operator]
        return bool(edge.sequence >= self.oldest)

    def _collect(self, branch: Branch, grad: ExTensor) -> None:
        """Put the gradient of one of several outputs beside its siblings'."""
        node = branch.node
        grads = self.pending.get(node)
        if grads is None:
            assert node.outputs is not None
            grads = self.pending[node] = [None] * len(node.outputs)
            heappush(self.queue, (-node.sequence, node))
        grads[branch.index] = grad

    def saved(self, node: Node) -> Any:
        """What the node saved; where the walk is recorded, its own output gets its history back."""
        if not (self.create and node.op.rule.output_positions):
            return node.saved
        outputs = node.op.rule.output_positions
        return [ExTensor(v._data, True, node) if i in outputs else v for i, v in enumerate(node.saved)]

    def _hand_on(self, node: Node, edges: Sequence[Any], grads: Sequence[Any]) -> None:
        check_gradients(node, edges, grads)
        add, casts = self.add, node.casts
        for i, edge in enumerate(edges):
            grad = grads[i]
            if edge is None or grad is None:
                continue
            if casts is not None and grad.dtype != casts[i]:
                grad = self.cast(grad, casts[i])
            add(edge, grad)

    def cast(self, grad: ExTensor, dtype: Any) -> ExTensor:
        """A gradient in the dtype of the input it belongs to."""
        return grad.astype(dtype)


def check_usable(node: Node) -> None:
    """What the node saved must still be there, and parameters must still be those that it used."""
    if node.saved is None:
        raise RuntimeError(
            f"[backward] the graph was already freed at {node.op.__name__}; pass retain_graph=True to the first backward"
        )
    for edge in node.edges:
        if type(edge) is not Node and getattr(edge, "_replaced", 0) > node.sequence:
            raise RuntimeError(
                f"[backward] a parameter of shape {edge.shape} was replaced after {node.op.__name__} used it; "
                "call optimizer.step() after backward(), not before"
            )


def check_gradients(node: Node, edges: Sequence[Any], grads: Sequence[Any]) -> None:
    """One gradient for each edge; those of a user's pair are looked at."""
    if len(grads) != len(edges):
        raise ValueError(
            f"[{backward_name(node)}] returned {len(grads)} gradients for {len(edges)} inputs of {node.op.__name__}"
        )
    if node.shapes is not None:
        for i, (edge, grad) in enumerate(zip(edges, grads)):
            if edge is not None:
                _check_custom(node, i, grad)


def _asked_of_rule(node: Node, grad: Any, needs: tuple[bool, ...] | None) -> Sequence[Any]:
    """For the native walk: the gradients of a node whose backward it does not call itself."""
    grads = node.op.rule.gradients(grad, node.saved, node.options, needs)
    edges = node.edges if needs is None else [e if need else None for e, need in zip(node.edges, needs)]
    check_gradients(node, edges, grads)
    return grads


class _Walks(threading.local):
    """The kind of walk this thread makes."""

    kind: Callable[..., Walk] = Walk


walks = _Walks()


def backward_name(node: Node) -> str:
    """The name of the public backward of a node."""
    return getattr(node.op.rule.backward, "__name__", f"{node.op.__name__}_backward")


def _complete(grads: Any, node: Node) -> list[Any]:
    """Zeros for the outputs that nothing used, where the backward does not say that it takes None; None for those
    without gradients."""
    assert node.outputs is not None
    if node.op.rule.takes_none:
        return list(grads)
    return [
        ExTensor(np.zeros(*described)) if grad is None and described else grad
        for grad, described in zip(grads, node.outputs)
    ]


def _check_custom(node: Node, i: int, grad: Any) -> None:
    """A user's backward must return tensors of the inputs' shapes."""
    assert node.shapes is not None
    shape, dtype = node.shapes[i]
    if grad is None:
        raise NotImplementedError(
            f"[{backward_name(node)}] returned no gradient for input {i} of {node.op.__name__}, which requires one; "
            "return it (zeros if it is zero)"
        )
    if not isinstance(grad, ExTensor):
        raise TypeError(f"[{backward_name(node)}] gradient {i} must be a tensor, got {type(grad).__name__}")
    if grad.shape != shape:
        raise ValueError(
            f"[{backward_name(node)}] gradient {i} has shape {grad.shape} but the input has shape {shape}; "
            "a broadcast input needs extensor.sum_to_shape"
        )
    if grad.dtype != dtype:
        raise TypeError(
            f"[{backward_name(node)}] gradient {i} has dtype {grad.dtype} but the input has dtype {dtype}"
        )


def check_grad_output(function: str, output: ExTensor, grad_output: Any) -> ExTensor:
    """The gradient that arrives at ``output``: 1 for a scalar, else what the caller gave."""
    if not isinstance(output, ExTensor):
        raise TypeError(f"[{function}] can only start from a tensor, got {type(output).__name__}")
    if output.dtype not in FLOATING:
        raise TypeError(
            f"[{function}] a tensor of dtype {output.dtype} has no gradient; use a floating dtype"
        )
    if not output._requires_grad:
        raise GraphError(
            f"[{function}] this tensor does not depend on anything that requires a gradient; "
            "make an input with tensor(..., requires_grad=True)"
        )
    if grad_output is None:
        if output.size != 1:
            raise GraphError(
                f"[{function}] only a scalar starts on its own; this tensor has shape {output.shape}: "
                "reduce it (e.g. .sum()) or pass grad_output"
            )
        return ExTensor(np.ones(output.shape, output.dtype))
    if not isinstance(grad_output, ExTensor):
        raise TypeError(f"[{function}] grad_output must be a tensor, got {type(grad_output).__name__}")
    if grad_output.shape != output.shape:
        raise ValueError(
            f"[{function}] grad_output has shape {grad_output.shape} but the tensor has shape {output.shape}"
        )
    if grad_output.dtype not in FLOATING:
        raise TypeError(f"[{function}] grad_output must have a floating dtype, got {grad_output.dtype}")
    return grad_output if grad_output.dtype == output.dtype else grad_output.astype(output.dtype)


def outside(outputs: Sequence[ExTensor], since: int) -> list[Any]:
    """The leaves and the nodes recorded before ``since`` that ``outputs`` were computed from, in a fixed order."""
    found: dict[int, Any] = {}
    seen: set[int] = set()
    stack = [t if t._node is None else t._node for t in reversed(outputs) if t._requires_grad]
    while stack:
        edge = stack.pop()
        if id(edge) in seen or edge is None:
            continue
        seen.add(id(edge))
        if isinstance(edge, ExTensor) or edge.sequence < since:
            found[id(edge)] = edge
        elif type(edge) is Branch:
            stack.append(edge.node)
        else:
            stack.extend(reversed(edge.edges))
    return list(found.values())


if walk_back is not None:
    set_helpers(
        add=add,
        astype=astype,
        wide=float32,
        complete=_complete,
        gradients=_asked_of_rule,
        check=check_usable,
        check_gradients=check_gradients,
    )
