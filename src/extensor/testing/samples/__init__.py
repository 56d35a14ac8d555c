"""The rows of the registry, one module per family of functions."""

from ..registry import Pair, completed
from . import (
    activation,
    arithmetic,
    attention,
    basics,
    conv,
    dropout,
    elementwise,
    embedding,
    exponential,
    indexing,
    joining,
    loss,
    matrix,
    normalization,
    pooling,
    recurrent,
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
    normalization,
    dropout,
    embedding,
    attention,
    recurrent,
    loss,
    shape,
    joining,
    indexing,
)

PAIRS: dict[str, Pair] = {pair.name: completed(pair) for family in FAMILIES for pair in family.PAIRS}
