"""What the formulas of fused backwards have in common."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..checks import as_tensor
from ..tensor import ExTensor


def on_tensors(count: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A formula whose first ``count`` arguments may be numbers, lists and arrays, as those of its backward may."""

    def decorate(formula: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(formula)
        def converting(*args: Any, **options: Any) -> Any:
            tensors = [
                value if isinstance(value, ExTensor) else as_tensor(formula.__name__, "argument", value)
                for value in args[:count]
            ]
            return formula(*tensors, *args[count:], **options)

        return converting

    return decorate
