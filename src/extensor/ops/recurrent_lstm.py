"""Long short-term memory: the cell, and whole sequences of its steps. Gates are in PyTorch's order."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..checks import as_bool, check_needs, differentiable_input
from ..graph import backward_of, differentiable
from ..kernels.reference import recurrent_lstm as kernels
from ..tensor import ExTensor
from ._recurrent import (
    Inputs,
    as_saved,
    finished,
    in_order,
    one_step,
    order,
    plus,
    present,
    tensors,
    weight_gradient,
)
from ._several import as_grads, given_grads
from .activation import sigmoid
from .joining import concatenate, split

__all__ = [
    "LSTMCellResult", "LSTMGradients", "LSTMSequenceResult",
    "lstm_cell", "lstm_cell_backward", "lstm_sequence", "lstm_sequence_backward",
]  # fmt: skip

ALL7 = (True,) * 7


class LSTMGradients(NamedTuple):
    """The gradients of an LSTM cell; None where ``needs`` says that one is not wanted."""

    grad_x: ExTensor | None
    grad_h: ExTensor | None
    grad_c: ExTensor | None
    grad_w_ih: ExTensor | None
    grad_w_hh: ExTensor | None
    grad_b_ih: ExTensor | None
    grad_b_hh: ExTensor | None


class LSTMCellResult(NamedTuple):
    """What :func:`lstm_cell` returns: the new hidden state and the new cell state."""

    h: ExTensor
    c: ExTensor


class LSTMSequenceResult(NamedTuple):
    """What :func:`lstm_sequence` returns: the hidden state, the cell state and the gates of every step."""

    hidden: ExTensor
    cells: ExTensor
    gates: ExTensor


@differentiable
def lstm_cell(
    x: ExTensor,
    h: ExTensor,
    c: ExTensor,
    w_ih: ExTensor,
    w_hh: ExTensor,
    b_ih: ExTensor | None = None,
    b_hh: ExTensor | None = None,
) -> LSTMCellResult:
    """One step of the LSTM.   c' = f c + i g,  h' = o tanh(c')

    with (i, f, g, o) = x w_ih^T + b_ih + h w_hh^T + b_hh, the sigmoid of i, f and o and the tanh of g.

    Args:
        x: the input, of shape (N, I) or (I,).
        h, c: hidden state and cell state, of shape (N, H) or (H,).
        w_ih, w_hh: weights of shape (4*H, I) and (4*H, H); the gates in the order input, forget, cell, output.
        b_ih, b_hh: biases of shape (4*H,), or None.

    Returns:
        The new hidden state and the new cell state.

    Example:
        >>> import extensor as et
        >>> zero = et.zeros((1, 1))
        >>> et.lstm_cell(zero, zero, et.ones((1, 1)), et.zeros((4, 1)), et.zeros((4, 1))).c.tolist()
        [[0.5]]
    """
    states, biases = {"h": h, "c": c}, {"b_ih": b_ih, "b_hh": b_hh}
    given = Inputs("lstm_cell", 4, x, states, w_ih, w_hh, biases, False)
    return LSTMCellResult(*kernels.lstm_cell(*given.arrays))


def _lstm_gradients(
    grads: list[Any], x: Any, h: Any, c: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, reverse: bool
) -> list[Any]:
    """Forward and back through all steps; ``grads`` are those of hidden states, cell states and gates, or None."""
    before, gates, cells = {}, {}, {}
    for t in order(x.shape[0], reverse):
        a = x[t] if w_ih is None else x[t] @ w_ih.T
        i, f, g, o = split(plus(a + h @ w_hh.T, b_ih, b_hh), 4, axis=-1)
        gates[t] = i, f, g, o = sigmoid(i), sigmoid(f), g.tanh(), sigmoid(o)
        before[t], cells[t] = h, c
        c = f * c + i * g
        h = o * c.tanh()
    carried_h, carried_c, grad_a = h * 0.0, c * 0.0, {}
    for t in order(x.shape[0], not reverse):
        i, f, g, o = gates[t]
        squashed = (f * cells[t] + i * g).tanh()
        of_hidden, of_cells, of_gates = (None if grad is None else grad[t] for grad in grads)
        d_h = plus(carried_h, of_hidden)
        d_c = plus(carried_c + d_h * o * (1.0 - squashed * squashed), of_cells)
        open_grad = plus(concatenate([d_c * g, d_c * cells[t], d_c * i, d_h * squashed], axis=-1), of_gates)
        slopes = concatenate([i * (1.0 - i), f * (1.0 - f), 1.0 - g * g, o * (1.0 - o)], axis=-1)
        grad_a[t] = open_grad * slopes
        carried_h, carried_c = grad_a[t] @ w_hh, d_c * f
    grad, states = in_order(grad_a), in_order(before)
    bias = grad.sum((0, 1))
    grad_x, grad_w_ih = (grad, None) if w_ih is None else (grad @ w_ih, weight_gradient(grad, x))
    return [grad_x, carried_h, carried_c, grad_w_ih, weight_gradient(grad, states), bias, bias]


def _lstm_cell_formula(
    grad_output: Any,
    x: Any,
    h: Any,
    c: Any,
    w_ih: Any,
    w_hh: Any,
    b_ih: Any = None,
    b_hh: Any = None,
    *,
    needs: tuple[bool, ...] = ALL7,
) -> LSTMGradients:
    x, h, c, w_ih, w_hh = tensors(x, h, c, w_ih, w_hh)
    g_h, g_c = as_grads("lstm_cell_backward", grad_output, [h.shape, c.shape], h.dtype)
    grad, grad_c, inputs, state, cell = one_step(g_h, g_c, x, h, c)
    grads = _lstm_gradients([grad, grad_c, None], inputs, state[0], cell[0], w_ih, w_hh, b_ih, b_hh, False)
    return finished(LSTMGradients, grads, [x, h, c, w_ih, w_hh], present(needs, b_ih, b_hh))


@backward_of(
    lstm_cell,
    wrt=("x", "h", "c", "w_ih", "w_hh", "b_ih", "b_hh"),
    takes_none=True,
    formula=_lstm_cell_formula,
)
def lstm_cell_backward(
    grad_output: tuple[ExTensor | None, ...] | list[ExTensor | None],
    x: ExTensor,
    h: ExTensor,
    c: ExTensor,
    w_ih: ExTensor,
    w_hh: ExTensor,
    b_ih: ExTensor | None = None,
    b_hh: ExTensor | None = None,
    *,
    needs: tuple[bool, ...] = ALL7,
) -> LSTMGradients:
    """Gradient of :func:`lstm_cell`.   dc' += dh' o (1 - tanh(c')^2),  dc = dc' f

    di = dc' g,  df = dc' c,  dg = dc' i,  do = dh' tanh(c');  with each times the slope of its gate they make da, and
    dx = da w_ih,  dh = da w_hh,  dw_ih = da^T x,  dw_hh = da^T h,  db = sum da. The gates are computed again.

    Args:
        grad_output: the gradients of the new hidden state and of the new cell state; None for one that is not used.
        x, h, c, w_ih, w_hh, b_ih, b_hh: as given to :func:`lstm_cell`. An absent bias has no gradient.
        needs: which of the seven gradients are wanted; the others are None.

    Example:
        >>> import extensor as et
        >>> zero, grad = et.zeros((1, 1)), et.ones((1, 1))
        >>> grads = et.lstm_cell_backward((None, grad), zero, zero, zero, et.zeros((4, 1)), et.zeros((4, 1)), et.zeros(4))
        >>> grads.grad_c.tolist(), grads.grad_b_ih.tolist()
        ([[0.5]], [0.0, 0.0, 0.5, 0.0])
    """
    name = "lstm_cell_backward"
    check_needs(name, needs, 7)
    states, biases = {"h": h, "c": c}, {"b_ih": b_ih, "b_hh": b_hh}
    given = Inputs(name, 4, x, states, w_ih, w_hh, biases, False, differentiable_input)
    shape = given.output_shape
    g_h, g_c = as_grads(name, grad_output, [shape, shape], given.x.dtype)
    grads = kernels.lstm_cell_backward(g_h, g_c, *given.arrays, present(needs, b_ih, b_hh))
    return LSTMGradients(*given.in_their_dtypes(grads))


@differentiable
def lstm_sequence(
    x: ExTensor,
    h: ExTensor,
    c: ExTensor,
    w_ih: ExTensor | None,
    w_hh: ExTensor,
    b_ih: ExTensor | None = None,
    b_hh: ExTensor | None = None,
    reverse: bool = False,
) -> LSTMSequenceResult:
    """Every step of :func:`lstm_cell` over a sequence.   h_t, c_t = lstm_cell(x_t, h_(t-1), c_(t-1))

    Args:
        x: the inputs of T steps, of shape (T, N, I).
        h, c: hidden state and cell state before the first step, of shape (N, H).
        w_ih, w_hh, b_ih, b_hh: as in :func:`lstm_cell`. With None for ``w_ih``, ``x`` is what x w_ih^T would be, of shape
            (T, N, 4*H).
        reverse: walk from the last step to the first.

    Returns:
        The hidden state and the cell state of every step, each of shape (T, N, H), the final ones last (in reverse, first);
        and the gates i, f, g, o of every step, side by side, of shape (T, N, 4*H).

    Example:
        >>> import extensor as et
        >>> zero, weights = et.zeros((1, 1)), et.zeros((4, 1))
        >>> hidden, cells, gates = et.lstm_sequence(et.zeros((3, 1, 1)), zero, et.ones((1, 1)), weights, weights)
        >>> hidden.shape, cells.reshape((3,)).tolist(), gates[0].tolist()
        ((3, 1, 1), [0.5, 0.25, 0.125], [[0.5, 0.5, 0.0, 0.5]])
    """
    states, biases = {"h": h, "c": c}, {"b_ih": b_ih, "b_hh": b_hh}
    given = Inputs("lstm_sequence", 4, x, states, w_ih, w_hh, biases, True, may_lack_w_ih=True)
    return LSTMSequenceResult(
        *kernels.lstm_sequence(*given.arrays, as_bool("lstm_sequence", "reverse", reverse))
    )


def _present(needs: tuple[bool, ...], w_ih: Any, b_ih: Any, b_hh: Any) -> tuple[bool, ...]:
    return present((*needs[:3], needs[3] and w_ih is not None, *needs[4:]), b_ih, b_hh)


def _sequence_shapes(x: Any, h: Any) -> list[Any]:
    """The shapes of the three results."""
    return [(*x.shape[:2], h.shape[1])] * 2 + [(*x.shape[:2], 4 * h.shape[1])]


def _lstm_sequence_formula(
    grad_output: Any,
    x: Any,
    h: Any,
    c: Any,
    w_ih: Any,
    w_hh: Any,
    hidden: Any,
    cells: Any,
    gates: Any,
    b_ih: Any = None,
    b_hh: Any = None,
    reverse: bool = False,
    *,
    needs: tuple[bool, ...] = ALL7,
) -> LSTMGradients:
    # What the forward returned is computed again: it has no history of its own here.
    x, h, c, w_hh = tensors(x, h, c, w_hh)
    w_ih = None if w_ih is None else tensors(w_ih)[0]
    given = given_grads("lstm_sequence_backward", grad_output, _sequence_shapes(x, h))
    grads = _lstm_gradients(given, x, h, c, w_ih, w_hh, b_ih, b_hh, reverse)
    return finished(LSTMGradients, grads, [x, h, c], _present(needs, w_ih, b_ih, b_hh))


@backward_of(
    lstm_sequence,
    wrt=("x", "h", "c", "w_ih", "w_hh", "b_ih", "b_hh"),
    from_results=("hidden", "cells", "gates"),
    takes_none=True,
    formula=_lstm_sequence_formula,
)
def lstm_sequence_backward(
    grad_output: tuple[ExTensor | None, ...] | list[ExTensor | None],
    x: ExTensor,
    h: ExTensor,
    c: ExTensor,
    w_ih: ExTensor | None,
    w_hh: ExTensor,
    hidden: ExTensor,
    cells: ExTensor,
    gates: ExTensor,
    b_ih: ExTensor | None = None,
    b_hh: ExTensor | None = None,
    reverse: bool = False,
    *,
    needs: tuple[bool, ...] = ALL7,
) -> LSTMGradients:
    """Gradient of :func:`lstm_sequence`, from its results: :func:`lstm_cell_backward` at every step, from the end.

    The gradient of a step's states is that of the result plus what the following step hands back.

    Args:
        grad_output: the gradients of the hidden states, the cell states and the gates; None for one that is not used.
        x, h, c, w_ih, w_hh, b_ih, b_hh, reverse: as given to :func:`lstm_sequence`. What is absent has no gradient.
        hidden, cells, gates: what :func:`lstm_sequence` returned.
        needs: which of the seven gradients are wanted; the others are None.

    Example:
        >>> import extensor as et
        >>> x, zero, weights = et.zeros((3, 1, 1)), et.zeros((1, 1)), et.zeros((4, 1))
        >>> results = et.lstm_sequence(x, zero, zero, weights, weights)
        >>> grad = et.tensor([0.0, 0.0, 1.0]).reshape((3, 1, 1))
        >>> et.lstm_sequence_backward((None, grad, None), x, zero, zero, weights, weights, *results).grad_c.tolist()
        [[0.125]]
    """
    name = "lstm_sequence_backward"
    check_needs(name, needs, 7)
    states, biases = {"h": h, "c": c}, {"b_ih": b_ih, "b_hh": b_hh}
    given = Inputs(name, 4, x, states, w_ih, w_hh, biases, True, differentiable_input, may_lack_w_ih=True)
    shapes = _sequence_shapes(given.x, given.states[0])
    g_hidden, *others = given_grads(name, grad_output, shapes)
    if g_hidden is None:
        g_hidden = ExTensor(np.zeros(shapes[0], given.x.dtype))
    results = {"hidden": hidden, "cells": cells, "gates": gates}
    saved = [as_saved(name, key, value, shape) for (key, value), shape in zip(results.items(), shapes)]
    inputs, backwards = given.arrays[:5], as_bool(name, "reverse", reverse)
    grads = kernels.lstm_sequence_backward(
        g_hidden, *others, *inputs, *saved, backwards, _present(needs, w_ih, b_ih, b_hh)
    )
    return LSTMGradients(*given.in_their_dtypes(grads))
