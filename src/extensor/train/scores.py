"""Metrics with scikit-learn's definitions: of classes (precision, recall, F1, ROC AUC) and of quantities (MAE, RMSE, R²)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from ..errors import describe
from ..tensor import ExTensor
from .metrics import Accuracy, ConfusionMatrix, Metric, Perplexity

__all__ = ["F1", "MAE", "MSE", "R2", "RMSE", "ROCAUC", "Precision", "Recall", "metric_named", "metrics_named"]

Average = Literal["auto", "macro", "micro", "weighted"]


def _scores(function: str, outputs: Any, targets: Any) -> tuple[np.ndarray, np.ndarray]:
    """Scores (samples, classes) and labels (samples,). A single output is the logit of class 1, against that of class 0, 0."""
    scores, labels = np.asarray(outputs, np.float64), np.asarray(targets)
    if scores.shape == labels.shape or (scores.ndim == labels.ndim + 1 and scores.shape[-1] == 1):
        logits = scores.reshape(-1)
        scores, labels = np.stack([np.zeros_like(logits), logits], -1), labels.reshape(-1)
    if scores.ndim < 2 or labels.size != math.prod(scores.shape[:-1]):
        raise ValueError(
            f"[{function}] needs outputs (..., classes) and targets (...), got {scores.shape} and {labels.shape}"
        )
    labels = labels.reshape(-1)
    if labels.dtype.kind == "f" and not np.isin(labels, (0.0, 1.0)).all():
        raise ValueError(
            f"[{function}] is a metric of classes; the targets are quantities such as {labels[0]:.4g}"
        )
    return scores.reshape(-1, scores.shape[-1]), labels.astype(np.int64)


class _OfClasses(Metric):
    """Counts how often class i was taken for class j; subclasses say what of it counts."""

    def __init__(self, average: Average = "auto") -> None:
        if average not in ("auto", "macro", "micro", "weighted"):
            raise ValueError(
                f"[{type(self).__name__}] average must be 'auto', 'macro', 'micro' or 'weighted', got {describe(average)}"
            )
        self.average = average
        self.counts = {"matrix": np.zeros((0, 0), np.int64)}

    def update(self, outputs: ExTensor, targets: ExTensor, loss: float) -> None:
        scores, labels = _scores(type(self).__name__, outputs, targets)
        size = max(scores.shape[1], int(labels.max(initial=0)) + 1)
        found = np.zeros((size, size), np.int64)
        np.add.at(found, (labels, scores.argmax(1)), 1)
        self.merge({"matrix": found})

    def merge(self, counts: Mapping[str, Any]) -> None:
        mine, its = self.counts["matrix"], np.asarray(counts["matrix"])
        total = np.zeros((max(len(mine), len(its)),) * 2, np.int64)
        total[: len(mine), : len(mine)] += mine
        total[: len(its), : len(its)] += its
        self.counts = {"matrix": total}

    def reset(self) -> None:
        self.counts = {"matrix": np.zeros((0, 0), np.int64)}

    def _ratio(self, right: np.ndarray, predicted: np.ndarray, actual: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def value(self) -> float:
        matrix = self.counts["matrix"]
        if not matrix.sum():
            return math.nan
        right, predicted, actual = np.diag(matrix), matrix.sum(0), matrix.sum(1)
        if self.average == "micro":
            return float(self._ratio(*(part.sum(keepdims=True) for part in (right, predicted, actual)))[0])
        found = self._ratio(right, predicted, actual)
        if self.average == "auto" and len(found) == 2:
            return float(found[1])
        seen = (predicted + actual) > 0  # classes that neither occur nor are predicted do not count
        return float(np.average(found[seen], weights=actual[seen] if self.average == "weighted" else None))


def _divided(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.divide(a, b, out=np.zeros(len(a)), where=b > 0)


class Precision(_OfClasses):
    """The part of what was taken for a class that is of it.

    Args:
        average: ``"auto"`` is the precision of class 1 where there are two classes, else the mean over classes (``"macro"``);
            ``"weighted"`` weighs classes by their samples, ``"micro"`` counts all samples alike. As in scikit-learn.

    Example:
        >>> import extensor as et
        >>> metric = et.train.Precision()
        >>> metric.update(et.tensor([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]]), et.tensor([1, 0, 1]), 0.0)
        >>> metric.value()
        0.5
    """

    def _ratio(self, right: np.ndarray, predicted: np.ndarray, actual: np.ndarray) -> np.ndarray:
        return _divided(right, predicted)


class Recall(_OfClasses):
    """The part of a class that was found; for ``average`` see :class:`Precision`.

    Example:
        >>> import extensor as et
        >>> metric = et.train.Recall()
        >>> metric.update(et.tensor([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]]), et.tensor([1, 0, 1]), 0.0)
        >>> metric.value()
        0.5
    """

    def _ratio(self, right: np.ndarray, predicted: np.ndarray, actual: np.ndarray) -> np.ndarray:
        return _divided(right, actual)


class F1(_OfClasses):
    """The harmonic mean of precision and recall; for ``average`` see :class:`Precision`.   F1 = 2 p r / (p + r)

    Example:
        >>> import extensor as et
        >>> metric = et.train.F1()
        >>> metric.update(et.tensor([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]]), et.tensor([1, 0, 1]), 0.0)
        >>> metric.value()
        0.5
    """

    def _ratio(self, right: np.ndarray, predicted: np.ndarray, actual: np.ndarray) -> np.ndarray:
        return _divided(2 * right, predicted + actual)


class ROCAUC(Metric):
    """How likely a sample of a class scores higher than one that is not: the area under the ROC curve.

    For more than two classes the mean of each against the others. It keeps the scores of all samples.

    Example:
        >>> import extensor as et
        >>> metric = et.train.ROCAUC()
        >>> metric.update(et.tensor([0.1, 0.4, 0.35, 0.8]), et.tensor([0, 0, 1, 1]), 0.0)
        >>> metric.value()
        0.75
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.counts = {"scores": np.zeros((0, 0)), "labels": np.zeros(0, np.int64)}

    def update(self, outputs: ExTensor, targets: ExTensor, loss: float) -> None:
        scores, labels = _scores("ROCAUC", outputs, targets)
        if scores.shape[1] > 2:  # comparable between samples, as probabilities are
            scores = np.exp(scores - scores.max(1, keepdims=True))
            scores /= scores.sum(1, keepdims=True)
        self.merge({"scores": scores, "labels": labels})

    def merge(self, counts: Mapping[str, Any]) -> None:
        if not len(self.counts["labels"]):
            self.counts = {name: np.asarray(part) for name, part in counts.items()}
        elif len(counts["labels"]):
            self.counts = {name: np.concatenate([part, counts[name]]) for name, part in self.counts.items()}

    def value(self) -> float:
        scores, labels = self.counts["scores"], self.counts["labels"]
        if not len(labels):
            return math.nan
        if scores.shape[1] == 2:
            return _area(scores[:, 1] - scores[:, 0], labels == 1)
        areas = [_area(scores[:, k], labels == k) for k in range(scores.shape[1])]
        known = [area for area in areas if not math.isnan(area)]
        return float(np.mean(known)) if known else math.nan


def _area(scores: np.ndarray, positive: np.ndarray) -> float:
    """By ranks; equal scores share theirs."""
    count = int(positive.sum())
    if not 0 < count < len(scores) or np.isnan(scores).any():
        return math.nan
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    return float((ranks[positive].sum() - count * (count + 1) / 2) / (count * (len(scores) - count)))


class _OfQuantities(Metric):
    """Sums over elements; subclasses say what becomes of them."""

    def __init__(self) -> None:
        self.counts = {"elements": 0, "absolute": 0.0, "squared": 0.0, "sum": 0.0, "sum_squares": 0.0}

    def update(self, outputs: ExTensor, targets: ExTensor, loss: float) -> None:
        found, wanted = np.asarray(outputs, np.float64), np.asarray(targets, np.float64)
        if found.size != wanted.size:
            raise ValueError(
                f"[{type(self).__name__}] needs an output for each target, got {found.shape} and {wanted.shape}"
            )
        found, wanted = found.ravel(), wanted.ravel()
        off = found - wanted
        for name, amount in (
            ("elements", wanted.size), ("absolute", np.abs(off).sum()), ("squared", off @ off), ("sum", wanted.sum()),
            ("sum_squares", wanted @ wanted),
        ):  # fmt: skip
            self.counts[name] += amount if name == "elements" else float(amount)

    def _of(self, sums: Mapping[str, Any]) -> float:
        raise NotImplementedError

    def value(self) -> float:
        return self._of(self.counts) if self.counts["elements"] else math.nan


class MAE(_OfQuantities):
    """The mean absolute error.

    Example:
        >>> import extensor as et
        >>> metric = et.train.MAE()
        >>> metric.update(et.tensor([1.0, 4.0]), et.tensor([2.0, 2.0]), 0.0)
        >>> metric.value()
        1.5
    """

    def _of(self, sums: Mapping[str, Any]) -> float:
        return float(sums["absolute"] / sums["elements"])


class MSE(_OfQuantities):
    """The mean squared error.

    Example:
        >>> import extensor as et
        >>> metric = et.train.MSE()
        >>> metric.update(et.tensor([1.0, 4.0]), et.tensor([2.0, 2.0]), 0.0)
        >>> metric.value()
        2.5
    """

    def _of(self, sums: Mapping[str, Any]) -> float:
        return float(sums["squared"] / sums["elements"])


class RMSE(_OfQuantities):
    """The root of the mean squared error.

    Example:
        >>> import extensor as et
        >>> metric = et.train.RMSE()
        >>> metric.update(et.tensor([1.0, 5.0]), et.tensor([2.0, 2.0]), 0.0)
        >>> round(metric.value(), 6)
        2.236068
    """

    def _of(self, sums: Mapping[str, Any]) -> float:
        return math.sqrt(sums["squared"] / sums["elements"])


class R2(_OfQuantities):
    """The part of the targets' variance that the outputs explain; 0 for those who always say the mean.

    Example:
        >>> import extensor as et
        >>> metric = et.train.R2()
        >>> metric.update(et.tensor([1.0, 2.0, 3.0]), et.tensor([1.0, 2.0, 3.0]), 0.0)
        >>> metric.value()
        1.0
    """

    def _of(self, sums: Mapping[str, Any]) -> float:
        spread = sums["sum_squares"] - sums["sum"] ** 2 / sums["elements"]
        if spread <= 0:
            return 1.0 if sums["squared"] == 0 else 0.0
        return float(1 - sums["squared"] / spread)


_NAMED: dict[str, Any] = {
    "accuracy": Accuracy, "confusion": ConfusionMatrix, "f1": F1, "mae": MAE, "mse": MSE, "perplexity": Perplexity,
    "precision": Precision, "r2": R2, "recall": Recall, "rmse": RMSE, "roc_auc": ROCAUC,
}  # fmt: skip


def metric_named(name: str) -> Metric:
    """A metric by its name: accuracy, top_5 (or another number), f1, precision, recall, roc_auc, mae, mse, rmse, r2, perplexity.

    Example:
        >>> import extensor as et
        >>> et.train.metric_named("top_3").top_k
        3
    """
    word = str(name).lower().replace("-", "_").replace(" ", "_")
    if word.startswith("top") and word.removeprefix("top").strip("_").isdigit():
        return Accuracy(top_k=int(word.removeprefix("top").strip("_")))
    word = {"rocauc": "roc_auc", "auc": "roc_auc", "acc": "accuracy", "f1_score": "f1", "r2_score": "r2"}.get(
        word, word
    )
    if word not in _NAMED or word == "confusion":
        known = ", ".join(k for k in _NAMED if k != "confusion")
        raise ValueError(
            f"[Trainer] there is no metric {describe(name)}; there are {known} and top_k as top_5"
        )
    made: Metric = _NAMED[word]()
    return made


def metrics_named(metrics: Any) -> dict[str, Any]:
    """What a trainer is given as metrics, as a dict: names alone stand for the metrics of that name."""
    if metrics is None:
        return {}
    if isinstance(metrics, str):
        metrics = [metrics]
    if isinstance(metrics, Mapping):
        return {name: metric_named(m) if isinstance(m, str) else m for name, m in metrics.items()}
    return {str(m).lower().replace("-", "_"): metric_named(m) for m in metrics}
