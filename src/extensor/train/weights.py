"""Tensors in ``.safetensors`` files.

The format: the length of the header (8 bytes, little-endian), the header in JSON (for each tensor its dtype, its shape and
where its bytes are; ``__metadata__`` holds text), then the bytes of the tensors without gaps.

Files written here also carry the SHA-256 of themselves in the metadata (computed with 64 zeros in its place), so that a
file with a single wrong bit is noticed. Files of other programs, without it, are read too.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from ..data import DamagedFileError
from ..dtypes import SUPPORTED, bfloat16
from ..errors import describe
from ..tensor import ExTensor
from .whole_files import write_whole

__all__ = ["Header", "TensorInfo", "load_weights", "read_header", "save_weights"]

MAX_HEADER = 4 << 20  # room for some 30,000 tensors; parsing a hostile header takes 20 times its size
MAX_AXES = 64
_NO_DIGEST = "0" * 64
_DTYPES: dict[str, np.dtype[Any]] = {
    "BOOL": np.dtype(np.bool_), "U8": np.dtype("u1"), "I8": np.dtype("i1"), "U16": np.dtype("<u2"), "I16": np.dtype("<i2"),
    "U32": np.dtype("<u4"), "I32": np.dtype("<i4"), "U64": np.dtype("<u8"), "I64": np.dtype("<i8"),
    "F16": np.dtype("<f2"), "BF16": bfloat16, "F32": np.dtype("<f4"), "F64": np.dtype("<f8"),
    "C64": np.dtype("<c8"),
}  # fmt: skip
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}
CHUNK = 1 << 22


class TensorInfo(NamedTuple):
    """What a header says about a tensor."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int
    stop: int


class Header(NamedTuple):
    """What is in a file: the tensors by name, and the metadata."""

    tensors: dict[str, TensorInfo]
    metadata: dict[str, str]


# Writing


def save_weights(path: Any, tensors: Mapping[str, Any], metadata: Mapping[str, str] | None = None) -> None:
    """Write tensors to a ``.safetensors`` file, whole or not at all.

    Args:
        path: the file; what was there is replaced.
        tensors: names and tensors (or arrays), for instance ``model.state_dict()``.
        metadata: names and texts to keep with them.

    Raises:
        OSError: the file cannot be written; the message says why, and what was there before is still there.

    Example:
        >>> import tempfile, pathlib, extensor as et
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder, "model.safetensors")
        ...     et.train.save_weights(file, {"w": et.ones((2, 2))}, {"note": "all ones"})
        ...     tensors, metadata = et.train.load_weights(file)
        >>> tensors["w"].tolist(), metadata
        ([[1.0, 1.0], [1.0, 1.0]], {'note': 'all ones'})
    """
    texts = dict(metadata or {})
    if reserved := {"extensor", "sha256"} & set(texts):
        raise ValueError(f"[save_weights] the metadata name {min(reserved)!r} is taken")
    save_tensors("save_weights", Path(path), tensors, {"extensor": '{"kind":"weights"}', **texts})


def save_tensors(function: str, path: Path, tensors: Mapping[str, Any], metadata: Mapping[str, str]) -> None:
    """Write tensors and metadata with the digest of the file."""
    arrays = {_name(function, name): _array(function, name, value) for name, value in tensors.items()}
    for key, text in metadata.items():
        if not isinstance(key, str) or not isinstance(text, str):
            raise TypeError(f"[{function}] metadata must be text, got {describe(key)}: {describe(text)}")
    start = 0
    entries: dict[str, Any] = {"__metadata__": {**metadata, "sha256": _NO_DIGEST}}
    for name, array in arrays.items():
        entries[name] = {
            "dtype": _NAMES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [start, start + array.nbytes],
        }
        start += array.nbytes
    described = json.dumps(entries, separators=(",", ":")).encode()
    described += b" " * (-len(described) % 8)  # the numbers begin at a multiple of 8 bytes
    if len(described) > MAX_HEADER:
        raise ValueError(
            f"[{function}] names and metadata take {len(described)} bytes, more than the {MAX_HEADER} allowed"
        )
    head = len(described).to_bytes(8, "little") + described
    bodies = [array.reshape(-1).view(np.uint8).data for array in arrays.values()]
    digest = hashlib.sha256(head)
    for body in bodies:
        digest.update(body)
    # unique: inside names and texts JSON escapes the quotation marks
    place = head.index(f'"sha256":"{_NO_DIGEST}"'.encode()) + len('"sha256":"')
    head = head[:place] + digest.hexdigest().encode() + head[place + 64 :]
    write_whole(function, path, [head, *bodies])


def _name(function: str, name: Any) -> str:
    if not isinstance(name, str) or name == "__metadata__":
        raise TypeError(
            f"[{function}] a tensor's name must be text and not '__metadata__', got {describe(name)}"
        )
    return name


def _array(function: str, name: str, value: Any) -> np.ndarray:
    array = value.numpy() if isinstance(value, ExTensor) else value
    if not isinstance(array, np.ndarray) or array.dtype.newbyteorder("=") not in SUPPORTED:
        raise TypeError(f"[{function}] {name!r} must be a tensor of numbers, got {describe(value)}")
    if array.dtype.newbyteorder("<") not in _NAMES:
        raise TypeError(
            f"[{function}] {name!r} is {array.dtype}, which safetensors files cannot hold; cast it to complex64, or keep its "
            "real and its imaginary part"
        )
    return np.asarray(array, array.dtype.newbyteorder("<"), order="C")


# Reading


def read_header(path: Any) -> Header:
    """What a ``.safetensors`` file holds, without reading the tensors. The digest is not looked at.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is no such file, or truncated, or its header lies.

    Example:
        >>> import tempfile, pathlib, extensor as et
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder, "model.safetensors")
        ...     et.train.save_weights(file, {"w": et.ones((2, 3))})
        ...     et.train.read_header(file).tensors["w"].shape
        (2, 3)
    """
    with _opened("read_header", path) as file:
        header, _ = _read_head("read_header", file)
        return header


def load_weights(path: Any) -> tuple[dict[str, ExTensor], dict[str, str]]:
    """The tensors and the metadata of a ``.safetensors`` file. Everything is checked before anything is returned.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is no such file, or truncated, or changed since it was written.

    Example:
        See :func:`save_weights`.

        >>> import extensor as et
        >>> et.train.load_weights("nothing.safetensors")
        Traceback (most recent call last):
        FileNotFoundError: [load_weights] there is no file nothing.safetensors
    """
    arrays, metadata = load_tensors("load_weights", path)
    return arrays, {key: text for key, text in metadata.items() if key not in ("extensor", "sha256")}


def load_tensors(function: str, path: Any, ours: bool = False) -> tuple[dict[str, ExTensor], dict[str, str]]:
    """All tensors and metadata; with ``ours`` only files that carry their digest are taken."""
    with _opened(function, path) as file:
        header, head = _read_head(function, file)
        claimed = header.metadata.get("sha256")
        signed = claimed is not None and "extensor" in header.metadata
        if not signed and (ours or claimed is not None or "extensor" in header.metadata):
            raise DamagedFileError(
                f"[{function}] {path} was not written by ExTensor, or it was changed since"
            )
        digest = hashlib.sha256()
        if signed:
            digest.update(_without_digest(function, path, head, str(claimed)))
        tensors = {}
        for name, info in header.tensors.items():
            array = np.empty(info.shape, info.dtype)
            _fill(function, path, file, array.reshape(-1).view(np.uint8), digest)
            if info.dtype == np.bool_ and array.size and array.view(np.uint8).max() > 1:
                raise DamagedFileError(
                    f"[{function}] {path}: {name!r} holds bytes that are neither true nor false"
                )
            tensors[name] = ExTensor(array.astype(info.dtype.newbyteorder("="), copy=False))
        if signed and digest.hexdigest() != claimed:
            raise DamagedFileError(
                f"[{function}] {path} was changed or damaged since it was written (wrong SHA-256)"
            )
    return tensors, header.metadata


def _opened(function: str, path: Any) -> BinaryIO:
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"[{function}] path must be a str or a pathlib.Path, got {describe(path)}")
    try:
        return open(path, "rb")
    except FileNotFoundError:
        raise FileNotFoundError(f"[{function}] there is no file {path}") from None
    except IsADirectoryError:
        raise IsADirectoryError(f"[{function}] {path} is a folder, not a file") from None


def _fill(function: str, path: Any, file: BinaryIO, target: np.ndarray, digest: Any) -> None:
    view = target.data
    for start in range(0, len(view), CHUNK):
        part = view[start : start + CHUNK]
        if file.readinto(part) != len(part):  # type: ignore[attr-defined]
            raise DamagedFileError(f"[{function}] {path} became shorter while it was read")
        digest.update(part)


def _without_digest(function: str, path: Any, head: bytes, claimed: str) -> bytes:
    """The head as it was when the digest was computed."""
    quoted = f'"sha256":"{claimed}"'.encode()
    if len(claimed) != 64 or head.count(quoted) != 1:
        raise DamagedFileError(
            f"[{function}] {path} was changed since it was written (no place for its SHA-256)"
        )
    return head.replace(quoted, f'"sha256":"{_NO_DIGEST}"'.encode())


def _read_head(function: str, file: BinaryIO) -> tuple[Header, bytes]:
    """The header, held against the size of the file, and its bytes."""

    def damaged(reason: str) -> DamagedFileError:
        return DamagedFileError(f"[{function}] {file.name} is no whole .safetensors file: {reason}")

    size = os.fstat(file.fileno()).st_size
    prefix = file.read(8)
    if len(prefix) < 8:
        raise damaged(f"it has {size} bytes")
    length = int.from_bytes(prefix, "little")
    if length > min(size - 8, MAX_HEADER):
        if prefix.startswith(b"PK\x03\x04"):
            raise damaged(
                "it is a zip, as torch.save writes it; extensor.convert.load_weights(path) reads that without executing it"
            )
        raise damaged(f"its header would have {length} bytes, of {size} in all and {MAX_HEADER} allowed")
    text = file.read(length)
    try:
        entries = json.loads(text.decode(), object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise damaged(f"its header is no JSON ({error})") from None
    if not isinstance(entries, dict):
        raise damaged("its header is no JSON object")
    metadata = entries.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise damaged("its metadata is not text")
    tensors = {name: _info(name, entry, damaged) for name, entry in entries.items()}
    ordered = dict(sorted(tensors.items(), key=lambda item: (item[1].start, item[1].stop)))
    end = 0
    for name, info in ordered.items():
        if info.start != end:
            raise damaged(f"the bytes of {name!r} begin at {info.start} instead of {end}")
        end = info.stop
    if 8 + length + end != size:
        raise damaged(f"it should have {8 + length + end} bytes and has {size}")
    return Header(ordered, metadata), prefix + text


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice in it")
    return found


def _info(name: str, entry: Any, damaged: Any) -> TensorInfo:
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise damaged(f"{name!r} is not described by dtype, shape and data_offsets")
    dtype = _DTYPES.get(entry["dtype"]) if isinstance(entry["dtype"], str) else None
    if dtype is None:
        raise damaged(f"{name!r} has the dtype {entry['dtype']!r}, which ExTensor does not know")
    shape, offsets = entry["shape"], entry["data_offsets"]
    if not _whole_numbers(shape) or len(shape) > MAX_AXES:
        raise damaged(f"{name!r} has the shape {describe(shape)}")
    if not _whole_numbers(offsets) or len(offsets) != 2:
        raise damaged(f"{name!r} has the data_offsets {describe(offsets)}")
    if offsets[1] - offsets[0] != math.prod(shape) * dtype.itemsize or max(shape, default=0) >= 1 << 48:
        raise damaged(
            f"{name!r} of shape {tuple(shape)} does not fit into the bytes {offsets[0]} to {offsets[1]}"
        )
    return TensorInfo(dtype, tuple(shape), *offsets)


def _whole_numbers(values: Any) -> bool:
    return isinstance(values, list) and all(type(v) is int and v >= 0 for v in values)
