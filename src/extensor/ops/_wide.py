"""Half precision in functions that are made of several others."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from ..dtypes import FLOATING, HALF, float32, promote
from ..nested import needs_grad
from ..tensor import ExTensor
from .casting import astype, cast_like

__all__ = ["computed_wide", "forward_wide"]

F = TypeVar("F", bound=Callable[..., Any])


def computed_wide(backward: F) -> F:
    """A backward made of several steps: float16 and bfloat16 go through it in float32 and are rounded once."""

    @functools.wraps(backward)
    def wrapper(*args: Any, **options: Any) -> Any:
        if not any(isinstance(v, ExTensor) and v.dtype in HALF for v in _flat((*args, *options.values()))):
            return backward(*args, **options)
        like = next(v for v in _flat((*args[1:], *options.values(), *args[:1])) if isinstance(v, ExTensor))
        found = backward(*map(_widen, args), **{name: _widen(v) for name, v in options.items()})
        if isinstance(found, (tuple, list)):
            parts = [cast_like(part, like) for part in found]
            return type(found)(*parts) if hasattr(found, "_fields") else parts
        return cast_like(found, like)

    return wrapper  # type: ignore[return-value]


def forward_wide(forward: F) -> F:
    """A forward made of several steps: float16 and bfloat16 go through it in float32 and are rounded once."""

    @functools.wraps(forward)
    def wrapper(*args: Any, **options: Any) -> Any:
        dtypes = [
            v.dtype
            for v in _flat((*args, *options.values()))
            if isinstance(v, ExTensor) and v.dtype in FLOATING
        ]
        if HALF.isdisjoint(dtypes) or promote(*dtypes) not in HALF:
            return forward(*args, **options)
        found = forward(*map(_allowed, args), **{name: _allowed(v) for name, v in options.items()})
        return astype(found, promote(*dtypes))

    return wrapper  # type: ignore[return-value]


def _flat(values: Any) -> list[Any]:
    found: list[Any] = []
    for value in values:
        found.extend(value if isinstance(value, (list, tuple)) else (value,))
    return found


def _allowed(value: Any) -> Any:
    """Widened, but for a list of tensors that want gradients: a cast list would not show it and be taken for numbers."""
    return value if not isinstance(value, ExTensor) and needs_grad(value) else _widen(value)


def _widen(value: Any) -> Any:
    if isinstance(value, ExTensor):
        return value.astype(float32) if value.dtype in HALF else value
    return (
        [_widen(v) for v in value]
        if isinstance(value, (list, tuple)) and any(isinstance(v, ExTensor) for v in value)
        else value
    )
