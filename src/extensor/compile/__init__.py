"""Recorded programs: a function runs once as it is written, and is repeated natively afterwards, with the same bits."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

from .entrance import compile

if _TYPE_CHECKING:
    from .compiled import Compiled
else:

    def __getattr__(name: str) -> object:
        if name != "Compiled":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return _import_module(f"{__name__}.compiled").Compiled


__all__ = ["Compiled", "compile"]
