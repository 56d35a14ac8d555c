"""Sequences of different lengths side by side: padded to one tensor, or packed step by step as PyTorch has it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..checks import as_bool, as_int, as_integers, as_number, as_tensor, shape_of
from ..errors import describe
from ..ops.indexing import index
from ..ops.joining import pad, stack
from ..tensor import ExTensor

__all__ = ["PackedSequence", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence", "pad_sequence"]


class PackedSequence(NamedTuple):
    """Sequences step by step, the longest first: all first elements, then all second ones of those that have one.

    Attributes:
        data: (sum of the lengths, ...).
        batch_sizes: how many sequences have each step, int64.
        sorted_indices: the order of the sequences, by falling length; None if they were given so.
        unsorted_indices: its inverse.
    """

    data: ExTensor
    batch_sizes: ExTensor
    sorted_indices: ExTensor | None = None
    unsorted_indices: ExTensor | None = None


def pad_sequence(
    sequences: Sequence[ExTensor], batch_first: bool = False, padding_value: float = 0.0
) -> ExTensor:
    """Sequences (L_i, ...) as one tensor (T, N, ...), or (N, T, ...) with ``batch_first``, filled up at their ends.

    Example:
        >>> import extensor as et
        >>> et.nn.pad_sequence([et.tensor([1.0, 2.0]), et.tensor([3.0])], batch_first=True).tolist()
        [[1.0, 2.0], [3.0, 0.0]]
    """
    sequences = _checked("pad_sequence", sequences)
    first = as_bool("pad_sequence", "batch_first", batch_first)
    fill = as_number("pad_sequence", "padding_value", padding_value)
    if len({s.shape[1:] for s in sequences}) > 1:
        raise ValueError(
            f"[pad_sequence] sequences differ beyond their lengths: {[s.shape for s in sequences]}"
        )
    longest = max(s.shape[0] for s in sequences)
    rows = [
        pad(s, [(0, longest - s.shape[0]), *((0, 0),) * (s.ndim - 1)], constant_values=fill)
        for s in sequences
    ]
    return stack(rows, 0 if first else 1)


def _checked(function: str, sequences: Any) -> list[ExTensor]:
    if not isinstance(sequences, (list, tuple)):
        raise TypeError(f"[{function}] sequences must be a list of tensors, got {describe(sequences)}")
    found = [as_tensor(function, "sequences", s) for s in sequences]
    if not found or not all(s.ndim for s in found):
        raise ValueError(
            f"[{function}] sequences must be tensors with at least one axis, got {describe(sequences)}"
        )
    return found


def _order(lengths: np.ndarray, enforce_sorted: bool) -> np.ndarray | None:
    if enforce_sorted:
        if (np.diff(lengths) > 0).any():
            raise ValueError(
                "[pack_padded_sequence] lengths must fall; pass enforce_sorted=False for sequences in any order"
            )
        return None
    return np.argsort(-lengths, kind="stable")


def pack_padded_sequence(
    x: ExTensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Padded sequences (T, N, ...) without their padding, step by step.

    Args:
        x: the sequences; (N, T, ...) with ``batch_first``.
        lengths: the length of each, at least 1.
        batch_first: see ``x``.
        enforce_sorted: whether the sequences stand by falling length; else they are sorted here.

    Example:
        >>> import extensor as et
        >>> packed = et.nn.pack_padded_sequence(et.tensor([[1.0, 3.0], [2.0, 0.0]]), [2, 1])
        >>> packed.data.tolist(), packed.batch_sizes.tolist()
        ([1.0, 3.0, 2.0], [2, 1])
    """
    x = as_tensor("pack_padded_sequence", "x", x)
    in_order = as_bool("pack_padded_sequence", "enforce_sorted", enforce_sorted)
    if x.ndim < 2:
        raise ValueError(
            f"[pack_padded_sequence] x must have axes for steps and sequences, got shape {x.shape}"
        )
    if as_bool("pack_padded_sequence", "batch_first", batch_first):
        x = x.swapaxes(0, 1)
    found = as_integers("pack_padded_sequence", "lengths", lengths).numpy().astype(np.int64)
    if found.shape != (x.shape[1],) or (found.size and (found.min() < 1 or found.max() > x.shape[0])):
        raise ValueError(
            f"[pack_padded_sequence] lengths must be {x.shape[1]} numbers between 1 and {x.shape[0]}, got {describe(lengths)}"
        )
    order = _order(found, in_order)
    names = np.arange(found.size) if order is None else order
    sizes = (found[names][None] > np.arange(found.max(initial=0))[:, None]).sum(1)
    steps = np.repeat(np.arange(sizes.size), sizes)
    rows = np.concatenate([names[:n] for n in sizes]) if sizes.size else np.zeros(0, np.int64)
    data = index(x, (ExTensor(steps), ExTensor(rows)))
    if order is None:
        return PackedSequence(data, ExTensor(sizes))
    return PackedSequence(data, ExTensor(sizes), ExTensor(order), ExTensor(np.argsort(order)))


def pack_sequence(sequences: Sequence[ExTensor], enforce_sorted: bool = True) -> PackedSequence:
    """Sequences (L_i, ...) step by step.

    Example:
        >>> import extensor as et
        >>> et.nn.pack_sequence([et.tensor([1.0, 2.0]), et.tensor([3.0])]).data.tolist()
        [1.0, 3.0, 2.0]
    """
    rows = _checked("pack_sequence", sequences)
    in_order = as_bool("pack_sequence", "enforce_sorted", enforce_sorted)
    return pack_padded_sequence(pad_sequence(rows), [s.shape[0] for s in rows], False, in_order)


def lengths_of(packed: PackedSequence) -> np.ndarray:
    """The lengths of the sequences, in the order they were packed in."""
    sizes = packed.batch_sizes.numpy()
    count = int(sizes[0]) if sizes.size else 0
    return (sizes[:, None] > np.arange(count)).sum(0)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[ExTensor, ExTensor]:
    """Packed sequences as one padded tensor again, and their lengths.

    Args:
        sequence: what :func:`pack_padded_sequence` returned.
        batch_first: whether the result is (N, T, ...) instead of (T, N, ...).
        padding_value: what stands behind the ends.
        total_length: T, if it should be more than the longest.

    Example:
        >>> import extensor as et
        >>> packed = et.nn.pack_sequence([et.tensor([1.0, 2.0]), et.tensor([3.0])])
        >>> x, lengths = et.nn.pad_packed_sequence(packed, batch_first=True)
        >>> x.tolist(), lengths.tolist()
        ([[1.0, 2.0], [3.0, 0.0]], [2, 1])
    """
    if not isinstance(sequence, PackedSequence):
        raise TypeError(f"[pad_packed_sequence] sequence must be packed, got {describe(sequence)}")
    first = as_bool("pad_packed_sequence", "batch_first", batch_first)
    fill = as_number("pad_packed_sequence", "padding_value", padding_value)
    lengths = lengths_of(sequence)
    longest = int(lengths.max(initial=0))
    total = longest if total_length is None else as_int("pad_packed_sequence", "total_length", total_length)
    if total < longest:
        raise ValueError(
            f"[pad_packed_sequence] total_length {total} is less than the longest sequence, {longest}"
        )
    grid = shape_of("pad_packed_sequence", "total_length", (total, lengths.size))
    sizes = sequence.batch_sizes.numpy()
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]) if sizes.size else np.zeros(0, np.int64)
    rows, last = np.arange(lengths.size), sequence.data.shape[0]
    steps = np.full(grid, last, np.int64)  # one more row, of padding
    there = np.arange(longest)[:, None] < lengths
    steps[:longest][there] = (starts[:, None] + rows)[there]
    padded = pad(sequence.data, [(0, 1), *((0, 0),) * (sequence.data.ndim - 1)], constant_values=fill)
    if sequence.unsorted_indices is not None:
        back = sequence.unsorted_indices.numpy()
        steps, lengths = steps[:, back], lengths[back]
    x = index(padded, ExTensor(steps))
    return (x.swapaxes(0, 1) if first else x), ExTensor(lengths.astype(np.int64))
