"""Sums over all alignments of labels with a sequence, see :mod:`extensor.ops.loss_ctc`.

x: (T, N, C), log-probabilities; states: (N, S), the label of each state; jumps: (N, S), whether a state can be reached from the last
but one; lengths and counts: (N,), of the sequences and of their labels. Logarithms are kept in float64.
"""

from __future__ import annotations

import numpy as np

from ..dispatch import kernel
from ..namespace import added, xp, zeros

__all__ = ["ctc_losses", "ctc_shares"]

NEVER = -1e30  # the logarithm of what cannot be; finite, so that differences of it are


def seen_in(x, states):
    """The log-probability of each state at each time: (T, N, S)."""
    index = xp.broadcast_to(states, (x.shape[0], *states.shape))
    found = xp.take_along_axis(x.astype(np.float64), index, 2)
    return xp.where(found < NEVER, NEVER, found)


def moved(a, jumps):
    """The sum over the states that lead to each: itself, the one before, and the one before that."""
    wall = xp.full_like(a[:, :1], NEVER)
    last = xp.concatenate([wall, a], 1)[:, : a.shape[1]]
    before = xp.concatenate([wall, last], 1)[:, : a.shape[1]]
    return xp.logaddexp(xp.logaddexp(a, last), xp.where(jumps, before, NEVER))


def reached(seen, jumps, lengths, counts):
    """The logarithm of the sum over all paths that reach a state, at each time; it stands still when a sequence has ended."""
    start = xp.arange(seen.shape[2]) < xp.minimum(2 * counts[:, None] + 1, 2)
    a = xp.where(start, seen[0], NEVER)
    found = [a]
    for t in range(1, seen.shape[0]):
        a = xp.where((t < lengths)[:, None], moved(a, jumps) + seen[t], a)
        found.append(a)
    return found


def ends_of(states, counts):
    """The states that a path may end in: the last label and the blank after it."""
    places, last = xp.arange(states.shape[1]), 2 * counts[:, None]
    return (places == last) | (places == last - 1)


def losses_of(last, states, lengths, counts):
    kept = xp.where(ends_of(states, counts), last, NEVER)
    top = kept.max(1)
    found = -(top + xp.log(xp.exp(kept - top[:, None]).sum(1)))
    return xp.where(lengths > 0, found, xp.where(counts > 0, -NEVER, 0.0))


@kernel
def ctc_losses(x, states, jumps, lengths, counts):
    """Minus the logarithm of the sum over all paths, of each sequence; about 1e30 where there is none."""
    if not x.shape[0]:
        return xp.where(counts > 0, -NEVER, 0.0)
    return losses_of(reached(seen_in(x, states), jumps, lengths, counts)[-1], states, lengths, counts)


@kernel
def ctc_shares(rates, x, states, jumps, lengths, counts):
    """-rate times the probability that a path is at a class at a time, given the labels: (T, N, C)."""
    seen = seen_in(x, states)
    alphas = reached(seen, jumps, lengths, counts)
    losses = losses_of(alphas[-1], states, lengths, counts)
    level = xp.where(losses > -NEVER / 10, 0.0, losses)[:, None]
    ends = xp.where(ends_of(states, counts), 0.0, NEVER)
    # from the end it is the same walk: a state is reached from those that follow it
    mirrored = xp.concatenate([jumps[:, 2:], xp.zeros_like(jumps[:, :2])], 1)[:, : jumps.shape[1]][:, ::-1]
    out, rows, b = zeros(x.shape, np.dtype(np.float64), seen), np.arange(x.shape[1])[:, None], ends
    for t in range(x.shape[0] - 1, -1, -1):
        if t + 1 < x.shape[0]:
            on = moved((b + seen[t + 1])[:, ::-1], mirrored)[:, ::-1]
            b = xp.where((t + 1 < lengths)[:, None], on, ends)
        share = xp.exp(xp.minimum(alphas[t] + b + level, 1.0))  # at most 1 but for rounding
        share = xp.where((t < lengths)[:, None], -share * rates[:, None], 0.0)
        out = added(out, (t, rows, states), share)
    return out
