"""The recorder's classes in Python, for where the native module is absent (see csrc/bindings/recorder)."""

from __future__ import annotations

import itertools
import sys
import threading
from types import MethodType
from typing import Any

import numpy as np

__all__ = [
    "ALL_AXES", "ANY_INTS", "ANY_NUMBER", "DTYPE", "FLAT_AXIS", "KEY", "LAST_AXIS", "ONES", "TENSORS", "ZEROS", "NodeBase", "OpBase", "TensorBase",
    "exchange_observer", "exchange_recording", "get_observer", "is_recording", "next_sequence", "register_classes",
]  # fmt: skip


LAST_AXIS, ALL_AXES, FLAT_AXIS, ANY_NUMBER = "last axis", "all axes", "flat axis", "any number"
ONES, ZEROS, ANY_INTS, DTYPE, KEY, TENSORS = "ones", "zeros", "any ints", "dtype", "key", "tensors"


class TensorBase:
    """The fields of a tensor."""

    __slots__ = ("__weakref__", "_array", "_grad", "_node", "_requires_grad")

    def __new__(cls, array: np.ndarray, requires_grad: bool = False, node: Any = None) -> Any:
        if not isinstance(array, np.ndarray):
            raise TypeError(f"argument 1 must be numpy.ndarray, not {type(array).__name__}")
        self: Any = object.__new__(cls)
        self._array = array
        self._grad = None
        self._node = node
        self._requires_grad = requires_grad
        return self


class NodeBase:
    """The fields of a recorded call."""

    __slots__ = (
        "__weakref__", "casts", "code", "edges", "instruction", "op", "options", "outputs", "saved", "sequence", "shape",
        "shapes",
    )  # fmt: skip

    def __init__(self, op: Any, edges: tuple[Any, ...], saved: Any, options: Any = None) -> None:
        self.op = op
        self.edges = edges
        self.saved = saved
        self.options = options
        self.casts = self.outputs = self.shape = self.shapes = None
        self.sequence = next_sequence()
        frame = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename.startswith(_package_path):
            frame = frame.f_back  # type: ignore[assignment]
        self.code = frame and frame.f_code
        self.instruction = frame.f_lasti if frame else 0


class OpBase:
    """The call of an op: always its Python method here."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.call(*args, **kwargs)  # type: ignore[attr-defined]

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def run_natively(self, *plan: Any) -> bool:
        """There are no native kernels."""
        return False

    run_directly = run_natively


class _State(threading.local):
    recording = True
    observer: Any = None


_state = _State()

next_sequence = itertools.count(1).__next__


_package_path = "<nothing>"


def register_classes(tensor: type, node: type, ops: tuple[type, ...], package_path: str) -> None:
    """Tell the recorder the Python classes to make, and whose frames are not the user's."""
    global _package_path
    _package_path = package_path


def is_recording() -> bool:
    """Whether this thread records."""
    return _state.recording


def exchange_recording(on: bool) -> bool:
    """Set whether this thread records; returns what it was."""
    before, _state.recording = _state.recording, on
    return before


def get_observer() -> Any:
    """What sees every op call of this thread, or None."""
    return _state.observer


def exchange_observer(observer: Any) -> Any:
    """Set the observer of this thread; returns what it was."""
    before, _state.observer = _state.observer, observer
    return before
