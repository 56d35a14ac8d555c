"""A picture of the recorded graph, as SVG."""

from __future__ import annotations

import os
from typing import Any

from .._html import escaped
from ..errors import GraphError
from ..tensor import ExTensor
from .chain import Call, recorded_calls

__all__ = ["GraphDrawing", "draw_graph"]

_BOX, _GAP_X, _ROW, _MARGIN = 34, 26, 78, 24
_LEAF_FILL, _CALL_FILL, _OUTPUT_FILL = "#e8f1fb", "#ffffff", "#fdf0dc"
_MOST_CALLS = 2000


class GraphDrawing:
    """An SVG picture that notebooks show; ``svg`` is its text."""

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<GraphDrawing, {len(self.svg)} bytes of SVG>"


def draw_graph(output: ExTensor, path: str | os.PathLike[str] | None = None) -> GraphDrawing:
    """Draw how ``output`` was computed: operations, shapes, and where a gradient flows.

    Args:
        output: a recorded tensor.
        path: a file to write the SVG to. The drawing is also returned, and a notebook shows it.

    Example:
        >>> import extensor as et
        >>> x = et.tensor([3.0, 4.0], requires_grad=True)
        >>> et.draw_graph((x * x).sum()).svg[:4]
        '<svg'
    """
    if not isinstance(output, ExTensor):
        raise TypeError(f"[draw_graph] output must be a tensor, got {type(output).__name__}")
    if not output.requires_grad:
        raise GraphError("[draw_graph] nothing was recorded for this tensor; no input requires a gradient")
    calls = recorded_calls(output)
    if len(calls) > _MOST_CALLS:
        raise ValueError(f"[draw_graph] {len(calls)} calls are too many to draw; at most {_MOST_CALLS}")
    drawing = GraphDrawing(_svg(calls))
    if path is not None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(drawing.svg)
    return drawing


def _rows(calls: list[Call]) -> list[list[int]]:
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
    calls: list[Call], rows: list[list[int]], widths: list[float]
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


def _label(call: Call) -> tuple[str, str]:
    shape: Any = call.shape
    text = str(tuple(shape)) if isinstance(shape, tuple) else " ".join(str(s) for s in shape if s is not None)
    return ("tensor" if call.is_leaf else call.name), text


def _svg(calls: list[Call]) -> str:
    labels = [_label(call) for call in calls]
    widths = [max(64.0, 7.4 * max(map(len, label)) + 20) for label in labels]
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
    for i, (call, (name, shape)) in enumerate(zip(calls, labels)):
        x, y = spots[i]
        fill = _LEAF_FILL if call.is_leaf else _OUTPUT_FILL if i == len(calls) - 1 else _CALL_FILL
        out.append(
            f'<g><rect x="{x - widths[i] / 2:.1f}" y="{y - _BOX / 2:.1f}" width="{widths[i]:.1f}" height="{_BOX}" '
            f'rx="{_BOX / 2 if call.is_leaf else 6}" fill="{fill}" stroke="#4b5563"/>'
            f'<text x="{x:.1f}" y="{y - 2:.1f}" text-anchor="middle" font-size="12.5" fill="#111827">{escaped(name)}</text>'
            f'<text x="{x:.1f}" y="{y + 12:.1f}" text-anchor="middle" font-size="10.5" fill="#6b7280">{escaped(shape)}</text>'
            "</g>"
        )
    return "\n".join([*out, "</svg>"])
