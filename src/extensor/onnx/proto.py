"""The standard's ``onnx`` package, and what its messages mean here: dtypes, tensors, attributes.

A file is hostile input. A size that a tensor claims is held against the bytes that are there before anything is
allocated, and external data is only read from inside the folder of the file.
"""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

try:
    import onnx
    from onnx import numpy_helper
except ModuleNotFoundError as error:  # pragma: no cover
    raise ModuleNotFoundError(
        "[extensor.onnx] needs the onnx package: pip install onnx (the extra 'onnx' of ExTensor)"
    ) from error

from ..data import DamagedFileError
from ..dtypes import SUPPORTED
from ..tensor import ExTensor

__all__ = [
    "BUFFER",
    "MAX_BYTES",
    "MAX_NODES",
    "array_of",
    "as_value",
    "check_bytes",
    "check_texts",
    "dtype_of",
    "element_type",
    "ints_of",
    "onnx",
    "read_attribute",
    "read_sparse",
    "read_tensor",
]

MAX_BYTES = 1 << 31  # of one tensor whose size is a number inside the file instead of data
MAX_NODES = 1 << 16  # all functions called in full
MAX_AXES = 64
BUFFER = "buffer"  # what our own export notes at a tensor that is no parameter

_BITS = {
    "FLOAT": 32, "UINT8": 8, "INT8": 8, "UINT16": 16, "INT16": 16, "INT32": 32, "INT64": 64, "BOOL": 8, "FLOAT16": 16,
    "DOUBLE": 64, "UINT32": 32, "UINT64": 64, "COMPLEX64": 64, "COMPLEX128": 128, "BFLOAT16": 16, "FLOAT8E4M3FN": 8,
    "FLOAT8E4M3FNUZ": 8, "FLOAT8E5M2": 8, "FLOAT8E5M2FNUZ": 8, "UINT4": 4, "INT4": 4, "FLOAT4E2M1": 4, "FLOAT8E8M0": 8,
    "UINT2": 2, "INT2": 2,
}  # fmt: skip


def check_texts(message: Any) -> None:
    """Refuse a message whose names are no UTF-8: protobuf hands those over as bytes."""
    for field, value in message.ListFields():
        many = [value] if isinstance(value, (str, bytes)) or hasattr(value, "ListFields") else value
        if field.type == field.TYPE_STRING:
            for text in many:
                if not isinstance(text, str):
                    raise DamagedFileError(f"[load] a {field.name} of the model is no text: {text[:40]!r}")
        elif field.type == field.TYPE_MESSAGE:
            for inner in many:
                check_texts(inner)


def element_type(number: int) -> str:
    """``1`` as ``FLOAT``; a number the standard does not know is an error."""
    try:
        return str(onnx.TensorProto.DataType.Name(number))
    except ValueError:
        raise DamagedFileError(f"[load] {number} is no element type of ONNX") from None


def dtype_of(number: int) -> np.dtype[Any]:
    """The NumPy dtype of an element type; strings are objects, small floats and integers those of ml_dtypes."""
    name = element_type(number)
    if name == "STRING":
        return np.dtype(object)
    if name not in _BITS:
        raise DamagedFileError(f"[load] tensors of type {name} cannot be read")
    return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(number))


def as_value(array: Any) -> Any:
    """An array as what operators compute with: a tensor, or the array itself where its dtype is none of ours."""
    if isinstance(array, ExTensor):
        return array
    found = np.asarray(array)
    if found.dtype in SUPPORTED:
        return ExTensor(np.ascontiguousarray(found).reshape(found.shape))
    return found if found.dtype.kind != "U" else found.astype(object)


def array_of(value: Any) -> np.ndarray:
    """The elements of a value as an array."""
    return value.numpy() if isinstance(value, ExTensor) else np.asarray(value)


def ints_of(value: Any) -> list[int]:
    """A tensor of whole numbers (a shape, axes) as a list."""
    return [int(n) for n in array_of(value).reshape(-1)]


def check_bytes(operator: str, shape: Iterable[int], itemsize: int = 4) -> None:
    """Refuse a tensor whose size is only claimed, if it is beyond all reason."""
    lengths = list(shape)
    if len(lengths) > MAX_AXES or min(lengths, default=0) < 0:
        raise ValueError(f"[{operator}] cannot make a tensor of shape {tuple(lengths)[:MAX_AXES]}")
    if math.prod(lengths) * itemsize > MAX_BYTES:
        raise ValueError(
            f"[{operator}] would make a tensor of shape {tuple(lengths)}, more than {MAX_BYTES:,} bytes"
        )


# Tensors


def read_tensor(tensor: Any, folder: Path | None) -> np.ndarray:
    """The elements of a TensorProto, which may lie in a file of ``folder``."""
    name, shape = tensor.name, tuple(tensor.dims)
    kind = element_type(tensor.data_type)

    def damaged(reason: str) -> DamagedFileError:
        return DamagedFileError(f"[load] tensor {name!r} of shape {shape} {reason}")

    if len(shape) > MAX_AXES or min(shape, default=0) < 0:
        raise damaged("has no possible shape")
    count = math.prod(shape)
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        size = -(-count * _bits(kind, damaged) // 8)
        raw = _external_bytes(tensor, size, folder, damaged)
        inside = onnx.TensorProto(data_type=tensor.data_type, dims=tensor.dims, name=name, raw_data=raw)
        return _decoded(inside, damaged)
    if tensor.HasField("raw_data"):
        size = -(-count * _bits(kind, damaged) // 8)
        if len(tensor.raw_data) != size:
            raise damaged(f"has {len(tensor.raw_data)} bytes of data instead of {size}")
    else:
        _check_field(tensor, kind, count, damaged)
    return _decoded(tensor, damaged)


def _bits(kind: str, damaged: Callable[[str], Exception]) -> int:
    if kind not in _BITS:
        raise damaged(f"has the type {kind}, which has no bytes")
    return _BITS[kind]


def _check_field(tensor: Any, kind: str, count: int, damaged: Callable[[str], Exception]) -> None:
    """Numbers in a field of their own: as many as the shape says."""
    if kind == "STRING":
        have, want = len(tensor.string_data), count
    else:
        bits = _bits(kind, damaged)
        field = {"FLOAT": "float_data", "COMPLEX64": "float_data", "DOUBLE": "double_data", "COMPLEX128": "double_data",
                 "INT64": "int64_data", "UINT32": "uint64_data", "UINT64": "uint64_data"}.get(kind, "int32_data")  # fmt: skip
        have = len(getattr(tensor, field))
        want = 2 * count if kind.startswith("COMPLEX") else -(-count * bits // 8) if bits < 8 else count
    if have != want:
        raise damaged(f"has {have} numbers instead of {want}")


def _decoded(tensor: Any, damaged: Callable[[str], Exception]) -> np.ndarray:
    try:
        found = numpy_helper.to_array(tensor)
    except Exception as error:  # whatever the package stumbles over
        raise damaged(f"cannot be read: {error}") from None
    if found.dtype == object:
        return np.array(
            [v.decode() if isinstance(v, bytes) else v for v in found.reshape(-1)], object
        ).reshape(found.shape)
    return found


def _external_bytes(
    tensor: Any, size: int, folder: Path | None, damaged: Callable[[str], Exception]
) -> bytes:
    """``size`` bytes of a file beside the model: no other folder, no link out of it, no device."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    if folder is None:
        raise damaged("lies in another file, and a model from bytes has no folder; load it by its path")
    parts = Path(location).parts
    if not location or "\0" in location or Path(location).is_absolute() or ".." in parts or "\\" in location:
        raise damaged(f"claims to lie in {location!r}, which is not inside the folder of the model")
    try:
        offset, length = int(entries.get("offset", "0")), int(entries.get("length", str(size)))
    except ValueError:
        raise damaged("has an offset or length that is no number") from None
    if length != size or offset < 0:
        raise damaged(f"needs {size} bytes, its external data has {length} at {offset}")
    try:
        path = (folder / location).resolve(strict=True)
        if not path.is_relative_to(folder.resolve()):
            raise damaged(f"claims to lie in {location!r}, a link that leads out of the folder of the model")
        with open(path, "rb", opener=lambda p, flags: os.open(p, flags | os.O_NONBLOCK)) as file:
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode) or offset + size > about.st_size:
                raise damaged(f"lies beyond the end of {location!r}")
            file.seek(offset)
            return file.read(size)
    except (OSError, RuntimeError) as error:
        raise damaged(f"cannot be read from {location!r}: {error}") from None


def read_sparse(tensor: Any, folder: Path | None) -> np.ndarray:
    """A SparseTensorProto in full."""
    values = read_tensor(tensor.values, folder)
    indices = read_tensor(tensor.indices, folder)
    shape = tuple(tensor.dims)
    check_bytes("load", shape, values.dtype.itemsize)
    found = np.zeros(shape, values.dtype)
    try:
        if indices.ndim == 2:
            indices = np.ravel_multi_index(tuple(indices.T), shape)
        if indices.size != values.size or (
            indices.size and not 0 <= indices.min() <= indices.max() < found.size
        ):
            raise ValueError("indices outside")
        found.reshape(-1)[indices] = values
    except (ValueError, IndexError) as error:
        raise DamagedFileError(f"[load] a sparse tensor of shape {shape} is damaged: {error}") from None
    return found


# Attributes


def read_attribute(attribute: Any, folder: Path | None) -> Any:
    """The value of an attribute; graphs stay messages."""
    kinds = onnx.AttributeProto
    kind = attribute.type
    if kind == kinds.FLOAT:
        return _decimal(attribute.f)
    if kind == kinds.INT:
        return int(attribute.i)
    if kind == kinds.STRING:
        return attribute.s.decode("utf-8", "replace")
    if kind == kinds.TENSOR:
        return as_value(read_tensor(attribute.t, folder))
    if kind == kinds.SPARSE_TENSOR:
        return as_value(read_sparse(attribute.sparse_tensor, folder))
    if kind == kinds.GRAPH:
        return attribute.g
    if kind == kinds.FLOATS:
        return list(map(_decimal, attribute.floats))
    if kind == kinds.INTS:
        return list(attribute.ints)
    if kind == kinds.STRINGS:
        return [s.decode("utf-8", "replace") for s in attribute.strings]
    if kind == kinds.TYPE_PROTO:
        return attribute.tp
    raise DamagedFileError(f"[load] attribute {attribute.name!r} has a type that is not known ({kind})")


def _decimal(number: float) -> float:
    """The number that somebody wrote: 1e-05 is stored as float32, whose exact value is 9.99999975e-06."""
    return float(str(np.float32(number)))
