"""Samples put together into a batch: arrays stacked, tuples and dicts piece by piece."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..dtypes import SUPPORTED
from ..errors import describe
from ..tensor import ExTensor, asarray
from .dataset import in_dtype

__all__ = ["as_batch", "collate"]

_NUMBERS = (bool, int, float, complex, np.generic)


def collate(samples: Sequence[Any], dtype: Any = None) -> Any:
    """A batch of samples that look alike.

    Numbers, arrays and tensors (of other libraries too) become one tensor with a new first axis; tuples, named tuples and dicts
    become what they are, of batches; text stays a list and None stays None. As everywhere in :mod:`extensor.data`, float64
    becomes float32 unless ``dtype`` says otherwise.

    Args:
        samples: at least one sample.
        dtype: the dtype of floating numbers.

    Example:
        >>> from extensor.data import collate
        >>> batch = collate([{"x": [1.0, 2.0], "name": "a"}, {"x": [3.0, 4.0], "name": "b"}])
        >>> batch["name"], [column.tolist() for column in batch["x"]]
        (['a', 'b'], [[1.0, 3.0], [2.0, 4.0]])
    """
    if not samples:
        raise ValueError("[collate] there are no samples")
    first = samples[0]
    if first is None or isinstance(first, (str, bytes)):
        return None if first is None else list(samples)
    if isinstance(first, Mapping):
        _check_alike(samples, lambda s: isinstance(s, Mapping) and s.keys() == first.keys(), "keys")
        return {key: collate([s[key] for s in samples], dtype) for key in first}
    if isinstance(first, (tuple, list)):
        _check_alike(samples, lambda s: isinstance(s, (tuple, list)) and len(s) == len(first), "lengths")
        parts = [collate(part, dtype) for part in zip(*samples)]
        return type(first)(*parts) if hasattr(first, "_fields") else type(first)(parts)
    arrays = [_as_array(sample) for sample in samples]
    _check_alike(arrays, lambda a: a.shape == arrays[0].shape, "shapes", [a.shape for a in arrays])
    return ExTensor(in_dtype(np.stack(arrays), dtype))


def as_batch(value: Any, dtype: Any = None) -> Any:
    """What a dataset of whole batches gives, with its arrays as tensors."""
    if isinstance(value, Mapping):
        return {key: as_batch(part, dtype) for key, part in value.items()}
    if isinstance(value, (tuple, list)):
        parts = [as_batch(part, dtype) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if isinstance(value, np.ndarray) or (hasattr(value, "__dlpack__") and not isinstance(value, ExTensor)):
        return ExTensor(in_dtype(_as_array(value), dtype))
    return value


def _as_array(sample: Any) -> np.ndarray:
    if isinstance(sample, ExTensor):
        return sample.numpy()
    if isinstance(sample, _NUMBERS):
        sample = np.asarray(sample)
    elif not isinstance(sample, np.ndarray):
        if hasattr(sample, "__dlpack__"):
            return asarray(sample).numpy()
        if not hasattr(sample, "__array__"):
            raise TypeError(
                f"[collate] a sample must be made of numbers, arrays, text, tuples and dicts, got {describe(sample)}; "
                "pass collate_fn= for others"
            )
        sample = np.asarray(sample)
    if sample.dtype.newbyteorder("=") not in SUPPORTED:
        raise TypeError(
            f"[collate] a sample has dtype {sample.dtype}, which is no number type; pass collate_fn="
        )
    return sample


def _check_alike(samples: Sequence[Any], fits: Any, what: str, shown: Any = None) -> None:
    for i, sample in enumerate(samples):
        if not fits(sample):
            seen = describe(samples[0]) if shown is None else shown[0]
            other = describe(sample) if shown is None else shown[i]
            raise ValueError(
                f"[collate] samples have different {what}: {seen} and {other}; pad them or pass collate_fn="
            )
