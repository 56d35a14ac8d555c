"""The loss of sequences whose labels are not aligned with them (connectionist temporal classification, Graves 2006).

Labels are written with blanks between, l' = (blank, l_1, blank, l_2, ..., blank), 2 L + 1 states. A path stays in its state,
goes to the next, or jumps over a blank between two different labels. Forward and backward sums over all paths are kept as
logarithms in float64.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..checks import as_bool, as_floating, as_grad, as_int, as_integers
from ..dtypes import float64
from ..errors import describe
from ..graph import backward_of, differentiable
from ..kernels.reference import loss_ctc as kernels
from ..kernels.reference.loss_ctc import NEVER
from ..tensor import ExTensor
from ._formulas import on_tensors
from ._reduce_loss import as_reduction, loss_shape
from .broadcasting import broadcast_to
from .casting import astype, cast_like
from .exponential import exp
from .indexing import take_along_axis, take_along_axis_backward
from .joining import concatenate, stack
from .reduction import logsumexp, mean
from .reduction import sum as total
from .selection import where
from .shape import flip, reshape

__all__ = ["ctc", "ctc_backward"]


class _Paths(NamedTuple):
    """What a loss sums over: log-probabilities, the states of each sequence, and where it may go."""

    x: ExTensor  # (T, N, C)
    states: np.ndarray  # (N, S): the label of each state
    jumps: np.ndarray  # (N, S): whether a state can be reached from the last but one
    lengths: np.ndarray  # (N,)
    counts: np.ndarray  # (N,): how many labels each has
    batched: bool

    @property
    def arrays(self) -> list[ExTensor]:
        """The states and the lengths, as the kernels take them."""
        return [ExTensor(v) for v in (self.states, self.jumps, self.lengths, self.counts)]


def _lengths(function: str, name: str, value: Any, n: int, most: int) -> np.ndarray:
    found = as_integers(function, name, value)._array
    found = np.broadcast_to(found, (n,)) if not found.ndim and n == 1 else found
    if found.shape != (n,) or (n and (found.min() < 0 or found.max() > most)):
        raise ValueError(f"[{function}] {name} must be {n} lengths of at most {most}, got {describe(value)}")
    return found.astype(np.int64)


def _paths(
    function: str, x: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: Any
) -> _Paths:
    given = as_floating(function, "log_probabilities", x)
    if given.ndim not in (2, 3):
        raise ValueError(
            f"[{function}] log_probabilities must have the shape (T, N, C) or (T, C), got {given.shape}"
        )
    batched = given.ndim == 3
    x = given if batched else reshape(given, (given.shape[0], 1, given.shape[1]))
    times, n, classes = x.shape
    empty = as_int(function, "blank", blank)
    if not 0 <= empty < classes:
        raise ValueError(f"[{function}] blank must be one of the {classes} classes, got {empty}")
    labels = as_integers(function, "targets", targets)._array
    lengths = _lengths(function, "input_lengths", input_lengths, n, times)
    if labels.ndim == 1 and batched:  # all labels in a row
        counts = _lengths(function, "target_lengths", target_lengths, n, labels.size)
        if counts.sum() != labels.size:
            raise ValueError(
                f"[{function}] targets has {labels.size} labels but target_lengths add up to {counts.sum()}"
            )
        rows = np.full((n, int(counts.max(initial=0))), empty, np.int64)
        rows[np.arange(rows.shape[1]) < counts[:, None]] = labels
    else:
        rows = labels if batched else labels[None]
        if rows.ndim != 2 or rows.shape[0] != n:
            raise ValueError(
                f"[{function}] targets must have the shape ({n}, S) or be one row, got {labels.shape}"
            )
        counts = _lengths(function, "target_lengths", target_lengths, n, rows.shape[1])
    used = np.arange(rows.shape[1]) < counts[:, None]
    wrong = used & ((rows < 0) | (rows >= classes) | (rows == empty))
    if wrong.any():
        raise ValueError(
            f"[{function}] targets must be classes other than the blank {empty}, got {rows[wrong][0]} (classes: {classes})"
        )
    states = np.full((n, 2 * rows.shape[1] + 1), empty, np.int64)
    states[:, 1::2] = np.where(used, rows, empty)
    jumps = np.zeros(states.shape, bool)
    jumps[:, 3::2] = states[:, 3::2] != states[:, 1:-2:2]
    jumps &= states != empty
    return _Paths(x, states, jumps, lengths, counts, batched)


@differentiable
def ctc(
    log_probabilities: ExTensor,
    targets: ExTensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> ExTensor:
    """Minus the log-probability that outputs spell the labels.   l = -log sum over alignments of prod_t exp(x_(t, label at t))

    Args:
        log_probabilities: (T, N, C), or (T, C), as :func:`log_softmax` gives them.
        targets: the labels, (N, S), or all of them in one row; none is the blank.
        input_lengths: how many of the T outputs of each sequence count.
        target_lengths: how many labels each has.
        blank: the class that stands for no label.
        reduction: ``"mean"`` (each loss divided by its number of labels, then averaged), ``"sum"`` or ``"none"``.
        zero_infinity: whether losses of sequences that are too short for their labels count as 0, not inf.

    Example:
        >>> import extensor as et
        >>> even = et.full((2, 1, 2), -0.6931472)
        >>> round(et.exp(-et.ctc(even, et.tensor([[1]]), [2], [1])).item(), 4)
        0.75
    """
    paths = _paths("ctc", log_probabilities, targets, input_lengths, target_lengths, blank)
    losses = kernels.ctc_losses(paths.x, *paths.arrays)
    hopeless = losses > -NEVER / 10
    losses = where(hopeless, 0.0 if as_bool("ctc", "zero_infinity", zero_infinity) else math.inf, losses)
    wanted = as_reduction("ctc", reduction)
    if wanted == "mean":
        losses = mean(losses / ExTensor(np.maximum(paths.counts, 1).astype(float)))
    elif wanted == "sum":
        losses = total(losses)
    elif not paths.batched:
        losses = reshape(losses, ())
    return astype(losses, as_floating("ctc", "log_probabilities", log_probabilities).dtype)


# The gradient in differentiable functions


def _seen(paths: _Paths) -> ExTensor:
    """The log-probability of each state at each time: (T, N, S)."""
    index = ExTensor(np.broadcast_to(paths.states, (paths.x.shape[0], *paths.states.shape)))
    found = take_along_axis(astype(paths.x, float64), index, 2)
    return where(found < NEVER, NEVER, found)


def _moved(a: ExTensor, jumps: np.ndarray) -> ExTensor:
    """The sum over the states that lead to each: itself, the one before, and the one before that."""
    n, states = a.shape
    never = ExTensor(np.full((n, 2), NEVER))
    padded = concatenate([never, a], 1)
    leap = where(ExTensor(jumps), padded[:, :states], NEVER)
    return logsumexp(stack([a, padded[:, 1:-1], leap]), 0)


def _forward(paths: _Paths, seen: ExTensor) -> list[ExTensor]:
    """The logarithm of the sum over all paths that reach a state at a time; it stands still when a sequence has ended."""
    n, states = paths.states.shape
    start = np.arange(states) < np.minimum(2 * paths.counts[:, None] + 1, 2)
    a = where(ExTensor(start), seen[0], NEVER)
    found = [a]
    for t in range(1, seen.shape[0]):
        running = ExTensor(np.broadcast_to((t < paths.lengths)[:, None], (n, states)))
        a = where(running, _moved(a, paths.jumps) + seen[t], a)
        found.append(a)
    return found


def _ends(paths: _Paths) -> np.ndarray:
    """The states that a path may end in: the last label and the blank after it."""
    places = np.arange(paths.states.shape[1])
    last = 2 * paths.counts[:, None]
    return (places == last) | (places == last - 1)


def _losses(paths: _Paths, alphas: list[ExTensor]) -> ExTensor:
    nothing = ExTensor((paths.lengths == 0) & (paths.counts == 0))
    absent = ExTensor((paths.lengths == 0) & (paths.counts > 0))
    found = -logsumexp(where(ExTensor(_ends(paths)), alphas[-1], NEVER), 1)
    return where(absent, -NEVER, where(nothing, 0.0, found))


def _backward(paths: _Paths, seen: ExTensor) -> list[ExTensor]:
    """The logarithm of the sum over all ways on from a state at a time, without what is seen there."""
    n, states = paths.states.shape
    ends = ExTensor(np.where(_ends(paths), 0.0, NEVER))
    # from the end it is the same walk: a state is reached from those that follow it
    jumps = np.zeros_like(paths.jumps)
    jumps[:, :-2] = paths.jumps[:, 2:]
    mirrored = jumps[:, ::-1]
    b, found = ends, [ends]
    for t in range(seen.shape[0] - 2, -1, -1):
        running = ExTensor(np.broadcast_to((t + 1 < paths.lengths)[:, None], (n, states)))
        step = flip(_moved(flip(b + seen[t + 1], 1), mirrored), 1)
        b = where(running, step, ends)
        found.append(b)
    return found[::-1]


@on_tensors(2)
def _ctc_formula(
    grad_output: Any, log_probabilities: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int = 0,
    reduction: str = "mean", zero_infinity: bool = False,
) -> Any:  # fmt: skip
    paths, rates = _rates(
        "ctc_backward",
        grad_output,
        log_probabilities,
        targets,
        input_lengths,
        target_lengths,
        blank,
        reduction,
    )
    if not paths.x.size:
        return 0 * log_probabilities
    n = paths.x.shape[1]
    seen = _seen(paths)
    alphas, betas = _forward(paths, seen), _backward(paths, seen)
    losses = _losses(paths, alphas)
    hopeless = losses > -NEVER / 10
    rate = where(hopeless, 0.0 if zero_infinity else math.nan, rates)
    shares = []
    for t, (a, b) in enumerate(zip(alphas, betas)):
        level = a + b + reshape(where(hopeless, 0.0, losses), (n, 1))
        share = exp(where(level > 1, 1.0, level))  # 1 but for rounding
        running = ExTensor(np.broadcast_to((t < paths.lengths)[:, None], share.shape))
        shares.append(where(running, -share * reshape(rate, (n, 1)), 0.0))
    index = ExTensor(np.broadcast_to(paths.states, (paths.x.shape[0], *paths.states.shape)))
    found = take_along_axis_backward(stack(shares), paths.x.shape, index, 2)
    return reshape(cast_like(found, log_probabilities), log_probabilities.shape)


@backward_of(ctc, formula=_ctc_formula)
def ctc_backward(
    grad_output: ExTensor,
    log_probabilities: ExTensor,
    targets: ExTensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> ExTensor:
    """Gradient of :func:`ctc`.   dx_(t, c) = -dl * P(a path is at c at time t, given the labels)

    It is that of the log-probabilities themselves: PyTorch's adds their exponential, which :func:`log_softmax_backward` takes
    off again. Where a loss is inf its gradient is nan, or 0 with ``zero_infinity``.

    Example:
        >>> import extensor as et
        >>> even = et.full((1, 1, 2), -0.6931472)
        >>> et.ctc_backward(et.tensor(1.0), even, et.tensor([[1]]), [1], [1]).tolist()
        [[[0.0, -1.0]]]
    """
    paths, rates = _rates(
        "ctc_backward",
        grad_output,
        log_probabilities,
        targets,
        input_lengths,
        target_lengths,
        blank,
        reduction,
    )
    given = as_floating("ctc_backward", "log_probabilities", log_probabilities)
    if not paths.x.size:
        return reshape(cast_like(0 * paths.x, given), given.shape)
    lost = 0.0 if as_bool("ctc_backward", "zero_infinity", zero_infinity) else math.nan
    hopeless = kernels.ctc_losses(paths.x, *paths.arrays) > -NEVER / 10
    found = kernels.ctc_shares(where(hopeless, lost, rates), paths.x, *paths.arrays)
    return reshape(cast_like(found, given), given.shape)


def _rates(
    function: str, grad_output: Any, x: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: Any, reduction: Any
) -> tuple[_Paths, ExTensor]:  # fmt: skip
    """The paths, and the gradient of the loss of each sequence in float64."""
    paths = _paths(function, x, targets, input_lengths, target_lengths, blank)
    wanted = as_reduction(function, reduction)
    n = paths.x.shape[1]
    grad = as_grad(function, grad_output, loss_shape((n,) if paths.batched else (), wanted))
    grad = reshape(astype(grad, float64), (n,) if wanted == "none" else (1,))
    if wanted == "mean":
        grad = grad / ExTensor(np.maximum(paths.counts, 1) * max(n, 1.0))
    return paths, broadcast_to(grad, (n,))
