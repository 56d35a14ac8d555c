"""Attention, a block of queries at a time, so that the scores of all queries never exist together.

Shapes: q (..., L, D), k (..., S, D), v (..., S, E), mask (..., L, S), output (..., L, E); the leading axes
broadcast. A block holds complete rows of scores, each row has its exact softmax, and a block has at most
``BLOCK`` scores (or one row per batch element, if that is more): memory is linear in L and S. The backward
computes the scores of a block again from q, k and the mask, instead of keeping them.
"""

from __future__ import annotations

import math

import numpy as np

from ...checks import broadcast_shape
from ..dispatch import kernel
from ..namespace import (
    added as added_at,
)
from ..namespace import (
    assigned,
    common_dtype,
    either,
    wide_dtype,
    xp,
    zeros,
)
from .broadcasting import summed_to
from .normalization import wide

__all__ = [
    "scaled_dot_product_attention", "scaled_dot_product_attention_backward",
    "self_attention", "self_attention_backward",
]  # fmt: skip

BLOCK = 2**18


def blocks(batch, queries, keys, causal):
    """Slices of the queries, each with the slice of the keys that it can see."""
    step = max(1, BLOCK // max(1, math.prod(batch) * keys))
    for start in range(0, queries, step):
        stop = min(start + step, queries)
        yield slice(start, stop), slice(0, min(stop, keys) if causal else keys)


def block_key(mask, rows, seen):
    """The key of the part of a mask (or of its gradient) for a block; axes of length 1 stay as they are."""
    return (
        ...,
        rows if mask.shape[-2] > 1 else slice(None),
        seen if mask.shape[-1] > 1 else slice(None),
    )


def transposed(x):
    return xp.swapaxes(x, -1, -2)


def product(weights, x):
    """``weights @ x``, in which a weight of 0 hides even an inf or a nan of ``x``: what is not seen does not count."""
    return either(xp.isfinite(x).all(), xp.matmul, product_of_any, weights, x)


def product_of_any(weights, x):
    """:func:`product` where ``x`` has an inf or a nan."""
    up, down = weights > 0, weights < 0
    above, below = (x == np.inf).astype(x.dtype), (x == -np.inf).astype(x.dtype)
    total = weights @ xp.where(xp.isfinite(x), x, 0)
    total = xp.where(up @ above + down @ below > 0, total + np.inf, total)
    total = xp.where(up @ below + down @ above > 0, total - np.inf, total)
    return xp.where((weights != 0) @ xp.isnan(x).astype(x.dtype) > 0, np.nan, total)


def probabilities(q, k, mask, rows, seen, causal, scale):
    """The attention weights of a block. A query that sees nothing has weights of 0."""
    scores = (q[..., rows, :] * scale) @ transposed(k[..., seen, :])
    hidden = False
    if mask is not None:
        part = mask[block_key(mask, rows, seen)]
        if part.dtype == np.bool_:
            hidden = ~part
        else:
            scores, hidden = scores + part, part == -np.inf
    if causal:
        hidden = hidden | (np.arange(seen.stop) > np.arange(rows.start, rows.stop)[:, None])
    scores = xp.where(hidden, -np.inf, scores)
    highest = scores.max(-1, keepdims=True, initial=-np.inf)
    sees = highest != -np.inf
    weights = xp.exp(scores - xp.where(sees, highest, 0))
    return xp.where(hidden, 0, weights / xp.where(sees, weights.sum(-1, keepdims=True), 1))


def added(mask):
    """The mask if it is one that is added to the scores, else None."""
    return None if mask is None or mask.dtype == np.bool_ else mask


def prepared(mask):
    """The mask with two axes at least; one that is added, in float64."""
    if mask is None:
        return None
    mask = mask.reshape((1,) * (2 - mask.ndim) + mask.shape)
    return mask if added(mask) is None else mask.astype(wide_dtype(mask), copy=False)


def batch_shape(q, k, v):
    return broadcast_shape(q.shape[:-2], k.shape[:-2], v.shape[:-2])


@kernel
def scaled_dot_product_attention(q, k, v, mask, causal, scale):
    dtype = common_dtype(q, k, v, added(mask))
    q, k, v = wide(q, k, v)
    mask = prepared(mask)
    batch = batch_shape(q, k, v)
    out = zeros((*batch, q.shape[-2], v.shape[-1]), dtype, q)
    for rows, seen in blocks(batch, q.shape[-2], k.shape[-2], causal):
        p = probabilities(q, k, mask, rows, seen, causal, scale)
        out = assigned(out, (..., rows, slice(None)), product(p, v[..., seen, :]).astype(dtype))
    return out


@kernel
def scaled_dot_product_attention_backward(g, q, k, v, mask, causal, scale, needs):
    """(grad_q, grad_k, grad_v, grad_mask), None where not needed."""
    dtype = common_dtype(g, q, k, v, added(mask))
    shapes = q.shape, k.shape, v.shape, np.shape(mask)
    g, q, k, v = wide(g, q, k, v)
    mask = prepared(mask)
    batch = batch_shape(q, k, v)
    grad_q, grad_k, grad_v = (
        zeros((*batch, *x.shape[-2:]), x.dtype, x) if need else None for x, need in zip((q, k, v), needs)
    )
    grad_mask = zeros(mask.shape, mask.dtype, mask) if needs[3] else None
    for rows, seen in blocks(batch, q.shape[-2], k.shape[-2], causal):
        p = probabilities(q, k, mask, rows, seen, causal, scale)
        grad = g[..., rows, :]
        if needs[2]:
            grad_v = added_at(grad_v, (..., seen, slice(None)), product(transposed(p), grad))
        grad_p = xp.where(p == 0, 0, grad @ transposed(v[..., seen, :]))
        grad_scores = xp.where(p == 0, 0, p * (grad_p - (p * grad_p).sum(-1, keepdims=True)))
        if needs[0]:
            grad_q = assigned(grad_q, (..., rows, slice(None)), product(grad_scores, k[..., seen, :]) * scale)
        if needs[1]:
            grad = product(transposed(grad_scores), q[..., rows, :]) * scale
            grad_k = added_at(grad_k, (..., seen, slice(None)), grad)
        if needs[3]:
            part = block_key(mask, rows, seen)
            grad_mask = added_at(grad_mask, part, summed_to(grad_scores, grad_mask[part].shape))
    grads = grad_q, grad_k, grad_v, grad_mask
    return tuple(
        None if grad is None else summed_to(grad, shape).astype(dtype) for grad, shape in zip(grads, shapes)
    )


def heads_apart(x, heads):
    """(N, T, heads * D) -> (N, heads, T, D)"""
    return x.reshape((*x.shape[:2], heads, x.shape[2] // heads)).swapaxes(1, 2)


def heads_together(x):
    """(N, heads, T, D) -> (N, T, heads * D)"""
    n, heads, length, d = x.shape
    return x.swapaxes(1, 2).reshape((n, length, heads * d))


@kernel
def self_attention(x, heads, causal):
    q, k, v = (heads_apart(part, heads) for part in xp.split(x, 3, -1))
    scale = 1 / math.sqrt(max(q.shape[-1], 1))  # without features all scores are 0
    return heads_together(scaled_dot_product_attention.reference(q, k, v, None, causal, scale))


@kernel
def self_attention_backward(g, x, heads, causal):
    q, k, v = (heads_apart(part, heads) for part in xp.split(x, 3, -1))
    scale, needs = 1 / math.sqrt(max(q.shape[-1], 1)), (True, True, True, False)
    grads = scaled_dot_product_attention_backward.reference(
        heads_apart(g, heads), q, k, v, None, causal, scale, needs
    )
    return xp.concatenate([heads_together(grad) for grad in grads[:3]], -1)
