"""Tensors that a model owns and an optimiser replaces."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ..checks import as_tensor
from ..devices import DeviceArray, kept_there
from ..dtypes import FLOATING
from ..graph import current_recorder, next_sequence
from ..tensor import ExTensor, tensor

__all__ = ["Parameter"]


class Parameter(ExTensor):
    """A leaf tensor that requires a gradient and whose value can be replaced.

    The elements of a tensor never change; a parameter is a name that moves on to new ones. Replacing the value between a
    forward pass and its backward pass is an error that the backward pass reports.

    Args:
        data: the first value, a tensor or anything :func:`extensor.tensor` takes; floating. It is copied.
        requires_grad: whether it is trained.

    Example:
        >>> import extensor as et
        >>> w = et.nn.Parameter([1.0, 2.0])
        >>> (w * w).sum().backward()
        >>> w.assign(w - 0.1 * w.grad)
        >>> w.tolist()
        [0.800000011920929, 1.600000023841858]
    """

    __slots__ = ("_left", "_replaced")

    _replaced: int  # when the value was last replaced, in the numbers of the recorder
    _left: tuple[str, Any] | None  # the place in a model that it no longer has, and its gradient at that time

    def __new__(cls, data: Any, requires_grad: bool = True) -> Parameter:
        value = as_tensor("Parameter", "data", data)
        if value.dtype not in FLOATING:
            raise TypeError(
                f"[Parameter] data must have a floating dtype, got {value.dtype}; pass dtype=extensor.float32"
            )
        # a copy, always: nothing the caller does to an array, or to one behind a tensor, changes the parameter
        return cls.around(tensor(value)._array, bool(requires_grad))

    @classmethod
    def around(cls, array: np.ndarray, requires_grad: bool, node: Any = None) -> Self:
        """A parameter over an array that nobody else writes to; with a node it stands for a computed tensor."""
        self = super().__new__(cls, array, requires_grad, node)
        self._replaced = 0
        self._left = None
        return self

    @classmethod
    def _unpickled(cls, array: np.ndarray, requires_grad: bool) -> Self:
        return cls.around(array, requires_grad)

    def __init__(self, data: Any, requires_grad: bool = True) -> None:
        pass  # made whole in __new__: the fields of a tensor are set once

    def assign(self, value: Any) -> None:
        """Replace the value by one of the same shape; it is cast to the parameter's dtype. An array is copied."""
        array, before = as_tensor("assign", "value", value)._data, self._data
        recorder = current_recorder()
        if recorder is not None:
            recorder.note_leaf(self)
        if array.shape != before.shape:
            raise ValueError(
                f"[assign] value has shape {array.shape} but the parameter has shape {before.shape}"
            )
        if type(array) is DeviceArray:
            array = array if array.dtype == before.dtype else kept_there(array.held.astype(before.dtype))
        elif array.dtype != before.dtype or not array.flags.c_contiguous:
            array = np.array(array, before.dtype, order="C")
        elif not isinstance(value, ExTensor):
            array = array.copy()
        self._array = array
        self._replaced = next_sequence()

    def zero_grad(self) -> None:
        """Forget the gradient."""
        recorder = current_recorder()
        if recorder is not None:
            recorder.note_leaf(self)
        self._grad = None
