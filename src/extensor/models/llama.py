"""Llama: a GPT with rotary positions, RMS normalisation, gated feed-forward layers and shared keys (Touvron et al., 2023)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .. import init, nn
from ..nn._random import rng_or_default
from ..ops.activation import silu
from ..ops.attention import scaled_dot_product_attention
from ..ops.indexing import take
from ..ops.joining import concatenate, repeat, split
from ..random import Rng
from ..tensor import ExTensor, asarray
from .gpt import GPT, visible

__all__ = ["Llama"]


def rotary_table(
    length: int, size: int, theta: float = 10000.0, scaling: Mapping[str, Any] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Cosines and sines (length, size / 2) of the angles by which pairs of features turn.   angle = position / theta^(2i/size)

    Args:
        length: how many positions.
        size: the features of a head.
        theta: the base of the wavelengths.
        scaling: how a model that was trained on shorter texts stretches them: ``{"rope_type": "linear", "factor": f}``, or
            ``"llama3"`` with ``low_freq_factor``, ``high_freq_factor`` and ``original_max_position_embeddings``.
    """
    speeds = 1.0 / theta ** (np.arange(0, size, 2, dtype=np.float64) / size)
    kind = None if scaling is None else scaling.get("rope_type", scaling.get("type", "default"))
    if scaling is not None and kind == "linear":
        speeds = speeds / float(scaling["factor"])
    elif scaling is not None and kind == "llama3":
        low, high = float(scaling["low_freq_factor"]), float(scaling["high_freq_factor"])
        turns = float(scaling["original_max_position_embeddings"]) * speeds / (2 * math.pi)
        smooth = np.clip((turns - low) / (high - low), 0, 1)
        speeds = speeds * (smooth + (1 - smooth) / float(scaling["factor"]))
    elif kind not in (None, "default"):
        raise NotImplementedError(f"[Llama] rotary embeddings of the type {kind!r} are not supported")
    angles = np.arange(length, dtype=np.float64)[:, None] * speeds
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


class RotaryAttention(nn.Module):
    """Causal attention between turned queries and keys; several heads of queries share one of keys and values."""

    def __init__(
        self,
        n_embd: int,
        n_head: int,
        n_kv_head: int,
        head_dim: int,
        bias: bool,
        out_bias: bool,
        rng: np.random.Generator,
    ) -> None:
        self.n_head, self.n_kv_head, self.head_dim = n_head, n_kv_head, head_dim
        self.q_proj = nn.Linear(n_embd, n_head * head_dim, bias, rng=rng)
        self.k_proj = nn.Linear(n_embd, n_kv_head * head_dim, bias, rng=rng)
        self.v_proj = nn.Linear(n_embd, n_kv_head * head_dim, bias, rng=rng)
        self.o_proj = nn.Linear(n_head * head_dim, n_embd, out_bias, rng=rng)

    def forward(self, x: ExTensor, cos: ExTensor, sin: ExTensor, cache: nn.KVCache | None = None) -> ExTensor:
        n, length, _ = x.shape

        def apart(projected: ExTensor, heads: int) -> ExTensor:
            return projected.reshape((n, length, heads, self.head_dim)).swapaxes(1, 2)

        q = _turned(apart(self.q_proj(x), self.n_head), cos, sin)
        k = _turned(apart(self.k_proj(x), self.n_kv_head), cos, sin)
        v = apart(self.v_proj(x), self.n_kv_head)
        mask, causal = None, True
        if cache is not None:
            mask, causal = visible(len(cache), length), False
            k, v = cache.update(k, v)
        shared = self.n_head // self.n_kv_head
        if shared > 1:
            k, v = repeat(k, shared, 1), repeat(v, shared, 1)
        y = scaled_dot_product_attention(q, k, v, mask, causal)
        return self.o_proj(y.swapaxes(1, 2).reshape((n, length, self.n_head * self.head_dim)))


def _turned(x: ExTensor, cos: ExTensor, sin: ExTensor) -> ExTensor:
    """Feature i and feature i + size/2 of every head as a point in the plane, turned by the angle of its position."""
    a, b = split(x, 2, -1)
    return concatenate([a * cos - b * sin, b * cos + a * sin], -1)


class GatedFeedForward(nn.Module):
    """Each position by itself.   y = down(silu(gate x) * up x)"""

    def __init__(self, n_embd: int, n_inner: int, bias: bool, rng: np.random.Generator) -> None:
        self.gate_proj = nn.Linear(n_embd, n_inner, bias, rng=rng)
        self.up_proj = nn.Linear(n_embd, n_inner, bias, rng=rng)
        self.down_proj = nn.Linear(n_inner, n_embd, bias, rng=rng)

    def forward(self, x: ExTensor) -> ExTensor:
        return self.down_proj(silu(self.gate_proj(x)) * self.up_proj(x))


class LlamaBlock(nn.Module):
    """Attention and feed-forward network, each behind a normalisation and beside a shortcut."""

    def __init__(self, attention: RotaryAttention, mlp: GatedFeedForward, n_embd: int, eps: float) -> None:
        self.ln_1 = nn.RMSNorm(n_embd, eps)
        self.attn = attention
        self.ln_2 = nn.RMSNorm(n_embd, eps)
        self.mlp = mlp

    def forward(self, x: ExTensor, cos: ExTensor, sin: ExTensor, cache: nn.KVCache | None = None) -> ExTensor:
        x = x + self.attn(self.ln_1(x), cos, sin, cache)
        return x + self.mlp(self.ln_2(x))


class Llama(GPT):
    """Token embeddings, blocks of rotary attention, and logits for the next token at every position.

    Args:
        vocab_size: the number of tokens.
        block_size: the longest sequence.
        n_layer, n_head, n_embd: the blocks, the heads of each, and the length of the vectors.
        n_kv_head: the heads of keys and values, a divisor of ``n_head``; as many without it.
        n_inner: the width of the feed-forward network; 8/3 of ``n_embd`` without it.
        head_dim: the features of a head; ``n_embd / n_head`` without it.
        rope_theta, rope_scaling: see :func:`rotary_table`.
        eps: of the normalisations.
        attention_bias, output_bias, mlp_bias: whether the linear layers have biases.
        tied: whether the matrix that turns tokens into vectors also turns vectors into logits.
        rng: where the parameters start from: a seed or a generator; the default generator without it.

    Example:
        >>> import extensor as et
        >>> net = et.models.Llama(vocab_size=65, block_size=16, n_layer=2, n_head=4, n_embd=32, n_kv_head=2, rng=0)
        >>> net(et.tensor([[1, 2, 3]])).shape
        (1, 3, 65)
    """

    def __init__(
        self, vocab_size: int, block_size: int, n_layer: int = 4, n_head: int = 4, n_embd: int = 128, *,
        n_kv_head: int | None = None, n_inner: int | None = None, head_dim: int | None = None, rope_theta: float = 10000.0,
        rope_scaling: Mapping[str, Any] | None = None, eps: float = 1e-6, attention_bias: bool = False,
        output_bias: bool = False, mlp_bias: bool = False, tied: bool = False, rng: Rng | None = None,
    ) -> None:  # fmt: skip
        source = rng_or_default("Llama", rng)
        shared = n_head if n_kv_head is None else n_kv_head
        if shared < 1 or n_head % shared:
            raise ValueError(f"[Llama] n_head ({n_head}) must be divisible by n_kv_head ({shared})")
        if head_dim is None and n_embd % n_head:
            raise ValueError(f"[Llama] n_embd ({n_embd}) must be divisible by n_head ({n_head})")
        size = n_embd // n_head if head_dim is None else head_dim
        if size % 2:
            raise ValueError(f"[Llama] the features of a head must be even, got {size}")
        inner = n_inner if n_inner is not None else max(1, 8 * n_embd // 3)
        self.block_size = block_size
        self.wte = nn.Embedding(vocab_size, n_embd, rng=source)
        self.h = nn.ModuleList(
            [
                LlamaBlock(
                    RotaryAttention(n_embd, n_head, shared, size, attention_bias, output_bias, source),
                    GatedFeedForward(n_embd, inner, mlp_bias, source),
                    n_embd,
                    eps,
                )
                for _ in range(n_layer)
            ]
        )
        self.ln_f: Any = nn.RMSNorm(n_embd, eps)
        self.lm_head = nn.Linear(n_embd, vocab_size, bias=False, rng=source)
        if tied:
            self.lm_head.weight = self.wte.weight
        cos, sin = rotary_table(block_size, size, rope_theta, rope_scaling)
        self._cos, self._sin = asarray(cos), asarray(sin)
        for _, p in self.named_parameters():
            if p.ndim == 2:
                p.assign(init.normal(p.shape, std=0.02, rng=source))

    def forward(self, tokens: ExTensor, caches: Sequence[nn.KVCache] | None = None) -> ExTensor:
        """Logits of shape (N, T, vocab_size) for tokens of shape (N, T); caches as in :class:`GPT`."""
        tokens, seen = self._placed(tokens, caches)
        x = self.wte(tokens)
        places = np.arange(seen, seen + tokens.shape[1])
        cos, sin = (take(table, places, 0).astype(x.dtype) for table in (self._cos, self._sin))
        for i, block in enumerate(self.h):
            x = block(x, cos, sin, None if caches is None else caches[i])
        return self.lm_head(self.ln_f(x))
