"""The rows of the registry, one module per family of functions."""

from ..registry import Pair
from . import arithmetic

__all__ = ["PAIRS"]

PAIRS: dict[str, Pair] = {pair.name: pair for family in (arithmetic,) for pair in family.PAIRS}
