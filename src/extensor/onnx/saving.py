"""Models as files: weights inside, or beside the model where they are too many for one message of protobuf."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..train.whole_files import write_whole
from .proto import onnx

__all__ = ["save"]

INSIDE = 1 << 30  # bytes of weights that stay inside the file; protobuf ends at 2 GB
_SMALL = 1024  # bytes of a tensor that stays inside in any case


def save(model: Any, path: Path) -> None:
    """Check a model and write it. Weights beyond 1 GB go into a file of the same name with ``.data`` at its end."""
    if sum(len(tensor.raw_data) for tensor in model.graph.initializer) <= INSIDE:
        onnx.checker.check_model(model, full_check=True)
        write_whole("export", path, [model.SerializeToString()])
        return
    data = path.with_name(f"{path.name}.data")
    write_whole("export", data, _taken_out(model, data.name))
    write_whole("export", path, [model.SerializeToString()])
    onnx.checker.check_model(str(path), full_check=True)


def _taken_out(model: Any, location: str) -> Iterator[bytes]:
    """The bytes of the large tensors, one after the other; each tensor then only says where they lie."""
    offset = 0
    for tensor in model.graph.initializer:
        raw = tensor.raw_data
        if len(raw) < _SMALL:
            continue
        tensor.ClearField("raw_data")
        tensor.data_location = onnx.TensorProto.EXTERNAL
        for key, value in (("location", location), ("offset", offset), ("length", len(raw))):
            tensor.external_data.add(key=key, value=str(value))
        offset += len(raw)
        yield raw
