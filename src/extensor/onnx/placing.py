"""The tensors of a file: which node holds which of them, which are trained, and which are one and the same."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..dtypes import FLOATING
from ..nn import Module, Parameter
from ..tensor import ExTensor
from .graph_module import Graph, Node
from .naming import unused
from .proto import array_of

__all__ = ["Tensors", "placed"]

_NUMBER = re.compile(r"constant_\d+")  # what our own export calls tensors that are no weights
_GENERATED = re.compile(
    r"val_\d+|onnx::\w+|.*Constant(_\d+)?(_output_\d+)?|_.*|\d+"
)  # what PyTorch's call them
_TELLING = ("extensor", "pytorch")  # programs whose files have the names of parameters
_MOST_TIMES = 64  # how often a tensor of the file may become parameters of their own


class Tensors(dict[str, Any]):
    """The tensors of a graph by name.

    Attributes:
        producer: the program that wrote the file.
        buffers: names of tensors that the file says are no parameters.
        aliases: second names, each with the first.
    """

    def __init__(self, producer: str) -> None:
        super().__init__()
        self.producer = producer
        self.buffers: set[str] = set()
        self.aliases: dict[str, str] = {}
        self._room = 0  # bytes that tensors told apart may still take

    def add(self, name: str, value: Any) -> None:
        """A tensor that stands in the file."""
        self[name] = value
        self._room += _MOST_TIMES * (array_of(value).nbytes if is_floating(value) else 0)

    def has(self, name: str) -> bool:
        """Whether it is the name of a tensor, the first or a second one."""
        return name in self or name in self.aliases

    def add_alias(self, name: str, source: str) -> None:
        """Another name of a tensor. PyTorch writes one for each parameter that equals another: there they are told apart."""
        if self.producer != "pytorch" or not self.tell_apart(name, source):
            self.aliases[name] = self.aliases.get(source, source)

    def tell_apart(self, name: str, source: str) -> bool:
        """Make a tensor of its own out of a use of another; False where that would be too much for the size of the file."""
        value = self.get(source)
        if not is_floating(value) or array_of(value).nbytes > self._room:
            return False
        self._room -= array_of(value).nbytes
        self[name] = value
        return True

    def is_trained(self, name: str, node: Node, position: int) -> bool:
        """Whether a tensor at this input of a node is a weight."""
        value = self[name]
        if not is_floating(value) or not node.trains(position) or name in self.buffers:
            return False
        if not value.size or _NUMBER.fullmatch(name) or not np.isfinite(array_of(value)).all():
            return False  # a mask of -inf is no weight
        if value.size == 1 and _GENERATED.fullmatch(name):
            return False
        return bool(value.ndim) or self.producer in _TELLING


def is_floating(value: Any) -> bool:
    return isinstance(value, ExTensor) and value.dtype in FLOATING


def placed(graph: Graph, nodes: dict[str, Node], tensors: Tensors) -> Graph:
    """Give every tensor of the file to the first node that uses it: trained if it is a weight, else a buffer."""
    _part(nodes.values(), tensors)
    users: dict[str, tuple[Node, int]] = {}
    for node in nodes.values():
        for position, name in enumerate(node.inputs):
            name = tensors.aliases.get(name, name)
            if name in tensors:
                users.setdefault(name, (node, position))
    names = _renamed(users)
    owners = {names[id(node)]: node for node, _ in users.values() if id(node) in names}
    for name, value in tensors.items():
        holder: Module = graph
        prefix, _, attribute = name.rpartition(".")
        trained = False
        if name in users:
            node, position = users[name]
            trained = tensors.is_trained(name, node, position)
            holder = owners.get(
                prefix, node
            )  # "fc.bias" belongs to the node called "fc", though the one after it adds it
            if prefix not in owners:
                attribute = node.input_name(position)
        attribute = _attribute_name(holder, attribute)
        if trained:
            setattr(holder, attribute, Parameter(value))
        else:
            holder.register_buffer(attribute, value)
        graph.tensors[name] = (holder, attribute)
    graph.tensors.update({name: graph.tensors[source] for name, source in tensors.aliases.items()})
    renamed: dict[str, Node] = {}
    for path, node in nodes.items():
        renamed[unused(names.get(id(node)) or path, renamed)] = node
    graph.set_nodes(renamed)
    return graph


def _part(nodes: Iterable[Node], tensors: Tensors) -> None:
    """Give each of several nodes its own tensor where they share one whose elements are all one number.

    PyTorch's newer exporter stores equal tensors once, and so are the scales and shifts of fresh layers: equal by chance.
    Weights that differ from element to element are shared on purpose, and stay so.
    """
    if tensors.producer != "pytorch":
        return
    seen: set[str] = set()
    for node in nodes:
        for position, name in enumerate(node.inputs):
            if name not in tensors or not tensors.is_trained(name, node, position):
                continue
            array = array_of(tensors[name])
            if name in seen and (array == array.flat[0]).all():
                own = unused("equal_tensor", tensors)
                if tensors.tell_apart(own, name):
                    node.inputs[position] = own
            seen.add(name)


def _renamed(users: dict[str, tuple[Node, int]]) -> dict[int, str]:
    """A node whose tensors are called ``conv1.weight`` and ``conv1.bias`` is ``conv1``."""
    prefixes: dict[int, set[str]] = {}
    for name, (node, _) in users.items():
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
