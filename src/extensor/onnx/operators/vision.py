"""Boxes."""

from __future__ import annotations

from typing import Any

import numpy as np

import extensor as et

from ..proto import array_of, as_value, check_bytes
from ..table import opaque, operator

__all__: list[str] = []


@operator("NonMaxSuppression")
@opaque
def non_max_suppression(
    boxes: Any, scores: Any, max_output_boxes_per_class: Any = None, iou_threshold: Any = None, score_threshold: Any = None,
    *, center_point_box: int = 0,
) -> Any:  # fmt: skip
    """The best boxes of each class that do not overlap a better one: rows of (batch, class, box)."""

    def number(value: Any, otherwise: float) -> float:
        return otherwise if value is None else float(array_of(value).reshape(-1)[0])

    most = int(number(max_output_boxes_per_class, 0))
    overlap, least = number(iou_threshold, 0.0), number(score_threshold, -np.inf)
    found = []
    corners = _corners(array_of(boxes).astype(np.float64), bool(center_point_box))
    for batch, per_class in enumerate(array_of(scores)):
        for kind, values in enumerate(per_class):
            kept: list[int] = []
            for box in np.argsort(-values, kind="stable"):
                if len(kept) >= most or (score_threshold is not None and values[box] <= least):
                    break
                if all(_overlap(corners[batch, box], corners[batch, other]) <= overlap for other in kept):
                    kept.append(int(box))
            found += [[batch, kind, box] for box in kept]
    return as_value(np.array(found, np.int64).reshape((-1, 3)))


def _corners(boxes: np.ndarray, center: bool) -> np.ndarray:
    """Boxes as (y1, x1, y2, x2) with the smaller numbers first."""
    if center:
        x, y, w, h = (boxes[..., i] for i in range(4))
        return np.stack([y - h / 2, x - w / 2, y + h / 2, x + w / 2], -1)
    first, second = boxes[..., :2], boxes[..., 2:]
    return np.concatenate([np.minimum(first, second), np.maximum(first, second)], -1)


def _overlap(a: np.ndarray, b: np.ndarray) -> float:
    """The area both cover, over the area either covers."""
    sides = np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2])
    if (sides <= 0).any():
        return 0.0
    both = float(sides.prod())
    union = float((a[2:] - a[:2]).prod() + (b[2:] - b[:2]).prod()) - both
    return both / union if union > 0 else 0.0


@operator("MaxRoiPool", fixed=("rois",))
def max_roi_pool(x: Any, rois: Any, *, pooled_shape: list[int], spatial_scale: float = 1.0) -> Any:
    """The greatest element in each cell of each box."""
    rows, columns = pooled_shape
    check_bytes("MaxRoiPool", [rois.shape[0], x.shape[1], rows, columns])
    height, width = x.shape[2:]
    results = []
    for number, *box in array_of(rois):
        x1, y1, x2, y2 = (int(np.floor(v * spatial_scale + 0.5)) for v in box)
        high, wide = max(y2 - y1 + 1, 1), max(x2 - x1 + 1, 1)
        cells = []
        for i in range(rows):
            top, bottom = _edges(y1, high, i, rows, height)
            for j in range(columns):
                left, right = _edges(x1, wide, j, columns, width)
                cell = x[int(number), :, top:bottom, left:right]
                cells.append(et.max(cell, (1, 2)) if cell.size else et.zeros((x.shape[1],), x.dtype))
        results.append(et.stack(cells, 1).reshape((x.shape[1], rows, columns)))
    return et.stack(results, 0) if results else et.zeros((0, x.shape[1], rows, columns), x.dtype)


def _edges(start: int, length: int, i: int, count: int, limit: int) -> tuple[int, int]:
    low = start + int(np.floor(i * length / count))
    high = start + int(np.ceil((i + 1) * length / count))
    return min(max(low, 0), limit), min(max(high, 0), limit)
