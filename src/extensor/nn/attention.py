"""Attention with several heads, and the encoder layer built from it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import init
from ..checks import as_bool, as_tensor
from ..dtypes import FLOATING, bool_, float32
from ..errors import describe
from ..ops.activation import gelu, relu
from ..ops.attention import scaled_dot_product_attention, self_attention
from ..ops.dropout import dropout as drop
from ..ops.joining import split
from ..ops.linear import linear
from ..ops.selection import where
from ..ops.softmax import softmax
from ..random import Rng
from ..tensor import ExTensor
from ._random import rng_or_default
from ._settings import positive, probability
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .normalization import LayerNorm
from .parameter import Parameter

__all__ = ["MultiheadAttention", "TransformerEncoderLayer"]


class MultiheadAttention(Module):
    """Attention with ``num_heads`` heads between projections, see :func:`extensor.scaled_dot_product_attention`.

    Masks are PyTorch's: in a boolean mask True *hides* a key; a floating one is added to the scores. A query that may
    see nothing gives 0.

    Args:
        embed_dim: the length of the vectors; divisible by ``num_heads``.
        num_heads: how many heads look at ``embed_dim / num_heads`` numbers each.
        dropout: the probability with which a weight is 0 in training.
        bias: whether the projections have biases.
        kdim, vdim: the lengths of keys and values, where they differ.
        batch_first: whether inputs are (N, L, E) instead of (L, N, E); without a batch they are (L, E).
        dtype: of the parameters.
        rng: where the parameters start from, and the dropout: a seed or a generator; the default generator without it.

    Attributes:
        in_proj_weight: (3 * embed_dim, embed_dim), for queries, keys and values; with ``kdim`` or ``vdim`` there are
            ``q_proj_weight``, ``k_proj_weight`` and ``v_proj_weight`` instead.
        in_proj_bias: (3 * embed_dim,), or None.
        out_proj: a :class:`Linear`.

    Example:
        >>> import extensor as et
        >>> attention = et.nn.MultiheadAttention(8, 2, batch_first=True, rng=0)
        >>> x = et.ones((1, 5, 8))
        >>> output, weights = attention(x, x, x)
        >>> output.shape, weights.shape
        ((1, 5, 8), (1, 5, 5))
    """

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, *, kdim: int | None = None,
        vdim: int | None = None, batch_first: bool = False, dtype: Any = float32, rng: Rng | None = None,
    ) -> None:  # fmt: skip
        name = "MultiheadAttention"
        self.embed_dim = positive(name, "embed_dim", embed_dim)
        self.num_heads = positive(name, "num_heads", num_heads)
        if self.embed_dim % self.num_heads:
            raise ValueError(f"[{name}] embed_dim ({embed_dim}) must be divisible by num_heads ({num_heads})")
        self.dropout = probability(name, "dropout", dropout)
        self.batch_first = as_bool(name, "batch_first", batch_first)
        self.kdim = self.embed_dim if kdim is None else positive(name, "kdim", kdim)
        self.vdim = self.embed_dim if vdim is None else positive(name, "vdim", vdim)
        self._rng = None if rng is None else rng_or_default(name, rng)
        source = rng_or_default(name, self._rng)

        def projection(rows: int, columns: int) -> Parameter:
            return Parameter(init.xavier_uniform((rows, columns), rng=source, dtype=dtype))

        if self.kdim == self.vdim == self.embed_dim:
            self.in_proj_weight = projection(3 * self.embed_dim, self.embed_dim)
        else:
            self.q_proj_weight = projection(self.embed_dim, self.embed_dim)
            self.k_proj_weight = projection(self.embed_dim, self.kdim)
            self.v_proj_weight = projection(self.embed_dim, self.vdim)
        with_bias = as_bool(name, "bias", bias)
        zeros = init.zeros((3 * self.embed_dim,), dtype=dtype)
        self.in_proj_bias = Parameter(zeros) if with_bias else None
        self.out_proj = Linear(self.embed_dim, self.embed_dim, with_bias, dtype=dtype, rng=source)
        if self.out_proj.bias is not None:
            self.out_proj.bias.assign(init.zeros((self.embed_dim,), dtype=dtype))

    def forward(
        self, query: ExTensor, key: ExTensor, value: ExTensor, key_padding_mask: Any = None, need_weights: bool = True,
        attn_mask: Any = None, average_attn_weights: bool = True, is_causal: bool = False,
    ) -> tuple[ExTensor, ExTensor | None]:  # fmt: skip
        """Attend.

        Args:
            query: (L, N, E), or (N, L, E) with ``batch_first``, or (L, E).
            key, value: (S, N, kdim) and (S, N, vdim), in the same layout.
            key_padding_mask: (N, S) or (S,): keys that nobody sees.
            need_weights: whether the weights are returned; without them the full matrix of scores is never made.
            attn_mask: (L, S), or (N * num_heads, L, S).
            average_attn_weights: whether the weights returned are the mean over the heads.
            is_causal: query i sees the keys up to i.

        Returns:
            The outputs in the layout of ``query``, and the weights: (N, L, S), or (N, num_heads, L, S), or None.
        """
        batched = query.ndim == 3
        if query.ndim not in (2, 3) or not query.ndim == key.ndim == value.ndim:
            raise ValueError(
                "[MultiheadAttention] query, key and value must have 3 axes (2 without a batch), "
                f"got {query.shape}, {key.shape} and {value.shape}"
            )
        same = query is key and key is value
        if not batched:
            query, key, value = (x.reshape((1, *x.shape)) for x in (query, key, value))
        elif not self.batch_first:
            query, key, value = (x.swapaxes(0, 1) for x in (query, key, value))
        dropping = self.training and self.dropout > 0
        weights = None
        everyone = key_padding_mask is None and attn_mask is None
        if same and everyone and not (need_weights or dropping or hasattr(self, "q_proj_weight")):
            projected = linear(query, self.in_proj_weight, self.in_proj_bias)
            output = self.out_proj(self_attention(projected, self.num_heads, is_causal))
            return self._as_given(output, batched), None
        q, k, v = self._heads(query, key, value, same)
        mask = self._mask(key_padding_mask, attn_mask, q.shape[0], k.shape[2])
        if need_weights or dropping:
            weights = _weights(q, k, mask, is_causal)
            if dropping:
                weights = drop(weights, self.dropout, rng_or_default("MultiheadAttention", self._rng)).output
            attended = weights @ v
        else:
            attended = scaled_dot_product_attention(q, k, v, mask, is_causal)
        n, _, length, _ = attended.shape
        output = self.out_proj(attended.swapaxes(1, 2).reshape((n, length, self.embed_dim)))
        if not need_weights:
            weights = None
        elif average_attn_weights:
            weights = weights.mean(1)  # type: ignore[union-attr]
        if not batched and weights is not None:
            weights = weights[0]
        return self._as_given(output, batched), weights

    def _as_given(self, output: ExTensor, batched: bool) -> ExTensor:
        """(N, L, E) in the layout of the inputs."""
        if not batched:
            return output[0]
        return output if self.batch_first else output.swapaxes(0, 1)

    def _heads(self, query: ExTensor, key: ExTensor, value: ExTensor, same: bool) -> list[ExTensor]:
        """Queries, keys and values of shape (N, heads, length, embed_dim / heads)."""
        if hasattr(self, "q_proj_weight"):
            weights = [self.q_proj_weight, self.k_proj_weight, self.v_proj_weight]
        elif same:
            projected = split(linear(query, self.in_proj_weight, self.in_proj_bias), 3, -1)
            return [self._apart(x) for x in projected]
        else:
            weights = split(self.in_proj_weight, 3)  # type: ignore[assignment]
        biases: Any = [None] * 3 if self.in_proj_bias is None else split(self.in_proj_bias, 3)
        inputs = (query, key, value)
        return [self._apart(linear(x, w, b)) for x, w, b in zip(inputs, weights, biases)]

    def _apart(self, x: ExTensor) -> ExTensor:
        n, length, _ = x.shape
        return x.reshape((n, length, self.num_heads, self.embed_dim // self.num_heads)).swapaxes(1, 2)

    def _mask(self, padding: Any, attention: Any, n: int, keys: int) -> ExTensor | None:
        """Both masks as one in ExTensor's sense (True takes part), or added numbers; broadcasts to (N, heads, L, S)."""
        parts = []
        if padding is not None:
            padding = _checked_mask("key_padding_mask", padding)
            if padding.shape not in ((n, keys), (keys,)):
                raise ValueError(
                    f"[MultiheadAttention] key_padding_mask has shape {padding.shape} but must be {(n, keys)}"
                )
            parts.append(padding.reshape((n, 1, 1, keys)))
        if attention is not None:
            attention = _checked_mask("attn_mask", attention)
            if attention.ndim == 3:
                attention = attention.reshape((n, self.num_heads, *attention.shape[1:]))
            parts.append(attention)
        if not parts:
            return None
        if all(p.dtype == bool_ for p in parts):
            return ~parts[0] if len(parts) == 1 else ~(parts[0] | parts[1])
        added = [where(p, -np.inf, 0.0) if p.dtype == bool_ else p for p in parts]
        return added[0] if len(added) == 1 else added[0] + added[1]

    def extra_repr(self) -> str:
        return f"{self.embed_dim}, {self.num_heads}, dropout={self.dropout}, batch_first={self.batch_first}"


def _checked_mask(name: str, value: Any) -> ExTensor:
    mask = as_tensor("MultiheadAttention", name, value)
    if mask.dtype != bool_ and mask.dtype not in FLOATING:
        raise TypeError(f"[MultiheadAttention] {name} must be boolean or floating, got {mask.dtype}")
    return mask


def _weights(q: ExTensor, k: ExTensor, mask: ExTensor | None, causal: bool) -> ExTensor:
    """softmax(q k^T / sqrt(D) + mask); 0 for a query that sees nothing."""
    scores = q @ k.mT * (1 / math.sqrt(q.shape[-1]))
    seen: Any = np.ones(scores.shape[-2:], bool)
    if causal:
        seen = np.tril(seen)
    if mask is not None and mask.dtype == bool_:
        seen = seen & mask.numpy()
    elif mask is not None:
        scores = scores + mask.astype(scores.dtype)
        seen = seen & (mask.numpy() != -np.inf)
    if seen.all():
        return softmax(scores)
    weights = softmax(where(seen, scores, -np.inf))
    return where(seen.any(-1, keepdims=True), weights, 0.0)


class TransformerEncoderLayer(Module):
    """Self-attention and a small network, each with a shortcut around it and a normalisation.

    Args:
        d_model: the length of the vectors.
        nhead: the heads of the attention.
        dim_feedforward: the width of the small network.
        dropout: the probability of dropout.
        activation: ``"relu"``, ``"gelu"``, or a function.
        layer_norm_eps: the eps of the normalisations.
        batch_first: whether inputs are (N, L, E) instead of (L, N, E).
        norm_first: normalise before attention and network instead of after.
        bias: whether there are biases.
        dtype: of the parameters.
        rng: where the parameters start from, and the dropout: a seed or a generator; the default generator without it.

    Example:
        >>> import extensor as et
        >>> layer = et.nn.TransformerEncoderLayer(8, 2, dim_feedforward=16, batch_first=True, rng=0)
        >>> layer(et.ones((1, 5, 8))).shape
        (1, 5, 8)
    """

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
        activation: str | Callable[[ExTensor], ExTensor] = "relu", layer_norm_eps: float = 1e-5, batch_first: bool = False,
        norm_first: bool = False, bias: bool = True, *, dtype: Any = float32, rng: Rng | None = None,
    ) -> None:  # fmt: skip
        known: dict[Any, Any] = {"relu": relu, "gelu": gelu}
        if not callable(activation) and activation not in known:
            raise ValueError(
                "[TransformerEncoderLayer] activation must be 'relu', 'gelu' or a function, "
                f"got {describe(activation)}"
            )
        source = None if rng is None else rng_or_default("TransformerEncoderLayer", rng)
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout, bias, batch_first=batch_first, dtype=dtype, rng=source
        )
        self.linear1 = Linear(d_model, dim_feedforward, bias, dtype=dtype, rng=source)
        self.dropout = Dropout(dropout, rng=source)
        self.linear2 = Linear(dim_feedforward, d_model, bias, dtype=dtype, rng=source)
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.dropout1 = Dropout(dropout, rng=source)
        self.dropout2 = Dropout(dropout, rng=source)
        self.norm_first = as_bool("TransformerEncoderLayer", "norm_first", norm_first)
        self.activation: Callable[[ExTensor], ExTensor] = known.get(activation, activation)

    def forward(
        self, src: ExTensor, src_mask: Any = None, src_key_padding_mask: Any = None, is_causal: bool = False
    ) -> ExTensor:  # fmt: skip
        """Encode ``src``; masks as in :class:`MultiheadAttention`."""

        def attend(x: ExTensor) -> ExTensor:
            attended, _ = self.self_attn(
                x, x, x, src_key_padding_mask, need_weights=False, attn_mask=src_mask, is_causal=is_causal
            )
            return self.dropout1(attended)

        def feed(x: ExTensor) -> ExTensor:
            return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))

        if self.norm_first:
            src = src + attend(self.norm1(src))
            return src + feed(self.norm2(src))
        src = self.norm1(src + attend(src))
        return self.norm2(src + feed(src))
