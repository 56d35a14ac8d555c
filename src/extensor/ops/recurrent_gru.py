"""The gated recurrent unit, and whole sequences of its steps. Gates are in PyTorch's order."""

from __future__ import annotations

from typing import Any

from ..checks import as_bool, as_grad, check_needs, differentiable_input
from ..graph import backward_of, differentiable
from ..kernels.reference import recurrent_gru as kernels
from ..tensor import ExTensor
from ._recurrent import (
    ALL6,
    Inputs,
    RecurrentGradients,
    as_saved,
    finished,
    in_order,
    one_step,
    order,
    plus,
    present,
    tensors,
    weight_gradient,
)  # fmt: skip
from .activation import sigmoid
from .joining import concatenate, split

__all__ = ["gru_cell", "gru_cell_backward", "gru_sequence", "gru_sequence_backward"]


@differentiable
def gru_cell(
    x: ExTensor,
    h: ExTensor,
    w_ih: ExTensor,
    w_hh: ExTensor,
    b_ih: ExTensor | None = None,
    b_hh: ExTensor | None = None,
) -> ExTensor:
    """One step of the GRU.   h' = (1 - z) n + z h

    with a = x w_ih^T + b_ih, u = h w_hh^T + b_hh, r = sigmoid(a_r + u_r), z = sigmoid(a_z + u_z), n = tanh(a_n + r u_n).

    Args:
        x: the input, of shape (N, I) or (I,).
        h: the hidden state, of shape (N, H) or (H,).
        w_ih, w_hh: weights of shape (3*H, I) and (3*H, H); the gates in the order reset, update, new.
        b_ih, b_hh: biases of shape (3*H,), or None.

    Returns:
        The new hidden state, of the shape of h.

    Example:
        >>> import extensor as et
        >>> et.gru_cell(et.zeros((1, 1)), et.ones((1, 1)), et.zeros((3, 1)), et.zeros((3, 1))).tolist()
        [[0.5]]
    """
    given = Inputs("gru_cell", 3, x, {"h": h}, w_ih, w_hh, {"b_ih": b_ih, "b_hh": b_hh}, False)
    return kernels.gru_cell(*given.arrays)


def _gru_gradients(
    g: Any, x: Any, h: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, reverse: bool
) -> list[Any]:
    """Forward and back through all steps."""
    before, saved = {}, {}
    for t in order(x.shape[0], reverse):
        a_r, a_z, a_n = split(plus(x[t] @ w_ih.T, b_ih), 3, axis=-1)
        u_r, u_z, u_n = split(plus(h @ w_hh.T, b_hh), 3, axis=-1)
        r, z = sigmoid(a_r + u_r), sigmoid(a_z + u_z)
        n = (a_n + r * u_n).tanh()
        before[t], saved[t] = h, (r, z, n, u_n)
        h = (1.0 - z) * n + z * h
    carried, grad_a, grad_u = h * 0.0, {}, {}
    for t in order(x.shape[0], not reverse):
        r, z, n, u_n = saved[t]
        d_h = g[t] + carried
        d_n = d_h * (1.0 - z) * (1.0 - n * n)
        d_r = d_n * u_n * r * (1.0 - r)
        d_z = d_h * (before[t] - n) * z * (1.0 - z)
        grad_a[t] = concatenate([d_r, d_z, d_n], axis=-1)
        grad_u[t] = concatenate([d_r, d_z, d_n * r], axis=-1)
        carried = d_h * z + grad_u[t] @ w_hh
    of_a, of_u, states = in_order(grad_a), in_order(grad_u), in_order(before)
    weights = [weight_gradient(of_a, x), weight_gradient(of_u, states)]
    return [of_a @ w_ih, carried, *weights, of_a.sum((0, 1)), of_u.sum((0, 1))]


def _gru_cell_formula(
    g: Any,
    x: Any,
    h: Any,
    w_ih: Any,
    w_hh: Any,
    b_ih: Any = None,
    b_hh: Any = None,
    *,
    needs: tuple[bool, ...] = ALL6,
) -> RecurrentGradients:
    g, x, h, w_ih, w_hh = tensors(g, x, h, w_ih, w_hh)
    grad, inputs, state = one_step(g, x, h)
    grads = _gru_gradients(grad, inputs, state[0], w_ih, w_hh, b_ih, b_hh, False)
    return finished(RecurrentGradients, grads, [x, h, w_ih, w_hh], present(needs, b_ih, b_hh))


@backward_of(gru_cell, wrt=("x", "h", "w_ih", "w_hh", "b_ih", "b_hh"), formula=_gru_cell_formula)
def gru_cell_backward(
    grad_output: ExTensor,
    x: ExTensor,
    h: ExTensor,
    w_ih: ExTensor,
    w_hh: ExTensor,
    b_ih: ExTensor | None = None,
    b_hh: ExTensor | None = None,
    *,
    needs: tuple[bool, ...] = ALL6,
) -> RecurrentGradients:
    """Gradient of :func:`gru_cell`.   dn = dh' (1 - z),  dz = dh' (h - n),  dr = dn (1 - n^2) u_n

    Each times the slope of its gate makes da; du is the same with da_n r in the place of da_n.
    dx = da w_ih,  dh = dh' z + du w_hh,  dw_ih = da^T x,  dw_hh = du^T h,  db_ih = sum da,  db_hh = sum du.
    The gates are computed again.

    Args:
        grad_output: the gradient of the new hidden state.
        x, h, w_ih, w_hh, b_ih, b_hh: as given to :func:`gru_cell`. An absent bias has no gradient.
        needs: which of the six gradients are wanted; the others are None.

    Example:
        >>> import extensor as et
        >>> x, h, weights = et.zeros((1, 1)), et.ones((1, 1)), et.zeros((3, 1))
        >>> et.gru_cell_backward(et.ones((1, 1)), x, h, weights, weights).grad_h.tolist()
        [[0.5]]
    """
    name = "gru_cell_backward"
    check_needs(name, needs, 6)
    biases = {"b_ih": b_ih, "b_hh": b_hh}
    given = Inputs(name, 3, x, {"h": h}, w_ih, w_hh, biases, False, differentiable_input)
    grad = as_grad(name, grad_output, given.output_shape)
    grads = kernels.gru_cell_backward(grad, *given.arrays, present(needs, b_ih, b_hh))
    return RecurrentGradients(*given.in_their_dtypes(grads))


@differentiable
def gru_sequence(
    x: ExTensor,
    h: ExTensor,
    w_ih: ExTensor,
    w_hh: ExTensor,
    b_ih: ExTensor | None = None,
    b_hh: ExTensor | None = None,
    reverse: bool = False,
) -> ExTensor:
    """Every step of :func:`gru_cell` over a sequence.   h_t = gru_cell(x_t, h_(t-1))

    Args:
        x: the inputs of T steps, of shape (T, N, I).
        h: the hidden state before the first step, of shape (N, H).
        w_ih, w_hh, b_ih, b_hh: as in :func:`gru_cell`.
        reverse: walk from the last step to the first.

    Returns:
        The hidden state of every step, of shape (T, N, H); the final one is the last (in reverse, the first).

    Example:
        >>> import extensor as et
        >>> weights = et.zeros((3, 1))
        >>> et.gru_sequence(et.zeros((2, 1, 1)), et.ones((1, 1)), weights, weights).reshape((2,)).tolist()
        [0.5, 0.25]
    """
    name = "gru_sequence"
    given = Inputs(name, 3, x, {"h": h}, w_ih, w_hh, {"b_ih": b_ih, "b_hh": b_hh}, True)
    return kernels.gru_sequence(*given.arrays, as_bool(name, "reverse", reverse))


def _gru_sequence_formula(
    g: Any,
    x: Any,
    h: Any,
    w_ih: Any,
    w_hh: Any,
    output: Any,
    b_ih: Any = None,
    b_hh: Any = None,
    reverse: bool = False,
    *,
    needs: tuple[bool, ...] = ALL6,
) -> RecurrentGradients:
    g, x, h, w_ih, w_hh = tensors(g, x, h, w_ih, w_hh)
    grads = _gru_gradients(g, x, h, w_ih, w_hh, b_ih, b_hh, reverse)
    return finished(RecurrentGradients, grads, [x, h, w_ih, w_hh], present(needs, b_ih, b_hh))


@backward_of(
    gru_sequence,
    wrt=("x", "h", "w_ih", "w_hh", "b_ih", "b_hh"),
    from_output=True,
    formula=_gru_sequence_formula,
)
def gru_sequence_backward(
    grad_output: ExTensor,
    x: ExTensor,
    h: ExTensor,
    w_ih: ExTensor,
    w_hh: ExTensor,
    output: ExTensor,
    b_ih: ExTensor | None = None,
    b_hh: ExTensor | None = None,
    reverse: bool = False,
    *,
    needs: tuple[bool, ...] = ALL6,
) -> RecurrentGradients:
    """Gradient of :func:`gru_sequence`, from its output: :func:`gru_cell_backward` at every step, from the end.

    The gradient of a step's hidden state is that of the output plus what the following step hands back.

    Args:
        grad_output: the gradient of the hidden states of all steps.
        x, h, w_ih, w_hh, b_ih, b_hh, reverse: as given to :func:`gru_sequence`.
        output: what :func:`gru_sequence` returned.
        needs: which of the six gradients are wanted; the others are None.

    Example:
        >>> import extensor as et
        >>> x, h, weights = et.zeros((2, 1, 1)), et.ones((1, 1)), et.zeros((3, 1))
        >>> y = et.gru_sequence(x, h, weights, weights)
        >>> et.gru_sequence_backward(et.ones((2, 1, 1)), x, h, weights, weights, y).grad_h.tolist()
        [[0.75]]
    """
    name = "gru_sequence_backward"
    check_needs(name, needs, 6)
    biases = {"b_ih": b_ih, "b_hh": b_hh}
    given = Inputs(name, 3, x, {"h": h}, w_ih, w_hh, biases, True, differentiable_input)
    grad, y = (
        as_grad(name, grad_output, given.output_shape),
        as_saved(name, "output", output, given.output_shape),
    )
    grads = kernels.gru_sequence_backward(
        grad, *given.arrays, y, as_bool(name, "reverse", reverse), present(needs, b_ih, b_hh)
    )
    return RecurrentGradients(*given.in_their_dtypes(grads))
