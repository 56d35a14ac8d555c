"""The GRU: h' = (1 - z) n + z h,  n = tanh(a_n + r u_n) with a = w_ih x + b_ih, u = w_hh h + b_hh.

The order of the gates is reset, update, new. The backward of a sequence takes the hidden states of the forward, so that the
gates of all steps come from two matrix products.
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

__all__ = ["gru_cell", "gru_cell_backward", "gru_sequence", "gru_sequence_backward"]


def gru_gates(a, u):
    """reset, update and new gate."""
    (a_r, a_z, a_n), (u_r, u_z, u_n) = xp.split(a, 3, -1), xp.split(u, 3, -1)
    r = logistic(a_r + u_r)
    return r, logistic(a_z + u_z), xp.tanh(a_n + r * u_n)


def gru_steps(x, h, w_ih, w_hh, b_ih, b_hh, reverse):
    x, h, w_ih, w_hh, b_ih, b_hh = wide(x, h, w_ih, w_hh, b_ih, b_hh)
    a = plus(x @ w_ih.T, b_ih)
    hidden = {}
    for t in steps(len(x), reverse):
        _, z, n = gru_gates(a[t], plus(h @ w_hh.T, b_hh))
        h = hidden[t] = (1 - z) * n + z * h
    return in_order(hidden, h)


def gru_steps_backward(g, x, before, w_ih, w_hh, b_ih, b_hh, reverse):
    g, x, before, w_ih, w_hh, b_ih, b_hh = wide(g, x, before, w_ih, w_hh, b_ih, b_hh)
    u = plus(before @ w_hh.T, b_hh)
    r, z, n = gru_gates(plus(x @ w_ih.T, b_ih), u)
    u_n = xp.split(u, 3, -1)[2]
    of_a, of_u = {}, {}
    carried = xp.zeros_like(before[0])
    for t in steps(len(x), not reverse):
        d_h = g[t] + carried
        a_n = d_h * (1 - z[t]) * (1 - n[t] ** 2)
        a_r = a_n * u_n[t] * r[t] * (1 - r[t])
        a_z = d_h * (before[t] - n[t]) * z[t] * (1 - z[t])
        of_a[t] = xp.concatenate([a_r, a_z, a_n], -1)
        of_u[t] = xp.concatenate([a_r, a_z, a_n * r[t]], -1)
        carried = d_h * z[t] + of_u[t] @ w_hh
    grad_a, grad_u = in_order(of_a, u[0]), in_order(of_u, u[0])
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
    before = states_before(hidden, h, reverse)
    grads = gru_steps_backward(g, x, before, w_ih, w_hh, b_ih, b_hh, reverse)
    shapes = shapes_of(x, h, w_ih, w_hh, gates=len(w_ih))
    return finished(grads, needs, shapes, common_dtype(g, x, h, w_ih, w_hh, b_ih, b_hh))
