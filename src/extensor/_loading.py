"""Modules that load when one of their names is first used, also where another thread forks meanwhile.

A child that was forked in the middle of an import would wait for ever for the lock of that module: the thread that holds it is not
there. So a fork waits until such an import is done.
"""

from __future__ import annotations

import os
import threading
from importlib import import_module
from types import ModuleType

__all__ = ["load"]

_LOCK = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_LOCK.release)


def load(name: str) -> ModuleType:
    """The module of this name."""
    with _LOCK:
        return import_module(name)
