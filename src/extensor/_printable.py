"""Text from files, made safe for a terminal."""

from __future__ import annotations

import unicodedata

__all__ = ["printable"]

_ESCAPED = frozenset(
    ["Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"]
)  # controls, direction marks, surrogates, nothing at all


def printable(text: str, keep: str = "\n\t") -> str:
    r"""``text`` with every character escaped that a terminal could obey instead of showing.

    Example:
        >>> from extensor._printable import printable
        >>> print(printable("name \x1b[31m red"))
        name \x1b[31m red
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(c) if c not in keep and unicodedata.category(c) in _ESCAPED else c for c in text)


def _shown(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
