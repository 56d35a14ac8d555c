"""The table of edges: what each function and its gradients are at kinks, ties, 0, -0, the infinities and nan.

``python -m extensor.testing.edges docs/edges.md`` writes the page from the registry, that is, from the code.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from ..tensor import ExTensor
from .calls import Call, floating_arrays, floating_outputs
from .registry import Edge
from .verifier import Subject, library_subjects

__all__ = ["edge_page"]

_HEAD = """\
# Gradients at the edges

<!-- Written by `python -m extensor.testing.edges docs/edges.md`; a test keeps it equal to the code. -->

What every function and its backward give at kinks, ties, 0, -0, the infinities and nan, in float64, with an
upstream gradient of 1 everywhere. An elementwise function gives the same at every position of a tensor. The sign of a zero is shown where it
goes in, not where it comes out.
`extensor verify` holds the promised gradients (ties, kinks, guards) on your machine.

The rules behind the table:

- At a kink of an activation the gradient is that of the flat or negative side: `relu` at 0 has the gradient 0.
- Ties share the gradient equally, in `maximum` and `minimum` half and half, in a reduction by the number of ties.
- A nan that takes part in a result makes the gradients nan; a comparison never turns it into 0 or 1.
- A division by something smaller than `eps` divides by `copysign(eps, d)`: large, finite, with the right sign.
  `eps=0` gives what IEEE arithmetic gives.
"""


def edge_page() -> str:
    """The whole page, as Markdown."""
    sections = [_HEAD]
    for family, subjects in groupby(library_subjects(), key=lambda subject: subject.family):
        rows = [row for subject in subjects for row in _rows(subject)]
        if rows:
            title = family.replace("_", " ").capitalize()
            sections.append(
                "\n".join(
                    [f"## {title}\n", "| function | at | value | gradient |", "|---|---|---|---|", *rows]
                )
            )
    return "\n\n".join(section.strip() for section in sections) + "\n"


def _rows(subject: Subject) -> Iterator[str]:
    for i, edge in enumerate(subject.pair.edges):
        name = f"`{subject.name}`" if i == 0 else ""
        point, value, gradient = _facts(subject, edge)
        yield f"| {name} | {point} | {value} | {gradient} |"


def _facts(subject: Subject, edge: Edge) -> tuple[str, str, str]:
    """Where, the value, and the gradients, for people."""
    call = Call(subject.op, edge.case, floating_arrays(edge.case))
    output = call.forward()
    outputs = floating_outputs(output)
    gradients = call.gradients(output, [np.ones(value.shape) for value in outputs])
    shown = [(name, grad) for name, grad in zip(call.names, gradients) if isinstance(grad, ExTensor)]
    if len(call.names) == 1:
        gradient = _result(shown[0][1])
    else:
        gradient = ", ".join(f"{name}: {_result(grad)}" for name, grad in shown)
    value = ", ".join(map(_result, outputs))
    given = {**dict(zip(subject.op.rule.names, call.args)), **call.kwargs}
    if subject.op.rule.variadic is not None:
        given[subject.op.rule.variadic] = call.bound[subject.op.rule.variadic]
    point = ", ".join(f"{name} = {_text(v)}" for name, v in given.items())
    note = "" if edge.label in point or edge.elementwise else f" ({edge.label})"
    return point + note, value, gradient


def _text(value: Any) -> str:
    if isinstance(value, ExTensor):
        value = value.numpy()
    if isinstance(value, np.ndarray):
        return _text(value.tolist())
    if isinstance(value, (list, tuple)):
        inside = ", ".join(map(_text, value))
        return f"[{inside}]" if isinstance(value, list) else f"({inside}{',' * (len(value) == 1)})"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _result(value: ExTensor) -> str:
    """A result; the sign of a zero is not promised, so it is not shown."""
    return _text(value.numpy() + 0.0)


def main() -> None:
    """Write the page to the file named on the command line, or print it."""
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(edge_page(), encoding="utf-8")
    else:
        sys.stdout.write(edge_page())


if __name__ == "__main__":
    main()
