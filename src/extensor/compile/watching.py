"""The Python values that a recorded function can see: constants of its program, for as long as they stay as they are.

Starting from the function, its globals and free variables are followed to the user's functions, methods and objects behind
them. The numbers, texts and flags found on the way are compared before each run of the program, so that one that has changed
leads to another recording instead of a constant that is silently kept. What lies deeper (in lists and dicts, or in objects
inside of objects) is not watched; ``check=`` finds it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from ..graph import is_our_file
from ..tensor import ExTensor

__all__ = ["Watch", "watches_of"]

Watch = tuple[Any, Any, Any]  # a dict, a key and the value; or a cell, None and its content

_SIMPLE = (bool, int, float, complex, str, bytes, type(None))
_MOST_VISITS = 500


def watches_of(function: Any, arguments: Iterable[Any] = ()) -> tuple[Watch, ...]:
    """What to compare before each run of a program of ``function``, called with ``arguments``, as it is now."""
    walk = _Walk()
    for thing in (function, *arguments):
        walk.visit(thing)
    while walk.waiting and len(walk.visited) < _MOST_VISITS:
        walk.look_at(walk.waiting.pop())
    return tuple(walk.found.values())


class _Walk:
    def __init__(self) -> None:
        self.found: dict[tuple[int, Any], Watch] = {}
        self.visited: dict[int, Any] = {}  # kept, so that the ids stay theirs
        self.waiting: list[Any] = []
        self.inside: set[int] = (
            set()
        )  # modules of one that was looked at: what is in them was visited with it

    def visit(self, thing: Any) -> None:
        if id(thing) not in self.visited and not isinstance(thing, (ExTensor, np.ndarray, type)):
            self.visited[id(thing)] = thing
            self.waiting.append(thing)

    def add(self, holder: Any, key: Any, value: Any) -> None:
        """A value that a function can see: it is watched, or leads on."""
        if isinstance(value, _SIMPLE):
            self.found[id(holder), key] = (holder, key, value)
        else:
            self.visit(value)

    def look_at(self, thing: Any) -> None:
        if isinstance(thing, MethodType):
            self.visit(thing.__self__)
            self.visit(thing.__func__)
        elif isinstance(thing, FunctionType):
            self._function(thing)
        elif hasattr(thing, "__dict__") and not isinstance(thing, ModuleType):
            self._object(thing)

    def _function(self, function: FunctionType) -> None:
        if is_our_file(function.__code__.co_filename):
            return
        names = set(_names_in(function.__code__))
        for cell in function.__closure__ or ():
            try:
                self.add(cell, None, cell.cell_contents)
            except ValueError:
                continue  # it is empty
        space = function.__globals__
        for name in names & space.keys():
            value = space[name]
            if isinstance(value, ModuleType):
                if _is_users(value):
                    for inner in names & vars(value).keys():
                        self.add(vars(value), inner, vars(value)[inner])
            else:
                self.add(space, name, value)

    def _object(self, thing: Any) -> None:
        """The attributes of an object, and the methods of its class where that is the user's.

        Of modules and optimisers the program itself knows what they are made of.
        """
        ours = any(kind.__module__.startswith("extensor.") for kind in type(thing).__mro__)
        for name in (
            type(thing).settings_to_watch
            if hasattr(type(thing), "settings_to_watch")
            else ()
            if ours
            else vars(thing)
        ):
            if isinstance(vars(thing)[name], _SIMPLE):
                self.add(vars(thing), name, vars(thing)[name])
        for kind in type(thing).__mro__:
            if not kind.__module__.startswith("extensor."):
                for value in vars(kind).values():
                    if isinstance(value, FunctionType):
                        self.visit(value)
        if hasattr(thing, "modules") and id(thing) not in self.inside:
            for module in thing.modules():
                self.inside.add(id(module))
                self.visit(module)


def _names_in(code: CodeType) -> Iterator[str]:
    """The names that a function uses, those of the functions inside it included."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_in(constant)


def _is_users(module: ModuleType) -> bool:
    file = getattr(module, "__file__", None) or ""
    return bool(file) and "site-packages" not in file and "lib/python" not in file and not is_our_file(file)
