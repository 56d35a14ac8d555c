"""The parameters of the estimators, judged when a fit begins: scikit-learn sets them unseen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any

from .. import nn
from ..errors import describe
from ..train.mixed_precision import PRECISIONS

__all__ = ["ACTIVATIONS", "SOLVERS", "check_parameters", "layer_sizes"]

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "identity": nn.Identity, "logistic": nn.Sigmoid, "tanh": nn.Tanh, "relu": nn.ReLU, "gelu": nn.GELU, "silu": nn.SiLU,
}  # fmt: skip
SOLVERS = ("adam", "sgd")


def _whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and abs(float(value)) < float("inf")


def _truth(value: Any) -> bool:
    return isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")  # NumPy's come from grids


def layer_sizes(hidden: Any) -> list[int]:
    """The widths of the hidden layers as a list; a single number is one layer."""
    return [int(width) for width in (hidden if hasattr(hidden, "__iter__") else [hidden])]


def _are_widths(value: Any) -> bool:
    if isinstance(value, str):
        return False
    widths = list(value) if hasattr(value, "__iter__") else [value]
    return all(_whole(width) and width >= 1 for width in widths)


_RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "hidden_layer_sizes": (_are_widths, "a whole number above 0 or a list of them"),
    "activation": (lambda v: isinstance(v, str) and v in ACTIVATIONS, f"one of {', '.join(ACTIVATIONS)}"),
    "solver": (lambda v: isinstance(v, str) and v in SOLVERS, f"one of {', '.join(SOLVERS)}"),
    "alpha": (lambda v: _number(v) and v >= 0, "a number from 0"),
    "batch_size": (lambda v: v == "auto" if isinstance(v, str) else _whole(v) and v >= 1, "'auto' or a whole number above 0"),
    "learning_rate_init": (lambda v: _number(v) and v > 0, "a number above 0"),
    "max_iter": (lambda v: _whole(v) and v >= 1, "a whole number above 0"),
    "shuffle": (_truth, "True or False"),
    "tol": (lambda v: _number(v) and v >= 0, "a number from 0"),
    "verbose": (lambda v: _truth(v) or _whole(v), "True or False"),
    "warm_start": (_truth, "True or False"),
    "momentum": (lambda v: _number(v) and 0 <= v < 1, "a number from 0, below 1"),
    "early_stopping": (_truth, "True or False"),
    "validation_fraction": (lambda v: _number(v) and 0 < v < 1, "a number between 0 and 1"),
    "dtype": (lambda v: isinstance(v, str) and v in ("float32", "float64"), "'float32' or 'float64'"),
    "n_iter_no_change": (lambda v: _whole(v) and v >= 1, "a whole number above 0"),
    "precision": (lambda v: isinstance(v, str) and v in PRECISIONS, f"one of {', '.join(PRECISIONS)}"),
}  # fmt: skip


def check_parameters(function: str, parameters: Mapping[str, Any]) -> None:
    """Raise ValueError for the first parameter that is not what it must be."""
    for name, (fits, wanted) in _RULES.items():
        if not fits(parameters[name]):
            raise ValueError(f"[{function}] {name} must be {wanted}, got {describe(parameters[name])}")
