"""Samples in ``.npz`` files: images in any order of axes, labels of any kind, and a sentence about what was changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .. import data
from ..data import read_npz
from .recipe import Task

__all__ = ["array_samples", "read_array_samples"]

MOST_CLASSES = 100
_CHANNELS = (1, 3, 4)  # grey, colours, colours with opacity


def read_array_samples(
    path: Path, task: Task = "auto", classes: list[str] | None = None, needs_targets: bool = True
) -> tuple[data.Dataset, list[str]]:
    """The samples of a file with the arrays ``x`` and ``y``, ready for a network, and how they were read.

    Args:
        path: the file.
        task: what the targets are; ``"auto"`` decides.
        classes: the classes of a run, to number labels as it did.
        needs_targets: whether a file without ``y`` is refused.
    """
    arrays = read_npz(path)
    for name in ("x", "y") if needs_targets else ("x",):
        if name not in arrays:
            there = ", ".join(arrays) or "nothing"
            raise ValueError(f"[read_arrays] {path} has no array {name!r}; it has {there}")
    return array_samples(arrays["x"], arrays.get("y"), task, classes, path)


def array_samples(
    x: np.ndarray,
    y: np.ndarray | None,
    task: Task = "auto",
    classes: list[str] | None = None,
    path: Any = "array",
) -> tuple[data.Dataset, list[str]]:
    """The same from arrays."""
    notes: list[str] = []
    inputs = _channels_first(x, notes)
    targets, names = (None, classes) if y is None else _targets(y, task, classes, notes)
    if targets is not None and len(targets) != len(inputs):
        raise ValueError(f"[read_arrays] {path}: x has {len(inputs)} samples but y has {len(targets)}")
    transforms = []
    if inputs.dtype.kind in "biu":
        transforms.append(data.ToFloat(255 if inputs.dtype == np.uint8 else 1))  # bytes are pixels
    elif inputs.dtype != np.float32:
        inputs = inputs.astype(np.float32)
    kind = "no targets" if targets is None else "quantities" if names is None else f"{len(names)} classes"
    shape = " x ".join(map(str, inputs.shape[1:]))
    first = f"{path}: {len(inputs):,} samples of {shape} {x.dtype}, {kind}"
    return data.Dataset(inputs, targets, transforms, names), [first, *notes]


def _channels_first(inputs: np.ndarray, notes: list[str]) -> np.ndarray:
    """Images as (samples, channels, height, width); what is no image stays as it is."""
    if inputs.ndim != 4 or inputs.shape[3] not in _CHANNELS or inputs.shape[1] in _CHANNELS:
        return inputs
    notes.append(
        f"x {inputs.shape} is taken as images with the channels last; they become (samples, channels, height, width)"
    )
    return np.ascontiguousarray(inputs.transpose(0, 3, 1, 2))


def _targets(
    labels: np.ndarray, task: Task, classes: list[str] | None, notes: list[str]
) -> tuple[np.ndarray, list[str] | None]:
    """Class numbers with the names of the classes, or quantities."""
    if labels.ndim == 2 and labels.shape[1] == 1:
        notes.append(f"y {labels.shape} is taken as a column of {len(labels)} targets")
        labels = labels[:, 0]
    if _is_one_hot(labels) and task != "regression":
        notes.append(f"y {labels.shape} is taken as one-hot: the class is where the 1 stands")
        labels = labels.argmax(1)
    if labels.ndim != 1:
        raise ValueError(
            f"[train] y has the shape {labels.shape}; one target per sample is needed, or one-hot rows"
        )
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("[train] y holds nan or infinite values; leave those samples out")
    found = np.unique(labels)
    whole = labels.dtype.kind in "biu" or bool((labels == np.floor(labels)).all())
    if task == "regression" or (task == "auto" and not (whole and len(found) <= MOST_CLASSES)):
        return labels.astype(np.float32), None
    if not whole:
        raise ValueError("[train] y holds fractions, which are no classes; use --task regression")
    if task == "auto" and labels.dtype.kind == "f":
        notes.append(
            f"y holds whole numbers as {labels.dtype} with {len(found)} different values: they are taken as classes "
            "(--task regression takes them as quantities)"
        )
    return _numbered(labels, found, classes)


def _numbered(
    labels: np.ndarray, found: np.ndarray, classes: list[str] | None
) -> tuple[np.ndarray, list[str]]:
    """Labels as places in the list of classes: that of the run, or all labels there are, in order."""
    whole = found.astype(np.int64)
    names = [str(n) for n in whole.tolist()]
    if classes is None:
        if labels.dtype != np.bool_ and len(whole) and whole[0] >= 0 and whole[-1] < MOST_CLASSES:
            names = [str(n) for n in range(int(whole[-1]) + 1)]  # 0 to the largest, present or not
        classes = names
    place: dict[str, Any] = {name: i for i, name in enumerate(classes)}
    unknown = [name for name in (str(n) for n in whole.tolist()) if name not in place]
    if unknown:
        raise ValueError(
            f"[train] y has the label {unknown[0]}, which is none of the classes {', '.join(classes[:20])}"
        )
    numbers = np.array([place[str(n)] for n in whole.tolist()], np.int64)
    return numbers[np.searchsorted(found, labels)], classes


def _is_one_hot(labels: np.ndarray) -> bool:
    if labels.ndim != 2 or labels.shape[1] < 2 or not len(labels):
        return False
    return bool(np.isin(labels, (0, 1)).all() and (labels.sum(1) == 1).all())
