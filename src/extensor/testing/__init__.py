"""Checking gradients: central differences, comparisons, and the verifier that walks every pair."""

from .numerical import assert_gradients_close, check_gradient, compute_numerical_gradient
from .registry import Case, Domain, Draw, Edge, Pair
from .tolerances import TOLERANCES
from .verifier import verify

__all__ = [
    "TOLERANCES", "Case", "Domain", "Draw", "Edge", "Pair",
    "assert_gradients_close", "check_gradient", "compute_numerical_gradient", "verify",
]  # fmt: skip
