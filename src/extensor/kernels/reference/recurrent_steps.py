"""What the kernels of recurrent cells and sequences share. All of it in float64, rounded once.

Shapes: x (T, N, I), h and c (N, H), w_ih (gates * H, I), w_hh (gates * H, H), biases (gates * H,) or None;
hidden (T, N, H). A single step is a sequence of one; there x, h and c may lack the axis N. ``reverse`` walks from the last
step to the first. The backward kernels run in a loop only what really depends on the next step, and return None where a
gradient is not needed.
"""

from __future__ import annotations

import math

from ..namespace import xp

__all__ = [
    "as_sequence", "as_state", "finished", "in_order", "plus", "shapes_of", "states_before", "steps", "weight_gradient",
]  # fmt: skip


def plus(a, bias):
    return a if bias is None else a + bias


def steps(length, reverse):
    return range(length - 1, -1, -1) if reverse else range(length)


def in_order(found, like):
    """What was found at each step, in the order of time, as one array; ``like`` has the shape of each."""
    if not found:
        return xp.zeros_like(like)[None][:0]
    return xp.stack([found[t] for t in range(len(found))])


def states_before(states, first, reverse):
    """The state each step started from: ``first``, then those after the other steps."""
    return xp.concatenate([states[1:], first[None]] if reverse else [first[None], states[:-1]])


def as_sequence(*arrays):
    """One step, with or without the axis N, as a sequence of one step."""
    return [as_state(a)[None] for a in arrays]


def as_state(h):
    return h.reshape(math.prod(h.shape[:-1]), h.shape[-1])


def weight_gradient(grad, x):
    """sum over steps and batch of grad x^T."""
    return xp.einsum("tni,tnj->ij", grad, x, optimize=True)


def finished(grads, needs, shapes, dtype):
    """The gradients that are needed, in their shapes."""
    return tuple(
        grad.reshape(shape).astype(dtype) if need else None for grad, need, shape in zip(grads, needs, shapes)
    )


def shapes_of(*inputs, gates):
    """The shapes of the gradients: those of the inputs, then of the two biases."""
    return [*(a.shape for a in inputs), (gates,), (gates,)]
