"""Rows of a table by their numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..checks import as_floating, as_grad, as_int, as_integers, shape_of
from ..errors import OutOfBoundsError
from ..graph import backward_of, differentiable
from ..kernels import astype as astype_kernel
from ..kernels import first_outside
from ..kernels.reference import embedding as kernels
from ..tensor import ExTensor, Indices, Shape, TensorOrShape
from .casting import cast_like
from .creation import allocate, zeros
from .indexing import index_add

__all__ = ["embedding", "embedding_backward"]


def _rows(function: str, indices: Any, shape: Shape) -> ExTensor:
    """The row numbers as int64, once they are sure to be inside the table."""
    found = as_integers(function, "indices", indices)
    if len(shape) != 2:
        raise ValueError(f"[{function}] weight must have the 2 axes (rows, features), got shape {shape}")
    place = first_outside(found, 0, shape[0] - 1, None)
    if place is not None:
        raise OutOfBoundsError(
            f"[{function}] indices must lie between 0 and {shape[0] - 1}, the rows of weight {shape}, "
            f"got {found._array[place]} at index {place}"
        )
    return found if found.dtype == np.int64 else astype_kernel(found, np.dtype(np.int64))


def _padding(function: str, padding_idx: Any, rows: int) -> int | None:
    """The padding row, counted from the front; or None."""
    if padding_idx is None:
        return None
    found = as_int(function, "padding_idx", padding_idx)
    if not -rows <= found < rows:
        raise ValueError(f"[{function}] padding_idx {found} is out of range for a weight with {rows} rows")
    return found % rows


@differentiable
def embedding(indices: Indices, weight: ExTensor, padding_idx: int | None = None) -> ExTensor:
    """The rows of ``weight`` at ``indices``.   y = weight[indices]

    Args:
        indices: an integer tensor of any shape; 0 is the first row, negative numbers are errors.
        weight: the table, of shape (rows, features).
        padding_idx: a row that gets no gradient; negative numbers count from the end. The output is the same with it.

    Returns:
        A tensor of shape (*indices.shape, features).

    Example:
        >>> import extensor as et
        >>> et.embedding(et.tensor([1, 0, 1]), et.tensor([[1.0, 2.0], [3.0, 4.0]])).tolist()
        [[3.0, 4.0], [1.0, 2.0], [3.0, 4.0]]
    """
    weight = as_floating("embedding", "weight", weight)
    rows = _rows("embedding", indices, weight.shape)
    return kernels.embedding(rows, weight, _padding("embedding", padding_idx, weight.shape[0]))


def _embedding_formula(g: Any, indices: Any, weight: Any, padding_idx: int | None = None) -> ExTensor:
    shape = shape_of("embedding_backward", "weight", weight)
    rows, padding = (
        _rows("embedding_backward", indices, shape),
        _padding("embedding_backward", padding_idx, shape[0]),
    )
    if padding is not None:
        g = g * ExTensor((rows._array != padding)[..., None].astype(g.dtype))
    return index_add(zeros(shape, g.dtype), rows, g)


@backward_of(embedding, wrt="weight", keeps_shape=("weight",), formula=_embedding_formula)
def embedding_backward(
    grad_output: ExTensor, indices: ExTensor, weight: TensorOrShape, padding_idx: int | None = None
) -> ExTensor:
    """Gradient of :func:`embedding`: zeros with ``grad_output`` added at ``indices``; rows that repeat accumulate.

    Args:
        grad_output: the gradient of the rows that were taken.
        indices: as given to :func:`embedding`.
        weight: the table, or just its shape.
        padding_idx: the row whose gradient is 0.

    Returns:
        The gradient of the table.

    Example:
        >>> import extensor as et
        >>> et.embedding_backward(et.ones((3, 2)), et.tensor([1, 0, 1]), (3, 2)).tolist()
        [[1.0, 1.0], [2.0, 2.0], [0.0, 0.0]]
    """
    name = "embedding_backward"
    shape = shape_of(name, "weight", weight)
    rows = _rows(name, indices, shape)
    padding = _padding(name, padding_idx, shape[0])
    grad = as_grad(name, grad_output, (*rows.shape, shape[1]))
    return cast_like(allocate(name, kernels.embedding_backward, grad, rows, shape, padding), weight)
