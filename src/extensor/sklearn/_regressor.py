"""A network that estimates quantities."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from ..ops.loss_regression import mean_squared_error
from ..ops.reduction import mean
from ..tensor import ExTensor
from ._perceptron import FLOATS, Perceptron

__all__ = ["MLPRegressor"]


class MLPRegressor(RegressorMixin, Perceptron):
    """Dense layers that estimate one or several quantities, trained on   mean (f(x) - y)**2 / 2 + alpha / (2 n) sum w**2.

    Targets are (samples,) or (samples, outputs) and should be of the order of 1: see
    ``sklearn.compose.TransformedTargetRegressor`` for others.

    Args:
        hidden_layer_sizes, activation, solver, alpha, batch_size, learning_rate_init, max_iter, shuffle, random_state,
            tol, verbose, warm_start, momentum, early_stopping, validation_fraction, n_iter_no_change, precision,
            dtype: as in
            :class:`~extensor.sklearn.MLPClassifier`; the validation score is R².

    Attributes:
        coefs_, intercepts_: weights (inputs, outputs) and biases of the layers.
        loss_, loss_curve_, best_loss_: the loss of the last epoch, of all, and the smallest.
        validation_scores_, best_validation_score_: with ``early_stopping``; None without.
        n_iter_: the epochs of the last fit.
        n_features_in_, n_layers_, n_outputs_, out_activation_: what the network looks like.

    Example:
        >>> import numpy as np
        >>> from extensor.sklearn import MLPRegressor
        >>> x = np.linspace(-3, 3, 200, dtype=np.float32)[:, None]
        >>> y = np.concatenate([np.sin(x), np.cos(x)], axis=1)
        >>> net = MLPRegressor(32, "tanh", learning_rate_init=0.02, max_iter=500, tol=1e-5, random_state=0).fit(x, y)
        >>> net.predict(x[:5]).shape, net.score(x, y) > 0.95
        ((5, 2), True)
    """

    out_activation_ = "identity"

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> MLPRegressor:
        """One more epoch with these samples.

        Args:
            X, y, sample_weight: as in :meth:`fit`.

        Returns:
            The estimator itself.
        """
        return self._partial_fit(X, y, None, sample_weight)

    def predict(self, X: Any) -> np.ndarray:
        """The estimates: (samples,) for one output, else (samples, outputs)."""
        outputs = self._outputs(X)
        return outputs.ravel() if outputs.shape[1] == 1 else outputs

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags

    def _checked(self, X: Any, y: Any, classes: Any, fresh: bool) -> tuple[np.ndarray, np.ndarray]:
        X, y = validate_data(self, X, y, dtype=FLOATS, multi_output=True, y_numeric=True, reset=fresh)
        return X, y

    def _encoded(self, y: np.ndarray) -> np.ndarray:
        return y.reshape(len(y), -1).astype(self._architecture["dtype"])

    def _width(self, y: np.ndarray) -> int:
        return 1 if y.ndim == 1 else y.shape[1]

    def _loss(self, outputs: ExTensor, targets: ExTensor, reduction: str) -> ExTensor:
        loss = mean_squared_error(outputs, targets, reduction=reduction)
        return 0.5 * (mean(loss, axis=1) if reduction == "none" else loss)

    def _score(self, outputs: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> float:
        return float(r2_score(y.reshape(len(y), -1), outputs, sample_weight=weight))
