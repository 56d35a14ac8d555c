"""Tensors inside ``vmap``: one example to look at, the whole batch to compute with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..._html import escaped
from ...errors import BatchedError, GraphError
from ...graph import StateBlock, levels, observe, this_thread
from ...ops.broadcasting import broadcast_to
from ...tensor import ExTensor, Shape

__all__ = [
    "Batched",
    "BatchedTensor",
    "Level",
    "as_batched",
    "batched",
    "lifted",
    "nothing_like",
    "outside_levels",
    "raw",
    "rewrapped",
]

_NOTHING = b"\0"


class Batched:
    """What a tensor inside ``vmap`` has: see :class:`BatchedTensor`. Parameters of a module have it as well.

    Attributes:
        batch: the tensor of all examples, as the code around ``vmap`` would see it.
        level: the running ``vmap`` it belongs to.
        shared: whether every example is known to have the same elements, as those of parameters inside ``grad``.
    """

    __slots__ = ()

    batch: ExTensor
    level: Level
    shared: bool

    def _unknown(self) -> Any:
        if self.level.closed:
            raise BatchedError(
                "[vmap] a tensor of a function under vmap was kept beyond its call; return it from the function instead"
            )
        raise BatchedError(
            f"[vmap] the elements of a tensor of shape {self.shape} under vmap differ from example to example, and "
            "nothing may depend on them in Python; use where() for a choice, or compute it outside of vmap"
        )

    def _ignored(self, value: Any) -> None:
        pass  # the pure recorder sets the placeholder here

    _array = property(_unknown, _ignored)
    _data = property(_unknown, _ignored)

    @property
    def shape(self) -> Shape:
        """The lengths of the axes of one example."""
        return self.batch.shape[1:]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype of the elements."""
        return self.batch.dtype

    @property
    def ndim(self) -> int:
        """The number of axes of one example."""
        return self.batch.ndim - 1

    @property
    def size(self) -> int:
        """The number of elements of one example."""
        count = 1
        for length in self.shape:
            count *= length
        return count

    @property
    def is_leaf(self) -> bool:
        """Whether it was made by the user rather than by a recorded operation."""
        return self.batch.is_leaf

    def detach(self) -> ExTensor:
        """The same elements without a history."""
        return batched(self.batch.detach(), self.level)

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Refused: inside ``vmap`` gradients are those of transforms."""
        raise GraphError("[requires_grad] a tensor under vmap cannot become a leaf; use grad inside of vmap")

    def backward(self, *args: Any, **kwargs: Any) -> None:
        """Refused: ``.grad`` of what is outside cannot take one gradient per example."""
        raise GraphError(
            "[backward] under vmap each example has a gradient of its own; use grad inside of vmap, "
            "or call backward() on what vmap returns"
        )

    def __repr__(self) -> str:
        return f"tensor(one of {self.level.size} examples under vmap, shape={self.shape}, dtype={self.dtype.name})"

    def _repr_html_(self) -> str:
        return f"<pre>{escaped(repr(self))}</pre>"


class BatchedTensor(Batched, ExTensor):
    """A tensor inside ``vmap``: shape and dtype of one example; ``batch`` has all of them along its first axis.

    It has no elements to look at: whatever asks for them gets an error, not those of some example.
    """

    __slots__ = ("batch", "level", "shared")


class Level:
    """One running ``vmap``. As the observer of its thread it answers op calls by their batching rules."""

    __slots__ = ("closed", "each_example", "outer", "rule_of", "size")

    sees_backward = True  # a backward function that is called like any other (see graph.ops)

    def __init__(self, size: int, outer: Any, rules: Any) -> None:
        self.size = size
        self.outer = outer  # the observer around this vmap
        self.rule_of: Callable[[Any], Callable[..., Any]] = rules.rule_of
        self.each_example: Callable[..., Any] = rules.each_example
        self.closed = False

    def holds(self, values: Iterable[Any]) -> bool:
        """Whether a tensor of this vmap is among the values, or in a list of them."""
        for value in values:
            if isinstance(value, Batched):
                if value.level is self:
                    return True
            elif isinstance(value, (list, tuple)) and self.holds(value):
                return True
        return False

    def __call__(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with observe(self.outer):
            if not (self.holds(args) or (kwargs and self.holds(kwargs.values()))):
                return op(*args, **kwargs)
            return self.wrapped(self.rule_of(op)(self, op, *args, **kwargs))

    def wrapped(self, result: Any) -> Any:
        """What a rule returned, batch axis in front, as tensors of one example."""
        if isinstance(result, ExTensor):
            return batched(result, self)
        if isinstance(result, (list, tuple)):
            parts = [self.wrapped(part) for part in result]
            return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
        return result

    def drawn(self, draw: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Random numbers: each example draws its own from a generator, and the same from a seed."""
        levels.running.pop()  # what is drawn now, is drawn outside
        try:
            with observe(self.outer):
                same = isinstance(args[0] if args else kwargs.get("rng"), (int, np.integer))
                if same and not (self.holds(args) or self.holds(kwargs.values())):
                    return draw(*args, **kwargs)
                return self.wrapped(self.each_example(self, draw, *args, **kwargs))
        finally:
            levels.running.append(self)

    def full(self, value: Any) -> Any:
        """All examples of a tensor, batch axis in front; one that is the same for all is repeated without a copy."""
        if isinstance(value, Batched) and value.level is self:
            return value.batch
        return broadcast_to(value, (self.size, *value.shape))

    def has(self, value: Any) -> bool:
        """Whether a value is a tensor of this vmap."""
        return isinstance(value, Batched) and value.level is self


def batched(batch: ExTensor, level: Level, shared: bool = False) -> BatchedTensor:
    """The tensor that stands for one example of ``batch``."""
    made = BatchedTensor(nothing_like(batch.shape[1:]), batch.requires_grad)
    made.batch, made.level, made.shared = batch, level, shared
    return made


def nothing_like(shape: Shape) -> np.ndarray:
    """The array that a tensor of one example holds.

    It has a dtype that no kernel takes: a tensor that got past its vmap fails instead of computing something.
    """
    return np.ndarray(shape, "V1", _NOTHING, 0, (0,) * len(shape))


def as_batched(value: ExTensor, level: Level) -> Any:
    """A tensor as one of a level; one that is the same for all examples says so."""
    if isinstance(value, Batched) and value.level is level:
        return value
    return batched(level.full(value), level, shared=True)


def lifted(x: ExTensor, among: Sequence[Level]) -> ExTensor:
    """The tensor as one of each of the levels, outermost first: what is the same for all examples becomes one per example."""
    if not among:
        return x
    inner = as_batched(x, among[-1])
    if len(among) == 1:
        return inner
    return batched(lifted(inner.batch, among[:-1]), among[-1], inner.shared)


def raw(x: ExTensor) -> ExTensor:
    """The tensor of all examples of all levels."""
    while isinstance(x, Batched):
        x = x.batch
    return x


def rewrapped(made: ExTensor, like: ExTensor) -> ExTensor:
    """A tensor in place of ``raw(like)``, inside the same levels."""
    if not isinstance(like, Batched):
        return made
    return batched(rewrapped(made, like.batch), like.level, like.shared)


def outside_levels() -> StateBlock:
    """A context in which op calls do not ask the running vmaps: for walks over what they have recorded."""
    return observe(levels.running[0].outer if levels.running else this_thread.observer)
