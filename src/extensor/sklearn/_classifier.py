"""A network that tells classes apart."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from ..ops.loss_classification import cross_entropy
from ..ops.softmax import log_softmax, softmax
from ..tensor import ExTensor
from ._perceptron import FLOATS, Perceptron

__all__ = ["MLPClassifier"]


class MLPClassifier(ClassifierMixin, Perceptron):
    """Dense layers that tell classes apart, trained on   mean cross-entropy + alpha / (2 n) sum w**2.

    Parameters have the names, the meaning and the defaults of scikit-learn's ``MLPClassifier``. Labels may be numbers,
    text or truth values, one per sample. The network computes in float32, whatever the samples are, unless ``dtype`` says
    otherwise. The same ``random_state`` gives the same bits.

    Args:
        hidden_layer_sizes: the widths of the hidden layers.
        activation: what follows each of them: ``"relu"``, ``"tanh"``, ``"logistic"``, ``"identity"``, ``"gelu"``, ``"silu"``.
        solver: ``"adam"``, or ``"sgd"`` with Nesterov's momentum.
        alpha: the strength of the penalty on large weights; n is the number of samples in a batch.
        batch_size: samples per step; ``"auto"`` is 200, or all if there are fewer.
        learning_rate_init: the learning rate.
        max_iter: how many epochs at most.
        shuffle: whether each epoch has an order of its own.
        random_state: a seed or a ``RandomState``: where weights, order and validation samples come from.
        tol: how much better a loss or score must be to count.
        verbose: print the loss of each epoch.
        warm_start: whether :meth:`fit` goes on with the network of the last fit.
        momentum: of ``"sgd"``.
        early_stopping: keep samples apart, stop when the score on them no longer becomes better, and take the best weights.
        validation_fraction: the part of the samples that is kept apart.
        n_iter_no_change: how many epochs in a row may pass without a better loss or score.
        precision: of the products while training: ``"float32"``, ``"bfloat16"``, ``"float16"`` with a loss scaler, or ``"auto"``,
            which measures. Any but the first keeps the weights in float32; predictions are made in it.
        dtype: what the network computes in: ``"float32"``, or ``"float64"``, which is slower and seldom better.

    Attributes:
        classes_: the labels, sorted.
        coefs_, intercepts_: weights (inputs, outputs) and biases of the layers.
        loss_, loss_curve_, best_loss_: the loss of the last epoch, of all, and the smallest.
        validation_scores_, best_validation_score_: with ``early_stopping``; None without.
        n_iter_: the epochs of the last fit.
        n_features_in_, n_layers_, n_outputs_, out_activation_: what the network looks like.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.pipeline import make_pipeline
        >>> from sklearn.preprocessing import StandardScaler
        >>> from extensor.sklearn import MLPClassifier
        >>> flowers = load_iris()
        >>> labels = flowers.target_names[flowers.target]
        >>> net = MLPClassifier(20, learning_rate_init=0.02, tol=1e-3, random_state=0)
        >>> model = make_pipeline(StandardScaler(), net).fit(flowers.data, labels)
        >>> model.score(flowers.data, labels) > 0.95
        True
        >>> model.predict(flowers.data[:2]).tolist()
        ['setosa', 'setosa']
    """

    out_activation_ = "softmax"

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> MLPClassifier:
        """One more epoch with these samples.

        Args:
            X, y, sample_weight: as in :meth:`fit`.
            classes: all labels there will ever be; the first call needs them.

        Returns:
            The estimator itself.
        """
        if classes is None and not self.__sklearn_is_fitted__():
            raise ValueError(
                "[MLPClassifier] the first call of partial_fit needs classes: all labels there will ever be"
            )
        return self._partial_fit(X, y, classes, sample_weight)

    def predict(self, X: Any) -> np.ndarray:
        """The most likely label of each sample."""
        best = self._outputs(X).argmax(1)
        return self.classes_[best]

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probabilities of the classes, (samples, classes), in the order of ``classes_``."""
        return softmax(ExTensor(self._outputs(X))).numpy().copy()

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """The logarithms of the probabilities, exact also where a probability rounds to 0."""
        return log_softmax(ExTensor(self._outputs(X))).numpy().copy()

    def _checked(self, X: Any, y: Any, classes: Any, fresh: bool) -> tuple[np.ndarray, np.ndarray]:
        X, y = validate_data(self, X, y, dtype=FLOATS, reset=fresh)
        check_classification_targets(y)
        if fresh:
            self.classes_ = np.unique(y if classes is None else np.asarray(classes))
        elif classes is not None and not np.array_equal(np.unique(np.asarray(classes)), self.classes_):
            raise ValueError(
                f"[MLPClassifier] classes are {np.asarray(classes).tolist()} but were {self.classes_.tolist()} before"
            )
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(
                f"[MLPClassifier] y has labels {unknown[:10].tolist()} that are not among the classes {self.classes_.tolist()}"
            )
        return X, y

    def _encoded(self, y: np.ndarray) -> np.ndarray:
        return np.searchsorted(self.classes_, y)

    def _width(self, y: np.ndarray) -> int:
        return len(self.classes_)

    def _loss(self, outputs: ExTensor, targets: ExTensor, reduction: str) -> ExTensor:
        return cross_entropy(outputs, targets, reduction=reduction)

    def _score(self, outputs: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> float:
        return float(accuracy_score(y, self.classes_[outputs.argmax(1)], sample_weight=weight))
