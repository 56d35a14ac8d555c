"""A GPT: a transformer that predicts the next token (Radford et al., 2018 and 2019)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import init, nn, random
from ..checks import as_tensor
from ..compile import Compiled
from ..graph import no_grad
from ..nn._random import rng_or_default
from ..ops.attention import scaled_dot_product_attention, self_attention
from ..ops.creation import arange
from ..ops.joining import concatenate
from ..ops.softmax import softmax
from ..random import Rng
from ..tensor import ExTensor, asarray

__all__ = ["GPT"]


class CausalSelfAttention(nn.Module):
    """Every position looks at itself and at those before it, with several heads."""

    def __init__(
        self, n_embd: int, n_head: int, dropout: float, bias: bool, rng: np.random.Generator
    ) -> None:
        if n_embd % n_head:
            raise ValueError(f"[GPT] n_embd ({n_embd}) must be divisible by n_head ({n_head})")
        self.n_head = n_head
        self.c_attn = nn.Linear(n_embd, 3 * n_embd, bias, rng=rng)  # queries, keys and values
        self.c_proj = nn.Linear(n_embd, n_embd, bias, rng=rng)
        self.resid_dropout = nn.Dropout(dropout, rng=rng)

    def forward(self, x: ExTensor, cache: nn.KVCache | None = None) -> ExTensor:
        projected = self.c_attn(x)
        if cache is None:
            y = self_attention(projected, self.n_head, causal=True)
        else:
            y = self._after(projected, cache)
        return self.resid_dropout(self.c_proj(y))

    def _after(self, projected: ExTensor, cache: nn.KVCache) -> ExTensor:
        """Attention of new positions to themselves and to those that the cache holds."""
        n, length, width = projected.shape
        heads = projected.reshape((n, length, 3, self.n_head, width // (3 * self.n_head)))
        q, k, v = (heads[:, :, i].swapaxes(1, 2) for i in range(3))
        seen = len(cache)
        y = scaled_dot_product_attention(q, *cache.update(k, v), visible(seen, length))
        return y.swapaxes(1, 2).reshape((n, length, width // 3))


def visible(seen: int, length: int) -> ExTensor | None:
    """Which positions each of ``length`` new ones may look at, after ``seen`` others; None for all of them."""
    if length == 1:
        return None
    return asarray(np.arange(seen + length) <= seen + np.arange(length)[:, None])


class FeedForward(nn.Module):
    """Each position by itself: four times as wide, a nonlinearity, and back."""

    def __init__(self, n_embd: int, dropout: float, bias: bool, rng: np.random.Generator) -> None:
        self.c_fc = nn.Linear(n_embd, 4 * n_embd, bias, rng=rng)
        self.gelu = nn.GELU()
        self.c_proj = nn.Linear(4 * n_embd, n_embd, bias, rng=rng)
        self.dropout = nn.Dropout(dropout, rng=rng)

    def forward(self, x: ExTensor) -> ExTensor:
        return self.dropout(self.c_proj(self.gelu(self.c_fc(x))))


class Block(nn.Module):
    """Attention and feed-forward network, each behind a normalisation and beside a shortcut."""

    def __init__(
        self, n_embd: int, n_head: int, dropout: float, bias: bool, rng: np.random.Generator
    ) -> None:
        self.ln_1 = nn.LayerNorm(n_embd, bias=bias)
        self.attn = CausalSelfAttention(n_embd, n_head, dropout, bias, rng)
        self.ln_2 = nn.LayerNorm(n_embd, bias=bias)
        self.mlp = FeedForward(n_embd, dropout, bias, rng)

    def forward(self, x: ExTensor, cache: nn.KVCache | None = None) -> ExTensor:
        x = x + self.attn(self.ln_1(x), cache)
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    """Token and position embeddings, blocks of attention, and logits for the next token at every position.

    The matrix that turns tokens into vectors also turns vectors into logits.

    Args:
        vocab_size: the number of tokens.
        block_size: the longest sequence.
        n_layer, n_head, n_embd: the blocks, the heads of each, and the length of the vectors.
        dropout: the probability of dropout in training.
        bias: whether linear layers and normalisations have biases.
        rng: where the parameters start from, and the dropout: a seed or a generator; the default generator without it.

    Example:
        >>> import extensor as et
        >>> net = et.models.GPT(vocab_size=65, block_size=16, n_layer=2, n_head=2, n_embd=32, rng=0)
        >>> net(et.tensor([[1, 2, 3]])).shape
        (1, 3, 65)
    """

    def __init__(
        self, vocab_size: int, block_size: int, n_layer: int = 4, n_head: int = 4, n_embd: int = 128,
        dropout: float = 0.0, bias: bool = True, *, rng: Rng | None = None,
    ) -> None:  # fmt: skip
        source = rng_or_default("GPT", rng)
        self.block_size = block_size
        self.wte = nn.Embedding(vocab_size, n_embd, rng=source)  # tokens
        self.wpe = nn.Embedding(block_size, n_embd, rng=source)  # positions
        self.drop = nn.Dropout(dropout, rng=source)
        self.h = nn.ModuleList([Block(n_embd, n_head, dropout, bias, source) for _ in range(n_layer)])
        self.ln_f = nn.LayerNorm(n_embd, bias=bias)
        self.lm_head = nn.Linear(n_embd, vocab_size, bias=False, rng=source)
        self.lm_head.weight = self.wte.weight
        self._start(n_layer, source)

    def _start(self, n_layer: int, rng: np.random.Generator) -> None:
        """Small weights, smaller still where 2 * n_layer shortcuts add up; biases of 0."""
        for name, p in self.named_parameters():
            if p.ndim == 2:
                std = 0.02 / math.sqrt(2 * n_layer) if name.endswith("c_proj.weight") else 0.02
                p.assign(init.normal(p.shape, std=std, rng=rng))
            elif name.endswith("bias"):
                p.assign(init.zeros(p.shape))

    def forward(self, tokens: ExTensor, caches: Sequence[nn.KVCache] | None = None) -> ExTensor:
        """Logits of shape (N, T, vocab_size) for tokens of shape (N, T).

        Args:
            tokens: the text; with caches, what follows the text that they hold.
            caches: one for each block, which keep keys and values for the next call.
        """
        tokens, seen = self._placed(tokens, caches)
        x = self.drop(self.wte(tokens) + self.wpe(arange(seen, seen + tokens.shape[1])))
        for i, block in enumerate(self.h):
            x = block(x, None if caches is None else caches[i])
        return self.lm_head(self.ln_f(x))

    def _placed(self, tokens: Any, caches: Sequence[nn.KVCache] | None) -> tuple[ExTensor, int]:
        """The tokens, and how many came before them."""
        tokens = as_tensor(type(self).__name__, "tokens", tokens)
        seen = 0 if caches is None else len(caches[0])
        if tokens.ndim != 2 or seen + tokens.shape[1] > self.block_size:
            after = f" after {seen} others" if seen else ""
            raise ValueError(
                f"[{type(self).__name__}] tokens must have shape (N, T) with T at most block_size {self.block_size}, "
                f"got {tokens.shape}{after}"
            )
        return tokens, seen

    def generate(
        self,
        tokens: Any,
        max_new_tokens: int,
        temperature: float = 1.0,
        top_k: int | None = None,
        *,
        rng: Rng,
    ) -> ExTensor:
        """Tokens of shape (N, T), continued one by one.

        Args:
            tokens: the beginning.
            max_new_tokens: how many follow.
            temperature: below 1 likely tokens become likelier, above 1 less so.
            top_k: draw from the likeliest ``top_k`` tokens only.
            rng: where the choices come from: a seed or a generator.

        Keys and values of what was read are kept, so that each new token is one position of work, up to ``block_size``
        tokens; from there on the text moves past its first positions, and all of them are computed again, by a compiled model.
        """
        if not temperature > 0:
            raise ValueError(f"[generate] temperature must be above 0, got {temperature}")
        source, found = random.as_generator("generate", rng), asarray(tokens)
        mode, repeated = self.training, Compiled(self, fallback=True, warns=False)
        self.eval()
        with no_grad():
            caches = [nn.KVCache() for _ in self.h]
            for _ in range(max_new_tokens):
                if found.shape[1] <= self.block_size:
                    logits = self(found[:, len(caches[0]) :], caches)[:, -1] / temperature
                else:
                    logits = repeated(found[:, -self.block_size :])[:, -1] / temperature
                next_tokens = [[_draw(row, top_k, source)] for row in logits.numpy()]
                found = concatenate([found, asarray(next_tokens, found.dtype)], 1)
        self.train(mode)
        return found


def _draw(logits: np.ndarray, top_k: int | None, rng: np.random.Generator) -> int:
    """One token from the distribution of the logits."""
    wide = logits.astype(np.float64)
    if top_k is not None and top_k < wide.size:
        wide = np.where(wide < np.sort(wide)[-top_k], -np.inf, wide)
    return int(rng.choice(wide.size, p=softmax(asarray(wide)).numpy()))
