"""What convolutions and poolings ask of their arguments: images, pairs, and windows that fit."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, TypeVar

from ..checks import INTS, as_ints
from ..errors import describe
from ..tensor import Shape

Pair = tuple[int, int]
Padding = tuple[int, int, int, int]
Found = TypeVar("Found")

_PLAIN = {int, bool, str, type(None), tuple}


def remembered(check: Callable[..., Found]) -> Callable[..., Found]:
    """``check`` computes a geometry once for the same plain arguments: the steps of a training have the same shapes.

    What merely equals an earlier argument (1.0 and 1, True and 1) is checked for itself.
    """
    known = lru_cache(maxsize=1024, typed=True)(check)

    @wraps(check)
    def call(*args: Any) -> Found:
        plain = _PLAIN.issuperset(map(type, args)) and all(
            INTS.issuperset(map(type, value)) for value in args if type(value) is tuple
        )
        return (known if plain else check)(*args)

    return call


def as_pair(function: str, name: str, value: Any, least: int, count: int = 2) -> tuple[int, ...]:
    """One int for all ``count`` directions, or one for each; none below ``least`` or beyond a C int."""
    found = as_ints(function, name, value)
    if len(found) == 1:
        found *= count
    if len(found) != count:
        wanted = "an int" if count == 1 else f"an int or {count} of them"
        raise ValueError(f"[{function}] {name} must be {wanted}, got {describe(value)}")
    if min(found) < least:
        raise ValueError(f"[{function}] {name} must be at least {least}, got {describe(value)}")
    if max(found) >= 2**31:
        raise ValueError(f"[{function}] {name} must be less than 2**31, got {describe(value)}")
    return found


def check_axes(function: str, name: str, shape: Shape, axes: str) -> None:
    """A tensor must have the axes that ``axes`` names: ``"N, C, H, W"``."""
    count = axes.count(",") + 1
    if len(shape) != count:
        raise ValueError(f"[{function}] {name} must have the {count} axes ({axes}), got shape {shape}")


def padding_of(
    function: str, padding: Any, size: tuple[int, ...], stride: tuple[int, ...], dilation: tuple[int, ...]
) -> tuple[tuple[int, int], ...]:
    """The zeros before and after each direction; ``"same"`` puts the odd one after, as PyTorch does."""
    if not isinstance(padding, str):
        return tuple((p, p) for p in as_pair(function, "padding", padding, 0, len(size)))
    if padding == "valid":
        return ((0, 0),) * len(size)
    if padding != "same":
        raise ValueError(f"[{function}] padding must be ints, 'same' or 'valid', got {padding!r}")
    if any(s != 1 for s in stride):
        raise ValueError(
            f"[{function}] padding='same' needs stride 1, got stride {stride}; give padding as ints"
        )
    totals = (d * (k - 1) for d, k in zip(dilation, size))
    return tuple((total // 2, total - total // 2) for total in totals)


def transposed_padding_of(
    function: str, padding: Any, output_padding: Any, stride: tuple[int, ...], dilation: tuple[int, ...]
) -> tuple[tuple[tuple[int, int], ...], tuple[int, ...]]:
    """What a transposed convolution takes off before and after each direction, and what it adds at the end."""
    if isinstance(padding, str):
        raise ValueError(f"[{function}] padding must be ints for a transposed convolution, got {padding!r}")
    less = tuple((p, p) for p in as_pair(function, "padding", padding, 0, len(stride)))
    more = as_pair(function, "output_padding", output_padding, 0, len(stride))
    if any(m >= max(s, d) for m, s, d in zip(more, stride, dilation)):
        raise ValueError(
            f"[{function}] output_padding {more} must be smaller than stride {stride} or dilation {dilation}"
        )
    return less, more
