"""What the model of a run says about its test samples, and where it is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._progress import watched
from ..data import Dataset
from ..data.loader import to_judge
from ..data.pictures import PictureFiles
from ..graph import no_grad
from ..nn import Module
from ..ops.softmax import softmax
from ..tensor import ExTensor
from ..train.metrics import ConfusionMatrix

__all__ = ["Classification", "Example", "Regression", "evaluate", "sample_names"]


def sample_names(samples: Dataset | None, indices: Sequence[int]) -> tuple[str, list[str]]:
    """What samples are called where a person can find them: a heading, and the lines of their file, or files, or numbers."""
    if samples is not None and samples.places is not None:
        return "line of the file", [f"{samples.places[i]:,}" for i in indices]
    if samples is not None and isinstance(samples.inputs, PictureFiles):
        return "file", ["/".join(samples.inputs.files[i].parts[-2:]) for i in indices]
    return "test sample", [f"{i:,}" for i in indices]


@dataclass(frozen=True)
class Example:
    """One sample: its place, its class, the class it was taken for, and how sure the model was of that."""

    index: int
    target: int
    predicted: int
    probability: float


@dataclass(frozen=True)
class Classification:
    """What came of samples with classes.

    Attributes:
        matrix: how often class i (row) was taken for class j (column).
        mistakes: those the model was surest of.
        doubts: right answers it was least sure of, where there is room beside the mistakes.
    """

    classes: Sequence[str]
    matrix: np.ndarray
    mistakes: Sequence[Example]
    doubts: Sequence[Example]
    samples: Dataset

    @property
    def has_images(self) -> bool:
        return _are_images(self.samples)

    def inputs(self, examples: Sequence[Example]) -> np.ndarray:
        """The samples of some examples, as they are stored."""
        return self.samples.gather(np.array([example.index for example in examples]))[0]

    @property
    def total(self) -> int:
        return int(self.matrix.sum())

    @property
    def wrong(self) -> int:
        return self.total - int(np.trace(self.matrix))

    def confusions(self) -> list[tuple[int, int, int]]:
        """(class, taken for, how often), the most frequent first."""
        found = [(int(i), int(j), int(self.matrix[i, j])) for i, j in zip(*np.nonzero(self.matrix)) if i != j]
        return sorted(found, key=lambda entry: (-entry[2], entry[:2]))


@dataclass(frozen=True)
class Regression:
    """What came of samples with quantities: the wanted and the predicted numbers."""

    targets: np.ndarray
    predicted: np.ndarray
    per_sample: int = 1
    samples: Dataset | None = None

    def largest_errors(self, most: int = 8) -> list[int]:
        """The places of the numbers that are furthest off."""
        return np.argsort(-np.abs(self.targets - self.predicted), kind="stable")[:most].tolist()

    @property
    def error(self) -> float:
        """The root of the mean squared error."""
        return float(np.sqrt(np.mean((self.targets - self.predicted) ** 2)))

    @property
    def explained(self) -> float | None:
        """The part of the variance that is explained, R squared."""
        spread = float(np.sum((self.targets - self.targets.mean()) ** 2))
        return 1 - float(np.sum((self.targets - self.predicted) ** 2)) / spread if spread else None


_MOST_IMAGES, _MOST_ROWS = 24, 10  # examples to show


def _are_images(samples: Dataset) -> bool:
    return samples.inputs.ndim == 4 and samples.inputs.shape[1] in (1, 3)


def evaluate(model: Module, samples: Dataset, classes: Sequence[str] | None) -> Classification | Regression:
    """One pass over the samples, which have targets."""
    if samples.targets is None:
        raise ValueError("the samples have no targets to compare with")
    outputs = _outputs(model, samples)
    if samples.targets.dtype.kind == "f":
        return Regression(
            samples.targets.astype(np.float64).ravel(),
            outputs.astype(np.float64).reshape(samples.targets.shape).ravel(),
            samples.targets[0].size,
            samples,
        )
    if outputs.ndim != 2 or samples.targets.ndim != 1:
        raise ValueError(
            f"outputs of shape {outputs.shape} and targets of shape {samples.targets.shape} are no classes"
        )
    confusion = ConfusionMatrix(outputs.shape[-1])
    confusion.update(ExTensor(outputs), ExTensor(samples.targets), 0.0)
    likely = softmax(ExTensor(outputs)).numpy()
    names = [str(i) for i in range(outputs.shape[-1])]
    names[: len(classes or ())] = map(str, classes or ())
    most = _MOST_IMAGES if _are_images(samples) else _MOST_ROWS
    mistakes, doubts = _examples(likely, samples.targets, most)
    return Classification(names, confusion.counts["matrix"], mistakes, doubts, samples)


def _outputs(model: Module, samples: Dataset) -> np.ndarray:
    """What the model says, in evaluation mode; afterwards it is as it was."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with no_grad():
            batches = to_judge(samples)
            parts = watched(batches, "predicting", "samples", len(samples), batches.batch_size)
            return np.concatenate([model(inputs).numpy() for inputs, _ in parts])
    finally:
        for module, mode in modes:
            module.training = mode


def _examples(likely: np.ndarray, targets: np.ndarray, most: int) -> tuple[list[Example], list[Example]]:
    best = likely.argmax(1)
    sure = likely[np.arange(len(best)), best]
    wrong, right = np.flatnonzero(best != targets), np.flatnonzero(best == targets)
    mistakes = wrong[np.argsort(-sure[wrong], kind="stable")][:most]
    room = most - len(mistakes) if most > _MOST_ROWS else min(most - len(mistakes), _MOST_ROWS // 2)
    doubts = right[np.argsort(sure[right], kind="stable")][:room]
    first, second = (
        [Example(int(i), int(targets[i]), int(best[i]), float(sure[i])) for i in chosen]
        for chosen in (mistakes, doubts)
    )
    return first, second
