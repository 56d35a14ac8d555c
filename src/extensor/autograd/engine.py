"""The backward pass: from outputs to leaves, one public backward function per recorded node.

Nodes are visited in the reverse order of their recording, so a node is reached only after everything that
used its result. The walk is a loop, not a recursion, and lets go of what a node saved as soon as it is done.

:class:`Walk` is the definition. A walk that nobody watches and that is not recorded takes the same steps natively
(csrc/bindings/recorder/walk.cpp); a test holds the two to the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import Any

import numpy as np

from .._core import register, walk_back
from ..dtypes import FLOATING, HALF, float32
from ..errors import GraphError
from ..graph import Branch, Node, this_thread
from ..ops.arithmetic import add
from ..ops.casting import astype
from ..tensor import ExTensor
from .retained import retained, waiting_at

__all__ = ["Walk", "backpropagate", "check_grad_output", "outside"]


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
        watched = this_thread.walk is not None or (targets is None and bool(retained))
        if walk_back is not None and not (watched or create_graph):
            wanted = None if targets is None else list(targets)
            return walk_back(list(outputs), list(grad_outputs), wanted, retain_graph)
        walk = (this_thread.walk or Walk)(targets, retain_graph, create_graph)
        for output, grad in zip(outputs, grad_outputs):
            if output._requires_grad:
                walk.add(output if output._node is None else output._node, grad)
        walk.run()
        if targets is not None:
            return [walk.complete(walk.ends[id(target)]) for target in targets]
        for total in walk.ends.values():
            _accumulate(total.edge, total.grad)
        return []
    finally:
        this_thread.recording = before
        this_thread.mode = mode


def _accumulate(leaf: ExTensor, grad: Any) -> None:
    leaf._grad = grad if leaf._grad is None else _widened(leaf._grad) + _widened(grad)


def _widened(grad: ExTensor, cast: Callable[[ExTensor, Any], ExTensor] = ExTensor.astype) -> ExTensor:
    """A gradient that others are added to: half precision adds up in float32."""
    return cast(grad, float32) if grad.dtype in HALF else grad


class Sum:
    """The gradients that have arrived at an edge: a leaf, a node or one of its outputs."""

    edge: Any = None
    grad: Any = None
    half: Any = None  # the dtype of what was added, while the sum is kept in float32


class Walk:
    """One backward pass. A subclass may watch it, as the ``walk`` of its thread: see :mod:`.anomaly` and :mod:`.source`."""

    def __init__(self, targets: Sequence[Any] | None, retain_graph: bool, create_graph: bool) -> None:
        self.pending: dict[Node, list[Sum]] = {}  # what has arrived at each output of a node
        self.queue: list[tuple[int, Node]] = []
        self.to_leaves = targets is None
        self.ends = {id(t): Sum() for t in targets or ()}  # the targets, or the leaves that are reached
        # Nothing recorded before the first target can lead to one.
        self.oldest = min((getattr(t, "sequence", -1) for t in targets or ()), default=-1)
        self.retain = retain_graph
        self.create = create_graph

    def add(self, edge: Any, grad: ExTensor) -> None:
        """A gradient has arrived at a node or a leaf."""
        total = self.ends.get(id(edge)) or self._waiting(edge)
        if total is None:
            return
        total.edge = edge
        if total.grad is None:
            total.grad = grad
        elif grad.dtype in HALF:
            total.half = grad.dtype
            total.grad = self.plus(_widened(total.grad, self.cast), self.cast(grad, float32))
        else:
            total.grad = self.plus(total.grad, grad)

    def _waiting(self, edge: Any) -> Sum | None:
        """A leaf's sum, or that of an output, whose node is visited after all that used it; None if it leads to no target."""
        if isinstance(edge, ExTensor):
            return self.ends.setdefault(id(edge), Sum()) if self.to_leaves else None
        node, output = edge if type(edge) is Branch else (edge, 0)
        if node.sequence < self.oldest:
            return None
        if node not in self.pending:
            self.pending[node] = [Sum()] if node.outputs is None else [Sum() for _ in node.outputs]
            heappush(self.queue, (-node.sequence, node))
        return self.pending[node][output]

    def plus(self, a: ExTensor, b: ExTensor) -> ExTensor:
        """The sum of two gradients."""
        return a + b

    def complete(self, total: Sum) -> Any:
        """A sum that is complete, in the dtype of what was added; None if nothing was."""
        return total.grad if total.half is None else self.cast(total.grad, total.half)

    def run(self) -> None:
        while self.queue:
            node = heappop(self.queue)[1]
            found = self.pending.pop(node)
            if retained and self.to_leaves:
                for total in found:
                    for waiting in waiting_at(total.edge):
                        _accumulate(waiting, self.complete(total))
            check_usable(node)
            edges = node.edges
            if not self.to_leaves:
                edges = tuple([e if self._leads_somewhere(e) else None for e in edges])
            needs = None if None not in edges else tuple(e is not None for e in edges)
            if needs is None or True in needs:
                grads = list(map(self.complete, found))
                grad = grads[0] if node.outputs is None else _with_zeros(grads, node)
                self._hand_on(node, edges, self.gradients(node, grad, needs))
            if not self.retain:
                node.saved = None

    def _leads_somewhere(self, edge: Any) -> bool:
        return id(edge) in self.ends or getattr(edge, "sequence", -2) >= self.oldest  # a leaf has none

    def gradients(self, node: Node, grad: Any, needs: tuple[bool, ...] | None) -> Sequence[Any]:
        """What the node's public backward returns, one gradient per edge."""
        rule, saved = node.op.rule, self.saved(node)
        if not (self.create and node.op.is_custom):
            return rule.gradients(grad, saved, node.options, needs)
        # Every gradient is linear in grad_output: one that does not depend on it was not recorded.
        several = type(grad) is list
        probes = [g if g._requires_grad else ExTensor(g._data, True) for g in (grad if several else [grad])]
        grads = rule.gradients(probes if several else probes[0], saved, node.options, needs)
        for g in grads:
            if isinstance(g, ExTensor) and not g._requires_grad and g._array.any():
                raise NotImplementedError(
                    f"[{backward_name(node)}] cannot be differentiated again, because it does not compute with ExTensor "
                    f"functions; write it with them, or give it a gradient: @differentiable(backward=...) "
                    f"on {backward_name(node)}"
                )
        return grads

    def saved(self, node: Node) -> Any:
        """What the node saved; where the walk is recorded, its own output gets its history back."""
        outputs = node.op.rule.output_positions
        if not (self.create and outputs):
            return node.saved
        return [ExTensor(v._data, True, node) if i in outputs else v for i, v in enumerate(node.saved)]

    def _hand_on(self, node: Node, edges: Sequence[Any], grads: Sequence[Any]) -> None:
        check_gradients(node, edges, grads)
        for i, (edge, grad) in enumerate(zip(edges, grads)):
            if edge is None or grad is None:
                continue
            if node.casts is not None and grad.dtype != node.casts[i]:
                grad = self.cast(grad, node.casts[i])
            self.add(edge, grad)

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
                _check_custom(node, i, grad, *node.shapes[i])


def _gradients(node: Node, grad: Any, needs: tuple[bool, ...] | None) -> Sequence[Any]:
    """For the native walk: the gradients of a node whose backward it does not call itself."""
    if node.outputs is not None:
        grad = _with_zeros(grad, node)
    grads = node.op.rule.gradients(grad, node.saved, node.options, needs)
    edges = node.edges if needs is None else [e if need else None for e, need in zip(node.edges, needs)]
    check_gradients(node, edges, grads)
    return grads


def backward_name(node: Node) -> str:
    """The name of the public backward of a node."""
    return getattr(node.op.rule.backward, "__name__", f"{node.op.__name__}_backward")


def _with_zeros(grads: list[Any], node: Node) -> list[Any]:
    """Zeros for the outputs that nothing used, where the backward does not say that it takes None; None for those
    without gradients."""
    if node.op.rule.takes_none:
        return grads
    return [
        ExTensor(np.zeros(*described)) if grad is None and described else grad
        for grad, described in zip(grads, node.outputs or ())
    ]


def _check_custom(node: Node, i: int, grad: Any, shape: Any, dtype: Any) -> None:
    """A user's backward must return tensors of the inputs' shapes."""
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


register(
    add=add, astype=astype, wide=float32, gradients=_gradients, check=check_usable, check_gradients=check_gradients
)  # fmt: skip
