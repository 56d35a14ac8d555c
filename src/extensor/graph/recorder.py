"""What a compiled function asks of the rest of the library while it is recorded.

A :class:`Recorder` is the observer of a thread that sees not only the calls of ops, forward and backward, but everything that
changes the world around them: parameters, gradients, buffers, optimisers, random draws. The floors above tell it through
:func:`current_recorder`; see :mod:`extensor.compile.recording`, which makes a program out of what it is told.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from .._core import bump_structure
from .state import this_thread

__all__ = ["Recorder", "bump_structure", "current_recorder", "repeated", "repeated_change"]

P = ParamSpec("P")
R = TypeVar("R")


class Recorder:
    """What a recording is told. It is the observer of its thread, except inside of what it calls itself."""

    sees_backward = True  # calls of backward functions too

    def __call__(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of an op, forward or backward."""
        raise NotImplementedError

    def repeat(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], changes: bool
    ) -> Any:
        """A call that computes tensors by other means than ops, or ``changes`` objects: it is made in every run."""
        raise NotImplementedError

    def step(
        self, optimizer: Any, params: list[Any], function: Callable[[], Any], parts: tuple[Any, Any]
    ) -> Any:
        """A step of an optimiser: ``function()`` makes it, in every run, with the gradients of that run.

        ``parts`` are what it consists of, group by group, for a native run: how a group calls its kernel, and its step
        where it does not.
        """
        raise NotImplementedError

    def note_use(self, tensor: Any) -> None:
        """The elements of a tensor go on without its history."""
        raise NotImplementedError

    def note_leaf(self, leaf: Any) -> None:
        """The gradient or the value of a leaf is about to be replaced."""
        raise NotImplementedError

    def note_attribute(self, owner: Any, name: str, value: Any) -> None:
        """An attribute of a module is about to be replaced by ``value``."""
        raise NotImplementedError

    def refuse(self, reason: str) -> None:
        """What happens here cannot be repeated."""
        raise NotImplementedError


def current_recorder() -> Recorder | None:
    """The recording that this thread is in, if it is in one."""
    observer = this_thread.observer
    return observer if observer is not None and isinstance(observer, Recorder) else None


def repeated(function: Callable[P, R], changes: bool = False) -> Callable[P, R]:
    """For a function that computes by other means than ops: a compiled function calls it again in every run."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        recorder = current_recorder()
        if recorder is None:
            return function(*args, **kwargs)
        return recorder.repeat(function, args, kwargs, changes)

    return call


def repeated_change(function: Callable[P, R]) -> Callable[P, R]:
    """The same for a function or method that changes objects, such as the step of a schedule."""
    return repeated(function, changes=True)
