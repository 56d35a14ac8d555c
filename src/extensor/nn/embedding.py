"""Tables of vectors."""

from __future__ import annotations

from typing import Any

from .. import init
from ..checks import as_int
from ..dtypes import float32
from ..ops.embedding import embedding
from ..random import Rng
from ..tensor import ExTensor
from ._random import rng_or_default
from ._settings import positive
from .module import Module
from .parameter import Parameter

__all__ = ["Embedding"]


class Embedding(Module):
    """A vector for each of ``num_embeddings`` numbers, see :func:`extensor.embedding`.

    Args:
        num_embeddings: how many vectors there are.
        embedding_dim: their length.
        padding_idx: a number whose vector starts at 0 and is not trained.
        dtype: of the vectors.
        rng: where they start from: a seed or a generator; the default generator without it.

    Attributes:
        weight: (num_embeddings, embedding_dim), standard normal.

    Example:
        >>> import extensor as et
        >>> et.nn.Embedding(10, 4, rng=0)(et.tensor([[1, 2, 3]])).shape
        (1, 3, 4)
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, *, dtype: Any = float32,
        rng: Rng | None = None,
    ) -> None:  # fmt: skip
        self.num_embeddings = positive("Embedding", "num_embeddings", num_embeddings)
        self.embedding_dim = positive("Embedding", "embedding_dim", embedding_dim)
        self.padding_idx = None if padding_idx is None else as_int("Embedding", "padding_idx", padding_idx)
        shape = (self.num_embeddings, self.embedding_dim)
        weight = init.normal(shape, rng=rng_or_default("Embedding", rng), dtype=dtype)
        if self.padding_idx is not None:
            if not -self.num_embeddings <= self.padding_idx < self.num_embeddings:
                raise ValueError(
                    f"[Embedding] padding_idx {self.padding_idx} is out of range for {self.num_embeddings} vectors"
                )
            self.padding_idx %= self.num_embeddings
            weight = weight.at[self.padding_idx].set(0.0)
        self.weight = Parameter(weight)

    def forward(self, indices: Any) -> ExTensor:
        return embedding(indices, self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        shown = f"{self.num_embeddings}, {self.embedding_dim}"
        return shown if self.padding_idx is None else f"{shown}, padding_idx={self.padding_idx}"
