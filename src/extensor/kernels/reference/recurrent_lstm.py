"""The LSTM: c' = f c + i g,  h' = o tanh(c').

The order of the gates is input, forget, cell, output. A sequence also returns the cell states and the gates of all steps, so
that its backward need not compute them again. Where w_ih is None, x is what x w_ih^T would be.
"""

from __future__ import annotations

from ..dispatch import kernel
from ..namespace import common_dtype, xp
from .activation import logistic
from .normalization import wide
from .recurrent_steps import (
    as_sequence,
    as_state,
    finished,
    in_order,
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
    hidden, cells, gates = {}, {}, {}
    for t in steps(len(x), reverse):
        i, f, g, o = xp.split(a[t] + h @ w_hh.T, 4, -1)
        i, f, g, o = logistic(i), logistic(f), xp.tanh(g), logistic(o)
        gates[t] = xp.concatenate([i, f, g, o], -1)
        c = cells[t] = f * c + i * g
        h = hidden[t] = o * xp.tanh(c)
    return in_order(hidden, h), in_order(cells, c), in_order(gates, xp.concatenate([h] * 4, -1))


def lstm_steps_backward(g_hidden, g_cells, g_gates, x, h, c, w_ih, w_hh, hidden, cells, gates, reverse):
    g_hidden, g_cells, g_gates, x, h, c, w_ih, w_hh, hidden, cells, gates = wide(
        g_hidden, g_cells, g_gates, x, h, c, w_ih, w_hh, hidden, cells, gates
    )
    i, f, g, o = xp.split(gates, 4, -1)
    before, cells_before, squashed = (
        states_before(hidden, h, reverse),
        states_before(cells, c, reverse),
        xp.tanh(cells),
    )
    g_gates = xp.zeros_like(gates) if g_gates is None else g_gates
    of_a = {}
    carried_h, carried_c = xp.zeros_like(h), xp.zeros_like(c)
    for t in steps(len(x), not reverse):
        d_h = g_hidden[t] + carried_h
        d_c = plus(carried_c + d_h * o[t] * (1 - squashed[t] ** 2), None if g_cells is None else g_cells[t])
        d_i, d_f, d_g, d_o = xp.split(g_gates[t], 4, -1)
        d_i = (d_i + d_c * g[t]) * (i[t] * (1 - i[t]))
        d_f = (d_f + d_c * cells_before[t]) * (f[t] * (1 - f[t]))
        d_g = (d_g + d_c * i[t]) * (1 - g[t] ** 2)
        d_o = (d_o + d_h * squashed[t]) * (o[t] * (1 - o[t]))
        of_a[t] = xp.concatenate([d_i, d_f, d_g, d_o], -1)
        carried_h, carried_c = of_a[t] @ w_hh, d_c * f[t]
    grad_a = in_order(of_a, xp.concatenate([h] * 4, -1))
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
