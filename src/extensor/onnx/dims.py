"""Whole numbers that depend on the free lengths of a model: found by running it at several sizes and comparing."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from ..tensor import ExTensor

__all__ = ["Changing", "Dim", "Symbol", "merge"]


class Symbol:
    """A free length: axis ``axis`` of input ``source``; ``sizes`` are its value in the first run and in its own run."""

    def __init__(self, name: str, source: str, axis: int, size: int, other: int) -> None:
        self.name, self.source, self.axis = name, source, axis
        self.size, self.other = size, other


class Dim(int):
    """A number that is ``factor * (product of symbols) + offset``; ``symbols`` is None where it follows no such rule."""

    symbols: tuple[Symbol, ...] | None
    factor: int
    offset: int

    def __new__(cls, value: int, symbols: tuple[Symbol, ...] | None, factor: int = 1, offset: int = 0) -> Dim:
        self = super().__new__(cls, value)
        self.symbols, self.factor, self.offset = symbols, factor, offset
        return self


class Changing:
    """A constant whose shape depends on the free lengths, with its values in every run."""

    def __init__(self, arrays: list[np.ndarray], shape: tuple[int, ...]) -> None:
        self.arrays, self.shape = arrays, shape
        self.dtype = arrays[0].dtype


def merge(values: Sequence[Any], symbols: Sequence[Symbol], where: str) -> Any:
    """One value out of those of all runs (the first, then one for each symbol); tensors are not looked at."""
    first = values[0]
    if any(type(v) is not type(first) for v in values):
        raise _differs(where)
    if isinstance(first, (ExTensor, np.ndarray)):
        return first
    if isinstance(first, (list, tuple)):
        if any(len(v) != len(first) for v in values):
            raise _differs(where)
        parts = [merge(each, symbols, where) for each in zip(*values)]
        return parts if isinstance(first, list) else tuple(parts)
    if isinstance(first, dict):
        return {k: merge([v[k] for v in values], symbols, where) for k in first}
    if isinstance(first, slice):
        return slice(
            *(merge([getattr(v, n) for v in values], symbols, where) for n in ("start", "stop", "step"))
        )
    if isinstance(first, int) and not isinstance(first, bool):
        return first if all(v == first for v in values) else _fitted(values, symbols)
    same = all(v is first or v == first or (v != v and first != first) for v in values)
    if not same:
        raise _differs(where)
    return first


def _differs(where: str) -> ValueError:
    return ValueError(
        f"[export] {where} depends on the size of the inputs in a way that ONNX cannot say; pass dynamic_axes=False"
    )


def _fitted(values: Sequence[int], symbols: Sequence[Symbol]) -> Dim:
    first = values[0]
    moved = [(s, v) for s, v in zip(symbols, values[1:]) if v != first]
    if len(moved) == 1:
        symbol, value = moved[0]
        factor = Fraction(value - first, symbol.other - symbol.size)
        if factor.denominator == 1:
            return Dim(first, (symbol,), int(factor), first - int(factor) * symbol.size)
        return Dim(first, None)
    product = int(np.prod([s.size for s, _ in moved]))
    factor = Fraction(first, product) if product else Fraction(1, 2)
    fits = all(v * s.size == first * s.other for s, v in moved)
    if factor.denominator == 1 and fits:
        return Dim(first, tuple(s for s, _ in moved), int(factor))
    return Dim(first, None)
