"""``extensor.onnx.load``: a network that another program wrote, as a module that trains."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..data import DamagedFileError
from ..errors import describe
from ..nn import Module
from ..tensor import ExTensor
from .build import build
from .graph_module import Graph
from .proto import array_of, as_value, check_texts, dtype_of, onnx

__all__ = ["OnnxModule", "load"]


def load(path_or_bytes: Any) -> OnnxModule:
    """The network in an ONNX file, as a module whose parameters train; in evaluation mode.

    Everything is checked before anything runs: an operator that is not known here is named together with its node. A file
    is never executed, and what it claims about sizes is held against the bytes that are there.

    Args:
        path_or_bytes: the path of a file, or the bytes of one, or a ``ModelProto``.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is damaged.
        NotImplementedError: it uses operators that are not supported; the message names them.

    Example:
        >>> import extensor as et, extensor.onnx, tempfile, pathlib
        >>> net = et.nn.Sequential(et.nn.Linear(2, 3, rng=0), et.nn.ReLU())
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "net.onnx")
        ...     _ = et.onnx.export(net, path, et.ones((1, 2)))
        ...     again = et.onnx.load(path)
        >>> again(et.ones((5, 2))).shape, [name for name, _ in again.named_parameters()]
        ((5, 3), ['0.weight', '0.bias'])
    """
    model, folder = _parsed(path_or_bytes)
    try:
        check_texts(model)
        if not model.HasField("graph"):
            raise DamagedFileError("[load] the model has no graph")
        if not model.opset_import:
            raise DamagedFileError(
                "[load] the model names no operator set; it is damaged or older than ONNX 1.0"
            )
        graph = build(model, folder)
    except (DamagedFileError, NotImplementedError) as error:
        if not isinstance(path_or_bytes, (str, os.PathLike)):
            raise
        why = str(error).removeprefix("[load] ")
        raise type(error)(f"[load] {os.fspath(path_or_bytes)}: {why}") from None
    return OnnxModule(graph, {p.key: p.value for p in model.metadata_props}).eval()


def _parsed(source: Any) -> tuple[Any, Path | None]:
    if isinstance(source, onnx.ModelProto):
        return source, None
    if isinstance(source, (bytes, bytearray, memoryview)):
        data, folder, name = bytes(source), None, "the bytes"
    elif isinstance(source, (str, os.PathLike)):
        path = Path(source)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise FileNotFoundError(f"[load] there is no file {path}") from None
        except IsADirectoryError:
            raise IsADirectoryError(f"[load] {path} is a folder, not a file") from None
        folder, name = path.parent, str(path)
    else:
        raise TypeError(f"[load] path_or_bytes must be a path or bytes, got {describe(source)}")
    try:
        return onnx.ModelProto.FromString(data), folder
    except Exception as error:  # DecodeError, and what else protobuf raises
        raise DamagedFileError(f"[load] {name} is no ONNX model: {error}") from None


class OnnxModule(Module):
    """A network from an ONNX file; call it with its inputs in order.

    Attributes:
        metadata: the texts stored with the model.

    Example:
        >>> import extensor as et, extensor.onnx, tempfile, pathlib
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "relu.onnx")
        ...     _ = et.onnx.export(et.relu, path, et.ones((1, 2)), metadata={"author": "me"})
        ...     net = et.onnx.load(path)
        >>> net(et.tensor([[-1.0, 2.0]])).tolist(), net.input_names, net.output_names, net.metadata
        ([[0.0, 2.0]], ['x'], ['output'], {'author': 'me'})
    """

    def __init__(self, graph: Graph, metadata: dict[str, str]) -> None:
        self._graph = graph
        self.metadata = metadata
        self.register_unused()

    def register_unused(self) -> None:
        """Tensors no node uses directly stay with the graph; they are buffers of this module."""
        self._buffer_names = self._graph._buffer_names
        for name in self._buffer_names:
            setattr(self, name, getattr(self._graph, name))
        for name, (holder, attribute) in self._graph.tensors.items():
            if holder is self._graph:
                self._graph.tensors[name] = (self, attribute)

    def _members(self) -> Iterator[tuple[str, Any]]:
        yield from self._graph._members()

    @property
    def input_names(self) -> list[str]:
        """The names of the inputs, in order."""
        return [value.name for value in self._graph.inputs]

    @property
    def output_names(self) -> list[str]:
        """The names of the outputs, in order."""
        return list(self._graph.outputs)

    def forward(self, *inputs: Any) -> Any:
        results = self.run(inputs)
        return results[0] if len(results) == 1 else tuple(results)

    @property
    def inputs(self) -> list[Any]:
        """What the file declares about the inputs (``ValueInfoProto``)."""
        return list(self._graph.inputs)

    def run(self, inputs: Any, check: bool = True) -> list[Any]:
        """All outputs as a list; strings and small number types stay NumPy arrays.

        Args:
            inputs: the inputs in order.
            check: whether they must have the declared dtypes and shapes.
        """
        declared = self._graph.inputs
        if len(inputs) != len(declared):
            raise ValueError(
                f"[onnx] the network takes {len(declared)} inputs ({', '.join(self.input_names)}), got {len(inputs)}"
            )
        given = [_checked(value, about) if check else value for value, about in zip(inputs, declared)]
        return self._graph.run({}, *given)

    def source(self, *inputs: Any) -> str:
        """What the network computes, as plain Python over public functions: ``def forward(..., parameters)``.

        Loops and branches are written as they ran.

        Args:
            inputs: what it is called with, as a sample. Without them: zeros of the declared shapes, 2 where one is free.
        """
        from .trace import trace
        from .writer import source_of

        if not inputs:
            inputs = tuple(sample(about) for about in self._graph.inputs)
        return source_of(trace(self, inputs, self.input_names))


def _checked(value: Any, about: Any) -> Any:
    """An input as a value, held against what the graph declares."""
    if value is None:
        return None
    if isinstance(value, (list, tuple)) and about.type.HasField("sequence_type"):
        return [as_value(array_of(v)) if not isinstance(v, ExTensor) else v for v in value]
    if about.type.HasField("optional_type") or not about.type.HasField("tensor_type"):
        return [as_value(v) for v in value] if isinstance(value, (list, tuple)) else as_value(value)
    found = as_value(value)
    declared = about.type.tensor_type
    if declared.elem_type:
        wanted = dtype_of(declared.elem_type)
        if found.dtype != wanted:
            raise TypeError(f"[onnx] input {about.name!r} must have dtype {wanted}, got {found.dtype}")
    if declared.HasField("shape"):
        lengths = [d.dim_value if d.HasField("dim_value") else None for d in declared.shape.dim]
        if len(lengths) != found.ndim or any(n is not None and n != m for n, m in zip(lengths, found.shape)):
            shown = tuple("?" if n is None else n for n in lengths)
            raise ValueError(f"[onnx] input {about.name!r} must have shape {shown}, got {found.shape}")
    return found


def sample(about: Any) -> Any:
    """Zeros of a declared input's shape; a free length is 2."""
    declared = about.type.tensor_type
    shape = [d.dim_value if d.HasField("dim_value") else 2 for d in declared.shape.dim]
    return as_value(np.zeros(shape, dtype_of(declared.elem_type or onnx.TensorProto.FLOAT)))
