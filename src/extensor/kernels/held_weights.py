"""Weights that stay as they are over several passes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

try:
    from .._native import hold_weights
except ModuleNotFoundError:

    def hold_weights(arrays: Sequence[Any], /) -> None:
        """References make nothing of a weight that could be kept."""


__all__ = ["held_weights"]


@contextlib.contextmanager
def held_weights(arrays: Iterable[Any]) -> Iterator[None]:
    """In this block, and in this thread, convolutions keep what they make of these weights, transformed or packed, for the next call.

    All of it follows from the weight and the sizes of the call, so results are the same bits. The arrays are held meanwhile, so
    that an update makes new ones instead of writing to them. Blocks do not nest: an inner one ends the outer one's keeping.
    """
    hold_weights(list(arrays))
    try:
        yield
    finally:
        hold_weights(())
