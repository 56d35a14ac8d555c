"""Pieces of Markdown: prose whose signs stay what they are, code, and links to the API reference."""

from __future__ import annotations

import html
import re
from collections.abc import Callable

Link = Callable[[str], str | None]  # a name as docstrings write it -> where it is documented

WIDE = "---\nhide: [toc]\n---\n\n"  # front matter: no table of contents, all the width for the table

_ROLE = re.compile(r":\w+:`~?([^`]+)`")
_SPAN = re.compile(r"(:\w+:`[^`]+`|``.+?``|`[^`]+`)", re.DOTALL)


def prose(text: str, link: Link) -> str:
    """Docstring prose as Markdown: roles become links, stars and brackets of formulas stay themselves."""
    parts = []
    for part in _SPAN.split(" ".join(text.split("\n"))):
        role = _ROLE.fullmatch(part)
        if role:
            name = role[1].lstrip(".")
            target = link(name)
            shown = code(name.rpartition(".")[2])
            parts.append(f"[{shown}]({target})" if target else shown)
        elif part.startswith("`"):
            parts.append(code(part.strip("`")))
        else:
            parts.append(re.sub(r"([\\*_\[\]|])", r"\\\1", html.escape(part, quote=False)))
    return "".join(parts)


def code(text: str) -> str:
    """A code span, also inside a table."""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def block(text: str, language: str) -> str:
    """A fenced block of code."""
    return f"```{language}\n{text}\n```"


def table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Rows under a header."""
    lines = [header, tuple("---" for _ in header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
