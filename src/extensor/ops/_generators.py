"""Where random numbers come from: the ``rng`` argument, and how draws are repeated.

``rng`` is an int (a seed) or a ``numpy.random.Generator``. What a :class:`Tape` has noted in one run of a function can be
repeated in a second one: every draw from a generator, and what attributes of objects were before they were replaced.
"""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias, TypeVar

import numpy as np

from ..errors import describe
from ..graph import levels
from ..kernels.reference.dropout import pcg64_at_least
from ..tensor import Shape

F = TypeVar("F", bound=Callable[..., Any])
Rng: TypeAlias = "int | np.random.Generator"


def as_generator(function: str, rng: Any) -> np.random.Generator:
    """The generator an ``rng`` argument stands for."""
    if isinstance(rng, np.random.Generator):
        rng = getattr(rng, "origin", rng)
        return _noting_generator()(rng) if _tapes.open or _tapes.playing is not None else rng
    if isinstance(rng, (bool, np.bool_)) or not isinstance(rng, (int, np.integer)):
        raise TypeError(f"[{function}] rng must be an int or a numpy.random.Generator, got {describe(rng)}")
    if rng < 0:
        raise ValueError(f"[{function}] rng: a seed must not be negative, got {rng}")
    return np.random.Generator(np.random.PCG64(int(rng)))


_MANY = 1024  # fewer numbers are drawn before the state of a generator is read


def draws_at_least(rng: np.random.Generator, shape: Shape, p: float) -> np.ndarray:
    """``rng.random(shape) >= p``, faster for many numbers of the default kind of generator."""
    size, source = math.prod(shape), rng.bit_generator
    if size < _MANY or type(rng) is not np.random.Generator or type(source) is not np.random.PCG64:
        return np.asarray(rng.random(shape) >= p)
    with source.lock:
        before = source.state
        words = [word for name in ("state", "inc") for word in divmod(before["state"][name], 2**64)[::-1]]
        # not a call that the recorder may note: the numbers differ from call to call
        found: np.ndarray = pcg64_at_least.on_arrays(np.array(words, np.uint64), shape, p)
        source.advance(size)
        if before["has_uint32"]:  # half a number that is left over, which advancing forgets
            after: Any = source.state
            after.update(has_uint32=before["has_uint32"], uinteger=before["uinteger"])
            source.state = after
    return found


def per_example(draw: F) -> F:
    """A function that draws: under vmap each example draws numbers of its own from a generator."""

    @functools.wraps(draw)
    def drawing(*args: Any, **kwargs: Any) -> Any:
        if levels.running:
            return levels.running[-1].drawn(drawing, args, kwargs)
        return draw(*args, **kwargs)

    return drawing  # type: ignore[return-value]


class Tape:
    """What one run of a function drew and replaced.

    Attributes:
        states: per generator, the state before each of its draws.
        replaced: per object and attribute that the run replaced, the value before.
    """

    def __init__(self) -> None:
        self.states: dict[int, list[Any]] = {}
        self.replaced: dict[tuple[int, str], tuple[Any, Any]] = {}
        self.kept: list[Any] = []  # keeps the ids above valid

    def note_draw(self, rng: np.random.Generator, state: Any) -> None:
        if id(rng) not in self.states:
            self.states[id(rng)] = []
            self.kept.append(rng)
        self.states[id(rng)].append(state)


class _Playing:
    """A tape that is being repeated: the next draw of each generator starts where it started then."""

    def __init__(self, tape: Tape) -> None:
        self.states = {key: iter(states) for key, states in tape.states.items()}

    def next_state(self, rng: np.random.Generator) -> Any:
        state = next(self.states.get(id(rng), iter(())), None)
        if state is None:
            raise RuntimeError(
                "[checkpoint] the function drew more random numbers when it was run again; "
                "it must depend on its arguments and its random draws alone"
            )
        return state


class _Tapes(threading.local):
    """Of this thread: the tapes that are noting, and the one that is repeated."""

    def __init__(self) -> None:
        self.open: list[Tape] = []
        self.playing: _Playing | None = None


_tapes = _Tapes()


def is_replaying() -> bool:
    """Whether draws of this thread come out as a tape has noted them."""
    return _tapes.playing is not None


@contextmanager
def taped() -> Iterator[Tape]:
    """Notes what this thread draws and replaces in this block."""
    tape = Tape()
    _tapes.open.append(tape)
    try:
        yield tape
    finally:
        _tapes.open.pop()


@contextmanager
def replayed(tape: Tape) -> Iterator[None]:
    """In this block draws come out as the tape has noted them; generators and attributes are afterwards as before."""
    outer = _tapes.open, _tapes.playing
    now = [(owner, name, vars(owner).get(name)) for (_, name), (owner, _) in tape.replaced.items()]
    _tapes.open, _tapes.playing = [], _Playing(tape)
    for (_, name), (owner, before) in tape.replaced.items():
        vars(owner)[name] = before
    try:
        yield
    finally:
        _tapes.open, _tapes.playing = outer
        for owner, name, value in now:
            vars(owner)[name] = value


def note_replaced(owner: Any, name: str) -> None:
    """Tell the tapes that an attribute is about to be replaced, so that a repetition starts from its value now."""
    for tape in _tapes.open:
        if (id(owner), name) not in tape.replaced:
            tape.replaced[id(owner), name] = (owner, vars(owner).get(name))


@functools.cache  # made when first needed: loading numpy.random takes a quarter of the import
def _noting_generator() -> Callable[[np.random.Generator], np.random.Generator]:
    """The class of generators that draw what their origin would draw, and note the state before each draw.

    The origin's lock is held from reading its state to writing it back, so that no other thread draws in between.
    """

    class Noting(np.random.Generator):
        def __init__(self, origin: np.random.Generator) -> None:
            super().__init__(type(origin.bit_generator)())
            self.origin = origin

    def drawing(draw: Any) -> Any:
        @functools.wraps(draw)
        def noted(self: Noting, *args: Any, **kwargs: Any) -> Any:
            own, theirs = self.bit_generator, self.origin.bit_generator
            if _tapes.playing is not None:
                own.state = state = _tapes.playing.next_state(self.origin)
                result = draw(self, *args, **kwargs)
            else:
                with theirs.lock:
                    own.state = state = theirs.state
                    result = draw(self, *args, **kwargs)
                    theirs.state = own.state
            for tape in _tapes.open:
                tape.note_draw(self.origin, state)
            return result

        return noted

    for name, method in vars(np.random.Generator).items():
        if not name.startswith("_") and callable(method) and name != "spawn":
            setattr(Noting, name, drawing(method))
    return Noting
