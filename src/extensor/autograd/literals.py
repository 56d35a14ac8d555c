"""Python values as they are written in a program text."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["literal"]


def literal(value: Any) -> str:
    """An expression for a plain value: a number, a text, a slice, a dtype."""
    if isinstance(value, slice):
        return f"slice({', '.join(map(literal, (value.start, value.stop, value.step)))})"
    if value is Ellipsis:
        return "..."
    if isinstance(value, np.dtype):
        return repr(value.name)
    if isinstance(value, np.generic):
        return literal(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return f'float("{value}")'
    return repr(value)
