"""vmap: a function of one example, applied to batches of them."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...errors import describe
from ...graph import levels, this_thread
from ...ops.broadcasting import broadcast_to
from ...ops.shape import moveaxis
from ...tensor import ExTensor, asarray, tensor
from ..inputs import check_callable
from ..trees import closed, kind_of, opened
from .batched import Batched, Level, batched

__all__ = ["vmap"]

_CONTAINERS = (dict, list, tuple)


def vmap(fn: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Any]:
    """A function of batches out of a function of one example: it computes ``stack([fn(x[i]) for i in range(n)])`` at once.

    Each operation inside runs once, on all examples, by its batching rule; an operation without one runs once per example.
    It composes with :func:`grad`, :func:`jvp`, :func:`vjp`, :func:`jacobian` and itself, inside and outside.
    A generator that ``fn`` draws from gives each example numbers of its own; an int as ``rng`` gives all the same.

    Args:
        fn: a function of tensors, or structures of them. It must not look at their elements in Python.
        in_axes: the axis of the arguments that counts examples: an int for all, or a tuple with an int, None (the same for
            every example) or a structure of them per argument. Keyword arguments are batched along axis 0.
        out_axes: where that axis goes in the results: an int, None (only for what is the same for every example), or a
            structure of them.

    Example:
        >>> import extensor as et
        >>> dot = et.vmap(lambda a, b: (a * b).sum(), in_axes=(0, None))
        >>> dot(et.tensor([[1.0, 2.0], [3.0, 4.0]]), et.tensor([1.0, 10.0])).tolist()
        [21.0, 43.0]
        >>> per_example = et.vmap(et.grad(lambda w, x: (w * x).sum() ** 2), in_axes=(None, 0))
        >>> per_example(et.tensor([1.0, 1.0]), et.tensor([[1.0, 2.0], [0.0, 1.0]])).tolist()
        [[6.0, 12.0], [0.0, 2.0]]
    """
    check_callable("vmap", fn)
    _check_axes("in_axes", in_axes)
    _check_axes("out_axes", out_axes)

    @functools.wraps(fn, updated=())
    def of_batches(*args: Any, **kwargs: Any) -> Any:
        if isinstance(in_axes, (tuple, list)) and len(in_axes) != len(args):
            raise ValueError(f"[vmap] in_axes has {len(in_axes)} entries for {len(args)} arguments")
        axes = in_axes if isinstance(in_axes, (tuple, list)) else [in_axes] * len(args)
        inputs = _Inputs()
        given = [inputs.read(f"args[{i}]", arg, axis) for i, (arg, axis) in enumerate(zip(args, axes))]
        named = {name: inputs.read(name, arg, 0) for name, arg in kwargs.items()}
        if inputs.size is None:
            raise ValueError(
                "[vmap] no argument has an axis of examples: in_axes is None for every tensor, or there is none"
            )
        with _running(inputs.size) as level:
            found = fn(
                *(inputs.one(level, v) for v in given), **{k: inputs.one(level, v) for k, v in named.items()}
            )
            return _gathered(level, found, out_axes, "output")

    return of_batches


@contextmanager
def _running(size: int) -> Iterator[Level]:
    rules = importlib.import_module(".rules", __package__)  # loads on first use
    level = Level(size, this_thread.observer, rules)
    this_thread.observer = level
    levels.running.append(level)
    try:
        yield level
    finally:
        levels.running.pop()
        this_thread.observer = level.outer
        level.closed = True


def _check_axes(name: str, axes: Any) -> None:
    if isinstance(axes, dict):
        axes = tuple(axes.values())
    if isinstance(axes, (list, tuple)):
        for axis in axes:
            _check_axes(name, axis)
    elif axes is not None and (isinstance(axes, (bool, np.bool_)) or not isinstance(axes, (int, np.integer))):
        raise TypeError(f"[vmap] {name} must be ints, None or structures of them, got {describe(axes)}")


class _Moved:
    """A tensor with its examples along the first axis, on its way into the function."""

    __slots__ = ("batch",)

    def __init__(self, batch: ExTensor) -> None:
        self.batch = batch


class _Object:
    """An object that takes part by its tensors (a module), and those tensors."""

    __slots__ = ("given", "values")

    def __init__(self, given: Any, values: Any) -> None:
        self.given = given
        self.values = values


class _Inputs:
    """The arguments of a call, taken apart; all have the same number of examples."""

    def __init__(self) -> None:
        self.size: int | None = None
        self.first = ""

    def read(self, name: str, value: Any, axes: Any) -> Any:
        """The argument with its tensors as :class:`_Moved`; checks the axes."""
        if axes is None:
            return value
        if kind_of(value) is not None:
            return _Object(value, self.read(name, opened(value), axes))
        if isinstance(value, _CONTAINERS):
            return self._each(name, value, axes)
        if isinstance(value, (np.ndarray, np.generic)):
            value = asarray(value)
        if isinstance(axes, _CONTAINERS):
            raise ValueError(f"[vmap] in_axes has a structure for {name}, which is {describe(value)}")
        if isinstance(value, ExTensor):
            return self._moved(name, value, axes)
        if isinstance(value, (bool, int, float, complex)):
            raise ValueError(
                f"[vmap] {name} is a number ({value!r}), which has no axis {axes}; pass in_axes=None for it"
            )
        return value

    def _each(self, name: str, value: Any, axes: Any) -> Any:
        if isinstance(axes, _CONTAINERS):
            fits = (
                isinstance(axes, dict) and axes.keys() == value.keys()
                if isinstance(value, dict)
                else not isinstance(axes, dict) and len(axes) == len(value)
            )
            if not fits:
                raise ValueError(f"[vmap] in_axes must be structured like {name}, got {describe(axes)}")
        if isinstance(value, dict):
            return type(value)(
                (k, self.read(f"{name}[{k!r}]", v, axes[k] if isinstance(axes, dict) else axes))
                for k, v in value.items()
            )
        parts = [
            self.read(f"{name}[{i}]", v, axes[i] if isinstance(axes, (list, tuple)) else axes)
            for i, v in enumerate(value)
        ]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)

    def _moved(self, name: str, value: ExTensor, axis: int) -> _Moved:
        if not -value.ndim <= axis < value.ndim:
            raise ValueError(
                f"[vmap] {name} has shape {value.shape} and no axis {axis}; "
                f"{'pass in_axes=None for it' if not value.ndim else 'in_axes counts its axes'}"
            )
        size = value.shape[axis]
        if self.size is None:
            self.size, self.first = size, name
        elif size != self.size:
            raise ValueError(
                f"[vmap] {self.first} has {self.size} examples but {name} has {size} along axis {axis} of {value.shape}"
            )
        return _Moved(value if axis in (0, -value.ndim) else moveaxis(value, axis, 0))

    def one(self, level: Level, value: Any) -> Any:
        """The argument as one example."""
        if isinstance(value, _Moved):
            return batched(value.batch, level)
        if isinstance(value, _Object):
            return closed(value.given, self.one(level, value.values))
        if isinstance(value, dict):
            return type(value)((k, self.one(level, v)) for k, v in value.items())
        if isinstance(value, (list, tuple)):
            parts = [self.one(level, v) for v in value]
            return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
        return value


def _gathered(level: Level, value: Any, axes: Any, name: str) -> Any:
    """The results of all examples; their axis goes where ``axes`` says."""
    if isinstance(value, dict):
        return type(value)(
            (k, _gathered(level, v, _axis_of(axes, value, k, name), f"{name}[{k!r}]"))
            for k, v in value.items()
        )
    if isinstance(value, (list, tuple)):
        parts = [
            _gathered(level, v, _axis_of(axes, value, i, name), f"{name}[{i}]") for i, v in enumerate(value)
        ]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if value is None:
        return None
    if isinstance(axes, _CONTAINERS):
        raise ValueError(f"[vmap] out_axes has a structure for {name}, which is {describe(value)}")
    if isinstance(value, (np.ndarray, np.generic, bool, int, float, complex)):
        value = tensor(value)
    if not isinstance(value, ExTensor):
        raise TypeError(
            f"[vmap] fn must return tensors or structures of them, got {describe(value)} as {name}"
        )
    if not level.has(value):
        return value if axes is None else _placed(broadcast_to(value, (level.size, *value.shape)), axes, name)
    if axes is None:
        raise ValueError(f"[vmap] out_axes is None for {name}, which differs from example to example")
    assert isinstance(value, Batched)
    return _placed(value.batch, axes, name)


def _axis_of(axes: Any, value: Any, key: Any, name: str) -> Any:
    """What ``out_axes`` says of one part of a structure."""
    if not isinstance(axes, _CONTAINERS):
        return axes
    if (
        isinstance(axes, dict) != isinstance(value, dict)
        or len(axes) != len(value)
        or (isinstance(axes, dict) and key not in axes)
    ):
        raise ValueError(f"[vmap] out_axes must be structured like {name}, got {describe(axes)}")
    return axes[key]


def _placed(full: ExTensor, axis: int, name: str) -> ExTensor:
    if not -full.ndim <= axis < full.ndim:
        raise ValueError(
            f"[vmap] out_axes {axis} is out of range for {name} with {full.ndim} axes, that of examples included"
        )
    return full if axis in (0, -full.ndim) else moveaxis(full, 0, axis)
