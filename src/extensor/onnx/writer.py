"""A trace as plain Python over public functions."""

from __future__ import annotations

import keyword
import re
import textwrap
from typing import Any

import numpy as np

import extensor

from ..errors import describe
from ..tensor import ExTensor
from .trace import Step, Trace, array_key, needed_steps, tensors_in

__all__ = ["source_of"]

_MOST_LITERAL_ELEMENTS = 64


def source_of(found: Trace) -> str:
    """``def forward(inputs, parameters)``: executed, it computes what was traced. Large constants are parameters too."""
    return _Writer(found).text()


class _Writer:
    def __init__(self, found: Trace) -> None:
        self.found = found
        self.names: dict[int, str] = {}
        self.used: set[str] = {"parameters", "forward"}
        self.imports: dict[str, set[str]] = {}
        self.inputs = [self._fresh(name) for name in found.inputs]
        self.used_arrays = {
            array_key(t)
            for t in tensors_in([found.result, *((step.args, step.kwargs) for step in found.steps)])
        }
        for name, value in zip(self.inputs, found.given):
            key = array_key(value)
            if key is not None:
                self.names[key] = name

    def text(self) -> str:
        """The whole module; calls whose results nobody uses are left out."""
        body = []
        needed = needed_steps(self.found)
        for step in (step for number, step in enumerate(self.found.steps) if number in needed):
            call = self._call(step)
            shapes = ", ".join(str(getattr(o, "shape", "")) for o in step.outputs)
            body.append(f"{self._results(step)} = {call}  # {shapes}")
        body.append(f"return {self.expression(self.found.result)}")
        whole = "\n".join(f"    {line}" for line in body)
        parameters = [*self.inputs, *(["parameters"] if "parameters[" in whole else [])]
        return f"{self._header(whole)}\n\n\ndef forward({', '.join(parameters)}):\n{whole}\n"

    def _call(self, step: Step) -> str:
        if step.name in (
            "shape_of",
            "size_of",
        ):  # lengths of an imported network, which are no function of ours
            self.imports.setdefault("extensor", set()).add("tensor")
            return f'tensor({self.expression(step.result.tolist())}, dtype="int64")'
        arguments = [*map(self.expression, step.args)]
        arguments += [f"{key}={self.expression(value)}" for key, value in step.kwargs.items()]
        return f"{self._function(step.function)}({', '.join(arguments)})"

    def _results(self, step: Step) -> str:
        """The left side of a call: ``relu_1``, or one name for each result, ``_`` for those that nobody uses."""
        several = isinstance(step.result, (list, tuple))
        used = [array_key(output) in self.used_arrays for output in step.outputs]
        name = self._fresh(f"{step.name}_1")
        names = []
        for i, (output, wanted) in enumerate(zip(step.outputs, used)):
            own = name if sum(used) == 1 else self._fresh(f"{name}_{i}")
            names.append(own if wanted else "_")
            key = array_key(output)
            if wanted and key is not None:
                self.names[key] = own
        return ", ".join(names) + ("," if several and len(names) == 1 else "")

    def _header(self, body: str) -> str:
        lines = []
        for module, functions in sorted(self.imports.items()):
            used = sorted(f for f in functions if re.search(rf"\b{f}\(", body))
            line = f"from {module} import {', '.join(used)}"
            if len(line) > 100:
                inner = textwrap.fill(", ".join(used), 96, initial_indent="    ", subsequent_indent="    ")
                line = f"from {module} import (\n{inner},\n)"
            if used:
                lines.append(line)
        return "\n".join(lines)

    def _function(self, function: Any) -> str:
        name = str(function.__name__)
        module = "extensor" if name in extensor.__all__ else function.__module__
        self.imports.setdefault(module, set()).add(name)
        return name

    def _fresh(self, wanted: str) -> str:
        name = re.sub(r"\W+", "_", wanted).strip("_") or "x"
        if name[0].isdigit() or keyword.iskeyword(name) or name in extensor.__all__:
            name = f"x_{name}"
        found, count = name, 1
        while found in self.used:
            count += 1
            found = f"{re.sub('_[0-9]+$', '', name)}_{count}"
        self.used.add(found)
        return found

    def expression(self, value: Any) -> str:
        """A value as it stands in the text."""
        if isinstance(value, (ExTensor, np.ndarray)):
            return self._tensor(value)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            value = tuple(value)
        if isinstance(value, (list, tuple)):
            inner = ", ".join(map(self.expression, value))
            return (
                f"[{inner}]"
                if isinstance(value, list)
                else f"({inner},)"
                if len(value) == 1
                else f"({inner})"
            )
        if isinstance(value, slice):
            return f"slice({', '.join(map(self.expression, (value.start, value.stop, value.step)))})"
        if value is Ellipsis:
            return "..."
        if isinstance(value, np.dtype):
            return repr(value.name)
        if isinstance(value, np.generic):
            return self.expression(value.item())
        if isinstance(value, float) and not np.isfinite(value):
            return f'float("{value}")'
        if isinstance(value, (int, float, str, bool, type(None))):
            return repr(value)
        raise ValueError(f"[source] cannot write {describe(value)}")

    def _tensor(self, value: Any) -> str:
        key = array_key(value)
        assert key is not None
        if key in self.names:
            return self.names[key]
        array = value.numpy() if isinstance(value, ExTensor) else value
        kind, name = self.found.known.get(key, ("", ""))
        if kind and (
            kind != "buffer" or array.dtype.kind not in "biu" or array.size > _MOST_LITERAL_ELEMENTS
        ):
            return f"parameters[{name!r}]"
        if array.size > _MOST_LITERAL_ELEMENTS:
            raise ValueError(
                f"[source] the network makes a tensor of shape {array.shape} that is neither an input nor a parameter"
            )
        numbers = re.sub(r"\b(nan|inf)\b", r'float("\1")', repr(array.tolist()))
        self.imports.setdefault("extensor", set()).add("tensor")
        return f'tensor({numbers}, dtype="{array.dtype.name}")'
