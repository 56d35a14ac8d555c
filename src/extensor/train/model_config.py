"""Models built from a configuration of plain values."""

from __future__ import annotations

from collections.abc import Callable
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


def make_model(config: dict[str, Any]) -> nn.Module:
    """The model a configuration describes, with its first weights.

    Raises:
        ValueError: the configuration, which may come from a file, describes no model of ExTensor.
    """
    description = config.get("model")
    name = description.get("name") if isinstance(description, dict) else None
    if not isinstance(description, dict) or not isinstance(name, str) or name not in _KINDS:
        raise ValueError(f"[make_model] the configuration names no model of ExTensor: {description!r:.200}")
    args = description.get("args")
    if not isinstance(args, dict) or "rng" in args or not _is_reasonable(args):
        raise ValueError(f"[make_model] the configuration has no arguments for {name}: {args!r:.200}")
    try:
        made = _KINDS[name](**args, rng=config.get("seed", 0))
    except (TypeError, ValueError, MemoryError, OverflowError, ZeroDivisionError) as error:
        raise ValueError(f"[make_model] {name} cannot be made from {args!r:.200}: {error}") from None
    return nn.Sequential(nn.Flatten(), made) if description.get("flatten") else made


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
