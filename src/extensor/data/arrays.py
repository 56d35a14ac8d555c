"""NumPy's own files, .npy and .npz, without the pickles they may hold."""

from __future__ import annotations

import math
import os
import zipfile
import zlib
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy_format

from ..dtypes import SUPPORTED
from ..errors import describe
from ._files import ALWAYS_ALLOWED, LARGEST_RATIO, DamagedFileError, as_file, read_exactly
from .dataset import Dataset

__all__ = ["read_arrays", "read_npy", "read_npz"]

_HEADERS = {(1, 0): npy_format.read_array_header_1_0, (2, 0): npy_format.read_array_header_2_0}


def read_npy(path: Any) -> np.ndarray:
    """The array in a ``.npy`` file. Arrays of Python objects, which would have to be unpickled, are refused.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is no ``.npy`` file, or truncated, or its header lies, or it holds a pickle.

    Example:
        >>> import tempfile, pathlib, numpy as np
        >>> from extensor.data import read_npy
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.save(pathlib.Path(folder, "x.npy"), np.arange(3))
        ...     read_npy(pathlib.Path(folder, "x.npy")).tolist()
        [0, 1, 2]
    """
    found = as_file("read_npy", path)
    with open(found, "rb") as file:
        return _read_array("read_npy", found, str(found), file, os.fstat(file.fileno()).st_size)


def _read_array(function: str, path: Path, name: str, file: BinaryIO, size: int) -> np.ndarray:
    """One array of ``size`` bytes, its header included."""
    try:
        version = npy_format.read_magic(file)
        if version not in _HEADERS:
            raise ValueError(f"the format {version[0]}.{version[1]} is unknown")
        shape, fortran, dtype = _HEADERS[version](file)
    except (zlib.error, zipfile.BadZipFile, EOFError):
        raise
    except Exception as error:  # NumPy reads the header as Python text; what is wrong with it can be anything
        raise DamagedFileError(f"[{function}] {name} is no array of NumPy: {error}") from None
    if dtype.hasobject:
        raise DamagedFileError(f"[{function}] {name} holds Python objects, a pickle; it is not opened")
    if dtype.newbyteorder("=") not in SUPPORTED:
        raise DamagedFileError(f"[{function}] {name} holds {dtype}, which is no number type of ExTensor")
    count = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or count != size - file.tell():
        raise DamagedFileError(
            f"[{function}] {name} is truncated or its header lies: it promises shape {shape} of {dtype}, {count} bytes, "
            f"and has {size - file.tell()}"
        )
    array = np.frombuffer(read_exactly(function, path, file, count, name), dtype)
    array = array.reshape(shape[::-1]).T if fortran else array.reshape(shape)
    return array.astype(dtype.newbyteorder("="), copy=False)


def read_npz(path: Any) -> dict[str, np.ndarray]:
    """The arrays in a ``.npz`` file, by name. Arrays of Python objects are refused.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is no ``.npz`` file, or damaged, or it holds a pickle.

    Example:
        >>> import tempfile, pathlib, numpy as np
        >>> from extensor.data import read_npz
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.savez(pathlib.Path(folder, "d.npz"), x=np.arange(3), y=np.ones(1))
        ...     {name: array.tolist() for name, array in read_npz(pathlib.Path(folder, "d.npz")).items()}
        {'x': [0, 1, 2], 'y': [1.0]}
    """
    return _read_npz("read_npz", as_file("read_npz", path))


def _read_npz(function: str, path: Path) -> dict[str, np.ndarray]:
    size = path.stat().st_size
    arrays: dict[str, np.ndarray] = {}
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            total = sum(member.file_size for member in members)
            if total > max(ALWAYS_ALLOWED, LARGEST_RATIO * size):
                raise DamagedFileError(f"[{function}] {path} has {size} bytes but promises {total}")
            for member in members:
                if not member.filename.endswith(".npy"):
                    raise DamagedFileError(
                        f"[{function}] {path} holds {member.filename!r}, which is no .npy file"
                    )
                name = member.filename.removesuffix(".npy")
                if name in arrays:
                    raise DamagedFileError(f"[{function}] {path} holds two arrays with the name {name!r}")
                with archive.open(member) as file:
                    arrays[name] = _read_array(function, path, f"{path}: {name}", file, member.file_size)  # type: ignore[arg-type]
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError) as error:
        raise DamagedFileError(f"[{function}] {path} is damaged: {error}") from None
    return arrays


def read_arrays(path: Any, inputs: str = "x", targets: str | None = "y") -> Dataset:
    """A dataset from a ``.npz`` file.

    Args:
        path: the file.
        inputs: the name of the array of inputs in it.
        targets: the name of the array of targets; None for a dataset without.

    Example:
        >>> import tempfile, pathlib, numpy as np
        >>> from extensor.data import read_arrays
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.savez(pathlib.Path(folder, "d.npz"), x=np.ones((4, 2), np.float32), y=np.arange(4))
        ...     read_arrays(pathlib.Path(folder, "d.npz"))
        Dataset(4 samples (2,) float32, targets (4,) int64)
    """
    file = as_file("read_arrays", path)
    arrays = _read_npz("read_arrays", file)
    for argument, name in (("inputs", inputs), ("targets", targets)):
        if name is not None and name not in arrays:
            there = ", ".join(arrays) or "nothing"
            raise ValueError(
                f"[read_arrays] {argument}: {file} has no array {describe(name)}; it has {there}"
            )
    return Dataset(arrays[inputs], None if targets is None else arrays[targets])
