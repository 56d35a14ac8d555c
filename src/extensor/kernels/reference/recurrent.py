"""Recurrent cells, one step or a whole sequence at a time. All of it in float64, rounded once.

Shapes: x (T, N, I), h and c (N, H), w_ih (gates * H, I), w_hh (gates * H, H), biases (gates * H,) or None;
hidden (T, N, H). The order of the gates is input, forget, cell, output for the LSTM and reset, update, new for
the GRU. A single step is a sequence of one; there x, h and c may lack the axis N.

``reverse`` walks from the last step to the first. The backward kernels of sequences take the hidden states of
the forward, so that the gates of all steps come from two matrix products; only what really depends on the
next step runs in a loop. They return None where a gradient is not needed.
"""

from __future__ import annotations

import math

import numpy as np

from ..dispatch import kernel
from .activation import logistic
from .normalization import common_dtype, wide

__all__ = [
    "gru_cell", "gru_cell_backward", "gru_sequence", "gru_sequence_backward",
    "lstm_cell", "lstm_cell_backward", "lstm_sequence", "lstm_sequence_backward",
    "rnn_cell", "rnn_cell_backward", "rnn_sequence", "rnn_sequence_backward",
]  # fmt: skip


def plus(a, bias):
    return a if bias is None else a + bias


def steps(length, reverse):
    return range(length - 1, -1, -1) if reverse else range(length)


def hidden_before(hidden, h, reverse):
    """The hidden state each step started from."""
    return np.concatenate([hidden[1:], h[None]] if reverse else [h[None], hidden[:-1]])


def as_sequence(*arrays):
    """One step, with or without the axis N, as a sequence of one step."""
    return [as_state(a)[None] for a in arrays]


def as_state(h):
    return h.reshape(math.prod(h.shape[:-1]), h.shape[-1])


def weight_gradient(grad, x):
    """sum over steps and batch of grad x^T."""
    return np.einsum("tni,tnj->ij", grad, x, optimize=True)


def finished(grads, needs, shapes, dtype):
    """The gradients that are needed, in their shapes."""
    return tuple(
        grad.reshape(shape).astype(dtype) if need else None for grad, need, shape in zip(grads, needs, shapes)
    )


def shapes_of(*inputs, gates):
    """The shapes of the gradients: those of the inputs, then of the two biases."""
    return [*(a.shape for a in inputs), (gates,), (gates,)]


# The plain cell: h' = tanh(w_ih x + b_ih + w_hh h + b_hh), or relu


def rnn_steps(x, h, w_ih, w_hh, b_ih, b_hh, nonlinearity, reverse):
    x, h, w_ih, w_hh, b_ih, b_hh = wide(x, h, w_ih, w_hh, b_ih, b_hh)
    a = plus(plus(x @ w_ih.T, b_ih), b_hh)
    hidden = np.empty((*x.shape[:2], h.shape[-1]))
    for t in steps(len(x), reverse):
        inner = a[t] + h @ w_hh.T
        h = hidden[t] = np.tanh(inner) if nonlinearity == "tanh" else np.maximum(inner, 0)
    return hidden


def rnn_steps_backward(g, x, h, w_ih, w_hh, hidden, nonlinearity, reverse):
    g, x, h, w_ih, w_hh, hidden = wide(g, x, h, w_ih, w_hh, hidden)
    slope = 1 - hidden * hidden if nonlinearity == "tanh" else np.where(np.isnan(hidden), np.nan, hidden > 0)
    grad_a, carried = np.empty_like(hidden), np.zeros_like(h)
    for t in steps(len(x), not reverse):
        grad_a[t] = (g[t] + carried) * slope[t]
        carried = grad_a[t] @ w_hh
    bias = grad_a.sum((0, 1))
    before = hidden_before(hidden, h, reverse)
    return grad_a @ w_ih, carried, weight_gradient(grad_a, x), weight_gradient(grad_a, before), bias, bias


@kernel
def rnn_cell(x, h, w_ih, w_hh, b_ih, b_hh, nonlinearity):
    hidden = rnn_steps(*as_sequence(x), as_state(h), w_ih, w_hh, b_ih, b_hh, nonlinearity, False)
    return hidden.reshape(h.shape).astype(common_dtype(x, h, w_ih, w_hh, b_ih, b_hh))


@kernel
def rnn_cell_backward(g, x, h, w_ih, w_hh, y, nonlinearity, needs):
    grad, inputs, hidden = as_sequence(g, x, y)
    grads = rnn_steps_backward(grad, inputs, as_state(h), w_ih, w_hh, hidden, nonlinearity, False)
    shapes = shapes_of(x, h, w_ih, w_hh, gates=len(w_ih))
    return finished(grads, needs, shapes, common_dtype(g, x, h, w_ih, w_hh))


@kernel
def rnn_sequence(x, h, w_ih, w_hh, b_ih, b_hh, nonlinearity, reverse):
    hidden = rnn_steps(x, h, w_ih, w_hh, b_ih, b_hh, nonlinearity, reverse)
    return hidden.astype(common_dtype(x, h, w_ih, w_hh, b_ih, b_hh))


@kernel
def rnn_sequence_backward(g, x, h, w_ih, w_hh, hidden, nonlinearity, reverse, needs):
    grads = rnn_steps_backward(g, x, h, w_ih, w_hh, hidden, nonlinearity, reverse)
    shapes = shapes_of(x, h, w_ih, w_hh, gates=len(w_ih))
    return finished(grads, needs, shapes, common_dtype(g, x, h, w_ih, w_hh))


# LSTM: c' = f c + i g,  h' = o tanh(c')


def lstm_gates(a):
    """input, forget, cell and output gate."""
    i, f, g, o = np.split(a, 4, -1)
    return logistic(i), logistic(f), np.tanh(g), logistic(o)


def lstm_steps(x, h, c, w_ih, w_hh, b_ih, b_hh, reverse):
    x, h, c, w_ih, w_hh, b_ih, b_hh = wide(x, h, c, w_ih, w_hh, b_ih, b_hh)
    a = plus(plus(x @ w_ih.T, b_ih), b_hh)
    hidden = np.empty((*x.shape[:2], h.shape[-1]))
    for t in steps(len(x), reverse):
        i, f, g, o = lstm_gates(a[t] + h @ w_hh.T)
        c = f * c + i * g
        h = hidden[t] = o * np.tanh(c)
    return hidden, c


def lstm_steps_backward(g_hidden, g_c, x, before, c, w_ih, w_hh, b_ih, b_hh, reverse):
    g_hidden, g_c, x, before, c, w_ih, w_hh, b_ih, b_hh = wide(
        g_hidden, g_c, x, before, c, w_ih, w_hh, b_ih, b_hh
    )
    i, f, g, o = lstm_gates(plus(plus(x @ w_ih.T, b_ih), b_hh) + before @ w_hh.T)
    cells_before, cells = np.empty_like(i), np.empty_like(i)
    for t in steps(len(x), reverse):
        cells_before[t] = c
        c = cells[t] = f[t] * c + i[t] * g[t]
    squashed = np.tanh(cells)
    grad_a = np.empty((*i.shape[:2], 4 * i.shape[2]))
    d_i, d_f, d_g, d_o = np.split(grad_a, 4, -1)  # views
    carried_h, carried_c = np.zeros_like(c), g_c
    for t in steps(len(x), not reverse):
        d_h = g_hidden[t] + carried_h
        d_c = carried_c + d_h * o[t] * (1 - squashed[t] ** 2)
        d_i[t] = d_c * g[t] * i[t] * (1 - i[t])
        d_f[t] = d_c * cells_before[t] * f[t] * (1 - f[t])
        d_g[t] = d_c * i[t] * (1 - g[t] ** 2)
        d_o[t] = d_h * squashed[t] * o[t] * (1 - o[t])
        carried_h, carried_c = grad_a[t] @ w_hh, d_c * f[t]
    bias = grad_a.sum((0, 1))
    return (
        grad_a @ w_ih, carried_h, carried_c, weight_gradient(grad_a, x), weight_gradient(grad_a, before), bias, bias,
    )  # fmt: skip


@kernel
def lstm_cell(x, h, c, w_ih, w_hh, b_ih, b_hh):
    """(h, c)"""
    dtype = common_dtype(x, h, c, w_ih, w_hh, b_ih, b_hh)
    hidden, cell = lstm_steps(*as_sequence(x), as_state(h), as_state(c), w_ih, w_hh, b_ih, b_hh, False)
    return hidden.reshape(h.shape).astype(dtype), cell.reshape(c.shape).astype(dtype)


@kernel
def lstm_cell_backward(g_h, g_c, x, h, c, w_ih, w_hh, b_ih, b_hh, needs):
    grad, inputs, before = as_sequence(g_h, x, h)
    grads = lstm_steps_backward(
        grad, as_state(g_c), inputs, before, as_state(c), w_ih, w_hh, b_ih, b_hh, False
    )
    shapes = shapes_of(x, h, c, w_ih, w_hh, gates=len(w_ih))
    return finished(grads, needs, shapes, common_dtype(g_h, g_c, x, h, c, w_ih, w_hh, b_ih, b_hh))


@kernel
def lstm_sequence(x, h, c, w_ih, w_hh, b_ih, b_hh, reverse):
    """(hidden states of all steps, cell state after the last step)"""
    dtype = common_dtype(x, h, c, w_ih, w_hh, b_ih, b_hh)
    hidden, cell = lstm_steps(x, h, c, w_ih, w_hh, b_ih, b_hh, reverse)
    return hidden.astype(dtype), cell.astype(dtype)


@kernel
def lstm_sequence_backward(g_hidden, g_c, x, h, c, w_ih, w_hh, b_ih, b_hh, hidden, reverse, needs):
    before = hidden_before(hidden, h, reverse)
    grads = lstm_steps_backward(g_hidden, g_c, x, before, c, w_ih, w_hh, b_ih, b_hh, reverse)
    shapes = shapes_of(x, h, c, w_ih, w_hh, gates=len(w_ih))
    return finished(grads, needs, shapes, common_dtype(g_hidden, g_c, x, h, c, w_ih, w_hh, b_ih, b_hh))


# GRU: h' = (1 - z) n + z h,  n = tanh(a_n + r u_n) with a = w_ih x + b_ih, u = w_hh h + b_hh


def gru_gates(a, u):
    """reset, update and new gate."""
    (a_r, a_z, a_n), (u_r, u_z, u_n) = np.split(a, 3, -1), np.split(u, 3, -1)
    r = logistic(a_r + u_r)
    return r, logistic(a_z + u_z), np.tanh(a_n + r * u_n)


def gru_steps(x, h, w_ih, w_hh, b_ih, b_hh, reverse):
    x, h, w_ih, w_hh, b_ih, b_hh = wide(x, h, w_ih, w_hh, b_ih, b_hh)
    a = plus(x @ w_ih.T, b_ih)
    hidden = np.empty((*x.shape[:2], h.shape[-1]))
    for t in steps(len(x), reverse):
        _, z, n = gru_gates(a[t], plus(h @ w_hh.T, b_hh))
        h = hidden[t] = (1 - z) * n + z * h
    return hidden


def gru_steps_backward(g, x, before, w_ih, w_hh, b_ih, b_hh, reverse):
    g, x, before, w_ih, w_hh, b_ih, b_hh = wide(g, x, before, w_ih, w_hh, b_ih, b_hh)
    u = plus(before @ w_hh.T, b_hh)
    r, z, n = gru_gates(plus(x @ w_ih.T, b_ih), u)
    u_n = np.split(u, 3, -1)[2]
    grad_a, grad_u = np.empty_like(u), np.empty_like(u)
    (a_r, a_z, a_n), (u_r, u_z, u_n_grad) = np.split(grad_a, 3, -1), np.split(grad_u, 3, -1)  # views
    carried = np.zeros_like(z[0])
    for t in steps(len(x), not reverse):
        d_h = g[t] + carried
        a_n[t] = d_h * (1 - z[t]) * (1 - n[t] ** 2)
        a_r[t] = u_r[t] = a_n[t] * u_n[t] * r[t] * (1 - r[t])
        a_z[t] = u_z[t] = d_h * (before[t] - n[t]) * z[t] * (1 - z[t])
        u_n_grad[t] = a_n[t] * r[t]
        carried = d_h * z[t] + grad_u[t] @ w_hh
    return (
        grad_a @ w_ih, carried, weight_gradient(grad_a, x), weight_gradient(grad_u, before),
        grad_a.sum((0, 1)), grad_u.sum((0, 1)),
    )  # fmt: skip


@kernel
def gru_cell(x, h, w_ih, w_hh, b_ih, b_hh):
    hidden = gru_steps(*as_sequence(x), as_state(h), w_ih, w_hh, b_ih, b_hh, False)
    return hidden.reshape(h.shape).astype(common_dtype(x, h, w_ih, w_hh, b_ih, b_hh))


@kernel
def gru_cell_backward(g, x, h, w_ih, w_hh, b_ih, b_hh, needs):
    grad, inputs, before = as_sequence(g, x, h)
    grads = gru_steps_backward(grad, inputs, before, w_ih, w_hh, b_ih, b_hh, False)
    shapes = shapes_of(x, h, w_ih, w_hh, gates=len(w_ih))
    return finished(grads, needs, shapes, common_dtype(g, x, h, w_ih, w_hh, b_ih, b_hh))


@kernel
def gru_sequence(x, h, w_ih, w_hh, b_ih, b_hh, reverse):
    hidden = gru_steps(x, h, w_ih, w_hh, b_ih, b_hh, reverse)
    return hidden.astype(common_dtype(x, h, w_ih, w_hh, b_ih, b_hh))


@kernel
def gru_sequence_backward(g, x, h, w_ih, w_hh, b_ih, b_hh, hidden, reverse, needs):
    before = hidden_before(hidden, h, reverse)
    grads = gru_steps_backward(g, x, before, w_ih, w_hh, b_ih, b_hh, reverse)
    shapes = shapes_of(x, h, w_ih, w_hh, gates=len(w_ih))
    return finished(grads, needs, shapes, common_dtype(g, x, h, w_ih, w_hh, b_ih, b_hh))
