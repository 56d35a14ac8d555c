"""The rows of the registry, one module per family of functions."""

from ..registry import Pair, completed
from . import (
    activation,
    arithmetic,
    arrays,
    attention,
    basics,
    conv,
    dropout,
    elementwise,
    embedding,
    exponential,
    fft,
    indexing,
    joining,
    linalg,
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
    linalg,
    fft,
    arrays,
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
