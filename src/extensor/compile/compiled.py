"""``extensor.compile``: a function that is recorded once for each kind of call, and repeated."""

from __future__ import annotations

import functools
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ..autograd.drawing import Box
from ..devices import DeviceArray
from ..errors import CompileError
from ..graph import this_thread
from ..tensor import ExTensor, asarray
from .checking import checked_run
from .device_program import DeviceProgram
from .drawing import boxes_of
from .fused_norms import fuse_norms
from .fusion import fuse_steps
from .program import Program
from .recording import Recording
from .report import report
from .source import objects_of, source_of
from .trees import fill, is_value, tensors_of, tree_of

__all__ = ["Compiled"]

_MOST_PROGRAMS = 64


class Compiled:
    """A function that :func:`extensor.compile` made.

    Attributes:
        programs: one for each kind of call that was recorded: shapes, dtypes, structure and options of the arguments, modes.
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        check: int = 0,
        fallback: bool = False,
        warns: bool = True,
        place: Any = None,
        keeps: bool = True,
    ) -> None:
        functools.update_wrapper(self, fn, updated=())
        self.fn = fn
        self.check = check
        self.fallback = fallback
        self.warns = warns
        self.keeps = keeps  # fused steps, which hold weights and what they made of them
        self.programs: list[Program] = []
        self.recordings = 0
        self.eager_calls = 0
        self._eager_kinds: set[Any] = set()
        self._reasons: dict[str, int] = {}
        self._lock = threading.Lock()
        self._left_to_check: dict[int, int] = {}
        self._make = Program if place is None else functools.partial(DeviceProgram, place)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        for program in self.programs:
            result = program.run(args, kwargs) if not self.check else self._run_checked(program, args, kwargs)
            if result is not NotImplemented:
                return result
        return self._decide(args, kwargs)

    def telling(self, listener: Callable[[Any], None]) -> Callable[..., Any]:
        """The same function; where a program runs, ``listener`` is called with each leaf whose gradient is complete, while the other
        steps still run. What runs as it is written tells nothing."""

        def call(*args: Any, **kwargs: Any) -> Any:
            for program in [] if self.check else self.programs:
                result = program.run(args, kwargs, None, listener)
                if result is not NotImplemented:
                    return result
            return self(*args, **kwargs)

        return call

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    # The first call of a kind

    def _decide(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if this_thread.observer is not None or this_thread.walk is not None:
            return self.fn(*args, **kwargs)  # somebody watches each operation
        if self._make is Program and any(type(t._data) is DeviceArray for t in tensors_of((args, kwargs))):
            return self.fn(*args, **kwargs)  # that device's kernels run it
        if any(isinstance(part, np.ndarray) for part in _flat((args, kwargs))):
            args, kwargs = _with_tensors((args, kwargs))
            return self(*args, **kwargs)
        kind = _kind_of(args, kwargs) if self._eager_kinds else None
        if (kind is not None and kind in self._eager_kinds) or self._seldom_repeats():
            self.eager_calls += 1
            return self.fn(*args, **kwargs)
        self.sync()  # a recording is made here, where it is fast
        given, own_args, own_kwargs = _own_arguments(*fill((args, kwargs), _here))
        recording = Recording(given, self.fallback)
        with recording.running():
            result = self.fn(*own_args, **own_kwargs)
        recording.finish(result)
        self.recordings += 1
        if recording.failure is not None:
            self._run_eagerly_from_now_on(recording.failure, args, kwargs)
        else:
            self._keep(recording, args, kwargs, result)
        return fill(result, lambda t: _given_back(t, own_args, own_kwargs, args, kwargs))

    def _keep(self, recording: Recording, args: Any, kwargs: Any, result: Any) -> None:
        if self._make is Program and not self.check:  # which compares step by step
            if self.keeps:
                fuse_steps(recording, result)
            fuse_norms(recording, result)
        try:
            program = self._make(self.fn, recording, args, kwargs, result)
        except CompileError as error:  # of what a device cannot run
            if not self.fallback:
                raise
            self._run_eagerly_from_now_on((str(error).removeprefix("[compile] "), None), args, kwargs)
            return
        program.boxes = functools.partial(boxes_of, program, self._name, self.fn)
        with self._lock:
            self.programs = [program, *self.programs[: _MOST_PROGRAMS - 1]]

    def sync(self) -> None:
        """Bring parameters, gradients, buffers and optimiser states back from the device they were left on.

        Each comes back by itself when its elements are read (``p.numpy()``, ``p.tolist()``, saving); after ``sync()`` they all
        are here, and other functions compute with them at the speed of this processor.
        """
        for program in self.programs:
            program.sync()

    def _seldom_repeats(self) -> bool:
        """Whether recordings are wasted: so many were made, and most of them were never repeated."""
        if self.recordings < _MOST_PROGRAMS or self.recordings % _MOST_PROGRAMS:
            return False
        return sum(program.times()[1] for program in self.programs) < len(self.programs)

    def _run_eagerly_from_now_on(self, failure: tuple[str, Any], args: Any, kwargs: Any) -> None:
        reason, place = failure
        where = f" ({place[0]}:{place[1]})" if place else ""
        if self.fallback and self.warns and reason not in self._reasons:
            warnings.warn(
                f"[compile] {self._name} runs without compile: {reason}{where}", UserWarning, stacklevel=4
            )
        self._reasons[reason] = self._reasons.get(reason, 0) + 1
        self._eager_kinds.add(_kind_of(args, kwargs))

    def _run_checked(self, program: Program, args: Any, kwargs: Any) -> Any:
        left = self._left_to_check.setdefault(id(program), self.check)
        if left <= 0:
            return program.run(args, kwargs)
        result = checked_run(self.fn, program, args, kwargs, self.fallback)
        if result is not NotImplemented:
            self._left_to_check[id(program)] = left - 1
        return result

    # For people

    def source(self, index: int = 0) -> str:
        """The whole function as plain Python over public functions; executed, it gives the same bits.

        Args:
            index: of the program in :attr:`programs`.
        """
        if not self.programs:
            raise CompileError("[compile] source: nothing is recorded yet; call the function once")
        return source_of(self.programs[index], self._name, self.fn)

    def objects(self, index: int = 0) -> dict[str, Any]:
        """What the text of :meth:`source` works on besides the arguments: parameters, optimisers, modules, generators.

        Example:
            >>> import extensor as et
            >>> layer = et.nn.Linear(2, 1, rng=0)
            >>> double = et.compile(lambda x: layer(x).detach() * 2.0)
            >>> x = et.ones((1, 2))
            >>> names = {}
            >>> expected = double(x)
            >>> exec(double.source(), names)
            >>> bool((names["step"](x, **double.objects()) == expected).all())
            True
        """
        return objects_of(self.programs[index], self._name, self.fn)

    def boxes(self) -> list[Box]:
        """What :func:`extensor.draw_graph` draws: the newest program; give it one of :attr:`programs` for another."""
        if not self.programs:
            raise CompileError("[compile] draw_graph: nothing is recorded yet; call the function once")
        return self.programs[0].boxes()

    def clear(self) -> None:
        """Forget all programs: the next call of every kind is recorded again."""
        with self._lock:
            self.programs = []
            self._eager_kinds.clear()
            self._reasons.clear()

    def __repr__(self) -> str:
        return report(self)

    @property
    def _name(self) -> str:
        return str(getattr(self.fn, "__name__", type(self.fn).__name__.lower()))

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why calls of some kinds run without a program."""
        return tuple(self._reasons)


def _here(tensor: ExTensor) -> ExTensor:
    """The tensor with its elements on this processor; a leaf that gets a gradient stays itself."""
    if type(tensor._data) is not DeviceArray:
        return tensor
    if type(tensor) is ExTensor and not tensor._requires_grad:
        return ExTensor(tensor._data.fetch())
    tensor._array = tensor._data.fetch()
    return tensor


def _own_arguments(args: Any, kwargs: Any) -> tuple[list[ExTensor], tuple[Any, ...], dict[str, Any]]:
    """The arguments as tensors of their own: an array that is used in other ways too is not mistaken for an argument."""
    given: list[ExTensor] = []
    seen: set[int] = set()

    def own(tensor: ExTensor) -> ExTensor:
        if type(tensor) is not ExTensor:
            return tensor  # a parameter stands for itself
        if not tensor._requires_grad:
            made = ExTensor(tensor._data.view())
        elif id(tensor) in seen:
            raise CompileError("[compile] a tensor that requires a gradient is given twice; pass it once")
        else:
            made = tensor
        seen.add(id(tensor))
        given.append(made)
        return made

    own_args, own_kwargs = fill((args, kwargs), own)
    return given, own_args, own_kwargs


def _given_back(tensor: ExTensor, own_args: Any, own_kwargs: Any, args: Any, kwargs: Any) -> ExTensor:
    """An argument that is returned is the caller's own."""
    for own, given in zip(tensors_of((own_args, own_kwargs)), tensors_of((args, kwargs))):
        if own is tensor:
            return given
    return tensor


def _flat(thing: Any) -> list[Any]:
    if isinstance(thing, dict):
        thing = list(thing.values())
    if isinstance(thing, (list, tuple)):
        return [part for each in thing for part in _flat(each)]
    return [thing]


def _with_tensors(thing: Any) -> Any:
    if isinstance(thing, np.ndarray):
        return asarray(thing)
    if type(thing) is dict:
        return {key: _with_tensors(value) for key, value in thing.items()}
    if isinstance(thing, (list, tuple)):
        parts = [_with_tensors(value) for value in thing]
        return type(thing)(*parts) if hasattr(thing, "_fields") else type(thing)(parts)
    return thing


def _kind_of(args: Any, kwargs: Any) -> Any:
    """What makes two calls of one kind, to look up kinds that run without a program."""
    tree = tree_of((args, kwargs), lambda t: (0, (t.dtype, t.shape, t._requires_grad), 0, False, None, ()))
    return _hashable(tree)


def _hashable(tree: Any) -> Any:
    kind, what, *_, children = tree
    shown = what if is_value(what) or isinstance(what, tuple) else id(what)
    return (kind, repr(shown), *map(_hashable, children))
