"""Recipes for language models that write character by character."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .. import data
from ..ops.loss_classification import cross_entropy
from ..tensor import ExTensor
from .data_identity import identify_data
from .hyperparameters import Hyperparameters
from .metrics import Perplexity
from .model_config import make_model
from .recipe import Order, Setup

__all__ = ["chargpt", "lstm"]

_LENGTH = 64  # characters the model sees at once


def chargpt(order: Order, settings: Hyperparameters) -> Setup:
    """A small GPT."""
    sizes = {"n_layer": 4, "n_head": 4, "n_embd": 128, "block_size": _LENGTH, "bias": False}
    return _text_setup(order, settings, {"name": "GPT", "args": sizes})


def lstm(order: Order, settings: Hyperparameters) -> Setup:
    """An LSTM."""
    sizes = {"embedding_dim": 64, "hidden_size": 128}
    return _text_setup(order, settings, {"name": "LSTMLanguageModel", "args": sizes})


def _load_text(path: Path | None) -> data.Text:
    """The characters of a text file, or of ``input.txt`` in a folder."""
    if path is None:
        raise ValueError("[load_text] this recipe needs a text to learn from; pass --data FILE")
    text = data.Text.read(path / "input.txt" if path.is_dir() else path)
    least = 10 * _LENGTH + 1
    if len(text) < least:
        raise ValueError(
            f"[load_text] {path} has a length of {len(text)}, but {least} characters are the least to train on: a tenth "
            f"of a text is kept for validation and must hold {_LENGTH} characters and the one that follows them"
        )
    return text


def _text_setup(order: Order, settings: Hyperparameters, model: dict[str, Any]) -> Setup:
    if order.validation is not None or order.test is not None or order.fold is not None:
        raise ValueError(
            "[load_text] a text has no parts in files of their own; its last tenth is kept for validation"
        )
    text = _load_text(order.data)
    learned, held_out = text.split(0.9)
    model["args"]["vocab_size"] = len(text.vocabulary)
    config: dict[str, Any] = {"model": model, **identify_data(order.data), "seed": order.seed}
    config |= {"vocabulary": "".join(text.vocabulary), "length": _LENGTH}
    net = make_model(config)
    every = held_out.windows(_LENGTH)
    apart = data.Dataset(*every.gather(np.arange(0, len(every), _LENGTH)))
    batch = settings.batch_size or 32
    return Setup(
        net,
        settings.make_optimizer(net.parameters(), matrices_decay_alone=True),
        _next_token_loss,
        data.DataLoader(learned.windows(_LENGTH), batch, shuffle=True, rng=order.seed, drop_last=True),
        data.DataLoader(apart, 64),
        config | settings.as_config() | {"batch_size": batch},
        settings,
        metrics={"perplexity": Perplexity()},
        validate_every=500,
        notes=[f"{order.data}: a text of {len(text):,} characters, {len(text.vocabulary)} different"],
    )


def _next_token_loss(outputs: Any, targets: ExTensor) -> ExTensor:
    """Cross-entropy at every position; a recurrent model returns its state beside the logits."""
    return cross_entropy(outputs[0] if isinstance(outputs, tuple) else outputs, targets)
