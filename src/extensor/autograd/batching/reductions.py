"""Batching rules of functions of whole axes: their axes count from the second one."""

from __future__ import annotations

from typing import Any

from ...checks import as_axes, as_axis
from ...ops.shape import moveaxis, reshape
from ...tensor import ExTensor
from .batched import Level
from .elementwise import aligned
from .registry import batches, each_example

__all__ = ["axis_after", "flat"]


def axis_after(op: Any, axis: Any, ndim: int) -> int:
    """An axis of one example, counted among all axes."""
    return as_axis(op.__name__, axis, ndim) + 1


def flat(level: Level, x: Any) -> ExTensor:
    """All examples, each as one row."""
    return reshape(level.full(x), (level.size, x.size))


@batches(
    "sum", "mean", "max_reduce", "min_reduce", "variance", "std", "prod", "logsumexp", "max", "min", "var", "any", "all",
    "count_nonzero", "vector_norm", "median",
)  # fmt: skip
def reduction(level: Level, op: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """No axis means all axes of an example."""
    if not level.has(x):
        return each_example(level, op, x, *args, **kwargs)
    place = 1 if op.__name__ == "vector_norm" else 0  # after its order
    if len(args) > place:
        args, axis = (*args[:place], *args[place + 1 :]), args[place]
        options = dict(zip(("keepdims", "ddof"), args[place:]))
        args = args[:place]
    else:
        axis, options = kwargs.pop("axis", None), {}
    axes = tuple(i + 1 for i in as_axes(op.__name__, axis, x.ndim))
    return op(x.batch, *args, axis=axes, **options, **kwargs)


@batches("argmax", "argmin")
def extreme_position(level: Level, op: Any, x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    """Positions in the flat example, where there is no axis."""
    if axis is not None:
        return op(level.full(x), axis_after(op, axis, x.ndim), keepdims)
    found = op(flat(level, x), 1)
    return reshape(found, (level.size, *(1,) * x.ndim)) if keepdims else found


@batches("quantile")
def quantile(level: Level, op: Any, x: Any, q: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Several quantiles stand along an axis of their own, in front."""
    if not level.has(x) or level.has(q):
        return each_example(level, op, x, q, axis, keepdims)
    found = op(x.batch, q, tuple(i + 1 for i in as_axes("quantile", axis, x.ndim)), keepdims)
    return (
        found
        if found.ndim == 1 + x.ndim - (0 if keepdims else len(as_axes("quantile", axis, x.ndim)))
        else moveaxis(found, 1, 0)
    )


@batches(
    "softmax", "log_softmax", "sort", "argsort", "cumsum", "cumprod", "cummax", "cummin", "logcumsumexp", "fft", "ifft", "rfft",
    "irfft", "hfft", "ihfft", "diff", "top_k",
)  # fmt: skip
def along_axis(level: Level, op: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """Something done along one axis of each example; the axis comes after a count in some."""
    if not level.has(x):
        return each_example(level, op, x, *args, **kwargs)
    place = {"diff": 1, "top_k": 1}.get(op.__name__, 1 if op.__module__.startswith("extensor.fft") else 0)
    counts, rest = args[:place], args[place:]
    named = dict(kwargs)
    default = None if op.__name__ == "cumsum" else -1
    axis = rest[0] if rest else named.pop("axis", default)
    if axis is None:
        return op(flat(level, x), *counts, axis=1, **named)
    if not x.ndim:  # some functions see a number as a row of one
        as_axis(op.__name__, axis, 1)
        return _as_numbers(op(reshape(x.batch, (level.size, 1)), *counts, axis=1, **named))
    more = dict(zip(("descending", "stable") if "sort" in op.__name__ else ("norm",), rest[1:]))
    return op(x.batch, *counts, axis=axis_after(op, axis, x.ndim), **more, **named)


def _as_numbers(result: Any) -> Any:
    if isinstance(result, ExTensor):
        return reshape(result, result.shape[:1])
    return type(result)(*map(_as_numbers, result)) if hasattr(result, "_fields") else result


@batches("fftn", "ifftn", "fft2", "ifft2", "rfftn", "irfftn")
def over_axes(
    level: Level, op: Any, x: Any, s: Any = None, axes: Any = "default", norm: str = "backward"
) -> Any:
    """Transforms over several axes: all of an example, or the last ones."""
    if axes == "default":
        axes = (-2, -1) if op.__name__.endswith("2") else None
    if axes is None:
        axes = range(x.ndim) if s is None else range(x.ndim - len(tuple(s)), x.ndim)
    return op(level.full(x), s, tuple(axis_after(op, i, x.ndim) for i in axes), norm)


@batches("fftshift", "ifftshift")
def shifted(level: Level, op: Any, x: Any, axes: Any = None) -> Any:
    """Over all axes of an example, where none is named."""
    return op(level.full(x), tuple(i + 1 for i in as_axes(op.__name__, axes, x.ndim)))


@batches("cosine_similarity", "cross", "vecdot")
def two_along_axis(level: Level, op: Any, a: Any, b: Any, axis: int = -1, *options: Any, **named: Any) -> Any:
    """Rows of two tensors that broadcast: the axis counts in what they broadcast to."""
    ndim = max(a.ndim, b.ndim)
    place = as_axis(op.__name__, axis, ndim) - ndim
    if min(a.ndim, b.ndim) < -place:
        return each_example(level, op, a, b, axis, *options, **named)
    return op(aligned(level, a, ndim), aligned(level, b, ndim), place, *options, **named)
