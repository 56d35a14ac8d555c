"""Attention in its several forms, and rotary embeddings."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import extensor as et

from ..proto import array_of, dtype_of
from ..table import operator

__all__: list[str] = []


def _heads(x: Any, heads: int | None) -> Any:
    """(batch, length, heads * size) as (batch, heads, length, size)."""
    if x.ndim == 4:
        return x
    if not heads:
        raise ValueError("[Attention] inputs with three axes need the numbers of heads")
    batch, length, width = x.shape
    return x.reshape((batch, length, heads, width // heads)).transpose((0, 2, 1, 3))


def _together(x: Any) -> Any:
    """(batch, heads, length, size) as (batch, length, heads * size)."""
    batch, heads, length, size = x.shape
    return x.transpose((0, 2, 1, 3)).reshape((batch, length, heads * size))


def _repeated(x: Any, heads: int) -> Any:
    """Every head of keys or values for a group of queries."""
    return x if x.shape[1] == heads else et.repeat(x, heads // x.shape[1], 1)


@operator("Attention", fixed=("mask",))
def attention(
    q: Any, k: Any, v: Any, mask: Any = None, past_key: Any = None, past_value: Any = None, lengths: Any = None, *,
    is_causal: int = 0, kv_num_heads: int | None = None, q_num_heads: int | None = None, qk_matmul_output_mode: int = 0,
    scale: float | None = None, softcap: float = 0.0, softmax_precision: int | None = None, left_window_size: int = -1,
    right_window_size: int = -1, outputs: int = 1,
) -> Any:  # fmt: skip
    """softmax(q k^T scale + mask) v, with a cache of keys and values, windows and groups of heads.

    Further results: the keys and values so far, and the scores (mode 0: scaled; 1: capped; 2: masked; 3: the weights).
    """
    flat = q.ndim == 3
    q, k, v = _heads(q, q_num_heads), _heads(k, kv_num_heads), _heads(v, kv_num_heads)
    before = 0
    if past_key is not None:
        before = past_key.shape[2]
        k, v = et.concatenate([past_key, k], 2), et.concatenate([past_value, v], 2)
    present = (k, v)
    if q.shape[1] % k.shape[1]:
        raise ValueError(f"[Attention] {q.shape[1]} heads of queries are no multiple of {k.shape[1]} of keys")
    k, v = _repeated(k, q.shape[1]), _repeated(v, q.shape[1])
    factor = 1 / math.sqrt(q.shape[3]) if scale is None else scale
    seen = _seen(
        q.shape[2], k.shape[2], before, lengths, bool(is_causal), left_window_size, right_window_size
    )
    if mask is not None and mask.shape[-1] < k.shape[2]:
        room = ((0, 0),) * (mask.ndim - 1) + ((0, k.shape[2] - mask.shape[-1]),)
        mask = et.pad(mask, room, "constant", False if mask.dtype == np.bool_ else -np.inf)
    if (
        outputs == 1
        and not softcap
        and softmax_precision is None
        and q.dtype == np.float32
        and mask is None
        and seen is None
    ):
        output = et.scaled_dot_product_attention(q, k, v, None, False, factor)
    else:
        output, scores = _attend(
            q, k, v, mask, seen, factor, softcap, softmax_precision, qk_matmul_output_mode
        )
    output = _together(output) if flat else output
    return (
        output
        if outputs == 1
        else (output, *present, scores)[:outputs]
        if outputs > 3
        else (output, *present)[:outputs]
    )


def _seen(
    queries: int, keys: int, before: int, lengths: Any, causal: bool, left: int, right: int
) -> np.ndarray | None:
    """Which key a query may look at by its position alone; None for all. Broadcasts to (batch, heads, queries, keys)."""
    offset: Any = before
    if lengths is not None:
        offset = (array_of(lengths).astype(np.int64) - queries).reshape((-1, 1, 1, 1))
    ahead = np.arange(keys)[None, :] - (np.arange(queries)[:, None] + offset)  # of the query's own place
    seen = None
    for wanted, allowed in (
        (causal, ahead <= 0), (left >= 0, ahead >= -left), (right >= 0, ahead <= right),
    ):  # fmt: skip
        if wanted:
            seen = allowed if seen is None else seen & allowed
    if lengths is not None:
        there = np.arange(keys)[None, None, None, :] < array_of(lengths).reshape((-1, 1, 1, 1))
        seen = there if seen is None else seen & there
    return seen


def _attend(
    q: Any,
    k: Any,
    v: Any,
    mask: Any,
    seen: np.ndarray | None,
    scale: float,
    softcap: float,
    precision: int | None,
    mode: int,
) -> tuple[Any, Any]:
    """The result and the scores of a stage."""
    half = np.array(math.sqrt(scale), np.float64).astype(q.dtype).item()
    scores = et.matmul(q * half, et.swapaxes(k * half, -1, -2))
    capped = et.tanh(scores / softcap) * softcap if softcap else scores
    masked, hidden = capped, None
    if mask is not None and mask.dtype == np.bool_:
        seen = array_of(mask) if seen is None else seen & array_of(mask)
    elif mask is not None:
        masked = masked + et.astype(mask, q.dtype)
        hidden = np.isneginf(array_of(mask).astype(np.float32))
    if seen is not None:
        masked = et.where(seen, masked, -np.inf)
        hidden = ~seen if hidden is None else hidden | ~seen
    wide = masked if precision is None else et.astype(masked, dtype_of(precision))
    if hidden is not None and hidden.all(-1).any():  # a query that may look at nothing gives 0
        blind = np.broadcast_to(hidden.all(-1, keepdims=True), (*wide.shape[:-1], 1))
        weights = et.where(blind, 0.0, et.softmax(et.where(blind, 0.0, wide), -1))
    else:
        weights = et.softmax(wide, -1)
    weights = weights if weights.dtype == q.dtype else et.astype(weights, q.dtype)
    stages = (scores if not softcap else capped, capped, masked, weights)
    return et.matmul(weights, v), stages[mode]


@operator("RotaryEmbedding", fixed=("cos_cache", "sin_cache"))
def rotary_embedding(
    x: Any, cos_cache: Any, sin_cache: Any, position_ids: Any = None, *, interleaved: int = 0, num_heads: int = 0,
    rotary_embedding_dim: int = 0,
) -> Any:  # fmt: skip
    """Pairs of numbers turned by an angle that grows with the position."""
    shape = x.shape
    x = x.reshape((shape[0], shape[1], num_heads, -1)) if x.ndim == 3 else x.transpose((0, 2, 1, 3))
    width = rotary_embedding_dim or x.shape[-1]
    turned, rest = x[..., :width], x[..., width:]
    if position_ids is not None:
        cos_cache, sin_cache = et.take(cos_cache, position_ids, 0), et.take(sin_cache, position_ids, 0)
    cos, sin = et.expand_dims(cos_cache, 2), et.expand_dims(sin_cache, 2)
    if interleaved:
        a, b = turned[..., 0::2], turned[..., 1::2]
    else:
        a, b = turned[..., : width // 2], turned[..., width // 2 :]
    real, imaginary = cos * a - sin * b, sin * a + cos * b
    if interleaved:
        turned = et.stack([real, imaginary], -1).reshape((*real.shape[:-1], width))
    else:
        turned = et.concatenate([real, imaginary], -1)
    whole = et.concatenate([turned, rest], -1) if rest.shape[-1] else turned
    return whole.reshape(shape) if len(shape) == 3 else whole.transpose((0, 2, 1, 3))


@operator("LinearAttention", since=27)
def linear_attention(
    q: Any, k: Any, v: Any, past: Any = None, decay: Any = None, beta: Any = None, *, kv_num_heads: int, q_num_heads: int,
    chunk_size: int = 64, scale: float = 0.0, update_rule: str = "gated_delta",
) -> Any:  # fmt: skip
    """A state of key-value products that grows with every position, may fade, and is read by queries."""
    if update_rule not in ("linear", "gated", "delta", "gated_delta"):
        raise NotImplementedError(f"[LinearAttention] the rule {update_rule!r} is not known")
    dtype, kept = q.dtype, past.dtype if past is not None else q.dtype
    q, k, v = (
        et.astype(_heads(x, n), "float32")
        for x, n in ((q, q_num_heads), (k, kv_num_heads), (v, kv_num_heads))
    )
    batch, _, length, size = q.shape
    state = et.zeros((batch, kv_num_heads, size, v.shape[3])) if past is None else et.astype(past, "float32")
    factor = scale or 1 / math.sqrt(size)
    fade = gate = None
    if decay is not None:
        fade = et.exp(_heads(et.astype(decay, "float32"), kv_num_heads))  # (batch, heads, length, 1 or size)
    if beta is not None:
        gate = _heads(et.astype(beta, "float32"), beta.shape[-1])
    results = []
    for t in range(length):
        key, value = k[:, :, t], v[:, :, t]
        if fade is not None:
            state = state * et.expand_dims(fade[:, :, t], -1)
        if gate is not None:
            value = gate[:, :, t] * (value - et.einsum("bhdm,bhd->bhm", state, key))
        state = state + et.expand_dims(key, -1) * et.expand_dims(value, -2)
        results.append(factor * et.einsum("bhd,bhdm->bhm", q[:, :, t], _repeated(state, q_num_heads)))
    output = et.astype(_together(et.stack(results, 2)), dtype)
    return output, et.astype(state, kept)


@operator("FlexAttention", domain="ai.onnx.preview")
def flex_attention(
    q: Any, k: Any, v: Any, *, scale: float | None = None, score_mod: Callable[..., Any] | None = None,
    prob_mod: Callable[..., Any] | None = None, softmax_precision: int | None = None,
) -> Any:  # fmt: skip
    """Attention whose scores and weights pass through graphs of the model."""
    k, v = _repeated(k, q.shape[1]), _repeated(v, q.shape[1])
    half = np.sqrt(np.float32(1 / math.sqrt(q.shape[3]) if scale is None else scale)).astype(q.dtype).item()
    scores = et.matmul(q * half, et.swapaxes(k * half, -1, -2))
    if softmax_precision is not None:
        scores = et.astype(scores, dtype_of(softmax_precision))
    elif q.dtype.itemsize < 4:
        scores = et.astype(scores, "float32")
    if score_mod is not None:
        scores = score_mod(scores)[0]
    weights = et.softmax(scores, -1)
    if prob_mod is not None:
        weights = prob_mod(weights)[0]
    return et.matmul(et.astype(weights, q.dtype), v)
