"""Attention of rows to themselves, from one tensor that holds queries, keys and values of all heads side by side.

What a projection to three times the width gives, a head reads where it lies: nothing is split, moved or joined.
"""

from __future__ import annotations

from typing import Any

from .. import kernels
from ..graph import ANY_NUMBER, differentiable, fused, get_observer
from ..tensor import ExTensor
from ._checks import as_bool, as_floating, as_grad, as_int, as_tensor
from .attention import scaled_dot_product_attention, scaled_dot_product_attention_backward
from .casting import cast_like
from .joining import concatenate, split

__all__ = ["attend_to_itself"]


def attend_to_itself(x: ExTensor, heads: int, causal: bool) -> ExTensor:
    """(N, T, 3 * width) -> (N, T, width); the last axis of ``x`` is (queries, keys, values) times heads times features.

    Where every call is watched, because source is written from it, the calls are those of public functions.
    """
    if get_observer() is None:
        return self_attention(x, heads, causal)
    q, k, v = _parts(x, heads)
    return _together(scaled_dot_product_attention(q, k, v, causal=causal))


def _apart(x: Any, heads: int) -> Any:
    n, length, width = x.shape
    return x.reshape((n, length, heads, width // heads)).swapaxes(1, 2)


def _together(x: Any) -> Any:
    n, heads, length, features = x.shape
    return x.swapaxes(1, 2).reshape((n, length, heads * features))


def _parts(x: Any, heads: int) -> list[Any]:
    return [_apart(part, heads) for part in split(x, 3, -1)]


def _checked(function: str, x: Any, heads: Any, causal: Any) -> tuple[ExTensor, int, bool]:
    x, heads = as_floating(function, "x", x), as_int(function, "heads", heads)
    if x.ndim != 3 or heads < 1 or x.shape[2] % (3 * heads):
        raise ValueError(
            f"[{function}] x must have shape (N, T, 3 * heads * features), got {x.shape} for {heads} heads"
        )
    return x, heads, as_bool(function, "causal", causal)


@differentiable(plain=(..., ANY_NUMBER, False))
def self_attention(x: ExTensor, heads: int = 1, causal: bool = False) -> ExTensor:
    """For each head softmax(q k^T / sqrt(features)) v, with the heads of the result side by side."""
    return kernels.self_attention(*_checked("self_attention", x, heads, causal))


def _self_attention_formula(g: Any, x: Any, heads: int = 1, causal: bool = False) -> ExTensor:
    g, x = (
        as_tensor("self_attention_backward", "grad_output", g),
        as_tensor("self_attention_backward", "x", x),
    )
    q, k, v = _parts(x, heads)
    grads = scaled_dot_product_attention_backward(_apart(g, heads), q, k, v, causal=causal)
    return concatenate([_together(grad) for grad in grads[:3]], -1)


@fused(_self_attention_formula, plain=(..., ..., ANY_NUMBER, False))
def self_attention_backward(
    grad_output: ExTensor, x: ExTensor, heads: int = 1, causal: bool = False
) -> ExTensor:
    """Gradient of :func:`self_attention`: those of queries, keys and values, side by side as in ``x``."""
    name = "self_attention_backward"
    x, heads, causal = _checked(name, x, heads, causal)
    grad = as_grad(name, grad_output, (*x.shape[:2], x.shape[2] // 3))
    return cast_like(kernels.self_attention_backward(grad, x, heads, causal), x)
