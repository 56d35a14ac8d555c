"""Batching rules of losses: the loss of each element, then what ``reduction`` makes of those of one example."""

from __future__ import annotations

from typing import Any

from ...ops.reduction import mean
from ...ops.reduction import sum as total
from ...tensor import ExTensor
from .batched import Level
from .elementwise import aligned, names_of
from .registry import batches, each_example

__all__: list[str] = []


def _bound(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    return {**dict(zip(names_of(op).names, args)), **kwargs}


def _reduced(losses: ExTensor, reduction: str) -> ExTensor:
    axes = tuple(range(1, losses.ndim))
    if reduction == "none":
        return losses
    return mean(losses, axes) if reduction == "mean" else total(losses, axes)


@batches(
    "mean_squared_error", "mean_absolute_error", "smooth_l1", "huber", "binary_cross_entropy", "binary_cross_entropy_with_logits",
    "focal", "hinge",
)  # fmt: skip
def of_elements(level: Level, op: Any, *args: Any, **kwargs: Any) -> Any:
    """Losses of single elements; weights broadcast."""
    named = _bound(op, args, kwargs)
    reduction = named.pop("reduction", "mean")
    names = list(named)[:2]
    first, second = (named[name] for name in names)
    shapes = [getattr(t, "shape", None) for t in (first, second)]
    if shapes[0] != shapes[1] or reduction not in ("mean", "sum", "none"):
        return each_example(level, op, *args, **kwargs)  # which says what is wrong
    full = {name: level.full(named[name]) for name in names}
    for name in ("weight", "pos_weight"):
        if level.has(named.get(name)):
            full[name] = aligned(level, named[name], first.ndim)
    return _reduced(op(**{**named, **full}, reduction="none"), reduction)


@batches("cross_entropy")
def cross_entropy(level: Level, op: Any, *args: Any, **kwargs: Any) -> Any:
    """The loss of each row. A mean over weighted labels, or over some of them, is that of each example alone."""
    named = _bound(op, args, kwargs)
    reduction = named.pop("reduction", "mean")
    logits = named["logits"]
    weighted = named.get("weight") is not None or named.get("ignore_index") is not None
    axis = named.pop("axis", -1)
    outside = not isinstance(axis, int) or not -logits.ndim <= axis < logits.ndim
    if (
        outside
        or (weighted and reduction == "mean")
        or level.has(named.get("weight"))
        or reduction not in ("mean", "sum", "none")
    ):
        return each_example(level, op, *args, **kwargs)
    full = {name: level.full(named[name]) for name in ("logits", "targets")}
    place = axis % logits.ndim + 1
    return _reduced(op(**{**named, **full}, axis=place, reduction="none"), reduction)
