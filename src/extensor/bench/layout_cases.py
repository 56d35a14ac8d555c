"""Operands as they come in practice: broadcast, transposed, every second element, half precision, powers by a number."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

import extensor as et

from .case import Case, Run

__all__ = ["layout_cases"]

# name -> shapes of the operands from (rows, columns), the call, and bytes moved per element of the first
Call = Callable[..., Any]
Shapes = Callable[[int, int], list[tuple[int, ...]]]
_CALLS: dict[str, tuple[Shapes, Call, float]] = {
    "add a row": (lambda r, c: [(r, c), (c,)], lambda x, y: x + y, 8),
    "multiply by a column": (lambda r, c: [(r, c), (r, 1)], lambda x, y: x * y, 8),
    "add a transpose": (lambda r, c: [(r, c), (c, r)], lambda x, y: x + y.T, 12),
    "every second column": (lambda r, c: [(r, c)], lambda x: abs(x[:, ::2]), 6),
    "x ** 2": (lambda r, c: [(r, c)], lambda x: x**2, 8),
    "x ** 3": (lambda r, c: [(r, c)], lambda x: x**3, 8),
    "x ** 0.5": (lambda r, c: [(r, c)], lambda x: x**0.5, 8),
}
_HALF: dict[str, tuple[Shapes, Call, float]] = {
    "add": (lambda r, c: [(r, c), (r, c)], lambda x, y: x + y, 6),
    "multiply by a number": (lambda r, c: [(r, c)], lambda x: x * 0.5, 4),
    "sum": (lambda r, c: [(r, c)], lambda x: x.sum(), 2),
}


def layout_cases(libraries: dict[str, ModuleType], sizes: dict[str, int]) -> Iterator[Case]:
    """The same calls in every library, on matrices of the given sizes."""
    for size, n in sizes.items():
        rows = max(1, n // 1024) if n >= 1024 else 4
        shape = rows, n // rows
        for name, (shapes, call, moved) in _CALLS.items():
            make = partial(_runs, libraries, shapes(*shape), call, None)
            yield Case("layout", name, size, make, bytes_moved=moved * n)
        for dtype in ("float16", "bfloat16"):
            for name, (shapes, call, moved) in _HALF.items():
                make = partial(_runs, libraries, shapes(*shape), call, dtype)
                yield Case("layout", f"{dtype} {name}", size, make, bytes_moved=moved * n)


def _runs(
    libraries: dict[str, ModuleType], shapes: list[tuple[int, ...]], call: Call, half: str | None
) -> dict[str, Run]:
    arrays = [
        np.random.default_rng(seed).uniform(0.1, 2.0, s).astype(np.float32) for seed, s in enumerate(shapes)
    ]
    tensors = [et.tensor(a) if half is None else et.tensor(a).astype(half) for a in arrays]
    runs: dict[str, Run] = {"extensor": lambda: call(*tensors)}
    if half is None:
        runs["numpy"] = lambda: call(*arrays)
    if "torch" in libraries:
        torch: Any = libraries["torch"]
        theirs = [torch.from_numpy(a) for a in arrays]
        if half is not None:
            theirs = [t.to(getattr(torch, half)) for t in theirs]
        runs["torch"] = lambda: call(*theirs)
    return runs
