"""From the messages of a file to modules: every node is checked and looked up before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..data import DamagedFileError
from . import operators as _operators  # noqa: F401  (fills the table)
from .graph_module import Call, Graph, Node
from .naming import label, node_names, unused
from .placing import Tensors, placed
from .proto import BUFFER, MAX_NODES, as_value, onnx, read_attribute, read_sparse, read_tensor
from .table import find

__all__ = ["NEWEST_OPSET", "build"]

NEWEST_OPSET = 28
_MOST_NAMED = 8  # problems in one message


def build(model: Any, folder: Path | None) -> Graph:
    """The graph of a ModelProto as a module; an error names every node that cannot be run."""
    functions = {(f.domain, f.name, f.overload): f for f in model.functions}
    builder = _Builder(functions, folder, model.producer_name)
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
    def __init__(
        self, functions: Mapping[tuple[str, str, str], Any], folder: Path | None, producer: str
    ) -> None:
        self.functions = functions
        self.producer = producer
        self.folder = folder
        self.problems: list[str] = []
        self.count = 0

    # Graphs

    def graph(
        self, proto: Any, outer: frozenset[str], opsets: dict[str, int], stack: tuple[Any, ...]
    ) -> Graph:
        """A GraphProto; ``outer`` are the names of the graphs around it."""
        tensors = Tensors(self.producer)
        for tensor in proto.initializer:
            _new_name(tensors, tensor.name, "initializer")
            tensors.add(tensor.name, as_value(read_tensor(tensor, self.folder)))
            if tensor.doc_string == BUFFER:
                tensors.buffers.add(tensor.name)
        for sparse in proto.sparse_initializer:
            _new_name(tensors, sparse.values.name, "initializer")
            tensors.add(sparse.values.name, as_value(read_sparse(sparse, self.folder)))
        inputs = [value for value in proto.input if value.name not in tensors]
        outputs = [value.name for value in proto.output]
        kept = {value.name for value in inputs} | set(outputs)
        protos = [node for node in proto.node if not self._is_tensor(node, tensors, kept)]
        known = {value.name for value in inputs} | {*tensors, *tensors.aliases}
        if len({value.name for value in inputs}) != len(inputs):
            raise DamagedFileError("[load] two inputs of the graph have the same name")
        nodes = self.nodes(protos, known, outer, opsets, stack, {})
        _check_outputs(outputs, known | outer)
        return placed(Graph(proto.name, inputs, outputs), nodes, tensors)

    def _is_tensor(self, node: Any, tensors: Tensors, kept: set[str]) -> bool:
        """A constant with axes, and a tensor of the file by another name, are tensors like any other; they join them."""
        if node.domain not in ("", "ai.onnx") or len(node.output) != 1 or node.output[0] in kept:
            return False
        name = node.output[0]
        if node.op_type == "Identity" and len(node.input) == 1 and tensors.has(node.input[0]):
            self._new_tensor(tensors, name)
            tensors.add_alias(name, node.input[0])
            return True
        values = [a for a in node.attribute if a.name == "value" and a.type == onnx.AttributeProto.TENSOR]
        if node.op_type != "Constant" or len(node.attribute) != 1 or not values or not values[0].t.dims:
            return False
        self._new_tensor(tensors, name)
        tensors.add(name, as_value(read_tensor(values[0].t, self.folder)))
        return True

    def _new_tensor(self, tensors: Tensors, name: str) -> None:
        _new_name(tensors, name, "constant")
        _new_name(tensors.aliases, name, "constant")

    def function(self, proto: Any, attributes: dict[str, Any], stack: tuple[Any, ...], key: Any) -> Graph:
        """The body of a function, for one call with these attributes."""
        given = {a.name: a for a in proto.attribute_proto} | attributes
        known = set(proto.input)
        nodes = self.nodes(proto.node, known, frozenset(), _opsets(proto.opset_import), (*stack, key), given)
        _check_outputs(list(proto.output), known)
        inputs = [onnx.ValueInfoProto(name=name) for name in proto.input]
        return placed(Graph(proto.name, inputs, list(proto.output)), nodes, Tensors(self.producer))

    def nodes(
        self, protos: Any, known: set[str], outer: frozenset[str], opsets: dict[str, int], stack: tuple[Any, ...],
        given: dict[str, Any],
    ) -> dict[str, Node]:  # fmt: skip
        """The nodes in order, each under a name of its own; ``known`` grows by what they compute."""
        later = {name for proto in protos for name in proto.output}
        found: dict[str, Node] = {}
        for i, (proto, path) in enumerate(zip(protos, node_names(protos))):
            self.count += 1
            if self.count > MAX_NODES:
                raise DamagedFileError(f"[load] the model has more than {MAX_NODES} nodes")
            shown = label(proto, i)
            for name in proto.input:
                if name and name not in known and name not in outer:
                    why = (
                        "its node comes later or they form a circle"
                        if name in later
                        else "nothing computes it"
                    )
                    raise DamagedFileError(f"[load] {shown} needs {name!r}, but {why}")
            node = self.node(proto, shown, (known, outer), opsets, stack, given)
            for name in proto.output:
                if name and name in known:
                    raise DamagedFileError(f"[load] {shown} computes {name!r}, which was there before")
                known.add(name)
            if node is not None:
                found[unused(path, found)] = node
        return found

    # Nodes

    def node(
        self, proto: Any, label: str, scopes: tuple[set[str], frozenset[str]], opsets: dict[str, int],
        stack: tuple[Any, ...], given: dict[str, Any],
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
                graphs[name] = self.graph(value, frozenset().union(*scopes), opsets, stack)
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
