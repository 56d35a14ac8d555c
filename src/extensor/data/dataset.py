"""Samples and their targets in memory."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ..checks import as_number
from ..dtypes import FLOATING, SUPPORTED, as_dtype, float32, float64
from ..errors import describe
from ..random import Rng, as_generator
from ..tensor import ExTensor
from .lazy import LazyArray
from .sample_random import SampleRandom
from .transforms import Transform

__all__ = ["Dataset"]


class Dataset:
    """Inputs and targets, one row each per sample, and the transforms the inputs go through.

    NumPy makes float64 where nothing is said, and a float32 network is slow on it; so float64 is handed out as float32, batch
    by batch, unless ``dtype`` says otherwise. Memory-mapped arrays stay on the disk but for the batches that are asked for.

    Args:
        inputs: an array or tensor; axis 0 counts the samples. It is not copied.
        targets: an array or tensor of the same length, or None.
        transforms: each is called as ``transform(batch, random)``, see :mod:`extensor.data.transforms`.
        classes: the names of the classes, where targets are their numbers.
        dtype: what floating inputs and targets are handed out in: ``extensor.float64`` keeps that.

    Example:
        >>> import numpy as np
        >>> from extensor.data import Dataset, ToFloat
        >>> pixels = Dataset(np.array([[0, 255], [51, 0]], np.uint8), np.array([1, 0]), transforms=[ToFloat()])
        >>> x, y = pixels[0]
        >>> len(pixels), x.tolist(), y.item()
        (2, [0.0, 1.0], 1)
    """

    def __init__(
        self,
        inputs: Any,
        targets: Any = None,
        transforms: Iterable[Transform] = (),
        classes: Sequence[str] | None = None,
        dtype: Any = None,
    ) -> None:
        self.inputs = _numbers("inputs", inputs)
        self.targets = None if targets is None else _numbers("targets", targets)
        self.transforms = tuple(transforms)
        self.classes = None if classes is None else tuple(str(name) for name in classes)
        self.places: np.ndarray | None = None  # where the samples stand in their file, if they came from one
        self.dtype = None if dtype is None else as_dtype("Dataset", dtype)
        if self.dtype is not None and self.dtype not in FLOATING:
            raise TypeError(f"[Dataset] dtype must be floating, got {self.dtype}; integers keep theirs")
        _check_transforms(self.transforms)
        if self.targets is not None and len(self.targets) != len(self.inputs):
            raise ValueError(
                f"[Dataset] inputs has {len(self.inputs)} samples but targets has {len(self.targets)}"
            )

    def __len__(self) -> int:
        return len(self.inputs)

    def batch(
        self, indices: np.ndarray, random: SampleRandom | None = None
    ) -> tuple[ExTensor, ExTensor | None]:
        """The samples at ``indices``, transformed, and their targets.

        Args:
            indices: an array of whole numbers.
            random: what transforms draw from; without it, the numbers of seed 0 and epoch 0.
        """
        samples, targets = self.gather(indices)
        random = SampleRandom(0, 0, indices) if random is None else random
        for transform in self.transforms:
            samples = transform(samples, random)
        return ExTensor(np.ascontiguousarray(samples)), None if targets is None else ExTensor(targets)

    def gather(self, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """The samples and targets at ``indices``, not transformed, in the dtypes they are handed out in."""
        samples = in_dtype(self.inputs[indices], self.dtype)
        return samples, None if self.targets is None else in_dtype(self.targets[indices], self.dtype)

    def __getitem__(self, i: int) -> tuple[ExTensor, ExTensor | None]:
        """One sample, transformed, and its target."""
        place = range(len(self))[i]
        x, y = self.batch(np.array([place]))
        return x[0], None if y is None else y[0]

    def __iter__(self) -> Iterator[tuple[ExTensor, ExTensor | None]]:
        return (self[i] for i in range(len(self)))

    def with_transforms(self, *transforms: Transform) -> Dataset:
        """The same samples with ``transforms`` after those they have."""
        _check_transforms(transforms)
        other = copy.copy(self)
        other.transforms = (*self.transforms, *transforms)
        return other

    def split(self, fraction: float, rng: Rng) -> tuple[Dataset, Dataset]:
        """Two datasets: a random ``fraction`` of the samples, and the others.

        Args:
            fraction: the part that goes to the first, between 0 and 1; both get at least one sample.
            rng: an int seed or a generator.

        Example:
            >>> import extensor as et
            >>> train, test = et.data.digits().split(0.8, rng=0)
            >>> len(train), len(test)
            (1438, 359)
        """
        part = as_number("split", "fraction", fraction)
        first = round(part * len(self)) if 0 < part < 1 else 0
        if not 0 < first < len(self):
            raise ValueError(
                f"[split] fraction must leave samples on both sides, got {fraction} of {len(self)} samples"
            )
        order = as_generator("split", rng).permutation(len(self))
        left, right = (self.subset(np.sort(part)) for part in (order[:first], order[first:]))
        return left, right

    def subset(self, indices: np.ndarray) -> Dataset:
        """Some of the samples, in the order of ``indices``; those that are on the disk stay there."""
        if isinstance(self.inputs, LazyArray):
            parts: tuple[Any, Any] = (
                self.inputs.subset(indices),
                None if self.targets is None else self.targets[indices],
            )
        else:
            parts = self.gather(indices)
        found = Dataset(*parts, self.transforms, self.classes, self.dtype)
        found.places = None if self.places is None else self.places[indices]
        return found

    def __repr__(self) -> str:
        targets = "no targets"
        if self.targets is not None:
            targets = f"targets {self.targets.shape} {handed_out(self.targets.dtype, self.dtype)}"
        dtype = handed_out(self.inputs.dtype, self.dtype)
        return f"Dataset({len(self)} samples {self.inputs.shape[1:]} {dtype}, {targets})"


def handed_out(dtype: np.dtype[Any], wanted: np.dtype[Any] | None) -> np.dtype[Any]:
    """The dtype in which a dataset hands out numbers: float64 as float32, unless one is wanted."""
    native = dtype.newbyteorder("=")
    if wanted is not None:
        return wanted if native in FLOATING else native
    return float32 if native == float64 else native


def in_dtype(array: np.ndarray, wanted: np.dtype[Any] | None) -> np.ndarray:
    """Numbers in the dtype in which they are handed out; what float32 cannot hold is infinite, as in any cast."""
    with np.errstate(over="ignore"):
        return array.astype(handed_out(array.dtype, wanted), copy=False)


def _check_transforms(transforms: Iterable[Any]) -> None:
    for transform in transforms:
        if not callable(transform):
            raise TypeError(f"[Dataset] a transform must be callable, got {describe(transform)}")


def _numbers(name: str, value: Any) -> np.ndarray:
    if isinstance(value, LazyArray):
        return value  # type: ignore[return-value]  # it behaves as an array does where a dataset looks
    if isinstance(value, ExTensor):
        value = value.numpy()
    if not isinstance(value, np.ndarray):
        try:
            value = np.asarray(value)
        except ValueError:
            raise ValueError(f"[Dataset] {name} is ragged: rows of different lengths") from None
    if value.dtype.newbyteorder("=") not in SUPPORTED:
        raise TypeError(f"[Dataset] {name} must be numbers, got dtype {value.dtype}")
    if not value.ndim or not len(value):
        raise ValueError(
            f"[Dataset] {name} must have at least one sample along axis 0, got shape {value.shape}"
        )
    return value
