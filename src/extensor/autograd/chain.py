"""The recorded graph as a list of calls, for pictures and tables."""

from __future__ import annotations

from typing import Any

from ..graph import Branch, Node
from ..tensor import ExTensor

__all__ = ["Call", "recorded_calls"]


class Call:
    """One box of the graph: a recorded call, or a leaf tensor.

    Attributes:
        edge: the node, or the leaf tensor.
        inputs: positions of its inputs in the list of calls.
    """

    __slots__ = ("edge", "inputs")

    def __init__(self, edge: Any, inputs: list[int]) -> None:
        self.edge = edge
        self.inputs = inputs

    @property
    def is_leaf(self) -> bool:
        return isinstance(self.edge, ExTensor)

    @property
    def name(self) -> str:
        return "leaf" if self.is_leaf else self.edge.op.__name__

    @property
    def shape(self) -> Any:
        """Shape of the result; a list for several."""
        if self.is_leaf or self.edge.outputs is None:
            return self.edge.shape
        return [described and described[0] for described in self.edge.outputs]


def recorded_calls(output: ExTensor) -> list[Call]:
    """Everything ``output`` was computed from that a gradient flows to, inputs before what used them."""
    start = _node(output if output._node is None else output._node)
    found: dict[int, Any] = {}
    stack = [start]
    while stack:
        edge = stack.pop()
        if edge is not None and id(edge) not in found:
            found[id(edge)] = edge
            if isinstance(edge, Node):
                stack.extend(map(_node, edge.edges))
    leaves = [e for e in found.values() if isinstance(e, ExTensor)]
    nodes = sorted((e for e in found.values() if isinstance(e, Node)), key=lambda n: n.sequence)
    ordered = [*leaves, *nodes]
    position = {id(e): i for i, e in enumerate(ordered)}
    return [
        Call(e, [position[id(_node(i))] for i in e.edges if i is not None] if isinstance(e, Node) else [])
        for e in ordered
    ]


def _node(edge: Any) -> Any:
    return edge.node if type(edge) is Branch else edge
