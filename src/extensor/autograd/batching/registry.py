"""Batching rules: what an op does to many examples at once.

A rule is called with the running :class:`~.batched.Level` and the op, then like the op itself: what differs between examples
is a :class:`~.batched.Batched` tensor, of which ``shape`` and ``ndim`` are those of one example and ``level.full(x)`` are all
examples, batch axis in front. It returns the result with the batch axis in front.

Most rules are said by family (:mod:`.rules`). Where there is none, :func:`each_example` is the definition of them all.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from ...errors import BatchedError
from ...graph import observe
from ...ops.joining import stack
from ...tensor import ExTensor
from .batched import Level

__all__ = ["RULES", "Rule", "batches", "by_body", "each_example", "rule_of"]

Rule = Callable[..., Any]
RULES: dict[str, Rule] = {}


def batches(*names: str) -> Callable[[Rule], Rule]:
    """Make a function the batching rule of the ops of these names."""

    def decorate(rule: Rule) -> Rule:
        for name in names:
            if name in RULES:
                raise ValueError(f"[batches] {name} has two batching rules")
            RULES[name] = rule
        return rule

    return decorate


def rule_of(op: Any) -> Rule:
    """The batching rule of an op; a user's op has none."""
    if not op.__module__.startswith("extensor."):
        return each_example
    return RULES.get(op.__name__, each_example)


def each_example(level: Level, op: Any, *args: Any, **kwargs: Any) -> Any:
    """The op on one example after the other: right for every op."""
    if not level.size:
        return _none(level, op, args, kwargs)
    results = [
        op(*_example(level, args, i), **{name: _example(level, value, i) for name, value in kwargs.items()})
        for i in range(level.size)
    ]
    return _together(op, results)


def by_body(level: Level, op: Any, *args: Any, **kwargs: Any) -> Any:
    """An op whose body is made of others: the rules of those. A body that looks at elements runs example by example."""
    with suppress(BatchedError), observe(level):
        return _full(level, op.fn(*args, **kwargs))
    return each_example(level, op, *args, **kwargs)


def _full(level: Level, result: Any) -> Any:
    if isinstance(result, ExTensor):
        return level.full(result)
    if isinstance(result, (list, tuple)):
        parts = [_full(level, part) for part in result]
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    return result


def _example(level: Level, value: Any, i: int) -> Any:
    if level.has(value):
        return value.batch[i]
    if isinstance(value, (list, tuple)) and level.holds(value):
        parts = [_example(level, part, i) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


def _together(op: Any, results: list[Any]) -> Any:
    first = results[0]
    if isinstance(first, ExTensor):
        shapes = {r.shape for r in results}
        if len(shapes) > 1:
            one, other = sorted(shapes)[:2]
            raise ValueError(
                f"[vmap] {op.__name__} gives results of different shapes for different examples, {one} and {other}"
            )
        return stack(results)
    if isinstance(first, (list, tuple)):
        if len({len(r) for r in results}) > 1:
            raise ValueError(
                f"[vmap] {op.__name__} gives different numbers of results for different examples"
            )
        parts = [_together(op, list(row)) for row in zip(*results)]
        return type(first)(*parts) if hasattr(first, "_fields") else type(first)(parts)
    if any(r != first for r in results):
        raise ValueError(
            f"[vmap] {op.__name__} gives different answers for different examples, which Python cannot follow"
        )
    return first


def _none(level: Level, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Of no example at all: the shapes that one would give."""

    def blank(value: Any) -> Any:
        if level.has(value):
            return ExTensor(np.ones(value.shape, value.dtype))
        if isinstance(value, (list, tuple)):
            parts = [blank(part) for part in value]
            return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
        return value

    def empty(result: Any) -> Any:
        if isinstance(result, ExTensor):
            return ExTensor(np.zeros((0, *result.shape), result.dtype))
        if isinstance(result, (list, tuple)):
            parts = [empty(part) for part in result]
            return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
        return result

    return empty(op(*blank(args), **{name: blank(value) for name, value in kwargs.items()}))
