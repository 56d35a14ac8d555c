"""The rows of the registry, one module per family of functions."""

from ..registry import Pair, completed
from . import (
    activation,
    arithmetic,
    basics,
    conv,
    elementwise,
    exponential,
    indexing,
    joining,
    loss,
    matrix,
    pooling,
    reduction,
    shape,
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
    conv,
    pooling,
    loss,
    shape,
    joining,
    indexing,
)

PAIRS: dict[str, Pair] = {pair.name: completed(pair) for family in FAMILIES for pair in family.PAIRS}
