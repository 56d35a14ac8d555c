"""The plain recurrent cell: h' = tanh(w_ih x + b_ih + w_hh h + b_hh), or relu."""

from __future__ import annotations

import numpy as np

from ..dispatch import kernel
from ..namespace import common_dtype, xp
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

__all__ = ["rnn_cell", "rnn_cell_backward", "rnn_sequence", "rnn_sequence_backward"]


def rnn_steps(x, h, w_ih, w_hh, b_ih, b_hh, nonlinearity, reverse):
    x, h, w_ih, w_hh, b_ih, b_hh = wide(x, h, w_ih, w_hh, b_ih, b_hh)
    a = plus(plus(x @ w_ih.T, b_ih), b_hh)
    hidden = {}
    for t in steps(len(x), reverse):
        inner = a[t] + h @ w_hh.T
        h = hidden[t] = xp.tanh(inner) if nonlinearity == "tanh" else xp.maximum(inner, 0)
    return in_order(hidden, h)


def rnn_steps_backward(g, x, h, w_ih, w_hh, hidden, nonlinearity, reverse):
    g, x, h, w_ih, w_hh, hidden = wide(g, x, h, w_ih, w_hh, hidden)
    slope = 1 - hidden * hidden if nonlinearity == "tanh" else xp.where(xp.isnan(hidden), np.nan, hidden > 0)
    of_a, carried = {}, xp.zeros_like(h)
    for t in steps(len(x), not reverse):
        of_a[t] = (g[t] + carried) * slope[t]
        carried = of_a[t] @ w_hh
    grad_a = in_order(of_a, h)
    bias = grad_a.sum((0, 1))
    before = states_before(hidden, h, reverse)
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
