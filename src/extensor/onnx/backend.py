"""``extensor.onnx.Backend``: what the standard's test suite (``onnx.backend.test``) runs."""

from __future__ import annotations

from typing import Any

from ..graph import no_grad
from ..tensor import ExTensor
from .load import OnnxModule, load
from .proto import array_of, onnx

from onnx.backend.base import Backend as _Base  # isort: skip
from onnx.backend.base import BackendRep, DeviceType  # isort: skip

__all__ = ["Backend", "Prepared"]


class Prepared(BackendRep):
    """A model ready to run."""

    def __init__(self, module: OnnxModule) -> None:
        self.module = module

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """The outputs as NumPy arrays, or lists of them."""
        given = list(inputs.values()) if isinstance(inputs, dict) else list(inputs)
        with no_grad():
            return tuple(map(_plain, self.module.run(given)))


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(v) for v in value]
    return array_of(value) if isinstance(value, ExTensor) else value


class Backend(_Base):
    """The interface of ``onnx.backend``.

    Example:
        >>> import extensor.onnx, numpy as np, onnx.helper as h
        >>> node = h.make_node("Relu", ["x"], ["y"])
        >>> float_2 = h.make_tensor_type_proto(1, [2])
        >>> graph = h.make_graph([node], "g", [h.make_value_info("x", float_2)], [h.make_value_info("y", float_2)])
        >>> extensor.onnx.Backend.run_model(h.make_model(graph), [np.array([-1.0, 2.0], np.float32)])[0].tolist()
        [0.0, 2.0]
    """

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **kwargs: Any) -> Prepared:
        """A model, checked and ready to run."""
        return Prepared(load(model if isinstance(model, (onnx.ModelProto, bytes)) else str(model)))

    @classmethod
    def run_model(cls, model: Any, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        """The outputs of a model."""
        return cls.prepare(model, device).run(inputs)

    @classmethod
    def run_node(
        cls, node: Any, inputs: Any, device: str = "CPU", outputs_info: Any = None, **kwargs: Any
    ) -> Any:
        """The outputs of a single node."""
        opset = kwargs.get("opset_version", 21)
        names = [name for name in node.input if name]
        declared = [onnx.ValueInfoProto(name=name) for name in names]
        results = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        graph = onnx.helper.make_graph([node], "node", declared, results)
        imports = [onnx.helper.make_opsetid(node.domain, opset)]
        return cls.run_model(onnx.helper.make_model(graph, opset_imports=imports), inputs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """The CPU, and nothing else."""
        return bool(device.split(":", maxsplit=1)[0] == "CPU" and DeviceType.CPU is not None)
