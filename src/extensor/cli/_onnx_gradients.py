"""The gradient of every operation that a network uses, at the shapes it has there, against differences in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..compile.trees import fill, tensors_of
from ..graph import observe
from ..tensor import ExTensor

__all__ = ["RIGHT", "Checked", "check_operations"]

WIDTH = 1e-8  # of a difference: so small that hardly one of 10,000 windows of a pooling changes its largest element
JITTER = 1e-2  # by which values leave kinks and ties, where there is no gradient
RIGHT = 1e-4  # so near, a gradient is right
ATTEMPTS = 3  # a difference may still reach across a kink


class Checked(NamedTuple):
    """What came of one operation at one set of shapes.

    Attributes:
        name: of the function.
        shapes: of the tensors it was called with.
        calls: how often that was.
        apart: how far its gradient and the difference are apart, relative to the larger; None where it has no gradient.
    """

    name: str
    shapes: tuple[tuple[int, ...], ...]
    calls: int
    apart: float | None


class _Watcher:
    """Sees the calls of functions, and keeps one of each kind."""

    def __init__(self) -> None:
        self.kinds: dict[Any, tuple[Any, Any, Any]] = {}
        self.calls: dict[Any, int] = {}

    def __call__(self, op: Any, args: Any, kwargs: Any) -> Any:
        shapes = tuple(t.shape for t in tensors_of((args, kwargs)))
        options = repr(fill((args, kwargs), lambda t: str(t.dtype)))
        key = (op.__name__, shapes, options)
        self.kinds.setdefault(key, (op, args, kwargs))
        self.calls[key] = self.calls.get(key, 0) + 1
        with observe(None):
            return op.call(*args, **kwargs)


def check_operations(run: Callable[[], Any]) -> list[Checked]:
    """Check every operation that ``run`` calls, each kind of call once.

    Args:
        run: the network on inputs in float64 that require gradients, with its parameters in float64.
    """
    watcher = _Watcher()
    with observe(watcher):
        run()
    rng = np.random.default_rng(1)
    return [
        Checked(name, shapes, watcher.calls[name, shapes, options], _apart(*call, rng))
        for (name, shapes, options), call in watcher.kinds.items()
    ]


def _apart(op: Any, args: Any, kwargs: Any, rng: np.random.Generator) -> float | None:
    given = [t for t in tensors_of((args, kwargs)) if _moves(t)]
    if not given:
        return None
    start = [t.numpy() for t in given]
    sizes = [max(float(np.abs(a).mean()) if a.size else 0.0, 1e-3) for a in start]
    apart = np.inf
    for _ in range(ATTEMPTS):
        jittered = [a + JITTER * s * rng.uniform(-1, 1, a.shape) for a, s in zip(start, sizes)]
        found = _compared(op, args, kwargs, jittered, sizes, rng)
        if found is None or found < RIGHT:
            return found
        apart = found
    # beyond the domain of the function, such as below 0 for a logarithm, the values themselves have to do
    return apart if np.isfinite(apart) else _compared(op, args, kwargs, start, sizes, rng)


def _moves(tensor: ExTensor) -> bool:
    """Whether a gradient is asked for: of what depends on inputs and parameters, not of statistics."""
    return tensor.requires_grad and tensor.dtype == np.float64


def _compared(
    op: Any, args: Any, kwargs: Any, values: list[np.ndarray], sizes: list[float], rng: Any
) -> float | None:
    """The derivative along a random direction by the gradient and by a central difference."""
    weights: list[np.ndarray] = []

    def loss(leaves: list[ExTensor]) -> ExTensor | None:
        moving = iter(leaves)
        own_args, own_kwargs = fill((args, kwargs), lambda t: next(moving) if _moves(t) else t.detach())
        outputs = [y for y in tensors_of(op(*own_args, **own_kwargs)) if y.dtype == np.float64]
        total = None
        for i, y in enumerate(outputs):
            if len(weights) <= i:
                weights.append(rng.normal(size=y.shape))
            if y.requires_grad:
                part = (y * weights[i]).sum()
                total = part if total is None else total + part
        return total

    leaves = [ExTensor(np.array(v), True) for v in values]
    total = loss(leaves)
    if total is None:
        return None
    total.backward()
    steps = [rng.normal(size=v.shape) * s for v, s in zip(values, sizes)]
    slope = sum(float((x.grad.numpy() * s).sum()) for x, s in zip(leaves, steps) if x.grad is not None)
    ends = []
    for sign in (1, -1):
        end = loss([ExTensor(v + sign * WIDTH * s, True) for v, s in zip(values, steps)])
        ends.append(0.0 if end is None else float(end.item()))
    difference = (ends[0] - ends[1]) / (2 * WIDTH)
    rounding = 1e-15 * (abs(ends[0]) + abs(ends[1])) / WIDTH  # of the difference itself
    return max(0.0, abs(slope - difference) - rounding) / max(abs(slope), abs(difference), 1e-12)
