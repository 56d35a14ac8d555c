"""The recorder's classes in Python, for where the native module is absent (see csrc/bindings/recorder). There are no plans."""

from __future__ import annotations

import itertools
import os
import sys
import threading
from types import MethodType
from typing import Any

import numpy as np

from .errors import named_memory_error

_PACKAGE = os.path.dirname(__file__) + os.sep

__all__ = [
    "NodeBase", "OpBase", "StateBlock", "TensorBase", "bump_structure", "clear_plans", "enable_plans", "kernels",
    "next_sequence", "plan_counts", "register", "this_thread", "walk_back",
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
        this_thread.values_read = True
        if this_thread.reader is not None:
            this_thread.reader(self)
        fetch = getattr(self._data, "fetch", None)  # of an array on another device
        return self._data if fetch is None else fetch()

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
        while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
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
        try:
            return self.call(*args, **kwargs)  # type: ignore[attr-defined]
        except MemoryError as error:
            raise named_memory_error(self, error) from None

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def outcome(self, *args: Any, **kwargs: Any) -> None:
        """Without plans nothing is known of a call before it is made."""
        return


class _ThreadState(threading.local):
    recording = True
    observer: Any = None
    trace: list[Any] | None = None
    reader: Any = None
    values_read = False
    walk: Any = None
    mode = 0


this_thread: Any = _ThreadState()

next_sequence = itertools.count(1).__next__

kernels: dict[str, Any] = {}
walk_back: Any = None


def register(**objects: Any) -> None:
    """What the native recorder works with: here it is imported."""


class _Entered(threading.local):
    """The blocks this thread is in, as [block, what was before it]; the innermost comes last."""

    def __init__(self) -> None:
        self.blocks: list[list[Any]] = []


_entered = _Entered()


class StateBlock:
    """A block in which an attribute of the state of this thread has another value.

    Blocks may be entered again and left in any order (generators do that): the last one to be left restores what was before
    the first.
    """

    __slots__ = ("_attribute", "_value")

    def __init__(self, attribute: str, value: Any) -> None:
        self._attribute = attribute
        self._value = value

    def __enter__(self) -> None:
        _entered.blocks.append([self, getattr(this_thread, self._attribute)])
        setattr(this_thread, self._attribute, self._value)

    def __exit__(self, *exception: object) -> None:
        blocks = _entered.blocks
        place = len(blocks) - 1
        while place >= 0 and blocks[place][0] is not self:
            place -= 1
        if place < 0:
            raise RuntimeError(f"[{self._attribute}] the block is left but was not entered in this thread")
        _, before = blocks.pop(place)
        inside = [entry for entry in blocks[place:] if entry[0]._attribute == self._attribute]
        if inside:  # it hands on what was before this one
            inside[0][1] = before
        else:
            setattr(this_thread, self._attribute, before)


def bump_structure() -> None:
    """There are no native programs that would look at their modules again."""


def clear_plans() -> None:
    """There are none."""


def plan_counts() -> dict[str, int]:
    """Calls that repeated a plan and that decided anew; plans kept, and kinds without one."""
    return {"hits": 0, "misses": 0, "kept": 0, "bodies": 0}


def enable_plans(on: bool) -> bool:
    """Plans are never used; returns so."""
    return False
