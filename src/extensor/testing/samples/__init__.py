"""The rows of the registry, one module per family of functions."""

from ..registry import Pair
from . import (
    activation,
    arithmetic,
    basics,
    elementwise,
    exponential,
    loss,
    matrix,
    reduction,
    softmax,
    sorting,
    trigonometric,
)

__all__ = ["PAIRS"]

FAMILIES = (
    arithmetic,
    basics,
    elementwise,
    exponential,
    trigonometric,
    activation,
    softmax,
    reduction,
    sorting,
    matrix,
    loss,
)

PAIRS: dict[str, Pair] = {pair.name: pair for family in FAMILIES for pair in family.PAIRS}
