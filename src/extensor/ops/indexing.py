"""Elements by position: slicing and fancy indexing, ``take``, and new tensors with some elements replaced.

Everything NumPy accepts between brackets is a key here: ints, slices, ``...``, ``None``, boolean masks,
integer arrays, tensors or lists, and mixtures. The gradient of picking elements is adding at their
positions; where a position was picked twice the gradients accumulate.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import kernels
from ..checks import (
    as_axis,
    as_floating,
    as_grad,
    as_integers,
    as_tensor,
    broadcast_shape,
    check_needs,
    shape_of,
    takes_complex,
)
from ..dtypes import FLOATING, INTEGER
from ..errors import OutOfBoundsError, describe
from ..graph import backward_of, differentiable
from ..tensor import ExTensor, Shape, TensorOrShape, asarray
from ._pairs import BOTH, Needs
from .broadcasting import sum_to_shape
from .casting import cast_like
from .creation import allocate, zeros
from .selection import where
from .shape import reshape

__all__ = [
    "index", "index_add", "index_add_backward", "index_backward", "index_set", "index_set_backward",
    "take", "take_along_axis", "take_along_axis_backward", "take_backward",
]  # fmt: skip

Key = tuple[Any, ...]


def _key(function: str, key: Any) -> Key:
    """A key as kernels take it, arrays and lists as tensors, and with an Ellipsis, so that it never gives a scalar."""
    parts = tuple(_key_part(function, part) for part in (key if isinstance(key, tuple) else (key,)))
    return parts if any(part is Ellipsis for part in parts) else (*parts, Ellipsis)


def _key_part(function: str, part: Any) -> Any:
    if type(part) is int or part is None or part is Ellipsis:
        return part
    if isinstance(part, slice):
        for end in (part.start, part.stop, part.step):
            if end is not None and not hasattr(end, "__index__"):
                raise TypeError(f"[{function}] slices are made of ints, got {describe(end)}")
        return part
    if isinstance(part, (bool, np.bool_)):
        return asarray(bool(part))
    if isinstance(part, ExTensor):
        found = part
    elif isinstance(part, np.ndarray):
        found = as_tensor(function, "key", part)
    elif isinstance(part, Sequence) and not isinstance(part, (str, bytes)):
        found = as_tensor(function, "key", list(part))
        if not found.size:
            found = kernels.astype(found, np.dtype(np.int64))
    else:
        try:
            return operator.index(part)
        except TypeError:
            raise TypeError(
                f"[{function}] key must be ints, slices, ..., None, or boolean or integer tensors, got {describe(part)}"
            ) from None
    if found.dtype.kind not in "biu":
        raise TypeError(f"[{function}] key must be ints or booleans, got a tensor of {found.dtype}")
    return found


def _selected(function: str, shape: Shape, key: Key) -> Shape:
    """The shape of what ``key`` picks from a tensor of ``shape``; raises what is wrong with the key.

    Where positions are concerned, only their number counts here: the kernel sees whether they are in bounds.
    """
    places = tuple(map(_like, key))
    return _lookup(function, shape, lambda: np.broadcast_to(np.False_, shape)[places].shape)


def _like(part: Any) -> Any:
    if not isinstance(part, ExTensor):
        return part
    return part._array if part.dtype == np.bool_ else np.broadcast_to(np.int64(0), part.shape)


def _lookup(function: str, shape: Shape, pick: Callable[..., Any], *arguments: Any) -> Any:
    """``pick(*arguments)`` in a tensor of ``shape``; what NumPy has to say about the key comes as our errors."""
    try:
        return pick(*arguments)
    except (IndexError, OverflowError) as error:
        raise OutOfBoundsError(f"[{function}] {error} (x: {shape})") from None
    except ValueError as error:
        raise ValueError(f"[{function}] {error} (x: {shape})") from None


@differentiable
@takes_complex
def index(x: ExTensor, key: Any) -> ExTensor:
    """The elements of ``x`` at ``key``: what ``x[key]`` calls.

    Args:
        x: the tensor.
        key: what stands between the brackets. Ints, slices, ``...`` and None give views; boolean masks and
            integer tensors, arrays or lists give copies.

    Example:
        >>> import extensor as et
        >>> x = et.tensor([[1, 2, 3], [4, 5, 6]])
        >>> x[1].tolist(), x[:, [0, 2]].tolist(), x[x > 4].tolist()
        ([4, 5, 6], [[1, 3], [4, 6]], [5, 6])
    """
    x = as_tensor("index", "x", x)
    return _lookup("index", x.shape, kernels.index, x, _key("index", key))


def _index_formula(g: Any, x: Any, key: Any) -> ExTensor:
    return index_add(zeros(shape_of("index_backward", "x", x), g.dtype), key, g)


@backward_of(index, keeps_shape=("x",), formula=_index_formula)
def index_backward(grad_output: ExTensor, x: TensorOrShape, key: Any) -> ExTensor:
    """Gradient of :func:`index`: zeros with ``grad_output`` added at ``key``; repeated positions accumulate.

    ``x`` is the input or just its shape.

    Example:
        >>> import extensor as et
        >>> et.index_backward(et.ones(3), (4,), [0, 2, 2]).tolist()
        [1.0, 0.0, 2.0, 0.0]
    """
    shape, parts = shape_of("index_backward", "x", x), _key("index_backward", key)
    grad = as_grad("index_backward", grad_output, _selected("index_backward", shape, parts))
    return cast_like(_lookup("index_backward", shape, kernels.index_backward, grad, shape, parts), x)


class IndexGradients(NamedTuple):
    """The gradients of the tensor and of the values written into it; None where not wanted."""

    grad_x: ExTensor | None
    grad_values: ExTensor | None


def _values(function: str, x: ExTensor, key: Key, values: Any) -> ExTensor:
    """The values to write, in the dtype of ``x`` and of a shape that broadcasts to what ``key`` selects."""
    if type(values) is int and not _fits(values, x.dtype):
        raise ValueError(f"[{function}] values: {values} does not fit {x.dtype}")
    is_complex = x.dtype.kind == "c"
    if (type(values) is float and (is_complex or x.dtype in FLOATING)) or (
        type(values) is complex and is_complex
    ):
        # a Python number takes the dtype of x at once, unrounded
        return ExTensor(np.asarray(values, x.dtype))
    found = as_tensor(function, "values", values)
    complex_into_real = found.dtype.kind == "c" and not is_complex
    if complex_into_real or (found.dtype in FLOATING and x.dtype not in FLOATING):
        raise TypeError(
            f"[{function}] values of {found.dtype} do not go into a tensor of {x.dtype}; use x.astype(...)"
        )
    _check_fits(function, found.shape, _selected(function, x.shape, key))
    return found.detach() if found.dtype == x.dtype else kernels.astype(found, x.dtype)


def _fits(value: int, dtype: np.dtype[Any]) -> bool:
    limits = np.iinfo(dtype if dtype in INTEGER else np.int64)
    return bool(limits.min <= value <= limits.max)


@differentiable
@takes_complex
def index_set(x: ExTensor, key: Any, values: Any) -> ExTensor:
    """A copy of ``x`` with the elements at ``key`` replaced: what ``x.at[key].set(values)`` calls.

    Args:
        x: the tensor; it stays as it is.
        key: any key of :func:`index`. Where a position occurs twice, the last value stays.
        values: a number, or a tensor that broadcasts to the selected shape; cast to the dtype of ``x``.

    Example:
        >>> import extensor as et
        >>> et.zeros(4).at[1:3].set(et.tensor([5.0, 6.0])).tolist()
        [0.0, 5.0, 6.0, 0.0]
    """
    x, parts = as_tensor("index_set", "x", x), _key("index_set", key)
    values = _values("index_set", x, parts, values)
    return _lookup("index_set", x.shape, kernels.index_set, x, parts, values)


@backward_of(index_set, wrt=("x", "values"), keeps_shape=("values",))
def index_set_backward(
    grad_output: ExTensor, key: Any, values: TensorOrShape, *, needs: Needs = BOTH
) -> IndexGradients:
    """Gradient of :func:`index_set`: zero for what was replaced; the values get what was theirs.

    dx = dy with 0 at ``key``,  dvalues = dy[key], summed to the shape of ``values`` (a tensor or a shape).
    A value that another one overwrote has the gradient 0.

    Example:
        >>> import extensor as et
        >>> grads = et.index_set_backward(et.tensor([1.0, 2.0, 3.0]), [0, 2], ())
        >>> grads.grad_x.tolist(), grads.grad_values.item()
        ([0.0, 2.0, 0.0], 4.0)
    """
    check_needs("index_set_backward", needs)
    shape, parts, grad = _checked_write("index_set_backward", grad_output, key, values)
    grad_values = None
    if needs[1]:
        picked = index(grad, parts)
        if any(isinstance(part, ExTensor) for part in parts):
            picked = where(kernels.index_last(grad.shape, parts), picked, 0.0)
        grad_values = cast_like(sum_to_shape(picked, shape), values)
    return IndexGradients(index_set(grad, parts, 0.0) if needs[0] else None, grad_values)


def _checked_write(function: str, grad_output: Any, key: Any, values: Any) -> tuple[Shape, Key, ExTensor]:
    """The shape of ``values``, the key and the gradient, after checking that they fit each other."""
    shape, parts = shape_of(function, "values", values), _key(function, key)
    grad = as_floating(function, "grad_output", grad_output)
    _check_fits(function, shape, _selected(function, grad.shape, parts))
    return shape, parts, grad


def _check_fits(function: str, shape: Shape, selected: Shape) -> None:
    if len(shape) > len(selected) or any(n not in (m, 1) for n, m in zip(shape[::-1], selected[::-1])):
        raise ValueError(
            f"[{function}] values of shape {shape} do not broadcast to the selected shape {selected}"
        )


@differentiable
@takes_complex
def index_add(x: ExTensor, key: Any, values: Any) -> ExTensor:
    """A copy of ``x`` with values added at ``key``: what ``x.at[key].add(values)`` calls.

    Args:
        x: the tensor; it stays as it is.
        key: any key of :func:`index`. Where a position occurs twice, both values are added.
        values: a number, or a tensor that broadcasts to the selected shape; cast to the dtype of ``x``.

    Example:
        >>> import extensor as et
        >>> et.zeros(3).at[[0, 2, 2]].add(1.0).tolist()
        [1.0, 0.0, 2.0]
    """
    x, parts = as_tensor("index_add", "x", x), _key("index_add", key)
    values = _values("index_add", x, parts, values)
    return _lookup("index_add", x.shape, kernels.index_add, x, parts, values)


@backward_of(index_add, wrt=("x", "values"), keeps_shape=("values",))
def index_add_backward(
    grad_output: ExTensor, key: Any, values: TensorOrShape, *, needs: Needs = BOTH
) -> IndexGradients:
    """Gradient of :func:`index_add`.   dx = dy,  dvalues = dy[key], summed to the shape of ``values``

    ``values`` are the values or just their shape.

    Example:
        >>> import extensor as et
        >>> et.index_add_backward(et.tensor([1.0, 2.0, 3.0]), [0, 2], (2,)).grad_values.tolist()
        [1.0, 3.0]
    """
    check_needs("index_add_backward", needs)
    shape, parts, grad = _checked_write("index_add_backward", grad_output, key, values)
    grad_values = cast_like(sum_to_shape(index(grad, parts), shape), values) if needs[1] else None
    return IndexGradients(grad if needs[0] else None, grad_values)


class At:
    """``x.at``: choose a place with brackets, then ``set`` or ``add`` there; the result is a new tensor."""

    __slots__ = ("_x",)

    def __init__(self, x: ExTensor) -> None:
        self._x = x

    def __getitem__(self, key: Any) -> Place:
        return Place(self._x, key)


class Place:
    """``x.at[key]``: a place in a tensor."""

    __slots__ = ("_key", "_x")

    def __init__(self, x: ExTensor, key: Any) -> None:
        self._x = x
        self._key = key

    def set(self, values: Any) -> ExTensor:
        """A copy of the tensor with ``values`` here (:func:`index_set`)."""
        return index_set(self._x, self._key, values)

    def add(self, values: Any) -> ExTensor:
        """A copy of the tensor with ``values`` added here (:func:`index_add`)."""
        return index_add(self._x, self._key, values)


def _indices(function: str, indices: Any, axis: int, length: int) -> ExTensor:
    """Integer indices as int64, all within an axis of ``length``; negative ones count from the end."""
    found = as_integers(function, "indices", indices)
    place = kernels.first_outside(found, -length, length - 1, None)
    if place is not None:
        raise OutOfBoundsError(
            f"[{function}] indices hold {found._array[place]}, but axis {axis} of x has length {length}"
        )
    return found if found.dtype == np.int64 else kernels.astype(found, np.dtype(np.int64))


@differentiable
@takes_complex
def take(x: ExTensor, indices: Any, axis: int | None = None) -> ExTensor:
    """Elements, or whole slices along ``axis``, by position.

    Args:
        x: the tensor.
        indices: integers of any shape, which takes the place of ``axis`` in the result; negative ones count
            from the end.
        axis: the axis to take from; None takes from the flattened tensor.

    Example:
        >>> import extensor as et
        >>> et.take(et.tensor([[1, 2], [3, 4]]), [1, 1, 0], axis=0).tolist()
        [[3, 4], [3, 4], [1, 2]]
    """
    x = as_tensor("take", "x", x)
    shape, place = _taken_from("take", x.shape, axis)
    found = _indices("take", indices, place, shape[place])
    return kernels.take(x if axis is not None else kernels.reshape(x, shape), found, place)


def _taken_from(function: str, shape: Shape, axis: Any) -> tuple[Shape, int]:
    """The shape that is taken from and the axis in it; flat if ``axis`` is None."""
    if axis is None:
        return (math.prod(shape),), 0
    return shape, as_axis(function, axis, len(shape))


def _take_formula(g: Any, x: Any, indices: Any, axis: int | None = None) -> ExTensor:
    shape, place = _taken_from("take_backward", shape_of("take_backward", "x", x), axis)
    key = (*(slice(None),) * place, _indices("take_backward", indices, place, shape[place]))
    return reshape(index_add(zeros(shape, g.dtype), key, g), shape_of("take_backward", "x", x))


@backward_of(take, keeps_shape=("x",), formula=_take_formula)
def take_backward(grad_output: ExTensor, x: TensorOrShape, indices: Any, axis: int | None = None) -> ExTensor:
    """Gradient of :func:`take`: zeros with ``grad_output`` added where it was taken; repeats accumulate.

    ``x`` is the input or just its shape.

    Example:
        >>> import extensor as et
        >>> et.take_backward(et.ones((3, 2)), (2, 2), [1, 1, 0], axis=0).tolist()
        [[1.0, 1.0], [2.0, 2.0]]
    """
    full = shape_of("take_backward", "x", x)
    shape, place = _taken_from("take_backward", full, axis)
    found = _indices("take_backward", indices, place, shape[place])
    grad = as_grad("take_backward", grad_output, (*shape[:place], *found.shape, *shape[place + 1 :]))
    made = allocate("take_backward", kernels.take_backward, grad, shape, found, place)
    return cast_like(kernels.reshape(made, full), x)


def _along(function: str, shape: Shape, indices: Any, axis: Any) -> tuple[Shape, int, ExTensor, Shape]:
    """The shape taken from, the axis in it, the checked indices, and the shape of the result."""
    shape, place = _taken_from(function, shape, axis)
    found = _indices(function, indices, place, shape[place])
    if found.ndim != len(shape):
        raise ValueError(
            f"[{function}] indices must have {len(shape)} axes like x, got shape {found.shape} (x: {shape}, axis: {axis})"
        )
    try:
        rest = broadcast_shape((*shape[:place], 1, *shape[place + 1 :]), found.shape)
    except ValueError:
        raise ValueError(
            f"[{function}] indices of shape {found.shape} do not broadcast with x of shape {shape} beside axis {place}"
        ) from None
    return shape, place, found, rest


@differentiable
@takes_complex
def take_along_axis(x: ExTensor, indices: Any, axis: int | None = -1) -> ExTensor:
    """One element per index along ``axis``.   y[i, j, k] = x[i, indices[i, j, k], k]  for axis 1

    Args:
        x: the tensor.
        indices: integers with as many axes as ``x``; the axes beside ``axis`` broadcast against those of ``x``.
        axis: the axis to look up in; None looks up in the flattened tensor.

    Example:
        >>> import extensor as et
        >>> et.take_along_axis(et.tensor([[1, 2], [3, 4]]), et.tensor([[1], [0]])).tolist()
        [[2], [3]]
    """
    x = as_tensor("take_along_axis", "x", x)
    shape, place, found, _ = _along("take_along_axis", x.shape, indices, axis)
    return kernels.take_along_axis(x if axis is not None else kernels.reshape(x, shape), found, place)


def _along_formula(g: Any, x: Any, indices: Any, axis: int | None = -1) -> ExTensor:
    full = shape_of("take_along_axis_backward", "x", x)
    shape, place, found, _ = _along("take_along_axis_backward", full, indices, axis)
    key: list[Any] = list(np.ogrid[tuple(slice(n) for n in shape)])
    key[place] = found
    return reshape(index_add(zeros(shape, g.dtype), tuple(key), g), full)


@backward_of(take_along_axis, keeps_shape=("x",), formula=_along_formula)
def take_along_axis_backward(
    grad_output: ExTensor, x: TensorOrShape, indices: Any, axis: int | None = -1
) -> ExTensor:
    """Gradient of :func:`take_along_axis`: zeros with ``grad_output`` added where it was taken; repeats accumulate.

    ``x`` is the input or just its shape.

    Example:
        >>> import extensor as et
        >>> et.take_along_axis_backward(et.ones((1, 3)), (1, 3), [[0, 2, 2]]).tolist()
        [[1.0, 0.0, 2.0]]
    """
    full = shape_of("take_along_axis_backward", "x", x)
    shape, place, found, result = _along("take_along_axis_backward", full, indices, axis)
    grad = as_grad("take_along_axis_backward", grad_output, result)
    made = allocate("take_along_axis_backward", kernels.take_along_axis_backward, grad, shape, found, place)
    return cast_like(kernels.reshape(made, full), x)
