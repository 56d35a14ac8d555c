"""Which modules are running in this thread, and who watches."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

__all__ = ["Scope", "path_of", "scopes"]


class Scope(Protocol):
    """What can run: a module."""

    def named_modules(self) -> Iterator[tuple[str, Any]]: ...


class _Scopes(threading.local):
    """The modules whose forward is running in this thread, outermost first, and the profile that is open."""

    def __init__(self) -> None:
        self.running: list[Any] = []
        self.profile: Any = None


scopes = _Scopes()


def path_of(running: Sequence[Scope]) -> str:
    """The path of the innermost module: ``Net.blocks[2].conv1``; empty outside of all."""
    if not running:
        return ""
    path = type(running[0]).__name__
    for outer, inner in zip(running, running[1:]):
        name = next((n for n, m in outer.named_modules() if m is inner), None)
        if name:
            path += "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in name.split("."))
    return path
