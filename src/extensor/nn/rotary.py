"""Attention of language models: rotary positions, keys shared by groups of queries, and a cache of what was seen."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..checks import as_bool, as_int
from ..dtypes import float32
from ..ops.attention import scaled_dot_product_attention
from ..ops.joining import concatenate, repeat
from ..ops.response_norm import rotary_embedding
from ..random import Rng
from ..tensor import ExTensor
from ._random import rng_or_default
from ._settings import positive, probability
from .linear import Linear
from .module import Module

__all__ = ["GroupedQueryAttention", "KVCache", "RotaryEmbedding"]


class RotaryEmbedding(Module):
    """Turns pairs of features by angles that grow with the position, see :func:`extensor.rotary_embedding`.

    Args:
        dim: the features of a head, an even number.
        base: of the wavelengths.   angle = position / base^(2 i / dim)
        interleaved: whether neighbours are pairs, instead of features i and i + dim / 2.

    Example:
        >>> import extensor as et
        >>> rotary = et.nn.RotaryEmbedding(4)
        >>> x = et.ones((1, 3, 4))
        >>> rotary(x)[0, 0].tolist(), bool((rotary(x, offset=1)[:, :2] - rotary(x)[:, 1:]).abs().max() < 1e-6)
        ([1.0, 1.0, 1.0, 1.0], True)
    """

    def __init__(self, dim: int, base: float = 10000.0, interleaved: bool = False) -> None:
        self.dim = positive("RotaryEmbedding", "dim", dim)
        if self.dim % 2:
            raise ValueError(f"[RotaryEmbedding] dim must be even, got {dim}")
        self.base, self.interleaved = float(base), as_bool("RotaryEmbedding", "interleaved", interleaved)

    def forward(self, x: ExTensor, offset: int = 0) -> ExTensor:
        """Turn x (..., L, dim), whose first position is ``offset``."""
        if x.ndim < 2 or x.shape[-1] != self.dim:
            raise ValueError(f"[RotaryEmbedding] x must be (..., L, {self.dim}), got shape {x.shape}")
        start = as_int("RotaryEmbedding", "offset", offset)
        speeds = self.base ** (-np.arange(0, self.dim, 2) / self.dim)
        angles = np.arange(start, start + x.shape[-2])[:, None] * speeds
        cos, sin = (ExTensor(f(angles).astype(np.float32)) for f in (np.cos, np.sin))
        return rotary_embedding(x, cos, sin, self.interleaved)

    def extra_repr(self) -> str:
        return f"{self.dim}, base={self.base:g}"


class KVCache:
    """Keys and values of the positions that were seen, for decoding step by step.

    Example:
        >>> import extensor as et
        >>> cache = et.nn.KVCache()
        >>> keys, values = cache.update(et.ones((1, 2, 3, 4)), et.ones((1, 2, 3, 4)))
        >>> keys, values = cache.update(et.ones((1, 2, 1, 4)), et.ones((1, 2, 1, 4)))
        >>> keys.shape, len(cache)
        ((1, 2, 4, 4), 4)
    """

    def __init__(self) -> None:
        self.keys: ExTensor | None = None
        self.values: ExTensor | None = None

    def __len__(self) -> int:
        return 0 if self.keys is None else self.keys.shape[-2]

    def update(self, keys: ExTensor, values: ExTensor) -> tuple[ExTensor, ExTensor]:
        """All keys and values so far, these (N, heads, L, D) after the others."""
        if keys.shape[:-1] != values.shape[:-1] or keys.ndim < 2:
            raise ValueError(
                f"[KVCache] keys and values must have the same positions, got {keys.shape} and {values.shape}"
            )
        if self.keys is not None and self.values is not None:
            if self.keys.shape[:-2] != keys.shape[:-2]:
                raise ValueError(
                    f"[KVCache] keys of shape {keys.shape} do not continue those of shape {self.keys.shape}"
                )
            keys, values = concatenate([self.keys, keys], -2), concatenate([self.values, values], -2)
        self.keys, self.values = keys, values
        return keys, values

    def reset(self) -> None:
        """Forget everything."""
        self.keys = self.values = None


class GroupedQueryAttention(Module):
    """Causal self-attention in which groups of query heads share keys and values (Ainslie et al., 2023), positions rotary.

    Args:
        embed_dim: the length of the vectors.
        num_heads: the heads of queries.
        num_kv_heads: the heads of keys and values, a divisor of ``num_heads``; as many without it.
        head_dim: the features of a head; ``embed_dim / num_heads`` without it.
        bias: whether the projections have biases.
        rope_base: of the rotary positions; None leaves them out.
        dropout: accepted to be 0 only: attention is computed without its matrix.
        causal: whether a position sees only those up to itself.
        dtype: of the parameters.
        rng: where the parameters start from: a seed or a generator; the default generator without it.

    Example:
        >>> import extensor as et
        >>> attention = et.nn.GroupedQueryAttention(16, 4, 2, rng=0)
        >>> attention(et.ones((1, 5, 16))).shape
        (1, 5, 16)
    """

    def __init__(
        self, embed_dim: int, num_heads: int, num_kv_heads: int | None = None, *, head_dim: int | None = None,
        bias: bool = False, rope_base: float | None = 10000.0, dropout: float = 0.0, causal: bool = True,
        dtype: Any = float32, rng: Rng | None = None,
    ) -> None:  # fmt: skip
        name = "GroupedQueryAttention"
        self.embed_dim, self.num_heads = (
            positive(name, "embed_dim", embed_dim),
            positive(name, "num_heads", num_heads),
        )
        self.num_kv_heads = (
            self.num_heads if num_kv_heads is None else positive(name, "num_kv_heads", num_kv_heads)
        )
        if self.num_heads % self.num_kv_heads:
            raise ValueError(
                f"[{name}] num_heads ({num_heads}) must be divisible by num_kv_heads ({num_kv_heads})"
            )
        if head_dim is None and self.embed_dim % self.num_heads:
            raise ValueError(f"[{name}] embed_dim ({embed_dim}) must be divisible by num_heads ({num_heads})")
        self.head_dim = (
            self.embed_dim // self.num_heads if head_dim is None else positive(name, "head_dim", head_dim)
        )
        if probability(name, "dropout", dropout):
            raise ValueError(
                f"[{name}] dropout must be 0; put a Dropout layer after the attention, got {dropout}"
            )
        self.causal = as_bool(name, "causal", causal)
        source = rng_or_default(name, rng)
        self.q_proj = Linear(embed_dim, self.num_heads * self.head_dim, bias, dtype=dtype, rng=source)
        self.k_proj = Linear(embed_dim, self.num_kv_heads * self.head_dim, bias, dtype=dtype, rng=source)
        self.v_proj = Linear(embed_dim, self.num_kv_heads * self.head_dim, bias, dtype=dtype, rng=source)
        self.o_proj = Linear(self.num_heads * self.head_dim, embed_dim, bias, dtype=dtype, rng=source)
        self.rotary = None if rope_base is None else RotaryEmbedding(self.head_dim, rope_base)

    def forward(self, x: ExTensor, mask: ExTensor | None = None, cache: KVCache | None = None) -> ExTensor:
        """Attend.

        Args:
            x: (N, L, embed_dim); with a cache the positions after those that it holds.
            mask: True takes part, or numbers to add; broadcasts to (N, num_heads, L, all positions).
            cache: what was seen before; it is extended.
        """
        if x.ndim != 3 or x.shape[-1] != self.embed_dim:
            raise ValueError(
                f"[GroupedQueryAttention] x must be (N, L, {self.embed_dim}), got shape {x.shape}"
            )
        n, length, _ = x.shape
        seen = 0 if cache is None else len(cache)

        def apart(projected: ExTensor, heads: int) -> ExTensor:
            return projected.reshape((n, length, heads, self.head_dim)).swapaxes(1, 2)

        q, k = apart(self.q_proj(x), self.num_heads), apart(self.k_proj(x), self.num_kv_heads)
        v = apart(self.v_proj(x), self.num_kv_heads)
        if self.rotary is not None:
            q, k = self.rotary(q, seen), self.rotary(k, seen)
        if cache is not None:
            k, v = cache.update(k, v)
        if self.num_kv_heads < self.num_heads:
            k, v = (repeat(t, self.num_heads // self.num_kv_heads, 1) for t in (k, v))
        causal = self.causal and not seen
        if self.causal and seen and length > 1:
            later = ExTensor(np.tril(np.ones((length, seen + length), bool), seen))
            mask = (
                later if mask is None else (later & mask if mask.dtype == np.bool_ else _hidden(later, mask))
            )
        y = scaled_dot_product_attention(q, k, v, mask, causal)
        return self.o_proj(y.swapaxes(1, 2).reshape((n, length, self.num_heads * self.head_dim)))

    def extra_repr(self) -> str:
        return (
            f"{self.embed_dim}, {self.num_heads}, num_kv_heads={self.num_kv_heads}, head_dim={self.head_dim}"
        )


def _hidden(sees: ExTensor, added: ExTensor) -> ExTensor:
    return added + ExTensor(np.where(sees.numpy(), 0.0, -np.inf).astype(added.dtype))
