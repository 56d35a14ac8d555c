"""What the classifier and the regressor share: their parameters, the training loop, pickling."""

from __future__ import annotations

import math
import warnings
from abc import ABCMeta, abstractmethod
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from .. import nn, optim
from ..compile import Compiled
from ..graph import no_grad
from ..models import MLP
from ..ops.elementwise import square
from ..ops.reduction import sum as sum_of
from ..state_trees import flatten_state, restore_state
from ..tensor import ExTensor, asarray
from ..train.mixed_precision import MixedPrecision
from ._parameters import ACTIVATIONS, check_parameters, layer_sizes

__all__ = ["FLOATS", "Perceptron"]

P = TypeVar("P", bound="Perceptron")

FLOATS = [np.float64, np.float32]  # what samples are looked at in; the network has a dtype of its own
ROWS_AT_ONCE = 8192  # predicted together: the hidden layers of many samples need not fit into memory at once


class Perceptron(BaseEstimator, metaclass=ABCMeta):
    """Dense layers that learn from arrays. Subclasses say what targets, losses and scores are."""

    def __init__(
        self,
        hidden_layer_sizes: int | Sequence[int] = (100,),
        activation: str = "relu",
        *,
        solver: str = "adam",
        alpha: float = 1e-4,
        batch_size: int | str = "auto",
        learning_rate_init: float = 1e-3,
        max_iter: int = 200,
        shuffle: bool = True,
        random_state: Any = None,
        tol: float = 1e-4,
        verbose: bool = False,
        warm_start: bool = False,
        momentum: float = 0.9,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        precision: str = "float32",
        dtype: str = "float32",
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.solver = solver
        self.alpha = alpha
        self.batch_size = batch_size
        self.learning_rate_init = learning_rate_init
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state
        self.tol = tol
        self.verbose = verbose
        self.warm_start = warm_start
        self.momentum = momentum
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.precision = precision
        self.dtype = dtype

    _mixed: MixedPrecision

    # What subclasses say

    @abstractmethod
    def _checked(self, X: Any, y: Any, classes: Any, fresh: bool) -> tuple[np.ndarray, np.ndarray]:
        """Samples and targets as arrays. ``classes`` is what partial_fit was told of them."""

    @abstractmethod
    def _encoded(self, y: np.ndarray) -> np.ndarray:
        """The targets as the loss takes them."""

    @abstractmethod
    def _width(self, y: np.ndarray) -> int:
        """The number of outputs."""

    @abstractmethod
    def _loss(self, outputs: ExTensor, targets: ExTensor, reduction: str) -> ExTensor:
        """The loss of the samples: their ``"mean"``, or with ``"none"`` one number each."""

    @abstractmethod
    def _score(self, outputs: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> float:
        """How good the outputs are; more is better."""

    # For the user

    def fit(self: P, X: Any, y: Any, sample_weight: Any = None) -> P:
        """Train until the loss, or with ``early_stopping`` the validation score, no longer becomes better.

        Args:
            X: the samples, (samples, features).
            y: the targets of the samples.
            sample_weight: how much each sample counts in the loss and in the validation score.

        Returns:
            The estimator itself.
        """
        fresh = not (self.warm_start and self.__sklearn_is_fitted__())
        X, y, weight = self._begin(X, y, None, sample_weight, fresh)
        self._optimizer = self._new_optimizer()
        self.n_iter_ = 0
        if self.early_stopping:
            learned, held_out = self._split(y)
            unseen = X[held_out], y[held_out], _taken(weight, held_out)
            self._train(X[learned], y[learned], _taken(weight, learned), unseen)
        else:
            self._train(X, y, weight, None)
        return self

    def _partial_fit(self: P, X: Any, y: Any, classes: Any, sample_weight: Any) -> P:
        if self.early_stopping:
            raise ValueError(
                f"[{type(self).__name__}] partial_fit makes one epoch and cannot stop early; set early_stopping=False"
            )
        fresh = not self.__sklearn_is_fitted__()
        X, y, weight = self._begin(X, y, classes, sample_weight, fresh)
        if fresh:
            self._optimizer = self._new_optimizer()
            self.n_iter_ = 0
        self._epoch(X, self._encoded(y), weight)
        return self

    @property
    def coefs_(self) -> list[np.ndarray]:
        """The weights of the layers, each (inputs, outputs)."""
        return [layer.weight.numpy().T for layer in self._layers()]

    @property
    def intercepts_(self) -> list[np.ndarray]:
        """The biases of the layers."""
        return [layer.bias.numpy() for layer in self._layers() if layer.bias is not None]

    def __sklearn_is_fitted__(self) -> bool:
        return "_network" in vars(self)

    # Before the first step

    def _begin(
        self, X: Any, y: Any, classes: Any, sample_weight: Any, fresh: bool
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Judge the parameters and the data; make the network if a new one is wanted."""
        name = type(self).__name__
        check_parameters(name, self.get_params(deep=False))
        X, y = self._checked(X, y, classes, fresh)
        weight = None
        if sample_weight is not None:
            weight = _check_sample_weight(sample_weight, X, dtype=np.dtype(self.dtype))
            if weight.min() < 0 or not weight.any():
                raise ValueError(f"[{name}] sample_weight must not be negative, and not all of it zero")
        sizes = [X.shape[1], *layer_sizes(self.hidden_layer_sizes), self._width(y)]
        wanted = {"sizes": sizes, "activation": self.activation}
        if fresh or self._mixed.asked != self.precision:
            self._mixed = MixedPrecision(name, self.precision)
        if fresh:
            self._random_state = check_random_state(self.random_state)
            seed = int(self._random_state.randint(np.iinfo(np.int32).max))
            mixed = self.precision != "float32"  # whose weights are float32
            self._architecture: dict[str, Any] = {
                **wanted,
                "dtype": "float32" if mixed else str(np.dtype(self.dtype)),
            }
            self._set_network(_network(self._architecture, seed))
            self.n_layers_, self.n_outputs_ = len(sizes), sizes[-1]
            self.loss_curve_: list[float] = []
        elif any(self._architecture[key] != value for key, value in wanted.items()):
            raise ValueError(
                f"[{name}] the network was made with {self._architecture} and cannot go on with {wanted}; "
                "set warm_start=False and fit anew"
            )
        return np.ascontiguousarray(X, self._architecture["dtype"]), y, weight

    def _new_optimizer(self) -> optim.Optimizer:
        """Weights decay, biases do not; how much depends on the batch, see :meth:`_step`."""
        layers = self._layers()
        groups = [
            {"params": [layer.weight for layer in layers]},
            {"params": [layer.bias for layer in layers if layer.bias is not None]},
        ]
        if self.solver == "adam":
            return optim.Adam(groups, lr=self.learning_rate_init)
        return optim.SGD(
            groups, lr=self.learning_rate_init, momentum=self.momentum, nesterov=self.momentum > 0
        )

    def _split(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Which samples are learned from, and which are kept for validation."""
        learned, held_out = train_test_split(
            np.arange(len(y)),
            test_size=self.validation_fraction,
            random_state=self._random_state,
            stratify=y if is_classifier(self) else None,
        )
        if len(held_out) < 2:
            raise ValueError(
                f"[{type(self).__name__}] validation_fraction={self.validation_fraction} of {len(y)} samples leaves "
                "fewer than 2 to validate on; make it larger"
            )
        return learned, held_out

    # The loop

    def _train(
        self, X: np.ndarray, y: np.ndarray, weight: np.ndarray | None, unseen: tuple[Any, Any, Any] | None
    ) -> None:
        targets = self._encoded(y)
        best, waited, best_weights = math.inf if unseen is None else -math.inf, 0, self._network.state_dict()
        self.validation_scores_: list[float] | None = None if unseen is None else []
        for _ in range(self.max_iter):
            self._epoch(X, targets, weight)
            if unseen is None:
                value = self.loss_
                gain = best - value
            else:
                value = self._validate(*unseen)
                gain = value - best
            if gain > 0:
                best, best_weights = value, self._network.state_dict()
            waited = 0 if gain >= self.tol else waited + 1
            if waited > self.n_iter_no_change:
                break
        else:
            warnings.warn(
                f"[{type(self).__name__}] still learning after max_iter={self.max_iter} epochs; more may do better",
                ConvergenceWarning,
                stacklevel=3,
            )
        self.best_loss_ = best if unseen is None else None
        self.best_validation_score_ = None if unseen is None else best
        if unseen is not None:
            self._network.load_state_dict(best_weights)

    def _epoch(self, X: np.ndarray, targets: np.ndarray, weight: np.ndarray | None) -> None:
        """Each sample once, in batches."""
        samples = len(X)
        size = min(200 if self.batch_size == "auto" else int(self.batch_size), samples)
        order = self._random_state.permutation(samples) if self.shuffle and size < samples else None
        total = mass = 0.0
        for start in range(0, samples, size):
            end = min(start + size, samples)
            chosen = slice(start, end) if order is None else order[start:end]
            share = _taken(weight, chosen)
            amount = float(end - start if share is None else share.sum(dtype=np.float64))
            if amount > 0:  # a batch in which nothing counts has nothing to say
                loss = self._step(ExTensor(X[chosen]), ExTensor(targets[chosen]), share, amount)
                if loss is not None:
                    total += amount * loss
                    mass += amount
        self.loss_ = total / mass if mass else math.nan
        if not (
            math.isfinite(self.loss_)
            and all(np.isfinite(p.numpy()).all() for p in self._network.parameters())
        ):
            raise ValueError(
                f"[{type(self).__name__}] the loss or the weights became infinite or nan in epoch {self.n_iter_ + 1}; "
                "scale the samples (StandardScaler) or lower learning_rate_init"
            )
        self.n_iter_ += 1
        self.loss_curve_.append(self.loss_)
        if self.verbose:
            print(f"epoch {self.n_iter_}: loss {self.loss_:.6f}")

    def _step(self, x: ExTensor, targets: ExTensor, share: np.ndarray | None, amount: float) -> float | None:
        """One step of the optimiser; returns the loss before it.   mean loss + alpha / (2 n) sum w**2

        None for a loss that overflowed in float16, and was skipped.
        """

        shares = None if share is None else ExTensor(share / share.dtype.type(amount))

        def learn() -> ExTensor:
            self._optimizer.zero_grad()
            return self._learn(self._network, self._loss, x, targets, shares, self._mixed.scale)

        if self._mixed.name == "auto":
            self._mixed.choose(learn)
            if self.verbose:
                print(self._mixed.reason)
        with self._mixed.block():
            value = learn().item()
        if not math.isfinite(value) and self._mixed.refuse(self._optimizer):
            self._mixed.update()
            return None
        decay = self.alpha / amount
        decayed = self._optimizer.param_groups[0]
        decayed["weight_decay"] = decay
        penalty = 0.0
        if decay:
            with no_grad():
                penalty = 0.5 * decay * sum(sum_of(square(w)).item() for w in decayed["params"])
        if self._mixed.unscale(self._optimizer):
            self._optimizer.step()
        self._mixed.update()
        return value + penalty

    @property
    def _learn(self) -> Compiled:
        """The passes over a batch, recorded once for each shape."""
        found = vars(self).get("_compiled")
        if found is None:
            found = self._compiled = Compiled(_learn, fallback=True, warns=False)
        return found

    def _set_network(self, network: nn.Module) -> None:
        self._network = network
        self._compiled_network = Compiled(network, fallback=True, warns=False)  # for predictions

    def _validate(self, X: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> float:
        score = self._score(self._forward(X), y, weight)
        assert self.validation_scores_ is not None
        self.validation_scores_.append(score)
        if self.verbose:
            print(f"epoch {self.n_iter_}: validation score {score:.6f}")
        return score

    # After the last

    def _outputs(self, X: Any) -> np.ndarray:
        """What the network says about samples of the user."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=FLOATS, reset=False)
        return self._forward(X).astype(X.dtype, copy=False)

    def _forward(self, X: np.ndarray) -> np.ndarray:
        X = np.ascontiguousarray(X, self._architecture["dtype"])
        with no_grad():
            parts = [
                self._compiled_network(ExTensor(X[start : start + ROWS_AT_ONCE])).numpy()
                for start in range(0, len(X), ROWS_AT_ONCE)
            ]
        return np.concatenate(parts)

    def _layers(self) -> list[nn.Linear]:
        return [layer for layer in self._network.modules() if isinstance(layer, nn.Linear)]

    # Tensors are not pickled, arrays are

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        for name in ("_compiled", "_compiled_network"):
            state.pop(name, None)  # a recording belongs to this process
        if "_network" in state:
            tensors: dict[str, ExTensor] = {}
            trees = {"network": self._network.state_dict(), "optimizer": self._optimizer.state_dict()}
            state["_trees"] = flatten_state("pickle", trees, "", tensors)
            state["_arrays"] = {name: tensor.numpy() for name, tensor in tensors.items()}
            del state["_network"], state["_optimizer"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        trees, arrays = state.pop("_trees", None), state.pop("_arrays", {})
        super().__setstate__({"_mixed": MixedPrecision("pickle", "float32"), **state})
        if trees is not None:
            found = restore_state(trees, {name: asarray(array) for name, array in arrays.items()})
            self._set_network(_network(self._architecture, 0))
            self._network.load_state_dict(found["network"])
            self._optimizer = self._new_optimizer()
            self._optimizer.load_state_dict(found["optimizer"])


def _learn(
    network: Any, loss: Any, x: ExTensor, targets: ExTensor, shares: ExTensor | None, scale: float | None
) -> ExTensor:
    """Leave the gradients of the mean loss, times ``scale``, in the parameters; returns that loss."""
    outputs = network(x)
    if shares is None:
        value = loss(outputs, targets, "mean")
    else:
        value = sum_of(loss(outputs, targets, "none") * shares)
    (value if scale is None else optim.scale_loss(value, scale)).backward()
    return value


def _network(architecture: dict[str, Any], seed: int) -> MLP:
    made = MLP(architecture["sizes"], ACTIVATIONS[architecture["activation"]], rng=seed)
    return made.astype(architecture["dtype"])


def _taken(weight: np.ndarray | None, chosen: Any) -> np.ndarray | None:
    return None if weight is None else weight[chosen]
