"""Dropout: some elements are dropped, the others grow so that the mean stays."""

from __future__ import annotations

import numpy as np

from ..dispatch import formula, kernel
from ..namespace import xp

__all__ = ["dropout", "dropout_backward", "pcg64_at_least"]


def kept(x, mask, scale):
    """``x * scale`` where the mask is true, else an exact 0."""
    return xp.where(mask, x * scale, 0.0)


@kernel
def dropout(x, mask, scale):
    return kept(x, mask, scale)


@formula
def dropout_backward(g, mask, scale):
    return kept(g, mask, scale)


@kernel(exact=True)
def pcg64_at_least(stream, shape, p):
    # stream: the state of NumPy's PCG64, low and high half, and its increment likewise. Which of its next doubles are at least p.
    state, increment = (int(low) + (int(high) << 64) for low, high in stream.reshape(2, 2))
    bits = np.random.PCG64(0)
    bits.state = {
        "bit_generator": "PCG64",
        "state": {"state": state, "inc": increment},
        "has_uint32": 0,
        "uinteger": 0,
    }
    return np.random.Generator(bits).random(shape) >= p
