"""A language model with an LSTM (Zaremba, Sutskever and Vinyals, 2014)."""

from __future__ import annotations

from typing import Any

from .. import nn
from ..checks import as_tensor
from ..nn._random import rng_or_default
from ..random import Rng
from ..tensor import ExTensor

__all__ = ["LSTMLanguageModel"]


class LSTMLanguageModel(nn.Module):
    """Embeddings, LSTM layers, and logits for the next token at every position.

    Args:
        vocab_size: the number of tokens.
        embedding_dim: the length of their vectors.
        hidden_size: the width of the LSTM.
        num_layers: its layers.
        dropout: the probability of dropout between layers in training.
        rng: where the parameters start from, and the dropout: a seed or a generator; the default generator without it.

    Example:
        >>> import extensor as et
        >>> net = et.models.LSTMLanguageModel(vocab_size=65, embedding_dim=16, hidden_size=32, rng=0)
        >>> logits, state = net(et.tensor([[1, 2, 3]]))
        >>> logits.shape
        (1, 3, 65)
    """

    def __init__(
        self, vocab_size: int, embedding_dim: int = 128, hidden_size: int = 128, num_layers: int = 1,
        dropout: float = 0.0, *, rng: Rng | None = None,
    ) -> None:  # fmt: skip
        source = rng_or_default("LSTMLanguageModel", rng)
        self.embedding = nn.Embedding(vocab_size, embedding_dim, rng=source)
        self.drop = nn.Dropout(dropout, rng=source)
        self.lstm = nn.LSTM(
            embedding_dim, hidden_size, num_layers, batch_first=True, dropout=dropout, rng=source
        )
        self.decoder = nn.Linear(hidden_size, vocab_size, rng=source)

    def forward(self, tokens: ExTensor, state: Any = None) -> tuple[ExTensor, Any]:
        """Logits of shape (N, T, vocab_size) for tokens of shape (N, T), and the state to go on from."""
        tokens = as_tensor("LSTMLanguageModel", "tokens", tokens)
        once = (
            self.training and not self.drop.p
        )  # nothing comes between a row of the table and the layer's product
        if once and tokens.ndim == 2 and tokens.size > self.embedding.num_embeddings:
            x, state = self.lstm.of_rows(tokens, self.embedding.weight, state)
        else:
            x, state = self.lstm(self.drop(self.embedding(tokens)), state)
        return self.decoder(self.drop(x)), state
