"""The table of operators: one small function each, found by domain, name and version.

An operator's function takes the node's inputs as positional arguments and its attributes as keywords, under the
standard's names and with its defaults. It may ask for three more keywords: ``opset`` (the version of the operator set the
model was written for), ``outputs`` (how many results the node names) and ``training`` (the mode of the module).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from ..graph import this_thread

__all__ = ["Operator", "find", "opaque", "operator", "operators"]

F = TypeVar("F", bound=Callable[..., Any])
_CONTEXT = ("opset", "outputs", "training")
_TABLE: dict[tuple[str, str], list[Operator]] = {}


class Operator:
    """One entry of the table.

    Attributes:
        name: as the standard writes it.
        since: the first version of the operator set this entry is for.
        fixed: inputs that are numbers of the graph and never trained, such as running statistics.
    """

    def __init__(
        self, function: Callable[..., Any], name: str, since: int, domain: str, fixed: tuple[str, ...]
    ) -> None:
        self.function = function
        self.name, self.since, self.domain, self.fixed = name, since, domain, fixed
        self.__name__ = function.__name__
        self.__module__ = function.__module__
        self.__doc__ = function.__doc__
        parameters = inspect.signature(function).parameters.values()
        positional = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        self.inputs = [p.name for p in positional]
        self.required = sum(p.default is p.empty for p in positional)
        self.variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
        keywords = {p.name: p for p in parameters if p.kind is p.KEYWORD_ONLY}
        self.context = tuple(name for name in _CONTEXT if name in keywords)
        self.attributes = frozenset(keywords) - frozenset(_CONTEXT)
        self.needed = frozenset(n for n in self.attributes if keywords[n].default is inspect.Parameter.empty)

    def __call__(self, *inputs: Any, **attributes: Any) -> Any:
        return self.function(*inputs, **attributes)

    def problem(self, inputs: int, attributes: set[str]) -> str | None:
        """Why a node with so many inputs and these attributes cannot be run; None if it can."""
        if unknown := sorted(attributes - self.attributes):
            return f"has the attribute {unknown[0]!r}, which is not known here"
        if missing := sorted(self.needed - attributes):
            return f"lacks the attribute {missing[0]!r}"
        if inputs < self.required or (inputs > len(self.inputs) and not self.variadic):
            return f"has {inputs} inputs, {self.name} takes {self.required} to {len(self.inputs)}"
        return None


def opaque(function: F) -> F:
    """For a function that computes with NumPy and has no gradient: a trace shows it as one call, not as a constant."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        observer = this_thread.observer
        if observer is not None and hasattr(getattr(observer, "__self__", None), "sees_opaque"):
            return observer(function, args, kwargs)
        return function(*args, **kwargs)

    return call  # type: ignore[return-value]


def operator(name: str, *, since: int = 1, domain: str = "", fixed: tuple[str, ...] = ()) -> Callable[[F], F]:
    """Enter a function into the table; what it is otherwise, it stays."""

    def enter(function: F) -> F:
        entries = _TABLE.setdefault((domain, name), [])
        entries.append(Operator(function, name, since, domain, fixed))
        entries.sort(key=lambda entry: -entry.since)
        return function

    return enter


def find(domain: str, name: str, opset: int) -> Operator | None:
    """The newest entry that a model of this version may mean."""
    entries = _TABLE.get(("" if domain == "ai.onnx" else domain, name), [])
    return next((entry for entry in entries if entry.since <= opset), None)


def operators() -> Iterator[Operator]:
    """All entries."""
    return (entry for entries in _TABLE.values() for entry in entries)
