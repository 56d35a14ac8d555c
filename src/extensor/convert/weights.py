"""``load_weights``: the arrays in a safetensors or a PyTorch file."""

from __future__ import annotations

import math
import os
import re
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from ..data import DamagedFileError
from ..errors import describe
from ..train.weights import load_tensors
from .pickle_reader import PickleError, Storage, TensorRecord, depth_allowed, read_pickle

__all__ = ["load_weights"]

_MOST_PICKLE = 64 << 20
_MOST_ENTRIES = 100_000


def load_weights(path: Any) -> dict[str, np.ndarray]:
    """The tensors of a file by name, as NumPy arrays. Nothing in the file is executed.

    Reads ``.safetensors``, and what ``torch.save(model.state_dict(), path)`` writes (PyTorch 1.6 and newer). In a checkpoint
    with more than one dict, names are joined by dots (``model.conv1.weight``), and what is no tensor is left out.

    Args:
        path: the file.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is damaged, or a pickle that holds more than weights; the message says what.

    Example:
        >>> import tempfile, pathlib, extensor as et
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder, "model.safetensors")
        ...     et.train.save_weights(file, {"w": et.ones((2, 2))})
        ...     et.convert.load_weights(file)["w"].tolist()
        [[1.0, 1.0], [1.0, 1.0]]
    """
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"[load_weights] path must be a str or a pathlib.Path, got {describe(path)}")
    try:
        with open(path, "rb") as file:
            start = file.read(10)
    except FileNotFoundError:
        raise FileNotFoundError(f"[load_weights] there is no file {path}") from None
    if start.startswith(b"PK"):
        return _read_torch(Path(path))
    if start[:1] == b"\x80" and start[8:9] != b"{":  # where the header of safetensors begins
        raise DamagedFileError(
            f"[load_weights] {path} is a bare pickle, or was written by PyTorch before 1.6; load and save it again with a newer one"
        )
    tensors, _ = load_tensors("load_weights", path)
    return {name: tensor.numpy() for name, tensor in tensors.items()}


def _read_torch(path: Path) -> dict[str, np.ndarray]:
    def damaged(reason: object) -> DamagedFileError:
        return DamagedFileError(f"[load_weights] {path}: {reason}")

    try:
        with zipfile.ZipFile(path) as archive:
            found = _Archive(archive, os.path.getsize(path))
            return found.tensors(read_pickle(found.pickle()))
    except (
        PickleError,
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        struct.error,
        NotImplementedError,
        RuntimeError,
        OSError,
    ) as error:
        raise damaged(error) from None


class _Archive:
    """The zip file of ``torch.save``: one folder with data.pkl and the storages."""

    def __init__(self, archive: zipfile.ZipFile, size: int) -> None:
        self.archive, self.size = archive, size
        entries = archive.infolist()
        if len(entries) > _MOST_ENTRIES:
            raise PickleError(f"the archive has {len(entries)} entries")
        self.entries = {entry.filename: entry for entry in entries}
        pickles = [name for name in self.entries if re.fullmatch(r"[^/]+/data\.pkl", name)]
        if len(pickles) != 1:
            raise PickleError("it is no file of torch.save: it has no data.pkl (or is a TorchScript archive)")
        self.folder = pickles[0].removesuffix("data.pkl")
        if f"{self.folder}constants.pkl" in self.entries:
            raise PickleError("it is a TorchScript archive, not a state dict")
        self.order: Any = "<"
        if f"{self.folder}byteorder" in self.entries and self._bytes(f"{self.folder}byteorder", 16) == b"big":
            self.order = ">"
        self.storages: dict[str, np.ndarray] = {}

    def pickle(self) -> bytes:
        """The description of the objects."""
        return self._bytes(f"{self.folder}data.pkl", _MOST_PICKLE)

    def _bytes(self, name: str, most: int) -> bytes:
        """An entry, which is stored as it is: what is compressed may be a bomb, and PyTorch does not compress."""
        entry = self.entries.get(name)
        if entry is None:
            raise PickleError(f"it has no {name}")
        if entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size:
            raise PickleError(f"{name} is compressed, which torch.save does not do")
        if entry.file_size > min(most, self.size):
            raise PickleError(f"{name} claims {entry.file_size} bytes, of {self.size} in all")
        return self.archive.read(entry)

    def storage(self, storage: Storage) -> np.ndarray:
        """The numbers of a storage, read once."""
        if storage.key not in self.storages:
            if not re.fullmatch(r"\w+", storage.key):
                raise PickleError(f"a storage is called {storage.key!r}"[:100])
            dtype = storage.dtype.newbyteorder(self.order) if storage.dtype.itemsize > 1 else storage.dtype
            data = self._bytes(f"{self.folder}data/{storage.key}", self.size)
            if len(data) != storage.size * dtype.itemsize:
                raise PickleError(
                    f"the storage {storage.key} has {len(data)} bytes for {storage.size} numbers"
                )
            if dtype == np.bool_ and data and max(data) > 1:
                raise PickleError(f"the storage {storage.key} holds bytes that are neither true nor false")
            self.storages[storage.key] = np.frombuffer(data, dtype).astype(storage.dtype, copy=False)
        found = self.storages[storage.key]
        if found.dtype != storage.dtype or found.size != storage.size:
            raise PickleError(f"the storage {storage.key} is described in two ways")
        return found

    def array(self, record: TensorRecord) -> np.ndarray:
        """A tensor out of its storage; every element must lie inside."""
        numbers = self.storage(record.storage)
        count = math.prod(record.shape)
        if not count:
            return np.zeros(record.shape if max(record.shape, default=0) < 1 << 48 else (0,), numbers.dtype)
        last = record.offset + sum((n - 1) * s for n, s in zip(record.shape, record.strides))
        if last >= numbers.size or count > max(numbers.size, 1 << 20):
            raise PickleError(
                f"a tensor of shape {record.shape} does not fit into its storage of {numbers.size}"
            )
        steps = [s * numbers.itemsize for s in record.strides]
        view = np.lib.stride_tricks.as_strided(numbers[record.offset :], record.shape, steps, writeable=False)
        return np.ascontiguousarray(view).reshape(record.shape)

    def tensors(self, tree: Any) -> dict[str, np.ndarray]:
        """The tensors of nested dicts, their names joined by dots."""
        found: dict[str, np.ndarray] = {}
        self._collect(tree, "", 0, found)
        if not found:
            raise PickleError("it holds no tensors")
        return found

    def _collect(self, tree: Any, path: str, level: int, found: dict[str, np.ndarray]) -> None:
        depth_allowed(level)
        if isinstance(tree, TensorRecord):
            if path in found:
                raise PickleError(f"the name {path!r} stands twice in it")
            found[path or "tensor"] = self.array(tree)
        elif isinstance(tree, (dict, list)):
            items = tree.items() if isinstance(tree, dict) else enumerate(tree)
            for key, value in items:
                if isinstance(value, (dict, list, TensorRecord)):
                    self._collect(value, f"{path}.{key}" if path else str(key), level + 1, found)
