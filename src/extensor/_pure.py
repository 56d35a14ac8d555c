"""The recorder's classes in Python, for where the native module is absent (see csrc/bindings/recorder). There are no plans."""

from __future__ import annotations

import itertools
import sys
import threading
from types import MethodType
from typing import Any

import numpy as np

__all__ = [
    "NodeBase", "OpBase", "TensorBase", "clear_plans", "current_trace", "enable_plans", "exchange_mode", "exchange_observer",
    "exchange_recording", "get_observer", "is_recording", "next_sequence", "plan_counts", "register_classes", "set_plan_maker",
]  # fmt: skip


class TensorBase:
    """The fields of a tensor."""

    __slots__ = ("__weakref__", "_data", "_grad", "_node", "_requires_grad")

    def __new__(cls, array: np.ndarray, requires_grad: bool = False, node: Any = None) -> Any:
        self: Any = object.__new__(cls)
        self._array = array
        self._grad = None
        self._node = node
        self._requires_grad = requires_grad
        return self

    @property
    def _array(self) -> np.ndarray:
        return self._data

    @_array.setter
    def _array(self, value: np.ndarray) -> None:
        if not isinstance(value, np.ndarray):
            raise TypeError(f"[tensor] _array must be a NumPy array, got {type(value).__name__}")
        self._data = value

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes."""
        return self._data.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype of the elements."""
        return self._data.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._data.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._data.size


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

    fn: Any
    planned: bool
    is_backward = False
    native_backward: Any
    takes_needs: bool
    numbers = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.call(*args, **kwargs)  # type: ignore[attr-defined]

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def outcome(self, *args: Any, **kwargs: Any) -> None:
        """Without plans nothing is known of a call before it is made."""
        return


class _State(threading.local):
    recording = True
    observer: Any = None
    mode = 0


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


def exchange_mode(mode: int) -> int:
    """Set what else decisions of this thread depend on; returns what it was."""
    before, _state.mode = _state.mode, mode
    return before


def set_plan_maker(function: Any) -> None:
    """There are no plans to make."""


def current_trace() -> list[Any] | None:
    """No body is traced."""
    return None


def clear_plans() -> None:
    """There are none."""


def plan_counts() -> dict[str, int]:
    """Calls that repeated a plan and that decided anew; plans kept, and kinds without one."""
    return {"hits": 0, "misses": 0, "kept": 0, "bodies": 0}


def enable_plans(on: bool) -> bool:
    """Plans are never used; returns so."""
    return False
