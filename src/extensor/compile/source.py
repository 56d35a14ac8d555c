"""A program as readable text: plain Python over public functions."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..autograd.literals import literal
from ..tensor import ExTensor
from .program import Program
from .recording import Call, Place
from .trees import Kind

__all__ = ["Objects", "Writer", "objects_of", "places_in", "source_of"]


class Objects:
    """The objects that the text of a program works on, each under the name it has there."""

    def __init__(self, program: Program) -> None:
        recording = program.recording
        inner = {id(m) for module in recording.modules.values() for _, m in list(module.named_modules())[1:]}
        outer = [module for module in recording.modules.values() if id(module) not in inner]
        self.parameters: dict[str, Any] = {}
        self.modules: dict[str, Any] = {}
        self.optimizers: list[Any] = []
        self.objects: list[Any] = []
        self.generators = list(recording.generators.values())
        self.constants: list[Any] = []
        self.functions: list[Any] = []
        for module in outer:
            prefix = "" if len(outer) == 1 else f"{type(module).__name__}."
            self.parameters |= {f"{prefix}{name}": p for name, p in module.named_parameters()}
            self.modules |= {f"{prefix}{name}": m for name, m in module.named_modules()}
        known = {id(p) for p in self.parameters.values()}
        for leaf in recording.leaves.values():
            if not isinstance(leaf.owner, int) and id(leaf.owner) not in known:
                self.parameters[f"leaf_{len(self.parameters)}"] = leaf.owner
        self.used: set[str] = set()
        known = {id(leaf.owner) for leaf in recording.leaves.values()}
        self.parameters = {name: p for name, p in self.parameters.items() if id(p) in known}

    def listed(self, kept: str, thing: Any) -> str:
        """The expression of an object in one of the lists, where it is put if it is not there."""
        self.used.add(kept)
        things = vars(self)[kept]
        for i, other in enumerate(things):
            if other is thing:
                return f"{kept}[{i}]"
        things.append(thing)
        return f"{kept}[{len(things) - 1}]"

    def named(self, kept: str, thing: Any) -> str:
        """The expression of an object in one of the dicts."""
        self.used.add(kept)
        return f"{kept}[{next(name for name, other in vars(self)[kept].items() if other is thing)!r}]"

    def given(self) -> dict[str, Any]:
        """Those that the text takes."""
        return {name: vars(self)[name] for name in sorted(self.used)}


class Writer:
    """Writes the text of a program; ``names`` are the expressions of its values there."""

    def __init__(self, program: Program, name: str, fn: Callable[..., Any]) -> None:
        self.program, self.recording = program, program.recording
        self.name = name if name.isidentifier() else "step"
        self.objects = Objects(program)
        self.names: dict[Place, str] = {}
        self.imports: dict[str, set[str]] = {"extensor": {"no_grad"}}
        self.counts: dict[str, int] = {}
        self.lines: list[str] = []
        self.calls: list[Call] = []  # those that the text shows
        self.parameters = list(self._name_arguments(fn))
        for position, source in enumerate(self.recording.inputs):
            if source.kind != "argument":
                self.names[Place("input", position)] = self._input(source)

    def _name_arguments(self, fn: Callable[..., Any]) -> Iterator[str]:
        """The parameters of the text; the tensors inside each get their expressions."""
        places = {
            source.owner: Place("input", i)
            for i, source in enumerate(self.recording.inputs)
            if source.kind == "argument"
        }
        args, kwargs = self.program.description[0][5]
        try:
            known = [p.name for p in inspect.signature(fn).parameters.values() if p.kind in (0, 1)]
        except (TypeError, ValueError):
            known = []
        for i, tree in enumerate(args[5]):
            name = known[i] if i < len(known) else f"argument_{i}"
            self._name_tree(tree, name, places)
            yield name
        for key, tree in zip(kwargs[1], kwargs[5]):
            self._name_tree(tree, key, places)
            yield key

    def _name_tree(self, tree: Any, text: str, places: dict[int, Place]) -> None:
        kind, what, number, _, _, children = tree
        if kind == Kind.TENSOR:
            self.names[places[number]] = text
        elif kind == Kind.DICT:
            for key, child in zip(what, children):
                self._name_tree(child, f"{text}[{key!r}]", places)
        else:
            for i, child in enumerate(children):
                self._name_tree(child, f"{text}[{i}]", places)

    def _input(self, source: Any) -> str:
        if source.kind == "attribute":
            return f"{self._module(source.owner)}.{source.name}"
        text = self._leaf(source.owner)
        return f"{text}.grad" if source.kind == "grad" else text

    def _module(self, module: Any) -> str:
        return self.objects.named("modules", module)

    def _leaf(self, owner: Any) -> str:
        if isinstance(owner, int):
            position = next(
                i for i, s in enumerate(self.recording.inputs) if s.kind == "argument" and s.owner == owner
            )
            return self.names[Place("input", position)]
        return self.objects.named("parameters", owner)

    # Lines

    def write(self) -> str:
        for call in self.recording.calls:
            if self._hands_through(call):
                continue
            self.calls.append(call)
            {"op": self._op, "repeat": self._op, "change": self._change, "step": self._step}[call.kind](call)
        for kind, owner, name, place in self.program.effects:
            value = "None" if place is None else self.expression(place)
            if kind == "attribute":
                self.lines.append(f"{self._module(owner)}.{name} = {value}")
            elif kind == "grad":
                self.lines.append(f"{self._leaf(owner)}.grad = {value}")
            else:
                self.lines.append(f"{self._leaf(owner)}.assign({value})")
        self.lines.append(f"return {self._result(self.program.result_tree)}")
        imports = [
            f"from {module} import {', '.join(sorted(names))}"
            for module, names in sorted(self.imports.items())
        ]
        parameters = [*self.parameters, *(["*"] if self.objects.given() else []), *self.objects.given()]
        body = "\n".join(f"        {line}" for line in self.lines)
        return (
            "\n".join(imports)
            + f"\n\n\ndef {self.name}({', '.join(parameters)}):\n    with no_grad():\n{body}\n"
        )

    def _hands_through(self, call: Call) -> bool:
        """Whether a call returned nothing but what it was given: a reshape to the same shape, the gradient of a sum."""
        made = list(places_in(call.results))
        return call.kind == "op" and bool(made) and all(place in self.names for place in made)

    def _op(self, call: Call) -> None:
        right = f"{self._function(call.function)}({', '.join(self._arguments(call))})"
        shapes = ", ".join(map(str, call.shapes))
        self.lines.append(f"{self._left(call)} = {right}  # {shapes}")

    def _arguments(self, call: Call) -> list[str]:
        named = [f"{key}={self.expression(value)}" for key, value in call.kwargs.items()]
        return [*map(self.expression, call.args), *named]

    def _left(self, call: Call) -> str:
        """The variables of a call's results."""
        name = re.sub("^_+", "", getattr(call.function, "__name__", "value"))
        return self._targets(call.results, name)

    def _targets(self, results: Any, name: str) -> str:
        if isinstance(results, Place):
            if results in self.names:  # one of the inputs itself
                return "_"
            number = self.counts[name] = self.counts.get(name, 0) + 1
            self.names[results] = f"{name}_{number}"
            return self.names[results]
        if not isinstance(results, (tuple, list)):
            return "_"
        fields = getattr(results, "_fields", [name] * len(results))
        parts = [self._targets(part, field) for field, part in zip(fields, results)]
        return ", ".join(f"({part})" if "," in part else part for part in parts) + "," * (len(parts) == 1)

    def _change(self, call: Call) -> None:
        owner, *rest = call.args
        self.lines.append(
            f"{self.objects.listed('objects', owner)}.{call.function.__name__}({', '.join(map(self.expression, rest))})"
        )

    def _step(self, call: Call) -> None:
        before, grads = call.args
        moving = [self.names[place] for place in before]
        for text, place in zip(moving, grads):
            if place is not None:
                self.lines.append(f"{text}.grad = {self.expression(place)}")
        self.lines.append(
            f"{self.objects.listed('optimizers', call.function)}.step()  # {type(call.function).__name__}"
        )
        for text, place in zip(moving, call.results):
            self.names[place] = text

    def _function(self, function: Any) -> str:
        name, module = function.__name__, function.__module__
        package = sys.modules["extensor"]
        known = getattr(package, name, None)
        if known is function or getattr(known, "__wrapped__", None) is function:
            self.imports["extensor"].add(name)
            return str(name)
        found = getattr(sys.modules.get(module), name, None)
        if found is function or getattr(found, "__wrapped__", None) is function:
            self.imports.setdefault(module, set()).add(name)
            return str(name)
        return self.objects.listed("functions", function)

    # Expressions

    def expression(self, value: Any) -> str:
        """A value as it stands in the text."""
        if isinstance(value, Place):
            value = self.program.moved.get(value, value)
            if value not in self.names:
                self.names[value] = self._constant(self.recording.constants[value.position])
            return self.names[value]
        if isinstance(value, np.ndarray):
            return self._constant(value)
        if isinstance(value, np.random.Generator):
            return self.objects.listed("generators", value)
        if isinstance(value, dict):
            return "{" + ", ".join(f"{key!r}: {self.expression(v)}" for key, v in value.items()) + "}"
        if isinstance(value, (list, tuple)):
            inner = ", ".join(map(self.expression, value))
            if isinstance(value, list):
                return f"[{inner}]"
            return f"({inner},)" if len(value) == 1 else f"({inner})"
        if callable(value) and not isinstance(value, (type, np.dtype)):
            return self.objects.listed("functions", value)
        return literal(value)

    def _constant(self, array: Any) -> str:
        if (
            isinstance(array, np.ndarray)
            and array.size
            and (array == array.flat[0]).all()
            and array.dtype.kind in "fiu"
        ):
            self.imports["extensor"].add("full")
            return f"full({array.shape}, {literal(array.flat[0].item())}, dtype={array.dtype.name!r})"
        return self.objects.listed("constants", ExTensor(array))

    def _result(self, tree: Any) -> str:
        kind, what, number, _, _, children = tree
        if kind == Kind.TENSOR:
            return self.expression(self.place(number))
        if kind == Kind.OBJECT:
            return self._leaf(number if number >= 0 else what)
        if kind == Kind.VALUE:
            return literal(what)
        parts = [self._result(child) for child in children]
        if kind == Kind.DICT:
            return "{" + ", ".join(f"{key!r}: {part}" for key, part in zip(what, parts)) + "}"
        if kind == Kind.LIST:
            return f"[{', '.join(parts)}]"
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"

    def place(self, number: int) -> Place:
        """The place of the value of that number."""
        for kind, count in (
            ("input", len(self.recording.inputs)),
            ("constant", len(self.recording.constants)),
        ):
            if number < count:
                return Place(kind, number)
            number -= count
        return Place("result", number)


def places_in(thing: Any) -> Iterator[Place]:
    """The places inside of arguments or results."""
    if isinstance(thing, Place):
        yield thing
    elif isinstance(thing, dict):
        yield from places_in(list(thing.values()))
    elif isinstance(thing, (list, tuple)):
        for part in thing:
            yield from places_in(part)


def source_of(program: Program, name: str, fn: Callable[..., Any]) -> str:
    """The text of a program."""
    return Writer(program, name, fn).write()


def objects_of(program: Program, name: str, fn: Callable[..., Any]) -> dict[str, Any]:
    """What the text takes besides the arguments, by name."""
    writer = Writer(program, name, fn)
    writer.write()
    return writer.objects.given()
