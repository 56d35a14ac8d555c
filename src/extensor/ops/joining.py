"""Several tensors into one, one into several, and one repeated or padded, with NumPy's conventions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..checks import (
    as_axis,
    as_floating,
    as_grad,
    as_int,
    as_integers,
    as_ints,
    as_number,
    as_tensor,
    shape_of,
    takes_complex,
)
from ..dtypes import promote
from ..errors import describe
from ..graph import backward_of, differentiable
from ..kernels import copy as copy_kernel
from ..kernels import reshape as reshape_kernel
from ..kernels import take as take_kernel
from ..kernels.reference import joining as kernels
from ..kernels.reference.resampling import resample, resample_backward
from ..nested import kinds_in, with_arrays
from ..tensor import ExTensor, Shape, TensorOrShape
from ._wide import computed_wide
from .broadcasting import sum_to_shape
from .casting import cast_like
from .creation import allocate
from .indexing import index, take_backward
from .shape import reshape

__all__ = [
    "concatenate", "concatenate_backward", "pad", "pad_backward", "repeat", "repeat_backward",
    "split", "split_backward", "stack", "stack_backward", "tile", "tile_backward",
]  # fmt: skip


def _listed(function: str, name: str, values: Any) -> list[Any]:
    """A list of things to join, at least one."""
    if not isinstance(values, (list, tuple)):
        raise TypeError(f"[{function}] {name} must be a list of tensors, got {describe(values)}")
    if not values:
        raise ValueError(f"[{function}] {name} is empty; at least one tensor is needed")
    return list(values)


def _join_axis(function: str, shapes: list[Shape], axis: Any) -> int:
    """The axis to join along, after checking that the shapes agree everywhere else."""
    place = as_axis(function, axis, len(shapes[0]))
    first = shapes[0]
    for i, shape in enumerate(shapes):
        if (
            len(shape) != len(first)
            or shape[:place] != first[:place]
            or shape[place + 1 :] != first[place + 1 :]
        ):
            raise ValueError(
                f"[{function}] tensors must agree in every axis but {place}: number 0 has shape {first}, "
                f"number {i} has {shape}"
            )
    return place


def _joined(function: str, name: str, tensors: Any, axis: Any) -> ExTensor:
    found = [as_tensor(function, name, t) for t in _listed(function, name, tensors)]
    if axis is None:
        found, axis = [reshape_kernel(t, (t.size,)) for t in found], 0
    place = _join_axis(function, [t.shape for t in found], axis)
    return kernels.concatenate(found, place, promote(*(t.dtype for t in found)))


@differentiable
@takes_complex
def concatenate(tensors: Any, axis: int | None = 0) -> ExTensor:
    """The tensors one after the other along an axis they have.

    Args:
        tensors: a list of tensors whose shapes agree in every other axis.
        axis: the axis to join along; None joins the flattened tensors.

    Example:
        >>> import extensor as et
        >>> et.concatenate([et.tensor([1, 2]), et.tensor([3])]).tolist()
        [1, 2, 3]
    """
    return _joined("concatenate", "tensors", tensors, axis)


@backward_of(concatenate, each="tensors", keeps_shape=("tensors",))
def concatenate_backward(
    grad_output: ExTensor, tensors: list[TensorOrShape], axis: int | None = 0
) -> list[ExTensor]:
    """Gradient of :func:`concatenate`: to each tensor its own part of ``grad_output``.

    Args:
        grad_output: the gradient of the joined tensor.
        tensors: the tensors that were joined, or just their shapes.
        axis: as in the forward.

    Example:
        >>> import extensor as et
        >>> [g.tolist() for g in et.concatenate_backward(et.tensor([1.0, 2.0, 3.0]), [(2,), (1,)])]
        [[1.0, 2.0], [3.0]]
    """
    name = "concatenate_backward"
    listed = _listed(name, "tensors", tensors)
    shapes = [shape_of(name, "tensors", t) for t in listed]
    flat: list[Shape] = [(math.prod(s),) for s in shapes] if axis is None else shapes
    place = _join_axis(name, flat, 0 if axis is None else axis)
    lengths = [s[place] for s in flat]
    whole = (*flat[0][:place], sum(lengths), *flat[0][place + 1 :])
    parts = split(as_grad(name, grad_output, whole), np.cumsum(lengths)[:-1].tolist(), place)
    return [cast_like(reshape(g, s), t) for g, s, t in zip(parts, shapes, listed)]


@differentiable
@takes_complex
def stack(tensors: Any, axis: int = 0) -> ExTensor:
    """The tensors one after the other along a new axis.

    Args:
        tensors: a list of tensors of one shape.
        axis: where the new axis stands in the result.

    Example:
        >>> import extensor as et
        >>> et.stack([et.tensor([1, 2]), et.tensor([3, 4])], axis=1).tolist()
        [[1, 3], [2, 4]]
    """
    found = [as_tensor("stack", "tensors", t) for t in _listed("stack", "tensors", tensors)]
    for i, t in enumerate(found):
        if t.shape != found[0].shape:
            raise ValueError(
                f"[stack] tensors must have one shape: number 0 has {found[0].shape}, number {i} has {t.shape}"
            )
    place = as_axis("stack", axis, found[0].ndim + 1)
    return kernels.stack(found, place, promote(*(t.dtype for t in found)))


@backward_of(stack, each="tensors")
def stack_backward(grad_output: ExTensor, axis: int = 0) -> list[ExTensor]:
    """Gradient of :func:`stack`: the slices of ``grad_output`` along ``axis``, as a list.

    Example:
        >>> import extensor as et
        >>> [g.tolist() for g in et.stack_backward(et.tensor([[1.0, 3.0], [2.0, 4.0]]), axis=1)]
        [[1.0, 2.0], [3.0, 4.0]]
    """
    grad = as_floating("stack_backward", "grad_output", grad_output)
    place = as_axis("stack_backward", axis, grad.ndim)
    return [index(grad, (*(slice(None),) * place, i)) for i in slices_of("stack_backward", grad, place)]


MAX_SECTIONS = 2**20  # of what is empty, which divides into any number; this many parts still fit in memory


def slices_of(function: str, x: ExTensor, axis: int) -> range:
    """The indices along ``axis``, each of which becomes a tensor."""
    length = x.shape[axis]
    if length > MAX_SECTIONS and not x.size:
        raise ValueError(
            f"[{function}] axis {axis} of shape {x.shape} has too many slices, {length} without elements"
        )
    return range(length)


def _bounds(x: ExTensor, indices_or_sections: Any, axis: int) -> tuple[int, ...]:
    """Where the parts begin and end along ``axis``, from 0 to its length."""
    length = x.shape[axis]
    given = as_ints("split", "indices_or_sections", indices_or_sections)
    if _is_sequence(indices_or_sections):
        cuts = [min(max(i + length if i < 0 else i, 0), length) for i in given]
        if cuts != sorted(cuts):
            raise ValueError(f"[split] indices_or_sections {given} must not decrease: parts may not overlap")
        return (0, *cuts, length)
    sections = given[0]
    if not 1 <= sections <= MAX_SECTIONS or length % sections:
        raise ValueError(
            f"[split] axis {axis} of length {length} does not divide into {sections} equal sections"
        )
    return tuple(range(0, length + 1, length // sections)) if length else (0,) * (sections + 1)


def _is_sequence(value: Any) -> bool:
    return value.ndim > 0 if isinstance(value, (ExTensor, np.ndarray)) else isinstance(value, Sequence)


@differentiable
@takes_complex
def split(x: ExTensor, indices_or_sections: Any, axis: int = 0) -> list[ExTensor]:
    """``x`` cut into parts along ``axis``, as a list of views.

    Args:
        x: the tensor.
        indices_or_sections: a number of equal sections, or the positions to cut at, in order.
        axis: the axis to cut.

    Example:
        >>> import extensor as et
        >>> [p.tolist() for p in et.split(et.arange(6), 3)], [p.tolist() for p in et.split(et.arange(4), [1])]
        ([[0, 1], [2, 3], [4, 5]], [[0], [1, 2, 3]])
    """
    x = as_tensor("split", "x", x)
    place = as_axis("split", axis, x.ndim)
    parts: list[ExTensor] = kernels.split(x, _bounds(x, indices_or_sections, place), place)
    return parts


@backward_of(split)
def split_backward(grad_outputs: list[ExTensor], axis: int = 0) -> ExTensor:
    """Gradient of :func:`split`: the gradients of the parts, joined again.   dx = concatenate(dys, axis)

    Example:
        >>> import extensor as et
        >>> et.split_backward([et.tensor([1.0]), et.tensor([2.0, 3.0])]).tolist()
        [1.0, 2.0, 3.0]
    """
    name = "split_backward"
    grads = [as_floating(name, "grad_outputs", g) for g in _listed(name, "grad_outputs", grad_outputs)]
    return concatenate(grads, _join_axis(name, [g.shape for g in grads], axis))


def _repetitions(function: str, shape: Shape, reps: Any) -> tuple[Shape, Shape]:
    """The shape with as many axes as there are repetitions, and one repetition count per axis."""
    counts = as_ints(function, "reps", reps)
    if any(r < 0 for r in counts):
        raise ValueError(f"[{function}] reps must not be negative, got {counts}")
    ndim = max(len(shape), len(counts))
    return (1,) * (ndim - len(shape)) + shape, (1,) * (ndim - len(counts)) + counts


@differentiable
@takes_complex
def tile(x: ExTensor, reps: Any) -> ExTensor:
    """``x`` laid out again and again along its axes.

    Args:
        x: the tensor.
        reps: how often per axis, aligned on the right; more counts than axes add axes in front.

    Example:
        >>> import extensor as et
        >>> et.tile(et.tensor([1, 2]), (2, 2)).tolist()
        [[1, 2, 1, 2], [1, 2, 1, 2]]
    """
    x = as_tensor("tile", "x", x)
    shape, counts = _repetitions("tile", x.shape, reps)
    return allocate("tile", lambda: kernels.tile(reshape_kernel(x, shape), counts))


@backward_of(tile, keeps_shape=("x",))
def tile_backward(grad_output: ExTensor, x: TensorOrShape, reps: Any) -> ExTensor:
    """Gradient of :func:`tile`: the sum over all repetitions. ``x`` is the input or just its shape.

    Example:
        >>> import extensor as et
        >>> et.tile_backward(et.ones((2, 4)), (2,), (2, 2)).tolist()
        [4.0, 4.0]
    """
    full = shape_of("tile_backward", "x", x)
    shape, counts = _repetitions("tile_backward", full, reps)
    grad = as_grad("tile_backward", grad_output, tuple(r * n for r, n in zip(counts, shape)))
    interleaved = reshape(grad, [n for pair in zip(counts, shape) for n in pair])
    summed = sum_to_shape(interleaved, tuple(n for length in shape for n in (1, length)))
    return cast_like(reshape(summed, full), x)


MOST_INDICES = min(2**40, np.iinfo(np.intp).max)  # beyond it NumPy's own count may overflow


def _repeat_indices(function: str, shape: Shape, repeats: Any, axis: Any) -> tuple[np.ndarray, int]:
    """Which position of ``axis`` (of the flattened tensor, if None) each position of the result comes from."""
    place = 0 if axis is None else as_axis(function, axis, len(shape))
    length = math.prod(shape) if axis is None else shape[place]
    counts = as_integers(function, "repeats", repeats)._array
    if counts.ndim > 1 or (counts.ndim == 1 and counts.size not in (1, length)):
        raise ValueError(
            f"[{function}] repeats of shape {counts.shape} must be one number, or {length} of them"
        )
    if counts.size and counts.min() < 0:
        raise ValueError(f"[{function}] repeats must not be negative, got {int(counts.min())}")
    total = float(counts.sum(dtype=np.float64)) * (length if counts.size == 1 else 1)
    if total > MOST_INDICES:
        raise ValueError(
            f"[{function}] repeats {describe(repeats)} make {total:.3g} slices, more than fit in memory"
        )
    return np.repeat(np.arange(length), counts.astype(np.intp)), place  # NumPy takes no wider counts


@differentiable
@takes_complex
def repeat(x: ExTensor, repeats: Any, axis: int | None = None) -> ExTensor:
    """Each element, or each slice along ``axis``, several times in a row.

    Args:
        x: the tensor.
        repeats: how often; one number, or one per position of the axis.
        axis: the axis to repeat along; None repeats the elements of the flattened tensor.

    Example:
        >>> import extensor as et
        >>> et.repeat(et.tensor([1, 2]), 2).tolist(), et.repeat(et.tensor([[1, 2]]), [0, 3], axis=1).tolist()
        ([1, 1, 2, 2], [[2, 2, 2]])
    """
    x = as_tensor("repeat", "x", x)
    indices, place = _repeat_indices("repeat", x.shape, repeats, axis)
    return allocate(
        "repeat", take_kernel, x if axis is not None else reshape_kernel(x, (x.size,)), indices, place
    )


@backward_of(repeat, keeps_shape=("x",))
def repeat_backward(
    grad_output: ExTensor, x: TensorOrShape, repeats: Any, axis: int | None = None
) -> ExTensor:
    """Gradient of :func:`repeat`: the sum over the copies. ``x`` is the input or just its shape.

    Example:
        >>> import extensor as et
        >>> et.repeat_backward(et.ones(5), (2,), [2, 3]).tolist()
        [2.0, 3.0]
    """
    shape = shape_of("repeat_backward", "x", x)
    indices, place = _repeat_indices("repeat_backward", shape, repeats, axis)
    whole = indices.shape if axis is None else (*shape[:place], indices.size, *shape[place + 1 :])
    grad = as_grad("repeat_backward", grad_output, whole)
    return take_backward(grad, x, indices, None if axis is None else place)


Widths = tuple[tuple[int, int], ...]
MODES = ("constant", "edge", "reflect", "symmetric", "wrap")


def _pairs(function: str, name: str, value: Any, ndim: int) -> list[Any]:
    """(before, after) per axis: NumPy's ``n``, ``(before, after)`` or ``((before, after), ...)``."""
    if type(np.ma.masked) in kinds_in(function, name, value):
        raise TypeError(f"[{function}] {name} must be numbers, got a masked one: {describe(value)}")
    try:
        pairs = np.broadcast_to(np.asarray(with_arrays(value)), (ndim, 2))
    except ValueError:
        raise ValueError(
            f"[{function}] {name} must be a number, (before, after), or one such pair for each of the "
            f"{ndim} axes, got {describe(value)}"
        ) from None
    return pairs.tolist()


def _widths(function: str, shape: Shape, pad_width: Any, mode: Any) -> Widths:
    if not isinstance(mode, str) or mode not in MODES:
        raise ValueError(f"[{function}] mode must be one of {', '.join(MODES)}, got {describe(mode)}")
    pairs = _pairs(function, "pad_width", pad_width, len(shape))
    widths = tuple((as_int(function, "pad_width", b), as_int(function, "pad_width", a)) for b, a in pairs)
    if any(n < 0 for pair in widths for n in pair):
        raise ValueError(f"[{function}] pad_width must not be negative, got {describe(pad_width)}")
    if mode != "constant" and any(length == 0 < sum(pair) for length, pair in zip(shape, widths)):
        raise ValueError(f"[{function}] an empty axis can only be padded with mode='constant' (x: {shape})")
    if mode != "constant" and any(n > MOST_INDICES for pair in widths for n in pair):
        raise ValueError(f"[{function}] pad_width {describe(pad_width)} is more than fits in memory")
    return widths


def _sources(length: int, before: int, after: int, mode: str) -> np.ndarray:
    """For each position of a padded axis the position of ``x`` it shows."""
    i = np.arange(-before, length + after)
    if mode == "edge" or length == 1:
        return np.clip(i, 0, length - 1)
    if mode == "wrap":
        return i % length
    # the axis and its mirror image, over and over; "symmetric" shows the ends twice
    twice = 2 * length if mode == "symmetric" else 2 * length - 2
    i = i % twice
    return np.where(i < length, i, (2 * length - 1 if mode == "symmetric" else twice) - i)


def _shown(shape: Shape, widths: Widths, mode: str) -> list[tuple[int, ExTensor]]:
    """The axes that have a margin, and the positions of ``x`` that each shows."""
    return [
        (axis, ExTensor(_sources(n, *width, mode)[None]))
        for axis, (n, width) in enumerate(zip(shape, widths))
        if any(width)
    ]


@differentiable
@takes_complex
def pad(x: ExTensor, pad_width: Any, mode: str = "constant", constant_values: Any = 0) -> ExTensor:
    """``x`` with a margin around it.

    Args:
        x: the tensor.
        pad_width: the widths of the margin: one number, (before, after), or a pair for each axis.
        mode: what fills it. ``"constant"``: ``constant_values``; ``"edge"``: the outermost element;
            ``"reflect"``: the mirror image, the end itself not repeated; ``"symmetric"``: the mirror image, the end
            repeated; ``"wrap"``: the elements from the other side.
        constant_values: the filling of mode ``"constant"``, in any of the forms of ``pad_width``.

    Example:
        >>> import extensor as et
        >>> et.pad(et.tensor([1, 2, 3]), (1, 2)).tolist(), et.pad(et.tensor([1, 2, 3]), 2, mode="reflect").tolist()
        ([0, 1, 2, 3, 0, 0], [3, 2, 1, 2, 3, 2, 1])
    """
    x = as_tensor("pad", "x", x)
    widths = _widths("pad", x.shape, pad_width, mode)
    values = _pairs("pad", "constant_values", constant_values, x.ndim)
    for pair in values:
        for value in pair:
            as_number("pad", "constant_values", int(value) if isinstance(value, bool) else value)
    if mode == "constant":
        return allocate("pad", kernels.pad, x, widths, mode, tuple(map(tuple, values)))
    return allocate("pad", _with_margins, x, _shown(x.shape, widths, mode))


def _with_margins(x: ExTensor, shown: list[tuple[int, ExTensor]]) -> ExTensor:
    for axis, places in shown:
        x = resample(x, places, None, axis)
    return x if shown else copy_kernel(x)


@backward_of(pad, keeps_shape=("x",))
def pad_backward(
    grad_output: ExTensor, x: TensorOrShape, pad_width: Any, mode: str = "constant", constant_values: Any = 0
) -> ExTensor:
    """Gradient of :func:`pad`: the part that ``x`` fills, plus what the margin shows of ``x``.

    With mode ``"constant"`` the margin does not depend on ``x`` (nor the gradient on ``constant_values``). ``x`` is
    the input or just its shape.

    Example:
        >>> import extensor as et
        >>> et.pad_backward(et.ones(6), (3,), (1, 2), mode="edge").tolist()
        [2.0, 1.0, 3.0]
    """
    shape = shape_of("pad_backward", "x", x)
    widths = _widths("pad_backward", shape, pad_width, mode)
    whole = tuple(n + before + after for n, (before, after) in zip(shape, widths))
    grad = as_grad("pad_backward", grad_output, whole)
    if mode == "constant":
        inner = tuple(slice(before, before + n) for n, (before, _) in zip(shape, widths))
        return cast_like(index(grad, inner), x)
    return cast_like(_without_margins(grad, shape, _shown(shape, widths, mode)), x)


@computed_wide
def _without_margins(grad: ExTensor, shape: Shape, shown: list[tuple[int, ExTensor]]) -> ExTensor:
    for axis, places in reversed(shown):
        grad = resample_backward(grad, shape[axis], places, None, axis)
    return grad
