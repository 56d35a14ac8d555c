"""Our functions with the standard's signatures: same mathematics, positional-only arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import describe
from ..tensor import ExTensor

__all__ = ["as_cpu", "binary", "checked", "unary"]

Function = Callable[..., Any]


def _named(wrapper: Function, name: str, ours: Function) -> Function:
    wrapper.__name__ = wrapper.__qualname__ = name
    wrapper.__doc__ = ours.__doc__
    return wrapper


def unary(ours: Function, name: str | None = None) -> Function:
    """A function of one array."""

    def function(x: Any, /) -> Any:
        return ours(checked(function.__name__, x))

    return _named(function, name or ours.__name__, ours)


def binary(ours: Function, name: str | None = None) -> Function:
    """A function of two arrays, or of an array and a Python number."""

    def function(x1: Any, x2: Any, /) -> Any:
        return ours(x1, x2)

    return _named(function, name or ours.__name__, ours)


def checked(function: str, x: Any) -> ExTensor:
    """The standard's functions take arrays of their own library alone."""
    if not isinstance(x, ExTensor):
        raise TypeError(f"[{function}] x must be an array of this library, got {describe(x)}; use asarray")
    return x


def as_cpu(function: str, device: Any) -> None:
    """The one device there is."""
    if device not in (None, "cpu"):
        raise ValueError(f'[{function}] device must be "cpu" or None, got {describe(device)}')
