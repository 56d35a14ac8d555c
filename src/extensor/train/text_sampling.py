"""Text from a language model, token by token."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..compile import Compiled
from ..graph import no_grad
from ..models import GPT
from ..nn import KVCache
from ..ops.softmax import softmax
from ..tensor import ExTensor

__all__ = ["drawn_tokens"]


def drawn_tokens(
    model: Any, start: np.ndarray, count: int, length: int, temperature: float, rng: np.random.Generator
) -> Iterator[int]:
    """Token after token, each drawn from what the model expects after the last ``length``.

    As long as there are fewer, the shapes of a call are new every time; from then on they repeat, and the model is compiled.
    """
    known = start.astype(np.int64)
    repeated = Compiled(model, fallback=True, warns=False)
    caches = [KVCache() for _ in model.h] if isinstance(model, GPT) else None
    with no_grad():
        for _ in range(count):
            if caches is not None and len(known) <= length:
                outputs = model(ExTensor(known[None, len(caches[0]) :].copy()), caches)
            else:
                run = repeated if len(known) > length else model
                outputs = run(ExTensor(known[None, -length:].copy()))
            logits = (outputs[0] if isinstance(outputs, tuple) else outputs)[0, -1]
            likely = softmax(logits.astype("float64") / temperature).numpy()
            token = int(rng.choice(len(likely), p=likely))
            known = np.append(known, token)
            yield token
