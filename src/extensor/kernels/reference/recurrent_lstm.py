"""The LSTM: c' = f c + i g,  h' = o tanh(c').

The order of the gates is input, forget, cell, output. A sequence also returns the cell states and the gates of all steps, so
that its backward need not compute them again. Where w_ih is None, x is what x w_ih^T would be.
"""

from __future__ import annotations

import numpy as np

from ..dispatch import kernel
from .activation import logistic
from .normalization import common_dtype, wide
from .recurrent_steps import (
    as_sequence,
    as_state,
    finished,
    plus,
    shapes_of,
    states_before,
    steps,
    weight_gradient,
)

__all__ = ["lstm_cell", "lstm_cell_backward", "lstm_sequence", "lstm_sequence_backward"]


def lstm_steps(x, h, c, w_ih, w_hh, b_ih, b_hh, reverse):
    """The hidden states, the cell states and the gates of all steps."""
    x, h, c, w_ih, w_hh, b_ih, b_hh = wide(x, h, c, w_ih, w_hh, b_ih, b_hh)
    a = plus(plus(x if w_ih is None else x @ w_ih.T, b_ih), b_hh)
    hidden, cells, gates = (
        np.empty((*x.shape[:2], h.shape[-1])),
        np.empty((*x.shape[:2], h.shape[-1])),
        np.empty_like(a),
    )
    for t in steps(len(x), reverse):
        i, f, g, o = np.split(a[t] + h @ w_hh.T, 4, -1)
        i, f, g, o = logistic(i), logistic(f), np.tanh(g), logistic(o)
        gates[t] = np.concatenate([i, f, g, o], -1)
        c = cells[t] = f * c + i * g
        h = hidden[t] = o * np.tanh(c)
    return hidden, cells, gates


def lstm_steps_backward(g_hidden, g_cells, g_gates, x, h, c, w_ih, w_hh, hidden, cells, gates, reverse):
    g_hidden, g_cells, g_gates, x, h, c, w_ih, w_hh, hidden, cells, gates = wide(
        g_hidden, g_cells, g_gates, x, h, c, w_ih, w_hh, hidden, cells, gates
    )
    i, f, g, o = np.split(gates, 4, -1)
    before, cells_before, squashed = (
        states_before(hidden, h, reverse),
        states_before(cells, c, reverse),
        np.tanh(cells),
    )
    grad_a = np.zeros_like(gates) if g_gates is None else g_gates.copy()
    d_i, d_f, d_g, d_o = np.split(grad_a, 4, -1)  # views
    carried_h, carried_c = np.zeros_like(h), np.zeros_like(c)
    for t in steps(len(x), not reverse):
        d_h = g_hidden[t] + carried_h
        d_o[t] += d_h * squashed[t]
        d_c = plus(carried_c + d_h * o[t] * (1 - squashed[t] ** 2), None if g_cells is None else g_cells[t])
        d_i[t] += d_c * g[t]
        d_f[t] += d_c * cells_before[t]
        d_g[t] += d_c * i[t]
        d_i[t] *= i[t] * (1 - i[t])
        d_f[t] *= f[t] * (1 - f[t])
        d_g[t] *= 1 - g[t] ** 2
        d_o[t] *= o[t] * (1 - o[t])
        carried_h, carried_c = grad_a[t] @ w_hh, d_c * f[t]
    bias = grad_a.sum((0, 1))
    of_x = (grad_a, None) if w_ih is None else (grad_a @ w_ih, weight_gradient(grad_a, x))
    return of_x[0], carried_h, carried_c, of_x[1], weight_gradient(grad_a, before), bias, bias


@kernel
def lstm_cell(x, h, c, w_ih, w_hh, b_ih, b_hh):
    """(h, c)"""
    dtype = common_dtype(x, h, c, w_ih, w_hh, b_ih, b_hh)
    hidden, cells, _ = lstm_steps(*as_sequence(x), as_state(h), as_state(c), w_ih, w_hh, b_ih, b_hh, False)
    return hidden.reshape(h.shape).astype(dtype), cells.reshape(c.shape).astype(dtype)


@kernel
def lstm_cell_backward(g_h, g_c, x, h, c, w_ih, w_hh, b_ih, b_hh, needs):
    grad, grad_c, inputs = as_sequence(g_h, g_c, x)
    forward = lstm_steps(inputs, as_state(h), as_state(c), w_ih, w_hh, b_ih, b_hh, False)
    grads = lstm_steps_backward(
        grad, grad_c, None, inputs, as_state(h), as_state(c), w_ih, w_hh, *forward, False
    )
    shapes = shapes_of(x, h, c, w_ih, w_hh, gates=len(w_ih))
    return finished(grads, needs, shapes, common_dtype(g_h, g_c, x, h, c, w_ih, w_hh, b_ih, b_hh))


@kernel
def lstm_sequence(x, h, c, w_ih, w_hh, b_ih, b_hh, reverse):
    """(hidden states, cell states, gates) of all steps"""
    dtype = common_dtype(x, h, c, w_ih, w_hh, b_ih, b_hh)
    return tuple(a.astype(dtype) for a in lstm_steps(x, h, c, w_ih, w_hh, b_ih, b_hh, reverse))


@kernel
def lstm_sequence_backward(
    g_hidden, g_cells, g_gates, x, h, c, w_ih, w_hh, hidden, cells, gates, reverse, needs
):
    """The gradients of cells and gates may be None."""
    grads = lstm_steps_backward(
        g_hidden, g_cells, g_gates, x, h, c, w_ih, w_hh, hidden, cells, gates, reverse
    )
    shapes = shapes_of(x, h, c, w_hh if w_ih is None else w_ih, w_hh, gates=len(w_hh))
    return finished(grads, needs, shapes, common_dtype(g_hidden, x, h, c, w_ih, w_hh, hidden, cells, gates))
