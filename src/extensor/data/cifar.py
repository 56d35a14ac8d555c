"""The binary version of CIFAR-10."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ._files import DamagedFileError, as_file, as_folder, read_all
from .dataset import Dataset
from .transforms import ToFloat

__all__ = ["cifar10", "read_cifar"]

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
_PIXELS = 3 * 32 * 32
_RECORD = 1 + _PIXELS  # the label, then the red, green and blue plane


def read_cifar(path: Any) -> tuple[np.ndarray, np.ndarray]:
    """The images (count, 3, 32, 32) and labels of one binary file of CIFAR-10, uint8.

    Args:
        path: the file, for instance ``data_batch_1.bin``.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is truncated, or a label is above 9.

    Example:
        >>> import tempfile, pathlib
        >>> from extensor.data import read_cifar
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder, "data_batch_1.bin")
        ...     _ = file.write_bytes(bytes([6]) + bytes(3072))
        ...     images, labels = read_cifar(file)
        >>> images.shape, labels.tolist()
        ((1, 3, 32, 32), [6])
    """
    return _read("read_cifar", as_file("read_cifar", path))


def _read(function: str, path: Path) -> tuple[np.ndarray, np.ndarray]:
    data = read_all(function, path)
    if not data or len(data) % _RECORD:
        raise DamagedFileError(
            f"[{function}] {path} has {len(data)} bytes; CIFAR-10 images take {_RECORD} each, so it is truncated or "
            "something else"
        )
    records = np.frombuffer(data, np.uint8).reshape(-1, _RECORD)
    labels = records[:, 0]
    if labels.max() >= len(CLASSES):
        wrong = int(np.argmax(labels >= len(CLASSES)))
        raise DamagedFileError(
            f"[{function}] {path} has the label {labels[wrong]} at image {wrong}; CIFAR-10 ends at 9"
        )
    return records[:, 1:].reshape(-1, 3, 32, 32), labels


def cifar10(folder: Any) -> tuple[Dataset, Dataset]:
    """The training and the test images of CIFAR-10, from its binary version.

    Args:
        folder: where ``data_batch_1.bin`` to ``data_batch_5.bin`` and ``test_batch.bin`` are, or the folder around it
            (``cifar-10-batches-bin``).

    Returns:
        Two datasets, ``(train, test)``: images (3, 32, 32) from 0 to 1, and labels, int64.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: a file is damaged.

    Example:
        >>> import extensor as et
        >>> et.data.cifar10("nowhere")
        Traceback (most recent call last):
        FileNotFoundError: [cifar10] there is no folder nowhere
    """
    place = as_folder("cifar10", folder)
    if (place / "cifar-10-batches-bin").is_dir():
        place /= "cifar-10-batches-bin"
    train = [_read("cifar10", as_file("cifar10", place / f"data_batch_{i}.bin")) for i in range(1, 6)]
    test = _read("cifar10", as_file("cifar10", place / "test_batch.bin"))
    images, labels = (np.concatenate(parts) for parts in zip(*train))
    return _dataset(images, labels), _dataset(*test)


def _dataset(images: np.ndarray, labels: np.ndarray) -> Dataset:
    return Dataset(images, labels.astype(np.int64), [ToFloat()], CLASSES)
