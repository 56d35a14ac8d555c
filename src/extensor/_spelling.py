"""What somebody may have meant by a name that does not exist."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["did_you_mean"]


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: the name most like it, or nothing if there is none."""
    import difflib  # only where something went wrong

    near = difflib.get_close_matches(str(name), known, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
