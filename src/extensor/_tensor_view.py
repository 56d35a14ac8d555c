"""The elements of a tensor for people to read: as text, and as a table in a notebook."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._html import escaped
from .dtypes import bfloat16

__all__ = ["elements_html", "format_elements"]

_EDGE = 4  # rows and columns shown at each end of a long axis
_MOST = 2 * _EDGE + 2


def format_elements(array: np.ndarray, prefix: str = "") -> str:
    """As NumPy prints them, with four digits."""
    shown = array.astype(np.float32) if array.dtype == bfloat16 else array
    return np.array2string(
        shown, precision=4, separator=", ", threshold=200, edgeitems=3, prefix=prefix, suffix=")"
    )


def elements_html(array: np.ndarray) -> str:
    """A table for one and two axes, of which the middle may be left out; preformatted text for the rest."""
    if array.ndim not in (1, 2) or not array.size:
        return f'<pre class="et-text">{escaped(format_elements(array))}</pre>'
    plane = array[None] if array.ndim == 1 else array
    rows, columns = _shown_places(plane.shape[0]), _shown_places(plane.shape[1])
    cells = plane[np.ix_([r for r in rows if r is not None], [c for c in columns if c is not None])]
    texts = iter(_texts(cells.astype(np.float32) if array.dtype == bfloat16 else cells))
    row_names = array.ndim == 2
    head = ("<th></th>" if row_names else "") + "".join(
        f"<th class=n>{'⋯' if c is None else c}</th>" for c in columns
    )
    lines = []
    for r in rows:
        name = f"<th class=n>{'⋮' if r is None else r}</th>" if row_names else ""
        inner = "".join(
            f"<td class=n>{'' if r is None else '⋯' if c is None else next(texts)}</td>" for c in columns
        )
        lines.append(f"<tr>{name}{inner}</tr>")
    return f'<table class="et-table et-cells"><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table>'


def _shown_places(length: int) -> list[int | None]:
    """The places along an axis that are shown; None stands for those in between."""
    if length <= _MOST:
        return list(range(length))
    return [*range(_EDGE), None, *range(length - _EDGE, length)]


def _texts(cells: np.ndarray) -> list[str]:
    """Row by row; numbers with as many decimals as the one that needs most, four at most, as NumPy writes them."""
    values: list[Any] = cells.ravel().tolist()
    if cells.dtype.kind != "f":
        return [format(v, ".4g") if isinstance(v, complex) else str(v) for v in values]
    sizes = [abs(v) for v in values if v and np.isfinite(v)]
    if sizes and (max(sizes) >= 1e6 or min(sizes) < 1e-4 or max(sizes) / min(sizes) > 1e6):
        return [format(v, ".4g").replace("-", "−") for v in values]
    decimals = next(
        (d for d in range(5) if all(round(v, d) == round(v, 4) for v in values if np.isfinite(v))), 4
    )
    return [format(v, f".{decimals}f").replace("-", "−") for v in values]
