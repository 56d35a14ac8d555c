"""A picture of the recorded graph, as SVG."""

from __future__ import annotations

import os
from typing import Any, NamedTuple, Protocol, runtime_checkable

from .._html import escaped
from ..errors import GraphError, describe
from ..tensor import ExTensor
from .chain import Call, recorded_calls

__all__ = ["Box", "Drawable", "GraphDrawing", "draw_graph"]

_BOX, _GAP_X, _ROW, _MARGIN = 34, 26, 78, 24
_LEAF_FILL, _CALL_FILL, _OUTPUT_FILL = "#e8f1fb", "#ffffff", "#fdf0dc"
_MOST_CALLS = 2000


class Box(NamedTuple):
    """One box of a picture."""

    title: str
    shape: str
    inputs: list[int]  # positions of boxes before it
    is_leaf: bool


@runtime_checkable
class Drawable(Protocol):
    """What knows the boxes of its picture: a compiled function, and each of its programs."""

    def boxes(self) -> list[Box]: ...


class GraphDrawing:
    """An SVG picture that notebooks show; ``svg`` is its text."""

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<GraphDrawing, {len(self.svg)} bytes of SVG>"


def draw_graph(output: ExTensor | Drawable, path: str | os.PathLike[str] | None = None) -> GraphDrawing:
    """Draw how ``output`` was computed: operations, shapes, and where a gradient flows.

    Args:
        output: a recorded tensor; or a compiled function, or one of its ``programs``, of which every call is drawn, those of
            the backward pass and the optimisers' steps among them.
        path: a file to write the SVG to. The drawing is also returned, and a notebook shows it.

    Example:
        >>> import extensor as et
        >>> x = et.tensor([3.0, 4.0], requires_grad=True)
        >>> et.draw_graph((x * x).sum()).svg[:4]
        '<svg'
        >>> double = et.compile(lambda x: x * 2.0)
        >>> y = double(et.ones(2))
        >>> "multiply" in et.draw_graph(double).svg
        True
    """
    boxes = _boxes(output) if isinstance(output, ExTensor) else _program_boxes(output)
    if len(boxes) > _MOST_CALLS:
        raise ValueError(f"[draw_graph] {len(boxes)} calls are too many to draw; at most {_MOST_CALLS}")
    drawing = GraphDrawing(_svg(boxes))
    if path is not None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(drawing.svg)
    return drawing


def _boxes(output: ExTensor) -> list[Box]:
    if not output.requires_grad:
        raise GraphError("[draw_graph] nothing was recorded for this tensor; no input requires a gradient")
    return [
        Box("tensor" if call.is_leaf else call.name, _shape_text(call), call.inputs, call.is_leaf)
        for call in recorded_calls(output)
    ]


def _program_boxes(output: Any) -> list[Box]:
    if isinstance(output, type) or not isinstance(output, Drawable):
        raise TypeError(
            f"[draw_graph] output must be a recorded tensor or a compiled function, got {describe(output)}"
        )
    return output.boxes()


def _shape_text(call: Call) -> str:
    shape: Any = call.shape
    return str(tuple(shape)) if isinstance(shape, tuple) else " ".join(str(s) for s in shape if s is not None)


def _rows(calls: list[Box]) -> list[list[int]]:
    """Calls by depth; a leaf stands just above its first use, so that its line is short."""
    depth = [0] * len(calls)
    for i, call in enumerate(calls):
        depth[i] = 1 + max((depth[j] for j in call.inputs), default=-1)
    for i, call in enumerate(calls):
        if call.is_leaf:
            depth[i] = max(
                0, min((depth[k] for k, user in enumerate(calls) if i in user.inputs), default=1) - 1
            )
    rows: list[list[int]] = [[] for _ in range(max(depth) + 1)]
    for i, d in enumerate(depth):
        rows[d].append(i)
    return rows


def _place(
    calls: list[Box], rows: list[list[int]], widths: list[float]
) -> tuple[list[tuple[float, float]], float]:
    """Centre of every box. Each row is ordered by where its inputs stand, to keep lines from crossing."""
    total = max(sum(widths[i] + _GAP_X for i in row) - _GAP_X for row in rows)
    centre = [0.0] * len(calls)
    spots = [(0.0, 0.0)] * len(calls)
    for r, row in enumerate(rows):
        known = {i: [centre[j] for j in calls[i].inputs] for i in row}
        row.sort(key=lambda i: sum(known[i]) / len(known[i]) if known[i] else float(i))
        x = _MARGIN + (total - (sum(widths[i] + _GAP_X for i in row) - _GAP_X)) / 2
        for i in row:
            centre[i] = x + widths[i] / 2
            spots[i] = (centre[i], _MARGIN + _BOX / 2 + r * _ROW)
            x += widths[i] + _GAP_X
    return spots, total + 2 * _MARGIN


def _svg(calls: list[Box]) -> str:
    widths = [max(64.0, 7.4 * max(len(call.title), len(call.shape)) + 20) for call in calls]
    rows = _rows(calls)
    spots, width = _place(calls, rows, widths)
    height = 2 * _MARGIN + _BOX + (len(rows) - 1) * _ROW
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="ui-sans-serif, system-ui, sans-serif">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" fill="#6b7280"/></marker></defs>',
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
    ]
    for i, call in enumerate(calls):
        for j in call.inputs:
            (x1, y1), (x2, y2) = spots[j], spots[i]
            y1, y2 = y1 + _BOX / 2, y2 - _BOX / 2 - 1
            bend = max(18.0, (y2 - y1) / 2)
            out.append(
                f'<path d="M{x1:.1f},{y1:.1f} C{x1:.1f},{y1 + bend:.1f} {x2:.1f},{y2 - bend:.1f} {x2:.1f},{y2:.1f}" '
                'fill="none" stroke="#9ca3af" stroke-width="1.3" marker-end="url(#tip)"/>'
            )
    for i, call in enumerate(calls):
        x, y = spots[i]
        fill = _LEAF_FILL if call.is_leaf else _OUTPUT_FILL if i == len(calls) - 1 else _CALL_FILL
        out.append(
            f'<g><rect x="{x - widths[i] / 2:.1f}" y="{y - _BOX / 2:.1f}" width="{widths[i]:.1f}" height="{_BOX}" '
            f'rx="{_BOX / 2 if call.is_leaf else 6}" fill="{fill}" stroke="#4b5563"/>'
            f'<text x="{x:.1f}" y="{y - 2:.1f}" text-anchor="middle" font-size="12.5" fill="#111827">{escaped(call.title)}</text>'
            f'<text x="{x:.1f}" y="{y + 12:.1f}" text-anchor="middle" font-size="10.5" fill="#6b7280">{escaped(call.shape)}</text>'
            "</g>"
        )
    return "\n".join([*out, "</svg>"])
