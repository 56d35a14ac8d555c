"""What a run is judged by: counts over batches that become a number at the end."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..checks import as_int
from ..errors import describe
from ..tensor import ExTensor

__all__ = ["Accuracy", "ConfusionMatrix", "Metric", "Perplexity"]


class Metric:
    """The base of all metrics. Subclasses define :meth:`update`, :meth:`value` and what they count in ``counts``.

    Attributes:
        counts: numbers by name; they start at 0, and a checkpoint keeps them.

    Example:
        >>> import extensor as et
        >>> class Count(et.train.Metric):
        ...     def __init__(self):
        ...         self.counts = {"samples": 0}
        ...     def update(self, outputs, targets, loss):
        ...         self.counts["samples"] += len(outputs)
        ...     def value(self):
        ...         return self.counts["samples"]
        >>> count = Count()
        >>> count.update(et.ones((5, 2)), et.zeros(5), 0.0)
        >>> count.value()
        5
    """

    counts: dict[str, Any]

    def update(self, outputs: ExTensor, targets: ExTensor, loss: float) -> None:
        """Count one batch: what the model gave, what was wanted, and the loss."""
        raise NotImplementedError(f"[{type(self).__name__}] defines no update")

    def value(self) -> Any:
        """The number for what was counted so far."""
        raise NotImplementedError(f"[{type(self).__name__}] defines no value")

    def reset(self) -> None:
        """Begin again."""
        self.counts = {name: count * 0 for name, count in self.counts.items()}

    def merge(self, counts: Mapping[str, Any]) -> None:
        """Add the counts of other batches, such as another process has seen."""
        for name, count in counts.items():
            self.counts[name] = self.counts[name] + count

    def state_dict(self) -> dict[str, Any]:
        """The counts."""
        return copy.deepcopy(self.counts)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over counts."""
        if not isinstance(state, Mapping) or set(state) != set(self.counts):
            raise ValueError(
                f"[{type(self).__name__}.load_state_dict] state must have {', '.join(self.counts)}, got {describe(state)}"
            )
        self.counts = copy.deepcopy(dict(state))


def _scores_and_labels(
    function: str, outputs: Any, targets: Any, ignore_index: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Scores (samples, classes) and labels (samples,) from outputs (..., classes) and targets (...)."""
    scores, labels = np.asarray(outputs), np.asarray(targets)
    if scores.ndim < 2 or labels.shape != scores.shape[:-1] or labels.dtype.kind not in "iu":
        raise ValueError(
            f"[{function}] needs outputs (..., classes) and whole-number targets (...), "
            f"got {scores.shape} and {labels.shape} {labels.dtype}"
        )
    scores, labels = scores.reshape(-1, scores.shape[-1]), labels.reshape(-1)
    if ignore_index is not None:
        kept = labels != ignore_index
        scores, labels = scores[kept], labels[kept]
    if labels.size and not 0 <= labels.min() <= labels.max() < scores.shape[1]:
        raise ValueError(
            f"[{function}] labels must be from 0 to {scores.shape[1] - 1}, one for each output, got {labels.min()} to "
            f"{labels.max()}; ignore_index names a label that does not count"
        )
    return scores, labels


def _as_ignored(function: str, ignore_index: Any) -> int | None:
    return None if ignore_index is None else as_int(function, "ignore_index", ignore_index)


class Accuracy(Metric):
    """The part of the targets that is among the ``top_k`` highest outputs.

    With several equal outputs the one of the lower class counts as higher; a nan is never among the highest.

    Args:
        top_k: among how many a target must be.
        ignore_index: a label that does not count, as in :func:`~extensor.cross_entropy`.

    Example:
        >>> import extensor as et
        >>> accuracy = et.train.Accuracy()
        >>> accuracy.update(et.tensor([[0.1, 0.9], [0.8, 0.2]]), et.tensor([1, 1]), 0.0)
        >>> accuracy.value()
        0.5
    """

    def __init__(self, top_k: int = 1, ignore_index: int | None = None) -> None:
        self.top_k = as_int("Accuracy", "top_k", top_k)
        self.ignore_index = _as_ignored("Accuracy", ignore_index)
        if self.top_k < 1:
            raise ValueError(f"[Accuracy] top_k must be at least 1, got {top_k}")
        self.counts = {"right": 0, "all": 0}

    def update(self, outputs: ExTensor, targets: ExTensor, loss: float) -> None:
        scores, labels = _scores_and_labels("Accuracy", outputs, targets, self.ignore_index)
        own = np.take_along_axis(scores, labels[:, None].astype(np.int64), 1)
        before = np.arange(scores.shape[1]) < labels[:, None]
        ahead = (scores > own) | ((scores == own) & before)
        right = (ahead.sum(1) < self.top_k) & ~np.isnan(own[:, 0])
        self.counts["right"] += int(right.sum())
        self.counts["all"] += len(labels)

    def value(self) -> float:
        return self.counts["right"] / self.counts["all"] if self.counts["all"] else math.nan


class ConfusionMatrix(Metric):
    """How often class i (row) was taken for class j (column).

    Example:
        >>> import extensor as et
        >>> confusion = et.train.ConfusionMatrix(2)
        >>> confusion.update(et.tensor([[0.1, 0.9], [0.8, 0.2]]), et.tensor([1, 1]), 0.0)
        >>> confusion.value()
        [[0, 0], [1, 1]]
    """

    def __init__(self, classes: int, ignore_index: int | None = None) -> None:
        self.classes = as_int("ConfusionMatrix", "classes", classes)
        self.ignore_index = _as_ignored("ConfusionMatrix", ignore_index)
        if self.classes < 1:
            raise ValueError(f"[ConfusionMatrix] classes must be at least 1, got {classes}")
        self.counts = {"matrix": np.zeros((self.classes, self.classes), np.int64)}

    def update(self, outputs: ExTensor, targets: ExTensor, loss: float) -> None:
        scores, labels = _scores_and_labels("ConfusionMatrix", outputs, targets, self.ignore_index)
        if scores.shape[1] != self.classes:
            raise ValueError(
                f"[ConfusionMatrix] has {self.classes} classes, got {scores.shape[1]} outputs for each sample"
            )
        np.add.at(self.counts["matrix"], (labels, scores.argmax(1)), 1)

    def value(self) -> list[list[int]]:
        return self.counts["matrix"].tolist()


class Perplexity(Metric):
    """exp of the mean loss: among how many equally likely characters a language model feels it has to choose.

    Example:
        >>> import math, extensor as et
        >>> perplexity = et.train.Perplexity()
        >>> perplexity.update(et.zeros((4, 10)), et.tensor([1, 2, 3, 4]), math.log(10))
        >>> round(perplexity.value(), 6)
        10.0
    """

    def __init__(self, ignore_index: int | None = None) -> None:
        self.ignore_index = _as_ignored("Perplexity", ignore_index)
        self.counts = {"loss": 0.0, "samples": 0}

    def update(self, outputs: ExTensor, targets: ExTensor, loss: float) -> None:
        count = len(targets)
        if self.ignore_index is not None:  # then the loss is the mean over the targets that count
            count = int((np.asarray(targets) != self.ignore_index).sum())
        if count:
            self.counts["loss"] += loss * count
            self.counts["samples"] += count

    def value(self) -> float:
        if not self.counts["samples"]:
            return math.nan
        mean = self.counts["loss"] / self.counts["samples"]
        return math.exp(mean) if mean < 700 else math.inf
