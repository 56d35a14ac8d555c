"""Directional derivatives: jvp, linearize."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..dtypes import FLOATING
from ..tensor import ExTensor, tensor
from .inputs import Sources, check_callable, detached, floating_outputs, matched, nesting
from .trees import map_leaves

__all__ = ["Linearization", "jvp", "linearize"]


def jvp(fn: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """``fn(*primals)`` and its directional derivative along ``tangents``.

    Forward mode out of two reverse passes: a pullback is linear in its argument, and its transpose is the jvp.

    Args:
        fn: a function of tensors (or structures of them) that returns tensors.
        primals: a tuple of its arguments.
        tangents: a tuple of directions, shaped like ``primals``; None for labels and indices.

    Example:
        >>> import extensor as et
        >>> out, tangent = et.jvp(lambda x: x * x, (et.tensor([1.0, 2.0]),), (et.tensor([1.0, 10.0]),))
        >>> tangent.tolist()
        [2.0, 40.0]
    """
    check_callable("jvp", fn)
    if not (isinstance(primals, (tuple, list)) and isinstance(tangents, (tuple, list))):
        raise TypeError("[jvp] primals and tangents must be tuples, one entry per argument of fn")
    line = Linearization("jvp", fn, primals)
    return line.result, line.along(tangents)


def linearize(fn: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """``fn(*primals)`` and its derivative there, a linear function from directions to that of the output.

    The function runs once; each direction then costs one walk.

    Example:
        >>> import extensor as et
        >>> out, along = et.linearize(lambda x: x * x, et.tensor([1.0, 2.0]))
        >>> along(et.tensor([1.0, 0.0])).tolist(), along(et.tensor([0.0, 1.0])).tolist()
        ([2.0, 0.0], [0.0, 4.0])
    """
    check_callable("linearize", fn)
    # Arrays are copied: directions come later, and the caller may have written to them by then.
    line = Linearization("linearize", fn, [map_leaves(lambda t: t, tree, make=tensor) for tree in primals])
    return line.result, lambda *tangents: line.along(tangents)


class Linearization:
    """A function at a point, ready for directions: a pullback is linear in its argument, and its transpose is the jvp."""

    def __init__(self, name: str, fn: Callable[..., Any], primals: Sequence[Any]) -> None:
        self.name = name
        self.sources = Sources(name, list(primals))
        with self.sources.running():
            self.output = fn(*self.sources.trees)
            outputs = floating_outputs(name, self.output)
            self.probes = Sources(name, [ExTensor(np.zeros(o.shape, o.dtype)) for o in outputs])
            self.pulled = self.sources.walk(outputs, self.probes.tensors, create=True)
        self.result = self.output if nesting.depth or self.sources.outer else detached(self.output)

    def push(self, directions: Sequence[ExTensor]) -> list[ExTensor]:
        """From a direction for each floating input to one for each floating output."""
        return self.probes.walk(self.pulled, directions, retain=True)

    def along(self, tangents: Sequence[Any]) -> Any:
        """The derivative along ``tangents``, structured like the output."""
        pushed = iter(self.push(matched(self.name, "tangent", "primal", self.sources.values, list(tangents))))
        return map_leaves(lambda t: next(pushed) if t.dtype in FLOATING else None, self.output)
