"""From the messages of a file to modules: every node is checked and looked up before anything runs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..data import DamagedFileError
from ..dtypes import FLOATING
from ..nn import Module, Parameter
from . import operators as _operators  # noqa: F401  (fills the table)
from .graph_module import Call, Graph, Node
from .proto import MAX_NODES, as_value, onnx, read_attribute, read_sparse, read_tensor
from .table import find

__all__ = ["NEWEST_OPSET", "build"]

NEWEST_OPSET = 28
_MOST_NAMED = 8  # problems in one message
_CONSTANT = re.compile(r"constant_\d+")  # what our own export calls numbers that are no weights


def build(model: Any, folder: Path | None) -> Graph:
    """The graph of a ModelProto as a module; an error names every node that cannot be run."""
    functions = {(f.domain, f.name, f.overload): f for f in model.functions}
    builder = _Builder(functions, folder)
    opsets = _opsets(model.opset_import)
    graph = builder.graph(model.graph, frozenset(), opsets, ())
    if builder.problems:
        shown = "; ".join(dict.fromkeys(builder.problems[:_MOST_NAMED]))
        more = len(builder.problems) - _MOST_NAMED
        raise NotImplementedError(f"[load] {shown}" + (f"; and {more} more" if more > 0 else ""))
    return graph


def _opsets(imports: Any) -> dict[str, int]:
    found = {"" if entry.domain == "ai.onnx" else entry.domain: entry.version for entry in imports}
    if found.get("", 1) > NEWEST_OPSET:
        raise NotImplementedError(
            f"[load] the model is written for operator set {found['']}; the newest that is known here is {NEWEST_OPSET}"
        )
    return found


class _Builder:
    def __init__(self, functions: Mapping[tuple[str, str, str], Any], folder: Path | None) -> None:
        self.functions = functions
        self.folder = folder
        self.problems: list[str] = []
        self.count = 0

    # Graphs

    def graph(
        self, proto: Any, outer: frozenset[str], opsets: dict[str, int], stack: tuple[Any, ...]
    ) -> Graph:
        """A GraphProto; ``outer`` are the names of the graphs around it."""
        tensors: dict[str, Any] = {}
        for tensor in proto.initializer:
            _new_name(tensors, tensor.name, "initializer")
            tensors[tensor.name] = as_value(read_tensor(tensor, self.folder))
        for sparse in proto.sparse_initializer:
            _new_name(tensors, sparse.values.name, "initializer")
            tensors[sparse.values.name] = as_value(read_sparse(sparse, self.folder))
        protos = [node for node in proto.node if not self._is_tensor(node, tensors)]
        inputs = [value for value in proto.input if value.name not in tensors]
        known = {value.name for value in inputs} | set(tensors)
        if len({value.name for value in inputs}) != len(inputs):
            raise DamagedFileError("[load] two inputs of the graph have the same name")
        nodes = self.nodes(protos, known, outer, opsets, stack, {})
        outputs = [value.name for value in proto.output]
        _check_outputs(outputs, known | outer)
        return _placed(Graph(proto.name, inputs, outputs), nodes, tensors)

    def _is_tensor(self, node: Any, tensors: dict[str, Any]) -> bool:
        """A constant with axes is a tensor of the file like any other; it joins them."""
        if node.op_type != "Constant" or node.domain not in ("", "ai.onnx") or len(node.output) != 1:
            return False
        values = [a for a in node.attribute if a.name == "value" and a.type == onnx.AttributeProto.TENSOR]
        if len(node.attribute) != 1 or not values or not values[0].t.dims:
            return False
        _new_name(tensors, node.output[0], "constant")
        tensors[node.output[0]] = as_value(read_tensor(values[0].t, self.folder))
        return True

    def function(self, proto: Any, attributes: dict[str, Any], stack: tuple[Any, ...], key: Any) -> Graph:
        """The body of a function, for one call with these attributes."""
        given = {a.name: a for a in proto.attribute_proto} | attributes
        known = set(proto.input)
        nodes = self.nodes(proto.node, known, frozenset(), _opsets(proto.opset_import), (*stack, key), given)
        _check_outputs(list(proto.output), known)
        inputs = [onnx.ValueInfoProto(name=name) for name in proto.input]
        return _placed(Graph(proto.name, inputs, list(proto.output)), nodes, {})

    def nodes(
        self, protos: Any, known: set[str], outer: frozenset[str], opsets: dict[str, int], stack: tuple[Any, ...],
        given: dict[str, Any],
    ) -> dict[str, Node]:  # fmt: skip
        """The nodes in order, each under a name of its own; ``known`` grows by what they compute."""
        later = {name for proto in protos for name in proto.output}
        found: dict[str, Node] = {}
        for i, proto in enumerate(protos):
            self.count += 1
            if self.count > MAX_NODES:
                raise DamagedFileError(f"[load] the model has more than {MAX_NODES} nodes")
            label = _label(proto, i)
            for name in proto.input:
                if name and name not in known and name not in outer:
                    why = (
                        "its node comes later or they form a circle"
                        if name in later
                        else "nothing computes it"
                    )
                    raise DamagedFileError(f"[load] {label} needs {name!r}, but {why}")
            node = self.node(proto, label, frozenset(known | outer), opsets, stack, given)
            for name in proto.output:
                if name and name in known:
                    raise DamagedFileError(f"[load] {label} computes {name!r}, which was there before")
                known.add(name)
            if node is not None:
                found[_unused(_readable(proto, i), found)] = node
        return found

    # Nodes

    def node(
        self, proto: Any, label: str, scope: frozenset[str], opsets: dict[str, int], stack: tuple[Any, ...],
        given: dict[str, Any],
    ) -> Node | None:  # fmt: skip
        """One node, or None where it was entered among the problems."""
        domain = "" if proto.domain == "ai.onnx" else proto.domain
        attributes = {a.name: a for a in (_resolved(a, given) for a in proto.attribute) if a is not None}
        key = (proto.domain, proto.op_type, proto.overload)
        if key in self.functions:
            if key in stack:
                raise DamagedFileError(f"[load] {label}: the function calls itself")
            body = self.function(self.functions[key], attributes, stack, key)
            return Call(proto.op_type, label, list(proto.input), list(proto.output), body)
        if domain not in opsets:
            raise DamagedFileError(
                f"[load] {label}: the model imports no operator set for {domain or 'ai.onnx'!r}"
            )
        entry = find(domain, proto.op_type, opsets[domain])
        if entry is None:
            self.problems.append(
                f"{label} is not supported (operator set {domain or 'ai.onnx'} {opsets[domain]})"
            )
            return None
        problem = entry.problem(len(proto.input), set(attributes))
        if problem:
            self.problems.append(f"{label} {problem}")
            return None
        values, graphs = {}, {}
        for name, attribute in attributes.items():
            value = read_attribute(attribute, self.folder)
            if isinstance(value, onnx.GraphProto):
                graphs[name] = self.graph(value, scope, opsets, stack)
            else:
                values[name] = value
        if "opset" in entry.context:
            values["opset"] = opsets[domain]
        if "outputs" in entry.context:
            values["outputs"] = len(proto.output)
        return Node.of(entry, label, list(proto.input), list(proto.output), values, graphs)


def _new_name(names: Any, name: str, kind: str) -> None:
    if not name or name in names:
        raise DamagedFileError(f"[load] an {kind} has no name or one that stands twice: {name!r}")


def _check_outputs(outputs: list[str], known: set[str] | frozenset[str]) -> None:
    for name in outputs:
        if name not in known:
            raise DamagedFileError(f"[load] the output {name!r} is computed by nothing")


def _resolved(attribute: Any, given: dict[str, Any]) -> Any:
    """An attribute as it is, or that of the function's caller it refers to; None where the caller has none."""
    if not attribute.ref_attr_name:
        return attribute
    value = given.get(attribute.ref_attr_name)
    if value is None:
        return None
    found = onnx.AttributeProto()
    found.CopyFrom(value)
    found.name = attribute.name
    return found


# Names


def _label(proto: Any, position: int) -> str:
    """A node as messages call it."""
    domain = f"{proto.domain}." if proto.domain not in ("", "ai.onnx") else ""
    return f"node {proto.name or position!r} ({domain}{proto.op_type})"


def _readable(proto: Any, position: int) -> str:
    """``/layer1/conv1/Conv`` as ``layer1.conv1``; a node without a name by its operator and position."""
    parts = [re.sub(r"\W+", "_", part) for part in re.split(r"[/.]", proto.name) if part]
    if len(parts) > 1 and re.sub(r"_\d+$", "", parts[-1]) == proto.op_type:
        parts.pop()
    parts = [p for i, p in enumerate(parts) if i == 0 or p != parts[i - 1]]
    return ".".join(parts) or f"{proto.op_type.lower()}_{position}"


def _unused(name: str, taken: Mapping[str, Any]) -> str:
    found, count = name, 1
    while found in taken:
        count += 1
        found = f"{name}_{count}"
    return found


# Parameters


def _placed(graph: Graph, nodes: dict[str, Node], tensors: dict[str, Any]) -> Graph:
    """Give every tensor of the file to the first node that uses it: trained if it is floating, else a buffer."""
    users: dict[str, tuple[str, Node, int]] = {}
    for path, node in nodes.items():
        for position, name in enumerate(node.inputs):
            if name in tensors:
                users.setdefault(name, (path, node, position))
    names = _renamed(nodes, users)
    for name, value in tensors.items():
        holder: Module = graph
        attribute = name.rpartition(".")[2]
        trained = False
        if name in users:
            _, node, position = users[name]
            holder = node
            trained = _is_trained(node, position, value) and not _CONSTANT.fullmatch(name)
            if not names.get(id(node)) or names[id(node)] != name.rpartition(".")[0]:
                attribute = node.input_name(position)
        attribute = _attribute_name(holder, attribute)
        if trained:
            setattr(holder, attribute, Parameter(value))
        else:
            holder.register_buffer(attribute, value)
        graph.tensors[name] = (holder, attribute)
    renamed: dict[str, Node] = {}
    for path, node in nodes.items():
        renamed[_unused(names.get(id(node)) or path, renamed)] = node
    graph.set_nodes(renamed)
    return graph


def _is_trained(node: Node, position: int, value: Any) -> bool:
    if getattr(value, "dtype", None) not in FLOATING or value.ndim == 0 or not node.trains(position):
        return False
    return bool(np.isfinite(value.numpy()).all())  # a mask of -inf is no weight


def _renamed(nodes: dict[str, Node], users: dict[str, tuple[str, Node, int]]) -> dict[int, str]:
    """A node whose tensors are called ``conv1.weight`` and ``conv1.bias`` is ``conv1``."""
    prefixes: dict[int, set[str]] = {}
    for name, (_, node, _) in users.items():
        prefixes.setdefault(id(node), set()).add(name.rpartition(".")[0])
    single = {key: next(iter(found)) for key, found in prefixes.items() if len(found) == 1}
    taken: set[str] = set()
    names = {}
    for key, prefix in single.items():
        if prefix and prefix not in taken and re.fullmatch(r"\w+(\.\w+)*", prefix):
            taken.add(prefix)
            names[key] = prefix
    return names


def _attribute_name(holder: Module, wanted: str) -> str:
    name = re.sub(r"\W", "_", wanted) or "value"
    if name[0].isdigit() or name[0] == "_":
        name = f"tensor_{name}"
    found, count = name, 1
    while hasattr(holder, found):
        count += 1
        found = f"{name}_{count}"
    return found
