"""Modules that load when one of their names is first used, also where another thread forks meanwhile.

A child that was forked in the middle of an import would wait for ever for the lock of that module: the thread that holds it is not
there. So a fork waits until the loads of other threads are done; no lock is held while a module loads, since its imports wait for
locks of their own.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from importlib import import_module
from types import ModuleType

__all__ = ["load"]

_PATIENCE = 10.0  # seconds: a load that waits for the thread that forks must not hold it up for ever

_changed = threading.Condition()
_loading: Counter[int] = Counter()  # threads inside `load`, and how deep


def load(name: str) -> ModuleType:
    """The module of this name."""
    thread = threading.get_ident()
    with _changed:
        _loading[thread] += 1
    try:
        return import_module(name)
    finally:
        with _changed:
            _loading[thread] -= 1
            if not _loading[thread]:
                del _loading[thread]
                _changed.notify_all()


def _wait_for_others() -> None:
    _changed.acquire()
    thread = threading.get_ident()
    _changed.wait_for(lambda: _loading.keys() <= {thread}, _PATIENCE)


def _forget_others() -> None:
    thread = threading.get_ident()
    for other in _loading.keys() - {thread}:
        del _loading[other]
    _changed.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_wait_for_others, after_in_parent=_changed.release, after_in_child=_forget_others
    )
