"""Stacks of transformer layers, and the decoder layer, which looks at an encoder's output."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import init
from ..checks import as_bool
from ..dtypes import float32
from ..errors import describe
from ..ops.activation import gelu, relu
from ..random import Rng
from ..tensor import ExTensor
from ._random import rng_or_default
from ._settings import positive
from .attention import MultiheadAttention, TransformerEncoderLayer
from .containers import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .normalization import LayerNorm

__all__ = ["Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder"]


class TransformerEncoder(Module):
    """``num_layers`` copies of an encoder layer, one after the other.

    Args:
        encoder_layer: a :class:`TransformerEncoderLayer`; every layer starts as a copy of it.
        num_layers: how many.
        norm: a normalisation after the last, or None.

    Example:
        >>> import extensor as et
        >>> layer = et.nn.TransformerEncoderLayer(8, 2, dim_feedforward=16, batch_first=True, rng=0)
        >>> et.nn.TransformerEncoder(layer, 2)(et.ones((1, 5, 8))).shape
        (1, 5, 8)
    """

    def __init__(self, encoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        self.num_layers = positive("TransformerEncoder", "num_layers", num_layers)
        self.layers = ModuleList([copy.deepcopy(encoder_layer) for _ in range(self.num_layers)])
        self.norm = norm

    def forward(
        self, src: ExTensor, mask: Any = None, src_key_padding_mask: Any = None, is_causal: bool = False
    ) -> ExTensor:
        """Encode ``src``; masks as in :class:`MultiheadAttention`."""
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask, is_causal)
        return src if self.norm is None else self.norm(src)


class TransformerDecoderLayer(Module):
    """Self-attention, attention to a memory, and a small network, each with a shortcut around it and a normalisation.

    Arguments as :class:`TransformerEncoderLayer`.

    Example:
        >>> import extensor as et
        >>> layer = et.nn.TransformerDecoderLayer(8, 2, dim_feedforward=16, batch_first=True, rng=0)
        >>> layer(et.ones((1, 3, 8)), et.ones((1, 5, 8))).shape
        (1, 3, 8)
    """

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
        activation: str | Callable[[ExTensor], ExTensor] = "relu", layer_norm_eps: float = 1e-5, batch_first: bool = False,
        norm_first: bool = False, bias: bool = True, *, dtype: Any = float32, rng: Rng | None = None,
    ) -> None:  # fmt: skip
        known: dict[Any, Any] = {"relu": relu, "gelu": gelu}
        if not callable(activation) and activation not in known:
            raise ValueError(
                f"[TransformerDecoderLayer] activation must be 'relu', 'gelu' or a function, got {describe(activation)}"
            )
        source = None if rng is None else rng_or_default("TransformerDecoderLayer", rng)

        def attention() -> MultiheadAttention:
            return MultiheadAttention(
                d_model, nhead, dropout, bias, batch_first=batch_first, dtype=dtype, rng=source
            )

        self.self_attn = attention()
        self.multihead_attn = attention()
        self.linear1 = Linear(d_model, dim_feedforward, bias, dtype=dtype, rng=source)
        self.dropout = Dropout(dropout, rng=source)
        self.linear2 = Linear(dim_feedforward, d_model, bias, dtype=dtype, rng=source)
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.norm3 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.dropout1 = Dropout(dropout, rng=source)
        self.dropout2 = Dropout(dropout, rng=source)
        self.dropout3 = Dropout(dropout, rng=source)
        self.norm_first = as_bool("TransformerDecoderLayer", "norm_first", norm_first)
        self.activation: Callable[[ExTensor], ExTensor] = known.get(activation, activation)

    def forward(
        self, tgt: ExTensor, memory: ExTensor, tgt_mask: Any = None, memory_mask: Any = None,
        tgt_key_padding_mask: Any = None, memory_key_padding_mask: Any = None, tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> ExTensor:  # fmt: skip
        """Decode ``tgt`` with a view of ``memory``; masks as in :class:`MultiheadAttention`."""

        def attend(x: ExTensor) -> ExTensor:
            found, _ = self.self_attn(
                x, x, x, tgt_key_padding_mask, need_weights=False, attn_mask=tgt_mask, is_causal=tgt_is_causal
            )
            return self.dropout1(found)

        def look(x: ExTensor) -> ExTensor:
            found, _ = self.multihead_attn(
                x, memory, memory, memory_key_padding_mask, need_weights=False, attn_mask=memory_mask,
                is_causal=memory_is_causal,
            )  # fmt: skip
            return self.dropout2(found)

        def feed(x: ExTensor) -> ExTensor:
            return self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(x)))))

        if self.norm_first:
            tgt = tgt + attend(self.norm1(tgt))
            tgt = tgt + look(self.norm2(tgt))
            return tgt + feed(self.norm3(tgt))
        tgt = self.norm1(tgt + attend(tgt))
        tgt = self.norm2(tgt + look(tgt))
        return self.norm3(tgt + feed(tgt))


class TransformerDecoder(Module):
    """``num_layers`` copies of a decoder layer, one after the other; arguments as :class:`TransformerEncoder`.

    Example:
        >>> import extensor as et
        >>> layer = et.nn.TransformerDecoderLayer(8, 2, dim_feedforward=16, batch_first=True, rng=0)
        >>> et.nn.TransformerDecoder(layer, 2)(et.ones((1, 3, 8)), et.ones((1, 5, 8))).shape
        (1, 3, 8)
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        self.num_layers = positive("TransformerDecoder", "num_layers", num_layers)
        self.layers = ModuleList([copy.deepcopy(decoder_layer) for _ in range(self.num_layers)])
        self.norm = norm

    def forward(
        self, tgt: ExTensor, memory: ExTensor, tgt_mask: Any = None, memory_mask: Any = None,
        tgt_key_padding_mask: Any = None, memory_key_padding_mask: Any = None, tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> ExTensor:  # fmt: skip
        """Decode ``tgt`` with a view of ``memory``; masks as in :class:`MultiheadAttention`."""
        for layer in self.layers:
            tgt = layer(
                tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask, tgt_is_causal,
                memory_is_causal,
            )  # fmt: skip
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """Encoder and decoder (Vaswani et al., 2017), with a normalisation after each.

    Args:
        d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias: as in
            :class:`TransformerEncoderLayer`.
        num_encoder_layers, num_decoder_layers: how many layers each has.
        dtype: of the parameters.
        rng: where the parameters start from, and the dropout.

    Example:
        >>> import extensor as et
        >>> net = et.nn.Transformer(8, 2, 1, 1, dim_feedforward=16, batch_first=True, rng=0)
        >>> net(et.ones((1, 5, 8)), et.ones((1, 3, 8))).shape
        (1, 3, 8)
    """

    def __init__(
        self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6,
        dim_feedforward: int = 2048, dropout: float = 0.1, activation: str | Callable[[ExTensor], ExTensor] = "relu",
        layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False, bias: bool = True,
        *, dtype: Any = float32, rng: Rng | None = None,
    ) -> None:  # fmt: skip
        source = rng_or_default("Transformer", rng)
        options: dict[str, Any] = {
            "layer_norm_eps": layer_norm_eps, "batch_first": batch_first, "norm_first": norm_first, "bias": bias,
            "dtype": dtype, "rng": None if rng is None else source,
        }  # fmt: skip

        def norm() -> LayerNorm:
            return LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)

        first = TransformerEncoderLayer(d_model, nhead, dim_feedforward, dropout, activation, **options)
        second = TransformerDecoderLayer(d_model, nhead, dim_feedforward, dropout, activation, **options)
        self.encoder = TransformerEncoder(first, num_encoder_layers, norm())
        self.decoder = TransformerDecoder(second, num_decoder_layers, norm())
        self.d_model, self.nhead = d_model, nhead
        self.batch_first = as_bool("Transformer", "batch_first", batch_first)
        for p in self.parameters():
            if p.ndim > 1:
                p.assign(init.xavier_uniform(p.shape, rng=source, dtype=p.dtype))

    def forward(
        self, src: ExTensor, tgt: ExTensor, src_mask: Any = None, tgt_mask: Any = None, memory_mask: Any = None,
        src_key_padding_mask: Any = None, tgt_key_padding_mask: Any = None, memory_key_padding_mask: Any = None,
        src_is_causal: bool = False, tgt_is_causal: bool = False, memory_is_causal: bool = False,
    ) -> ExTensor:  # fmt: skip
        """Encode ``src``, then decode ``tgt``; masks as in :class:`MultiheadAttention`."""
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        return self.decoder(
            tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask, tgt_is_causal,
            memory_is_causal,
        )  # fmt: skip

    @staticmethod
    def generate_square_subsequent_mask(sz: int) -> ExTensor:
        """A mask (sz, sz) that hides what comes later: 0 and -inf.

        Example:
            >>> import extensor as et
            >>> et.nn.Transformer.generate_square_subsequent_mask(2).tolist()
            [[0.0, -inf], [0.0, 0.0]]
        """
        return ExTensor(np.triu(np.full((sz, sz), -np.inf, np.float32), 1))
