"""The recorded chain as a table."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._html import displayer, fragment, html_table
from ..graph import Node, walking
from ..tensor import ExTensor
from .chain import recorded_calls
from .engine import Walk, backpropagate, backward_name, check_grad_output

__all__ = ["explain"]


def explain(output: ExTensor, grad_output: ExTensor | None = None) -> None:
    """Print how ``output`` was computed, one line per recorded call, the last first: operation, shape, the line of your
    code, the function that carries the gradient back, and the norm of the gradient that arrives there. A notebook shows a table.

    Args:
        output: a recorded tensor; the graph is kept.
        grad_output: the gradient that arrives at it; 1 for a scalar.

    Example:
        >>> import extensor as et
        >>> x = et.tensor([3.0, 4.0], requires_grad=True)
        >>> et.explain((x * x).sum())
        operation  shape  line...         backward           |gradient|
        ---------  -----  -------...      -----------------  ----------
        sum        ()     ...:1           sum_backward                1
        multiply   (2,)   ...:1           multiply_backward       1.414
        leaf       (2,)                                              10
    """
    start = check_grad_output("explain", output, grad_output)
    norms: dict[int, float] = {}
    calls = recorded_calls(output)
    leaves = [c.edge for c in calls if c.is_leaf]
    with walking(functools.partial(_MeasuringWalk, norms)):
        found = backpropagate([output], [start], leaves, retain_graph=True)
    norms.update({id(leaf): _norm(g) for leaf, g in zip(leaves, found) if g is not None})
    head = ("operation", "shape", "line", "backward", "|gradient|")
    rows: list[tuple[str, ...]] = []
    for call in reversed(calls):
        norm = norms.get(id(call.edge))
        node = None if call.is_leaf else call.edge
        rows.append(
            (
                call.name,
                str(call.shape),
                _line(node),
                backward_name(node) if node else "",
                "" if norm is None else f"{norm:.4g}",
            )
        )
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(5)]
    lines = []
    for row in (head, tuple("-" * w for w in widths), *rows):
        cells = [text.rjust(w) if i == 4 else text.ljust(w) for i, (text, w) in enumerate(zip(row, widths))]
        lines.append("  ".join(cells).rstrip())
    display, text = displayer(), "\n".join(lines)
    if display is None:
        print(text)
    else:
        page = fragment(html_table(head, rows, left=(0, 1, 2, 3)))
        display({"text/html": page, "text/plain": text}, raw=True)


def _line(node: Node | None) -> str:
    place = node.place if node is not None else None
    if not place:
        return ""
    in_notebook = os.path.basename(os.path.dirname(place[0])).startswith(
        "ipykernel_"
    )  # its files are named by numbers
    return f"{'cell' if in_notebook else os.path.basename(place[0])}:{place[1]}"


def _norm(grad: Any) -> float:
    parts = grad if isinstance(grad, (list, tuple)) else [grad]
    return float(np.sqrt(sum(np.square(g.numpy().astype(np.float64)).sum() for g in parts if g is not None)))


class _MeasuringWalk(Walk):
    """A backward pass that notes the norm of what arrives at each node."""

    def __init__(self, norms: dict[int, float], *options: Any) -> None:
        super().__init__(*options)
        self.norms = norms

    def gradients(self, node: Node, grad: Any, needs: tuple[bool, ...] | None) -> Sequence[Any]:
        self.norms[id(node)] = _norm(grad)
        return super().gradients(node, grad, needs)
