"""Files as PyTorch writes them, without PyTorch."""

from __future__ import annotations

import collections
import io
import pickle
import sys
import types
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np


class FloatStorage: ...


class LongStorage: ...


class Tensor:
    """What stands for a tensor while a file is written."""

    def __init__(self, array: np.ndarray, **changes: Any) -> None:
        self.array, self.changes = array, changes


def _rebuild_tensor_v2(*args: Any) -> None: ...


def _rebuild_parameter(*args: Any) -> None: ...


@contextmanager
def torch_names() -> Iterator[None]:
    """Modules of PyTorch's names, so that a pickle can refer to them."""
    torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")
    for kind in (FloatStorage, LongStorage):
        kind.__module__ = "torch"
        setattr(torch, kind.__name__, kind)
    for function in (_rebuild_tensor_v2, _rebuild_parameter):
        function.__module__ = "torch._utils"
        setattr(utils, function.__name__, function)
    kept = {name: sys.modules.get(name) for name in ("torch", "torch._utils")}
    sys.modules.update({"torch": torch, "torch._utils": utils})
    try:
        yield
    finally:
        for name, module in kept.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


class Pickler(pickle.Pickler):
    """Writes tensors as PyTorch does: a function, and a storage by its name."""

    def __init__(self, file: Any, protocol: int) -> None:
        super().__init__(file, protocol)
        self.storages: dict[str, np.ndarray] = {}

    def persistent_id(self, value: Any) -> Any:
        if not isinstance(value, np.ndarray):
            return None
        key = str(len(self.storages))
        self.storages[key] = value
        kind = LongStorage if value.dtype == np.int64 else FloatStorage
        return ("storage", kind, key, "cpu", value.size)

    def reducer_override(self, value: Any) -> Any:
        if not isinstance(value, Tensor):
            return NotImplemented
        array = value.array
        strides = tuple(s // array.itemsize for s in array.strides)
        whole = np.ascontiguousarray(array if array.flags.c_contiguous else array.T).reshape(-1)
        arguments = {"storage": whole, "offset": 0, "shape": array.shape, "strides": strides} | value.changes
        return _rebuild_tensor_v2, (*arguments.values(), False, collections.OrderedDict())


def write(
    path: Path, tree: Any, protocol: int = 2, compression: int = zipfile.ZIP_STORED, **more: bytes
) -> Path:
    buffer = io.BytesIO()
    pickler = Pickler(buffer, protocol)
    pickler.dump(tree)
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("archive/data.pkl", buffer.getvalue())
        archive.writestr("archive/byteorder", "little")
        for key, array in pickler.storages.items():
            archive.writestr(f"archive/data/{key}", array.tobytes())
        for name, data in more.items():
            archive.writestr(f"archive/{name}", data)
    return path


def write_state_dict(path: Path, state: Mapping[str, Any]) -> Path:
    """What ``torch.save(module.state_dict(), path)`` writes."""
    with torch_names():
        return write(
            path, collections.OrderedDict((name, Tensor(np.asarray(a))) for name, a in state.items())
        )
