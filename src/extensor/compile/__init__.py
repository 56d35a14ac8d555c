"""Recorded programs: a function runs once as it is written, and is repeated natively afterwards, with the same bits."""

from .compiled import Compiled, compile

__all__ = ["Compiled", "compile"]
