"""HTML for notebooks: tables that look the same in light and dark surroundings, and one way to show them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

__all__ = ["bar", "displayer", "escaped", "fragment", "html_table"]

# A fragment brings its style, for a notebook may show it alone. Colours are mixtures of the text's own, so that they fit any theme.
_STYLE = (
    "<style>"
    ".extensor-view{font:13px/1.45 system-ui,-apple-system,'Segoe UI',sans-serif;max-width:100%;overflow-x:auto;"
    "font-variant-numeric:tabular-nums;--et-line:color-mix(in srgb,currentColor 16%,transparent)}"
    ".extensor-view p.et-facts{margin:.1em 0 .5em;font-size:12px;opacity:.7}.extensor-view p.et-facts b{font-weight:600}"
    ".extensor-view p.et-total{margin:.5em 0 .2em;font-size:12px;opacity:.7}"
    ".extensor-view table.et-table{border-collapse:collapse;border:0;margin:0 0 .4em;font-size:12.5px;width:auto;table-layout:auto}"
    ".extensor-view table.et-table th,.extensor-view table.et-table td{border:0;border-bottom:1px solid var(--et-line);padding:.22em .9em .22em 0;"
    "text-align:left;vertical-align:baseline;white-space:nowrap;background:none;max-width:none}"
    ".extensor-view table.et-table tr{background:none}"
    ".extensor-view table.et-table th{font-weight:600;opacity:.65}"
    ".extensor-view table.et-table .n{text-align:right;padding-left:.9em}.extensor-view table.et-table .n:last-child{padding-right:0}"
    ".extensor-view table.et-table .soft{opacity:.65}.extensor-view table.et-table .m{font-family:ui-monospace,Menlo,Consolas,monospace;font-size:12px}"
    ".extensor-view table.et-cells td{border-bottom:0;padding:.1em .7em .1em 0}.extensor-view table.et-cells th{font-weight:400;opacity:.45;border-bottom:0;padding:.1em .7em .1em 0}"
    ".extensor-view .et-bar{display:inline-block;height:7px;border-radius:4px;background:var(--et-line);vertical-align:1px;overflow:hidden}"
    ".extensor-view .et-bar i{display:block;height:100%;background:#3f7bd8}"
    ".extensor-view pre.et-text{font:12px/1.4 ui-monospace,Menlo,Consolas,monospace;margin:0;background:none;border:0;padding:0}"
    "</style>"
)


def escaped(text: str) -> str:
    """Text as it stands in HTML and SVG (the module html is slow to import)."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def fragment(*parts: str) -> str:
    """Parts of HTML as one piece that a notebook shows."""
    return f'<div class="extensor-view">{_STYLE}{"".join(parts)}</div>'


def bar(share: float, width: int = 90) -> str:
    """A bar of which a share, from 0 to 1, is filled."""
    return f'<span class="et-bar" style="width:{width}px"><i style="width:{100 * min(max(share, 0.0), 1.0):.1f}%"></i></span>'


def html_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = (0,), bars: Sequence[float] = ()
) -> str:
    """Columns under a head.

    Args:
        left: the columns of text; the others hold numbers and stand to the right.
        bars: a share for each row, drawn as a bar after its last cell.

    Example:
        >>> from extensor._html import html_table
        >>> "<td>relu</td><td class=n>3</td>" in html_table(["operation", "calls"], [["relu", "3"]])
        True
    """

    def line(cells: Sequence[str], tag: str, share: float | None) -> str:
        kinds = ("" if i in left else " class=n" for i in range(len(cells)))
        made = "".join(f"<{tag}{kind}>{escaped(cell)}</{tag}>" for kind, cell in zip(kinds, cells))
        last = "" if not bars else f"<{tag}>{'' if share is None else bar(share)}</{tag}>"
        return f"<tr>{made}{last}</tr>"

    shares: Sequence[float | None] = bars or [None] * len(rows)
    body = "".join(line(row, "td", share) for row, share in zip(rows, shares))
    return f'<table class="et-table"><thead>{line(head, "th", None)}</thead><tbody>{body}</tbody></table>'


def displayer() -> Any:
    """``IPython.display.display`` where a notebook shows what it gets; None elsewhere. Imports nothing."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if ipython is None or getattr(shell, "kernel", None) is None:
        return None
    return ipython.display.display
