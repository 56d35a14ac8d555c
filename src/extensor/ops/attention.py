"""Attention, with memory that is linear in the lengths of the sequences."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..checks import (
    as_bool,
    as_floating,
    as_grad,
    as_int,
    as_number,
    as_tensor,
    broadcast_shape,
    check_needs,
    differentiable_input,
)
from ..dtypes import FLOATING
from ..graph import backward_of, differentiable
from ..kernels.reference import attention as kernels
from ..tensor import ExTensor, Shape
from ._formulas import on_tensors
from .broadcasting import sum_to_shape
from .casting import cast_like
from .joining import concatenate, split
from .selection import where
from .softmax import softmax

__all__ = [
    "AttentionGradients", "scaled_dot_product_attention", "scaled_dot_product_attention_backward",
    "self_attention", "self_attention_backward",
]  # fmt: skip

Needs4 = tuple[bool, bool, bool, bool]


class AttentionGradients(NamedTuple):
    """The gradients of :func:`scaled_dot_product_attention`; that of the mask is None unless it is a float mask."""

    grad_q: ExTensor | None
    grad_k: ExTensor | None
    grad_v: ExTensor | None
    grad_mask: ExTensor | None


def _check_shapes(function: str, q: Shape, k: Shape, v: Shape) -> Shape:
    """The shape of the output."""
    for name, shape in (("q", q), ("k", k), ("v", v)):
        if len(shape) < 2:
            raise ValueError(
                f"[{function}] {name} must have the axes (..., length, features), got shape {shape}"
            )
    if q[-1] != k[-1]:
        raise ValueError(f"[{function}] q has {q[-1]} features but k has {k[-1]} (q: {q}, k: {k})")
    if k[-2] != v[-2]:
        raise ValueError(f"[{function}] k has length {k[-2]} but v has length {v[-2]} (k: {k}, v: {v})")
    try:
        return (*broadcast_shape(q[:-2], k[:-2], v[:-2]), q[-2], v[-1])
    except ValueError:
        raise ValueError(
            f"[{function}] the leading axes of q, k and v do not broadcast (q: {q}, k: {k}, v: {v})"
        ) from None


def _as_mask(function: str, mask: Any, scores: Shape) -> ExTensor | None:
    """The mask as a boolean or floating tensor that broadcasts to the scores; or None."""
    if mask is None:
        return None
    found = as_tensor(function, "mask", mask)
    if found.dtype.kind != "b" and found.dtype not in FLOATING:
        raise TypeError(
            f"[{function}] mask must be boolean (True takes part) or floating (added to the scores), got {found.dtype}"
        )
    try:
        fits = broadcast_shape(found.shape, scores) == scores
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"[{function}] mask of shape {found.shape} does not broadcast to the scores {scores}"
        )
    return found


def _as_scale(function: str, scale: Any, features: int) -> float:
    return 1 / math.sqrt(max(features, 1)) if scale is None else as_number(function, "scale", scale)


@differentiable
def scaled_dot_product_attention(
    q: ExTensor,
    k: ExTensor,
    v: ExTensor,
    mask: ExTensor | None = None,
    causal: bool = False,
    scale: float | None = None,
) -> ExTensor:
    """For each query the mean of the values, weighted by how well their keys fit.   y = softmax(scale q k^T + mask) v

    A query that may see nothing gives 0, and gradients of 0; what a query may not see does not reach it, not even
    a nan. The scores of a few queries at a time are computed, never all of them at once: memory is linear in the
    lengths L and S.

    Args:
        q: queries, of shape (..., L, D). The leading axes of q, k and v broadcast.
        k: keys, of shape (..., S, D).
        v: values, of shape (..., S, E).
        mask: broadcasts to (..., L, S). Boolean: True takes part. Floating: added to the scores, -inf hides.
        causal: query i sees only the keys 0 .. i; together with a mask, what both allow.
        scale: of the scores; None for 1 / sqrt(D).

    Returns:
        A tensor of shape (..., L, E).

    Example:
        >>> import extensor as et
        >>> v = et.tensor([[1.0], [3.0]])
        >>> et.scaled_dot_product_attention(et.zeros((2, 4)), et.zeros((2, 4)), v, causal=True).tolist()
        [[1.0], [2.0]]
    """
    name = "scaled_dot_product_attention"
    q, k, v = as_floating(name, "q", q), as_floating(name, "k", k), as_floating(name, "v", v)
    shape = _check_shapes(name, q.shape, k.shape, v.shape)
    found = _as_mask(name, mask, (*shape[:-1], k.shape[-2]))
    return kernels.scaled_dot_product_attention(
        q, k, v, found, as_bool(name, "causal", causal), _as_scale(name, scale, q.shape[-1])
    )


def _weights(q: Any, k: Any, mask: ExTensor | None, causal: bool, scale: float) -> tuple[Any, Any]:
    """The attention weights, and which queries see anything."""
    scores = (q * scale) @ k.mT
    hidden = np.zeros(scores.shape, np.bool_)
    if causal:
        hidden |= np.triu(np.ones(scores.shape[-2:], np.bool_), 1)
    if mask is not None and mask.dtype.kind == "b":
        hidden |= ~mask._array
    elif mask is not None:
        scores = scores + mask
        hidden |= np.isneginf(mask._array)
    with np.errstate(all="ignore"):
        blind = (hidden | np.isneginf(scores._array)).all(-1, keepdims=True)
    # the rows of blind queries get scores of 0, so that no nan comes to be, and then weights of 0
    scores = where(
        ExTensor(np.broadcast_to(blind, scores.shape)), 0.0, where(ExTensor(hidden), -math.inf, scores)
    )
    if not scores.shape[-1]:
        return scores, ~blind
    return where(ExTensor(np.broadcast_to(blind, scores.shape)), 0.0, softmax(scores)), ~blind


def _attention_formula(
    g: Any,
    q: Any,
    k: Any,
    v: Any,
    mask: Any = None,
    causal: bool = False,
    scale: float | None = None,
    *,
    needs: Needs4 = (True,) * 4,
) -> AttentionGradients:
    name = "scaled_dot_product_attention_backward"
    g, q, k, v = (as_tensor(name, "argument", value) for value in (g, q, k, v))
    shape = _check_shapes(name, q.shape, k.shape, v.shape)
    found = _as_mask(name, mask, (*shape[:-1], k.shape[-2]))
    factor, wants_mask = _as_scale(name, scale, q.shape[-1]), _has_gradient(found) and needs[3]
    p, sees = _weights(q, k, found, causal, factor)
    g = where(ExTensor(np.broadcast_to(sees, g.shape)), g, 0.0)
    grad_p = g @ v.mT
    grad_scores = p * (grad_p - (p * grad_p).sum(-1, keepdims=True))
    return AttentionGradients(
        sum_to_shape(grad_scores @ k * factor, q.shape) if needs[0] else None,
        sum_to_shape(grad_scores.mT @ q * factor, k.shape) if needs[1] else None,
        sum_to_shape(p.mT @ g, v.shape) if needs[2] else None,
        sum_to_shape(grad_scores, found.shape) if found is not None and wants_mask else None,
    )


def _has_gradient(mask: ExTensor | None) -> bool:
    return mask is not None and mask.dtype.kind != "b"


@backward_of(scaled_dot_product_attention, wrt=("q", "k", "v", "mask"), formula=_attention_formula)
def scaled_dot_product_attention_backward(
    grad_output: ExTensor,
    q: ExTensor,
    k: ExTensor,
    v: ExTensor,
    mask: ExTensor | None = None,
    causal: bool = False,
    scale: float | None = None,
    *,
    needs: Needs4 = (True, True, True, True),
) -> AttentionGradients:
    """Gradient of :func:`scaled_dot_product_attention`; the scores are computed again, a few queries at a time.

    With p = softmax(scale q k^T + mask):  dv = p^T dy,  ds = p * (dp - sum(p dp)) with dp = dy v^T,
    dq = scale ds k,  dk = scale ds^T q,  dmask = ds,  each summed to the shape of its input.

    Args:
        grad_output: the gradient of the output.
        q, k, v, mask, causal, scale: as given to :func:`scaled_dot_product_attention`.
        needs: which of the four gradients are wanted; the others are None, as is that of a boolean mask.

    Example:
        >>> import extensor as et
        >>> q, k, v = et.zeros((1, 4)), et.zeros((2, 4)), et.tensor([[1.0], [3.0]])
        >>> et.scaled_dot_product_attention_backward(et.ones((1, 1)), q, k, v).grad_v.tolist()
        [[0.5], [0.5]]
    """
    name = "scaled_dot_product_attention_backward"
    check_needs(name, needs, 4)
    q, k, v = (
        differentiable_input(name, "q", q),
        differentiable_input(name, "k", k),
        differentiable_input(name, "v", v),
    )
    shape = _check_shapes(name, q.shape, k.shape, v.shape)
    found = _as_mask(name, mask, (*shape[:-1], k.shape[-2]))
    grad = as_grad(name, grad_output, shape)
    wanted = (*needs[:3], needs[3] and _has_gradient(found))
    grads = kernels.scaled_dot_product_attention_backward(
        grad, q, k, v, found, as_bool(name, "causal", causal), _as_scale(name, scale, q.shape[-1]), wanted
    )
    return AttentionGradients(*(cast_like(g, like) for g, like in zip(grads, (q, k, v, found))))


# Queries, keys and values of all heads side by side in one tensor: what a projection to three times the width gives, a
# head reads where it lies, and nothing is split, moved or joined.


def _heads(function: str, x: ExTensor, num_heads: Any) -> int:
    heads = as_int(function, "num_heads", num_heads)
    if heads < 1:
        raise ValueError(f"[{function}] num_heads must be at least 1, got {heads}")
    if x.ndim != 3 or x.shape[2] % (3 * heads):
        raise ValueError(
            f"[{function}] x must have shape (N, T, 3 * num_heads * features), got {x.shape}"
            + (f", whose {x.shape[2]} is no multiple of 3 * {heads}" if x.ndim == 3 else "")
        )
    return heads


@differentiable
def self_attention(x: ExTensor, num_heads: int = 1, causal: bool = False) -> ExTensor:
    """Every row attends to the rows of its sequence.   y = softmax(q k^T / sqrt(features)) v  for each head

    The same as :func:`scaled_dot_product_attention` of the three thirds of ``x``, with the heads moved to an axis of
    their own and back; as one function it reads and writes them where they lie.

    Args:
        x: queries, keys and values side by side, shape (N, T, 3 * num_heads * features): what one linear layer gives.
        num_heads: how many heads each of the three consists of.
        causal: row i sees only the rows 0 .. i.

    Returns:
        A tensor of shape (N, T, num_heads * features), the heads side by side.

    Example:
        >>> import extensor as et
        >>> x = et.tensor([[[0.0, 0.0, 1.0], [0.0, 0.0, 3.0]]])
        >>> et.self_attention(x, num_heads=1, causal=True).tolist()
        [[[1.0], [2.0]]]
    """
    x = as_floating("self_attention", "x", x)
    heads = _heads("self_attention", x, num_heads)
    return kernels.self_attention(x, heads, as_bool("self_attention", "causal", causal))


@on_tensors(2)
def _self_attention_formula(g: Any, x: Any, num_heads: int = 1, causal: bool = False) -> ExTensor:
    def apart(part: Any) -> Any:  # (N, T, heads * features) -> (N, heads, T, features)
        n, length, width = part.shape
        return part.reshape((n, length, num_heads, width // num_heads)).swapaxes(1, 2)

    q, k, v = map(apart, split(x, 3, -1))
    grads = scaled_dot_product_attention_backward(apart(g), q, k, v, causal=causal)
    return concatenate([grad.swapaxes(1, 2).reshape(g.shape) for grad in grads[:3]], -1)  # type: ignore[union-attr]


@backward_of(self_attention, formula=_self_attention_formula)
def self_attention_backward(
    grad_output: ExTensor, x: ExTensor, num_heads: int = 1, causal: bool = False
) -> ExTensor:
    """Gradient of :func:`self_attention`: those of queries, keys and values side by side, as in ``x``.

    Args:
        grad_output: the gradient of the output, (N, T, num_heads * features).
        x, num_heads, causal: as given to :func:`self_attention`.

    Example:
        >>> import extensor as et
        >>> x = et.tensor([[[0.0, 0.0, 1.0], [0.0, 0.0, 3.0]]])
        >>> et.self_attention_backward(et.ones((1, 2, 1)), x).tolist()
        [[[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]]
    """
    name = "self_attention_backward"
    x = differentiable_input(name, "x", x)
    heads = _heads(name, x, num_heads)
    grad = as_grad(name, grad_output, (*x.shape[:2], x.shape[2] // 3))
    return cast_like(kernels.self_attention_backward(grad, x, heads, as_bool(name, "causal", causal)), x)
