"""The plain recurrent cell, and whole sequences of its steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..checks import as_bool, as_grad, check_needs, differentiable_input
from ..errors import describe
from ..graph import backward_of, differentiable
from ..kernels.reference import recurrent_rnn as kernels
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
    tensors,
    weight_gradient,
)  # fmt: skip
from .joining import concatenate

__all__ = [
    "RecurrentGradients", "rnn_cell", "rnn_cell_backward", "rnn_sequence", "rnn_sequence_backward",
]  # fmt: skip


def _nonlinearity(function: str, value: Any) -> str:
    if not isinstance(value, str) or value not in ("tanh", "relu"):
        raise ValueError(f"[{function}] nonlinearity must be 'tanh' or 'relu', got {describe(value)}")
    return value


@differentiable
def rnn_cell(
    x: ExTensor,
    h: ExTensor,
    w_ih: ExTensor,
    w_hh: ExTensor,
    b_ih: ExTensor | None = None,
    b_hh: ExTensor | None = None,
    nonlinearity: str = "tanh",
) -> ExTensor:
    """One step of the plain recurrent cell.   h' = tanh(x w_ih^T + b_ih + h w_hh^T + b_hh)

    Args:
        x: the input, of shape (N, I) or (I,).
        h: the hidden state, of shape (N, H) or (H,).
        w_ih, w_hh: weights of shape (H, I) and (H, H).
        b_ih, b_hh: biases of shape (H,), or None.
        nonlinearity: "tanh" or "relu".

    Returns:
        The new hidden state, of the shape of h.

    Example:
        >>> import extensor as et
        >>> et.rnn_cell(et.ones(2), et.zeros(1), et.ones((1, 2)), et.ones((1, 1)), nonlinearity="relu").tolist()
        [2.0]
    """
    kind = _nonlinearity("rnn_cell", nonlinearity)
    given = Inputs("rnn_cell", 1, x, {"h": h}, w_ih, w_hh, {"b_ih": b_ih, "b_hh": b_hh}, False)
    return kernels.rnn_cell(*given.arrays, kind)


def _rnn_gradients(
    g: Any, x: Any, h: Any, w_ih: Any, w_hh: Any, hidden: Any, nonlinearity: str, reverse: bool
) -> list[Any]:
    """Gradients of a sequence from its hidden states, which have their own history."""
    carried, grad_a = h * 0.0, {}
    for t in order(x.shape[0], not reverse):
        y = hidden[t]
        if nonlinearity == "tanh":
            slope = 1.0 - y * y
        else:
            slope = ExTensor(np.where(np.isnan(y._array), np.nan, y._array > 0).astype(y.dtype))
        grad_a[t] = (g[t] + carried) * slope
        carried = grad_a[t] @ w_hh
    grad = in_order(grad_a)
    first = h.reshape((1, *h.shape))
    before = concatenate([hidden[1:], first] if reverse else [first, hidden[:-1]])
    bias = grad.sum((0, 1))
    return [grad @ w_ih, carried, weight_gradient(grad, x), weight_gradient(grad, before), bias, bias]


def _rnn_cell_formula(
    g: Any,
    x: Any,
    h: Any,
    w_ih: Any,
    w_hh: Any,
    output: Any,
    nonlinearity: str = "tanh",
    *,
    needs: tuple[bool, ...] = ALL6,
) -> RecurrentGradients:
    g, x, h, w_ih, w_hh, output = tensors(g, x, h, w_ih, w_hh, output)
    grad, inputs, state, hidden = one_step(g, x, h, output)
    grads = _rnn_gradients(grad, inputs, state[0], w_ih, w_hh, hidden, nonlinearity, False)
    return finished(RecurrentGradients, grads, [x, h, w_ih, w_hh], needs)


@backward_of(
    rnn_cell, wrt=("x", "h", "w_ih", "w_hh", "b_ih", "b_hh"), from_output=True, formula=_rnn_cell_formula
)
def rnn_cell_backward(
    grad_output: ExTensor,
    x: ExTensor,
    h: ExTensor,
    w_ih: ExTensor,
    w_hh: ExTensor,
    output: ExTensor,
    nonlinearity: str = "tanh",
    *,
    needs: tuple[bool, ...] = ALL6,
) -> RecurrentGradients:
    """Gradient of :func:`rnn_cell`, from its output.   da = dy (1 - y^2)

    dx = da w_ih,  dh = da w_hh,  dw_ih = da^T x,  dw_hh = da^T h,  db = sum da.

    Args:
        grad_output: the gradient of the new hidden state.
        x, h, w_ih, w_hh, nonlinearity: as given to :func:`rnn_cell`. The biases are not asked for; their gradients are
            returned all the same.
        output: what :func:`rnn_cell` returned.
        needs: which of the six gradients are wanted; the others are None.

    Example:
        >>> import extensor as et
        >>> x, h, w_ih, w_hh = et.ones(2), et.zeros(1), et.ones((1, 2)), et.ones((1, 1))
        >>> y = et.rnn_cell(x, h, w_ih, w_hh, nonlinearity="relu")
        >>> et.rnn_cell_backward(et.ones(1), x, h, w_ih, w_hh, y, nonlinearity="relu").grad_x.tolist()
        [1.0, 1.0]
    """
    name = "rnn_cell_backward"
    check_needs(name, needs, 6)
    kind = _nonlinearity(name, nonlinearity)
    given = Inputs(name, 1, x, {"h": h}, w_ih, w_hh, {}, False, differentiable_input)
    grad, y = (
        as_grad(name, grad_output, given.output_shape),
        as_saved(name, "output", output, given.output_shape),
    )
    grads = kernels.rnn_cell_backward(grad, *given.arrays, y, kind, needs)
    return RecurrentGradients(*given.in_their_dtypes(grads))


@differentiable
def rnn_sequence(
    x: ExTensor,
    h: ExTensor,
    w_ih: ExTensor,
    w_hh: ExTensor,
    b_ih: ExTensor | None = None,
    b_hh: ExTensor | None = None,
    nonlinearity: str = "tanh",
    reverse: bool = False,
) -> ExTensor:
    """Every step of :func:`rnn_cell` over a sequence.   h_t = rnn_cell(x_t, h_(t-1))

    Args:
        x: the inputs of T steps, of shape (T, N, I).
        h: the hidden state before the first step, of shape (N, H).
        w_ih, w_hh, b_ih, b_hh, nonlinearity: as in :func:`rnn_cell`.
        reverse: walk from the last step to the first.

    Returns:
        The hidden state of every step, of shape (T, N, H); the final one is the last (in reverse, the first).

    Example:
        >>> import extensor as et
        >>> x, one = et.ones((3, 1, 1)), et.ones((1, 1))
        >>> et.rnn_sequence(x, et.zeros((1, 1)), one, one, nonlinearity="relu").reshape((3,)).tolist()
        [1.0, 2.0, 3.0]
    """
    name, kind = "rnn_sequence", _nonlinearity("rnn_sequence", nonlinearity)
    given = Inputs(name, 1, x, {"h": h}, w_ih, w_hh, {"b_ih": b_ih, "b_hh": b_hh}, True)
    return kernels.rnn_sequence(*given.arrays, kind, as_bool(name, "reverse", reverse))


def _rnn_sequence_formula(
    g: Any,
    x: Any,
    h: Any,
    w_ih: Any,
    w_hh: Any,
    output: Any,
    nonlinearity: str = "tanh",
    reverse: bool = False,
    *,
    needs: tuple[bool, ...] = ALL6,
) -> RecurrentGradients:
    g, x, h, w_ih, w_hh, output = tensors(g, x, h, w_ih, w_hh, output)
    grads = _rnn_gradients(g, x, h, w_ih, w_hh, output, nonlinearity, reverse)
    return finished(RecurrentGradients, grads, [x, h, w_ih, w_hh], needs)


@backward_of(
    rnn_sequence,
    wrt=("x", "h", "w_ih", "w_hh", "b_ih", "b_hh"),
    from_output=True,
    formula=_rnn_sequence_formula,
)
def rnn_sequence_backward(
    grad_output: ExTensor,
    x: ExTensor,
    h: ExTensor,
    w_ih: ExTensor,
    w_hh: ExTensor,
    output: ExTensor,
    nonlinearity: str = "tanh",
    reverse: bool = False,
    *,
    needs: tuple[bool, ...] = ALL6,
) -> RecurrentGradients:
    """Gradient of :func:`rnn_sequence`, from its output: :func:`rnn_cell_backward` at every step, from the end.

    The gradient of a step's hidden state is that of the output plus what the following step hands back.

    Args:
        grad_output: the gradient of the hidden states of all steps.
        x, h, w_ih, w_hh, nonlinearity, reverse: as given to :func:`rnn_sequence`. The biases are not asked for; their
            gradients are returned all the same.
        output: what :func:`rnn_sequence` returned.
        needs: which of the six gradients are wanted; the others are None.

    Example:
        >>> import extensor as et
        >>> x, h, one = et.ones((3, 1, 1)), et.zeros((1, 1)), et.ones((1, 1))
        >>> y = et.rnn_sequence(x, h, one, one, nonlinearity="relu")
        >>> grads = et.rnn_sequence_backward(et.ones((3, 1, 1)), x, h, one, one, y, nonlinearity="relu")
        >>> grads.grad_x.reshape((3,)).tolist()
        [3.0, 2.0, 1.0]
    """
    name = "rnn_sequence_backward"
    check_needs(name, needs, 6)
    kind = _nonlinearity(name, nonlinearity)
    given = Inputs(name, 1, x, {"h": h}, w_ih, w_hh, {}, True, differentiable_input)
    grad, y = (
        as_grad(name, grad_output, given.output_shape),
        as_saved(name, "output", output, given.output_shape),
    )
    grads = kernels.rnn_sequence_backward(
        grad, *given.arrays, y, kind, as_bool(name, "reverse", reverse), needs
    )
    return RecurrentGradients(*given.in_their_dtypes(grads))
