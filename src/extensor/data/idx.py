"""The IDX format of MNIST and Fashion-MNIST."""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import Any

import numpy as np

from ._files import DamagedFileError, as_file, as_folder, opened, read_exactly
from .dataset import Dataset
from .transforms import ToFloat

__all__ = ["mnist", "read_idx"]

_DTYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def read_idx(path: Any) -> np.ndarray:
    """The array in an IDX file, gzipped or not.

    The file begins with two zeros, a byte for the dtype, a byte for the number of axes and the length of each axis as a
    big-endian 32-bit number; then come the elements, the last axis fastest. The header is held against the bytes that
    are there before memory is reserved.

    Args:
        path: the file.

    Returns:
        The array, in the machine's byte order.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is no IDX file, or truncated, or its header lies.

    Example:
        >>> import tempfile, pathlib
        >>> from extensor.data import read_idx
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder, "labels-idx1-ubyte")
        ...     _ = file.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 2, 1]))
        ...     read_idx(file).tolist()
        [7, 2, 1]
    """
    return _read("read_idx", path, None)


def _read(function: str, path: Any, axes: int | None) -> np.ndarray:
    file_path = as_file(function, path)
    with opened(function, file_path) as (file, limit):
        magic = file.read(4)
        if len(magic) < 4 or magic[:2] != b"\0\0" or magic[2] not in _DTYPES:
            raise DamagedFileError(
                f"[{function}] {file_path} is no IDX file: it begins with {bytes(magic).hex(' ') or 'nothing'}"
            )
        dtype, ndim = np.dtype(_DTYPES[magic[2]]), magic[3]
        if ndim > 8 or (axes is not None and (ndim, magic[2]) != (axes, 0x08)):
            wanted = "at most 8 axes" if axes is None else f"bytes with {axes} axes"
            raise DamagedFileError(
                f"[{function}] {file_path} holds {dtype} with {ndim} axes; expected {wanted}"
            )
        shape = struct.unpack(f">{ndim}I", read_exactly(function, file_path, file, 4 * ndim, "the header"))
        count = math.prod(shape) * dtype.itemsize
        if 4 + 4 * ndim + count > limit:
            raise DamagedFileError(
                f"[{function}] {file_path} is truncated or its header lies: it promises shape {shape}, "
                f"{count} bytes, and can hold {limit} at most"
            )
        body = read_exactly(function, file_path, file, count, f"shape {shape}")
        if file.read(1):
            raise DamagedFileError(
                f"[{function}] {file_path} goes on after the {count} bytes of shape {shape}"
            )
    return np.frombuffer(body, dtype).reshape(shape).astype(dtype.newbyteorder("="), copy=False)


def mnist(folder: Any, classes: Any = None) -> tuple[Dataset, Dataset]:
    """The training and the test images of MNIST, or of Fashion-MNIST, which has the same files.

    Args:
        folder: where ``train-images-idx3-ubyte``, ``train-labels-idx1-ubyte``, ``t10k-images-idx3-ubyte`` and
            ``t10k-labels-idx1-ubyte`` are, each with or without ``.gz``.
        classes: the names of the classes; by default the numbers.

    Returns:
        Two datasets, ``(train, test)``: images (1, height, width) from 0 to 1, and labels, int64. The pixels stay bytes
        in memory and become floats batch by batch.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: a file is damaged, or images and labels do not belong together.

    Example:
        >>> import extensor as et
        >>> et.data.mnist("nowhere")
        Traceback (most recent call last):
        FileNotFoundError: [mnist] there is no folder nowhere
    """
    place = as_folder("mnist", folder)
    return _images_and_labels(place, "train", classes), _images_and_labels(place, "t10k", classes)


def _images_and_labels(folder: Path, part: str, classes: Any) -> Dataset:
    images = _read("mnist", _find(folder, f"{part}-images-idx3-ubyte"), 3)
    labels = _read("mnist", _find(folder, f"{part}-labels-idx1-ubyte"), 1)
    if len(images) != len(labels) or not images.size:
        raise DamagedFileError(f"[mnist] {folder} has {len(images)} {part} images but {len(labels)} labels")
    names = [str(n) for n in range(int(labels.max()) + 1)] if classes is None else list(classes)
    if labels.max() >= len(names):
        raise DamagedFileError(
            f"[mnist] {folder} has the {part} label {labels.max()} but only {len(names)} classes"
        )
    return Dataset(images[:, None], labels.astype(np.int64), [ToFloat()], names)


def _find(folder: Path, name: str) -> Path:
    """The file, whichever of the usual ways it is written."""
    for stem in (name, name.replace("-idx", ".idx")):
        for ending in ("", ".gz"):
            path = folder / (stem + ending)
            if path.exists():
                return path
    raise FileNotFoundError(f"[mnist] there is no file {name} or {name}.gz in {folder}")
