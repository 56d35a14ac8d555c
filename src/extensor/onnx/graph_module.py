"""The graph of a file as modules: a :class:`Graph` runs its nodes in order, a :class:`Node` calls one operator."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

from ..nn import Module
from .table import Operator

__all__ = ["Call", "Graph", "Node"]

_UNFORESEEN = (ArithmeticError, AssertionError, AttributeError, KeyError)


class Node(Module):
    """One node: an operator, the names of what goes in and comes out, and its attributes."""

    inputs: list[str]
    outputs: list[str]
    label: str

    def __init__(self, label: str, inputs: list[str], outputs: list[str]) -> None:
        self.label = label
        self.inputs, self.outputs = inputs, outputs

    @staticmethod
    def of(
        entry: Operator, label: str, inputs: list[str], outputs: list[str], attributes: dict[str, Any],
        graphs: Mapping[str, Graph],
    ) -> Node:  # fmt: skip
        """A node whose class carries the name of its operator, as a summary shows it."""
        return _kind(entry.name)(entry, label, inputs, outputs, attributes, graphs)

    def input_name(self, position: int) -> str:
        """What the operator calls an input."""
        return f"input_{position}"

    def trains(self, position: int) -> bool:
        """Whether a tensor of the file at this input is a weight."""
        return False

    def captured(self) -> set[str]:
        """Names of the graph around it that graphs inside the node use."""
        return set()

    def run(self, values: dict[str, Any]) -> None:
        """Compute; the results enter ``values``."""
        inputs = [values[name] if name else None for name in self.inputs]
        try:
            results = self(*inputs, **self.closures(values))
        except (
            _UNFORESEEN
        ) as error:  # numbers of a file that no check expects, such as an axis of a tensor without axes
            raise ValueError(
                f"[onnx] {self.label} cannot be computed ({type(error).__name__}: {error})"
            ) from error
        except Exception as error:
            error.add_note(f"in {self.label}")
            raise
        if not isinstance(results, (list, tuple)) or (len(self.outputs) == 1 and isinstance(results, list)):
            results = (results,)
        if len(results) < len([name for name in self.outputs if name]):
            raise ValueError(f"[load] {self.label} has {len(results)} results for {len(self.outputs)} names")
        values.update({name: value for name, value in zip(self.outputs, results) if name})

    def closures(self, values: dict[str, Any]) -> dict[str, Any]:
        """The graphs inside the node as functions."""
        return {}


class _Operation(Node):
    """A node of the table of operators."""

    def __init__(
        self, entry: Operator, label: str, inputs: list[str], outputs: list[str], attributes: dict[str, Any],
        graphs: Mapping[str, Graph],
    ) -> None:  # fmt: skip
        super().__init__(label, inputs, outputs)
        self._entry = entry
        self._attributes = attributes
        self._graphs = tuple(graphs)
        for name, graph in graphs.items():
            setattr(self, name, graph)

    def input_name(self, position: int) -> str:
        names = self._entry.inputs
        return names[position] if position < len(names) else f"input_{position}"

    def trains(self, position: int) -> bool:
        return self.input_name(position) not in self._entry.fixed

    def captured(self) -> set[str]:
        return {name for graph in self._graphs for name in getattr(self, graph).captured()}

    def closures(self, values: dict[str, Any]) -> dict[str, Any]:
        return {name: functools.partial(getattr(self, name).run, values) for name in self._graphs}

    def forward(self, *inputs: Any, **graphs: Any) -> Any:
        options = {**self._attributes, **graphs}
        if "training" in self._entry.context:
            options["training"] = self.training
        results = self._entry(*inputs, **options)
        if self.training and self._entry.name == "BatchNormalization" and len(self.outputs) == 1:
            return self._keep_statistics(*results)
        return results

    def _keep_statistics(self, output: Any, mean: Any, variance: Any) -> Any:
        """In training the running statistics follow the batches, as in :class:`extensor.nn.BatchNorm2d`."""
        for name, value in zip(self._buffer_names[-2:], (mean, variance)):
            if len(self._buffer_names) >= 2:
                setattr(self, name, value.detach())
        return output

    def extra_repr(self) -> str:
        shown = {k: v for k, v in self._attributes.items() if k in self._entry.attributes}
        shown = {k: f"{v:g}" if isinstance(v, float) else v for k, v in shown.items()}
        return ", ".join(f"{k}={v}" for k, v in shown.items() if isinstance(v, (int, str, list)))


class Call(Node):
    """A node that calls a function of the model."""

    def __init__(self, name: str, label: str, inputs: list[str], outputs: list[str], body: Graph) -> None:
        super().__init__(label, inputs, outputs)
        self.body = body

    def forward(self, *inputs: Any) -> Any:
        return tuple(self.body.run({}, *inputs))


@functools.cache
def _kind(name: str) -> type[_Operation]:
    return type(name, (_Operation,), {"__module__": __name__})


class Graph(Module):
    """Nodes in order, and the tensors of the file.

    Attributes:
        inputs: the declared inputs (ValueInfoProto).
        outputs: the names of the results.
        tensors: where each tensor of the file is kept: a module and the name of its attribute.
    """

    def __init__(self, name: str, inputs: list[Any], outputs: list[str]) -> None:
        self.name = name
        self.inputs = inputs
        self.outputs = outputs
        self.tensors: dict[str, tuple[Module, str]] = {}
        self._nodes: dict[str, Node] = {}
        self._last: list[list[str]] = []

    def set_nodes(self, nodes: dict[str, Node]) -> None:
        """The nodes by path, and after each the names that nobody asks for any more."""
        self._nodes = nodes
        keep = {*self.outputs}
        last: dict[str, int] = {}
        for i, node in enumerate(nodes.values()):
            for name in {*node.inputs, *node.captured(), *node.outputs} - keep:
                last[name] = i
        self._last = [[] for _ in nodes]
        for name, i in last.items():
            self._last[i].append(name)

    def _members(self) -> Iterator[tuple[str, Any]]:
        yield from self._nodes.items()

    def captured(self) -> set[str]:
        """Names that come from the graphs around this one."""
        own = {value.name for value in self.inputs} | set(self.tensors)
        used = {name for node in self._nodes.values() for name in (*node.inputs, *node.captured()) if name}
        made = {name for node in self._nodes.values() for name in node.outputs}
        return (used | set(self.outputs)) - own - made

    def run(self, outer: Mapping[str, Any], *inputs: Any) -> list[Any]:
        """The results for these inputs; ``outer`` are the values of the graphs around this one."""
        if len(inputs) > len(self.inputs):
            raise ValueError(f"[load] graph {self.name!r} takes {len(self.inputs)} inputs, got {len(inputs)}")
        values = dict(outer)
        for name, (holder, attribute) in self.tensors.items():
            values[name] = getattr(holder, attribute)
        values.update({value.name: given for value, given in zip(self.inputs, inputs)})
        for value in self.inputs[len(inputs) :]:
            values[value.name] = None  # functions may be called with fewer
        for node, done in zip(self._nodes.values(), self._last):
            node.run(values)
            for name in done:
                values.pop(name, None)
        return [values[name] for name in self.outputs]
