"""Losses of distances. The backward kernels return one gradient per input, None where not needed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..dispatch import kernel
from .elementwise import passed
from .loss_reduction import reduced, upstream
from .softmax import row_sum

__all__ = [
    "kl_divergence", "kl_divergence_backward", "triplet_margin", "triplet_margin_backward",
    "cosine_embedding", "cosine_embedding_backward",
]  # fmt: skip

COSINE_EPS = float(np.float32(1e-12))  # added to the squared lengths; PyTorch keeps it in float32


def rows(shape, axis):
    """How many rows along ``axis`` there are."""
    return math.prod(shape[:axis] + shape[axis + 1 :])


def arriving(g, reduction, shape, axis):
    """What arrives at each row, shaped to broadcast along ``axis``."""
    return np.expand_dims(g, axis) if reduction == "none" else upstream(g, reduction, rows(shape, axis))


@kernel
def kl_divergence(p, q, axis, reduction):
    terms = np.where(p == 0, np.zeros((), p.dtype), p * (np.log(p) - np.log(q)))
    terms = np.where(np.isnan(q), q, terms)
    return reduced(row_sum(terms, axis).squeeze(axis), reduction)


@kernel
def kl_divergence_backward(g, p, q, axis, reduction, needs):
    each = arriving(g, reduction, p.shape, axis)
    # Where p is 0 the term is the constant 0.
    absent = np.where(np.isnan(q), q, np.zeros((), q.dtype))
    return (
        each * np.where(p == 0, absent, np.log(p) - np.log(q) + 1) if needs[0] else None,
        each * np.where(p == 0, absent, -p / q) if needs[1] else None,
    )


def distance(d, p):
    """The p-norm of the last axis, kept with length 1."""
    size = np.abs(d)
    if p == math.inf:
        return size.max(-1, keepdims=True, initial=0)
    return np.power(row_sum(np.power(size, p), -1), 1 / p)


def direction(d: Any, p: float) -> Any:
    """The gradient of :func:`distance`: 0 where d is 0; the largest elements share it if p is infinite."""
    length = distance(d, p)
    ratio = np.abs(d) / np.where(length == 0, np.ones((), length.dtype), length)
    unit = np.where(d == 0, d, np.sign(d) * np.power(ratio, p - 1))
    if p == math.inf:
        unit = unit / np.maximum((ratio == 1).sum(-1, keepdims=True), 1).astype(d.dtype)
    return unit


def triplet_parts(
    anchor: Any, positive: Any, negative: Any, margin: float, p: float, eps: float, swap: bool
) -> Any:
    """The three differences, whether the swapped one is the nearer, and how far each row is from its margin."""
    near, far, swapped = anchor - positive + eps, anchor - negative + eps, positive - negative + eps
    to_far = distance(far, p)
    share = np.zeros_like(to_far)  # of the gradient that goes to the swapped distance; a tie is halved
    if swap:
        to_swapped = distance(swapped, p)
        share = np.where(to_swapped < to_far, 1, np.where(to_swapped == to_far, 0.5, 0)).astype(to_far.dtype)
        to_far = np.minimum(to_far, to_swapped)
    return near, far, swapped, share, margin + distance(near, p) - to_far


@kernel
def triplet_margin(anchor, positive, negative, margin, p, eps, swap, reduction):
    *_, short = triplet_parts(anchor, positive, negative, margin, p, eps, swap)
    return reduced(np.maximum(short, 0).squeeze(-1), reduction)


@kernel
def triplet_margin_backward(g, anchor, positive, negative, margin, p, eps, swap, reduction, needs):
    near, far, swapped, share, short = triplet_parts(anchor, positive, negative, margin, p, eps, swap)
    each = arriving(g, reduction, anchor.shape, anchor.ndim - 1)
    each = passed(each, short, short >= 0)
    to_near, to_far = each * direction(near, p), each * (1 - share) * direction(far, p)
    to_swapped = each * share * direction(swapped, p) if swap else np.zeros_like(to_far)
    return (
        to_near - to_far if needs[0] else None,
        -to_near - to_swapped if needs[1] else None,
        to_far + to_swapped if needs[2] else None,
    )


def cosine(a, b):
    """The cosine of the rows of a and b, and what it was divided by: the squared lengths and their geometric mean."""
    aa, bb = row_sum(a * a, -1) + COSINE_EPS, row_sum(b * b, -1) + COSINE_EPS
    both = np.sqrt(aa * bb)
    return row_sum(a * b, -1) / both, aa, bb, both


@kernel
def cosine_embedding(a, b, t, margin, reduction):
    c = cosine(a, b)[0].squeeze(-1)
    return reduced(np.where(t == 1, 1 - c, np.maximum(c - margin, 0)), reduction)


@kernel
def cosine_embedding_backward(g, a, b, t, margin, reduction, needs):
    c, aa, bb, both = cosine(a, b)
    each = arriving(g, reduction, a.shape, a.ndim - 1)
    each = np.where(np.expand_dims(t, -1) == 1, -each, passed(each, c, c >= margin))
    return (
        each * (b / both - c * a / aa) if needs[0] else None,
        each * (a / both - c * b / bb) if needs[1] else None,
    )
