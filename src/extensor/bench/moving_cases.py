"""Functions that move elements, and their gradients, beside PyTorch's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

import extensor as et

from .case import Case, Run

__all__ = ["moving_cases"]


class Move(NamedTuple):
    """A call of ours and PyTorch's on a matrix and positions in it: along its rows, and for each element."""

    ours: Callable[[Any, Any, Any], Any]
    theirs: Callable[[Any, Any, Any, Any], Any]


_MOVES = {
    "take rows": Move(lambda x, i, _: et.take(x, i, 0), lambda torch, x, i, _: torch.index_select(x, 0, i)),
    "take_along_axis": Move(
        lambda x, _, along: et.take_along_axis(x, along, 0),
        lambda torch, x, _, along: torch.gather(x, 0, along),
    ),
    "concatenate rows": Move(
        lambda x, *_: et.concatenate([x, x], 0), lambda torch, x, *_: torch.cat([x, x], 0)
    ),
    "concatenate columns": Move(
        lambda x, *_: et.concatenate([x, x], 1), lambda torch, x, *_: torch.cat([x, x], 1)
    ),
    "pad": Move(
        lambda x, *_: et.pad(x, ((1, 1), (2, 2))),
        lambda torch, x, *_: torch.nn.functional.pad(x, (2, 2, 1, 1)),
    ),
    "copy of a transpose": Move(lambda x, *_: et.copy(x.T), lambda torch, x, *_: x.T.contiguous()),
    "astype float16": Move(lambda x, *_: x.astype(et.float16), lambda torch, x, *_: x.to(torch.float16)),
}


def moving_cases(libraries: dict[str, ModuleType], sizes: dict[str, int]) -> Iterator[Case]:
    """Each function on about square matrices, and with its gradient."""
    for size, n in sizes.items():
        rows = 1 << (n.bit_length() - 1) // 2
        for name, move in _MOVES.items():
            for suffix, gradients in (("", False), (", gradients", True)):
                made = partial(_make, libraries, move, (rows, n // rows), gradients)
                yield Case("moving", f"{name}{suffix}", size, made)


def _make(
    libraries: dict[str, ModuleType], move: Move, shape: tuple[int, int], gradients: bool
) -> dict[str, Run]:
    rng = np.random.default_rng(0)
    x = rng.uniform(0.1, 2.0, shape).astype(np.float32)
    places = rng.integers(0, shape[0], shape[0]), rng.integers(0, shape[0], shape)
    tensor, ours = et.tensor(x, requires_grad=gradients), [et.tensor(p) for p in places]
    runs = {"extensor": _run(partial(move.ours, tensor, *ours), tensor, et.ones_like if gradients else None)}
    if "torch" in libraries:
        torch: Any = libraries["torch"]
        other, theirs = torch.from_numpy(x).requires_grad_(gradients), [torch.from_numpy(p) for p in places]
        runs["torch"] = _run(
            partial(move.theirs, torch, other, *theirs), other, torch.ones_like if gradients else None
        )
    return runs


def _run(call: Run, x: Any, ones_like: Callable[[Any], Any] | None) -> Run:
    """The call alone, or with the gradient of ``x`` for a gradient of ones."""
    if ones_like is None:
        return call
    upstream = ones_like(call())

    def with_gradient() -> None:
        x.grad = None
        call().backward(upstream)

    return with_gradient
