"""Losses of distances. The backward kernels return one gradient per input, None where not needed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..dispatch import formula, kernel
from ..namespace import constant, lift, primitive, xp
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
    return xp.expand_dims(g, axis) if reduction == "none" else upstream(g, reduction, rows(shape, axis))


@kernel
def kl_divergence(p, q, axis, reduction):
    terms = xp.where(p == 0, 0.0, p * (xp.log(p) - xp.log(q)))
    terms = xp.where(xp.isnan(q), q, terms)
    return reduced(row_sum(terms, axis).squeeze(axis), reduction)


@formula
def kl_divergence_backward(g, p, q, axis, reduction, needs):
    each = arriving(g, reduction, p.shape, axis)
    # Where p is 0 the term is the constant 0.
    zero, fixed = p == 0, constant(q)
    absent = lift(xp.where(xp.isnan(fixed), fixed, 0.0), q)
    p, q = xp.where(zero, 1.0, p), xp.where(zero, 1.0, q)
    return (
        each * xp.where(zero, absent, xp.log(p) - xp.log(q) + 1) if needs[0] else None,
        each * xp.where(zero, absent, -p / q) if needs[1] else None,
    )


def distance(d, p):
    """The p-norm of the last axis, kept with length 1."""
    size = xp.abs(d)
    if p == math.inf:
        return size.max(-1, keepdims=True, initial=0)
    return xp.power(row_sum(xp.power(size, p), -1), 1 / p)


@primitive
def direction(d: Any, p: float) -> Any:
    """The gradient of :func:`distance`: 0 where d is 0; the largest elements share it if p is infinite."""
    length = distance(d, p)
    ratio = xp.abs(d) / xp.where(length == 0, 1.0, length)
    unit = xp.where(d == 0, d, xp.sign(d) * xp.power(ratio, p - 1))
    if p == math.inf:
        unit = unit / xp.maximum((ratio == 1).sum(-1, keepdims=True), 1).astype(d.dtype)
    return unit


def triplet_parts(
    anchor: Any, positive: Any, negative: Any, margin: float, p: float, eps: float, swap: bool
) -> Any:
    """The three differences; what share of the gradient goes to the swapped one, and how far each row is from its margin."""
    near, far, swapped = anchor - positive + eps, anchor - negative + eps, positive - negative + eps
    return near, far, swapped, *triplet_margins(near, far, swapped, margin, p, swap)


@primitive
def triplet_margins(near: Any, far: Any, swapped: Any, margin: float, p: float, swap: bool) -> Any:
    """Of the differences: the share of the swapped one, and margin + d(near) - d(far)."""
    to_far = distance(far, p)
    share = xp.zeros_like(to_far)  # of the gradient that goes to the swapped distance; a tie is halved
    if swap:
        to_swapped = distance(swapped, p)
        share = xp.where(to_swapped < to_far, 1, xp.where(to_swapped == to_far, 0.5, 0)).astype(to_far.dtype)
        to_far = xp.minimum(to_far, to_swapped)
    return share, margin + distance(near, p) - to_far


@kernel
def triplet_margin(anchor, positive, negative, margin, p, eps, swap, reduction):
    *_, short = triplet_parts(anchor, positive, negative, margin, p, eps, swap)
    return reduced(xp.maximum(short, 0).squeeze(-1), reduction)


@formula
def triplet_margin_backward(g, anchor, positive, negative, margin, p, eps, swap, reduction, needs):
    near, far, swapped, share, short = triplet_parts(anchor, positive, negative, margin, p, eps, swap)
    each = arriving(g, reduction, anchor.shape, anchor.ndim - 1)
    each = passed(each, short, short >= 0)
    to_near, to_far = each * direction(near, p), each * (1 - share) * direction(far, p)
    to_swapped = each * share * direction(swapped, p) if swap else 0.0
    return (
        to_near - to_far if needs[0] else None,
        -to_near - to_swapped if needs[1] else None,
        to_far + to_swapped if needs[2] else None,
    )


def cosine(a, b):
    """The cosine of the rows of a and b, and what it was divided by: the squared lengths and their geometric mean."""
    aa, bb = row_sum(a * a, -1) + COSINE_EPS, row_sum(b * b, -1) + COSINE_EPS
    both = xp.sqrt(aa * bb)
    return row_sum(a * b, -1) / both, aa, bb, both


@kernel
def cosine_embedding(a, b, t, margin, reduction):
    c = cosine(a, b)[0].squeeze(-1)
    return reduced(xp.where(t == 1, 1 - c, xp.maximum(c - margin, 0)), reduction)


@formula
def cosine_embedding_backward(g, a, b, t, margin, reduction, needs):
    c, aa, bb, both = cosine(a, b)
    each = arriving(g, reduction, a.shape, a.ndim - 1)
    each = xp.where(xp.expand_dims(t, -1) == 1, -each, passed(each, c, c >= margin))
    return (
        each * (b / both - c * a / aa) if needs[0] else None,
        each * (a / both - c * b / bb) if needs[1] else None,
    )
