"""A model in a notebook: its modules as a tree, with their settings and parameters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._html import escaped, fragment

__all__ = ["module_html"]

_MOST = 60  # rows; the others are counted


def module_html(model: Any) -> str:
    """A row for each module, inner ones further to the right."""
    rows = list(_rows("", model, 0))
    shown = "".join(_line(*row) for row in rows[:_MOST])
    if len(rows) > _MOST:
        shown += (
            f"<tr><td class=soft colspan=3>… {len(rows) - _MOST} more; print the model to see all</td></tr>"
        )
    total = sum(p.size for p in model.parameters())
    frozen = sum(p.size for p in model.parameters() if not p.requires_grad)
    facts = f"<b>{escaped(type(model).__name__)}</b> · {total:,} parameters"
    facts += f", {frozen:,} of them frozen" if frozen else ""
    facts += "" if model.training else " · in evaluation mode"
    head = "<tr><th>module</th><th>settings</th><th class=n>parameters</th></tr>"
    return fragment(
        f'<p class="et-facts">{facts}</p><table class="et-table"><thead>{head}</thead><tbody>{shown}</tbody></table>'
    )


def _rows(name: str, module: Any, depth: int) -> Iterator[tuple[str, Any, int]]:
    yield name, module, depth
    for child_name, child in module.named_children():
        yield from _rows(child_name, child, depth + 1)


def _line(name: str, module: Any, depth: int) -> str:
    count = sum(p.size for p in module.parameters())
    label = f'<span class="soft">{escaped(name)}</span> ' if name else ""
    return (
        f'<tr><td style="padding-left:{1.4 * depth:.1f}em">{label}{escaped(type(module).__name__)}</td>'
        f'<td class="soft m">{escaped(module.extra_repr())}</td><td class=n>{f"{count:,}" if count else "–"}</td></tr>'
    )
