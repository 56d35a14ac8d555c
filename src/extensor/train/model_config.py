"""Models built from a configuration of plain values."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from .. import models, nn

__all__ = ["make_model"]

_KINDS: dict[str, Callable[..., nn.Module]] = {
    "MLP": models.MLP,
    "LeNet5": models.LeNet5,
    "ResNet20": models.ResNet20,
    "GPT": models.GPT,
    "LSTMLanguageModel": models.LSTMLanguageModel,
}


def make_model(config: dict[str, Any], weights: int | None = None) -> nn.Module:
    """The model a configuration describes, with its first weights.

    Args:
        config: what a recipe wrote; it may come from a file.
        weights: how many numbers there are to fill it with; a model that needs more is not even made.

    Raises:
        ValueError: the configuration describes no model of ExTensor, or one that is too large.
    """
    description = config.get("model")
    name = description.get("name") if isinstance(description, dict) else None
    if not isinstance(description, dict) or not isinstance(name, str) or name not in _KINDS:
        raise ValueError(f"[make_model] the configuration names no model of ExTensor: {description!r:.200}")
    args = description.get("args")
    if not isinstance(args, dict) or "rng" in args or not _is_reasonable(args):
        raise ValueError(f"[make_model] the configuration has no arguments for {name}: {args!r:.200}")
    try:
        needed = _parameters(name, args)
        if weights is not None and needed > weights:
            raise ValueError(
                f"it would have {needed} parameters or more, and there are weights for {weights}"
            )
        made = _KINDS[name](**args, rng=config.get("seed", 0))
    except (KeyError, TypeError, ValueError, MemoryError, OverflowError, ZeroDivisionError) as error:
        raise ValueError(f"[make_model] {name} cannot be made from {args!r:.200}: {error}") from None
    return nn.Sequential(nn.Flatten(), made) if description.get("flatten") else made


def _parameters(name: str, args: dict[str, Any]) -> int:
    """How many parameters a model has at least: its matrices, without biases."""
    if name == "MLP":
        return sum(int(a) * int(b) for a, b in pairwise(args["sizes"]))
    if name == "GPT":
        width = int(args.get("n_embd", 128))
        return int(args["vocab_size"]) * width + 12 * int(args.get("n_layer", 4)) * width**2
    if name == "LSTMLanguageModel":
        width, hidden = int(args.get("embedding_dim", 128)), int(args.get("hidden_size", 128))
        cells = 4 * hidden * (width + hidden) * int(args.get("num_layers", 1))
        return int(args["vocab_size"]) * (width + hidden) + cells if min(width, hidden) > 0 else 0
    last, first = (84, 150) if name == "LeNet5" else (64, 144)
    return last * int(args.get("num_classes", 10)) + first * int(args.get("in_channels", 1))


_LARGEST = 1 << 24  # of a size in a configuration: a hostile one must not ask for all memory


def _is_reasonable(value: Any) -> bool:
    """Whether every number is small enough for a size, and every other value plain."""
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_reasonable(item) for key, item in value.items())
    if isinstance(value, list):
        return all(map(_is_reasonable, value))
    if isinstance(value, (int, float)):
        return abs(value) <= _LARGEST
    return value is None or isinstance(value, str)
