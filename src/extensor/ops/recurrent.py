"""Recurrent cells, and whole sequences of their steps. Gates are in PyTorch's order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .. import kernels
from ..errors import describe
from ..graph import differentiable, fused
from ..tensor import ExTensor, Shape
from ._checks import as_bool, as_floating, as_grad, as_tensor, check_needs, differentiable_input
from ._several import as_grads
from .activation import sigmoid
from .casting import cast_like
from .joining import concatenate, split, stack

__all__ = [
    "LSTMCellResult", "LSTMGradients", "LSTMSequenceResult", "RecurrentGradients",
    "gru_cell", "gru_cell_backward", "gru_sequence", "gru_sequence_backward",
    "lstm_cell", "lstm_cell_backward", "lstm_sequence", "lstm_sequence_backward",
    "rnn_cell", "rnn_cell_backward", "rnn_sequence", "rnn_sequence_backward",
]  # fmt: skip

ALL6 = (True,) * 6
ALL7 = (True,) * 7


class RecurrentGradients(NamedTuple):
    """The gradients of a plain or a GRU cell; None where ``needs`` says that one is not wanted."""

    grad_x: ExTensor | None
    grad_h: ExTensor | None
    grad_w_ih: ExTensor | None
    grad_w_hh: ExTensor | None
    grad_b_ih: ExTensor | None
    grad_b_hh: ExTensor | None


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
    """What :func:`lstm_sequence` returns: the hidden state of every step, and the cell state after the last."""

    hidden: ExTensor
    c: ExTensor


class _Inputs:
    """The arguments of a cell or of a sequence, once they are sure to fit each other.

    Attributes:
        states: h, or h and c.
        biases: b_ih and b_hh, either None.
    """

    def __init__(
        self,
        function: str,
        gates: int,
        x: Any,
        states: dict[str, Any],
        w_ih: Any,
        w_hh: Any,
        biases: dict[str, Any],
        sequence: bool,
        check: Callable[[str, str, Any], ExTensor] = as_floating,
    ) -> None:
        self.x = x = check(function, "x", x)
        self.states = [check(function, name, value) for name, value in states.items()]
        self.w_ih, self.w_hh = check(function, "w_ih", w_ih), check(function, "w_hh", w_hh)
        self.biases = [
            None if value is None else check(function, name, value) for name, value in biases.items()
        ]
        h = self.states[0]
        if (x.ndim != 3) if sequence else (x.ndim not in (1, 2)):
            axes = "(T, N, I)" if sequence else "(N, I) or (I,)"
            raise ValueError(f"[{function}] x must have the axes {axes}, got shape {x.shape}")
        if sequence and not x.shape[0]:
            raise ValueError(f"[{function}] x of shape {x.shape} has no steps")
        if self.w_hh.ndim != 2 or self.w_hh.shape[0] != gates * self.w_hh.shape[1]:
            raise ValueError(
                f"[{function}] w_hh must have shape ({_times(gates)}H, H), got {self.w_hh.shape}"
            )
        hidden, batch = self.w_hh.shape[1], x.shape[1:-1] if sequence else x.shape[:-1]
        for name, state in zip(states, self.states):
            if state.shape != (*batch, hidden):
                raise ValueError(
                    f"[{function}] {name} has shape {state.shape} but must have shape {(*batch, hidden)} "
                    f"(x: {x.shape}, w_hh: {self.w_hh.shape})"
                )
        if self.w_ih.shape != (gates * hidden, x.shape[-1]):
            raise ValueError(
                f"[{function}] w_ih has shape {self.w_ih.shape} but must have shape {(gates * hidden, x.shape[-1])} "
                f"(x: {x.shape}, w_hh: {self.w_hh.shape})"
            )
        for name, bias in zip(biases, self.biases):
            if bias is not None and bias.shape != (gates * hidden,):
                raise ValueError(
                    f"[{function}] {name} has shape {bias.shape} but must have shape {(gates * hidden,)}"
                )
        self.output_shape: Shape = (*x.shape[:-1], hidden) if sequence else h.shape

    @property
    def arrays(self) -> tuple[Any, ...]:
        """x, the states, the weights and the biases, in the order of the kernels."""
        return (self.x, *self.states, self.w_ih, self.w_hh, *self.biases)

    def in_their_dtypes(self, grads: Any) -> list[ExTensor | None]:
        """Each gradient in the dtype of its input; those of biases nobody asked for, in that of the weights."""
        likes = [*self.arrays, self.w_ih, self.w_hh]
        return [cast_like(grad, like) for grad, like in zip(grads, likes)]


def _present(needs: tuple[bool, ...], b_ih: Any, b_hh: Any) -> tuple[bool, ...]:
    """An absent bias has no gradient."""
    return (*needs[:-2], needs[-2] and b_ih is not None, needs[-1] and b_hh is not None)


def _times(gates: int) -> str:
    return "" if gates == 1 else f"{gates}*"


def _nonlinearity(function: str, value: Any) -> str:
    if not isinstance(value, str) or value not in ("tanh", "relu"):
        raise ValueError(f"[{function}] nonlinearity must be 'tanh' or 'relu', got {describe(value)}")
    return value


def _as_output(function: str, output: Any, shape: Shape) -> ExTensor:
    found = as_floating(function, "output", output)
    if found.shape != shape:
        raise ValueError(
            f"[{function}] output has shape {found.shape} but the forward's result has shape {shape}"
        )
    return found


# What the formulas share. They walk through the steps as the kernels do, in differentiable functions.


def _plus(a: Any, *biases: Any) -> Any:
    for bias in biases:
        a = a if bias is None else a + bias
    return a


def _order(length: int, reverse: bool) -> list[int]:
    return list(range(length - 1, -1, -1) if reverse else range(length))


def _one_step(*tensors: Any) -> list[Any]:
    """A step, with or without the batch axis, as a sequence of one."""
    return [t.reshape((1, 1, *t.shape) if t.ndim == 1 else (1, *t.shape)) for t in tensors]


def _rows(x: Any) -> Any:
    return x.reshape((x.shape[0] * x.shape[1], x.shape[2]))


def _weight_gradient(grad: Any, x: Any) -> Any:
    return _rows(grad).T @ _rows(x)


def _in_order(parts: dict[int, Any]) -> Any:
    return stack([parts[t] for t in range(len(parts))])


def _finished(kind: Any, grads: list[Any], likes: list[Any], needs: tuple[bool, ...]) -> Any:
    """The gradients that are wanted, those of inputs in the shapes of the inputs."""
    shaped = [g.reshape(like.shape) for g, like in zip(grads, likes)] + grads[len(likes) :]
    return kind(*(g if need else None for g, need in zip(shaped, needs)))


def _tensors(*values: Any) -> list[Any]:
    return [as_tensor("formula", "argument", value) for value in values]


# The plain cell


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
    given = _Inputs("rnn_cell", 1, x, {"h": h}, w_ih, w_hh, {"b_ih": b_ih, "b_hh": b_hh}, False)
    return kernels.rnn_cell(*given.arrays, kind)


def _rnn_gradients(
    g: Any, x: Any, h: Any, w_ih: Any, w_hh: Any, hidden: Any, nonlinearity: str, reverse: bool
) -> list[Any]:
    """Gradients of a sequence from its hidden states, which have their own history."""
    carried, grad_a = h * 0.0, {}
    for t in _order(x.shape[0], not reverse):
        y = hidden[t]
        if nonlinearity == "tanh":
            slope = 1.0 - y * y
        else:
            slope = ExTensor(np.where(np.isnan(y._array), np.nan, y._array > 0).astype(y.dtype))
        grad_a[t] = (g[t] + carried) * slope
        carried = grad_a[t] @ w_hh
    grad = _in_order(grad_a)
    first = h.reshape((1, *h.shape))
    before = concatenate([hidden[1:], first] if reverse else [first, hidden[:-1]])
    bias = grad.sum((0, 1))
    return [grad @ w_ih, carried, _weight_gradient(grad, x), _weight_gradient(grad, before), bias, bias]


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
    g, x, h, w_ih, w_hh, output = _tensors(g, x, h, w_ih, w_hh, output)
    grad, inputs, state, hidden = _one_step(g, x, h, output)
    grads = _rnn_gradients(grad, inputs, state[0], w_ih, w_hh, hidden, nonlinearity, False)
    return _finished(RecurrentGradients, grads, [x, h, w_ih, w_hh], needs)


@fused(_rnn_cell_formula)
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
    given = _Inputs(name, 1, x, {"h": h}, w_ih, w_hh, {}, False, differentiable_input)
    grad, y = as_grad(name, grad_output, given.output_shape), _as_output(name, output, given.output_shape)
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
    given = _Inputs(name, 1, x, {"h": h}, w_ih, w_hh, {"b_ih": b_ih, "b_hh": b_hh}, True)
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
    g, x, h, w_ih, w_hh, output = _tensors(g, x, h, w_ih, w_hh, output)
    grads = _rnn_gradients(g, x, h, w_ih, w_hh, output, nonlinearity, reverse)
    return _finished(RecurrentGradients, grads, [x, h, w_ih, w_hh], needs)


@fused(_rnn_sequence_formula)
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
    given = _Inputs(name, 1, x, {"h": h}, w_ih, w_hh, {}, True, differentiable_input)
    grad, y = as_grad(name, grad_output, given.output_shape), _as_output(name, output, given.output_shape)
    grads = kernels.rnn_sequence_backward(
        grad, *given.arrays, y, kind, as_bool(name, "reverse", reverse), needs
    )
    return RecurrentGradients(*given.in_their_dtypes(grads))


# LSTM


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
    given = _Inputs("lstm_cell", 4, x, states, w_ih, w_hh, biases, False)
    return LSTMCellResult(*kernels.lstm_cell(*given.arrays))


def _lstm_gradients(
    g_hidden: Any, g_c: Any, x: Any, h: Any, c: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, reverse: bool
) -> list[Any]:
    """Forward and back through all steps."""
    before, gates, cells = {}, {}, {}
    for t in _order(x.shape[0], reverse):
        i, f, g, o = split(_plus(x[t] @ w_ih.T + h @ w_hh.T, b_ih, b_hh), 4, axis=-1)
        gates[t] = i, f, g, o = sigmoid(i), sigmoid(f), g.tanh(), sigmoid(o)
        before[t], cells[t] = h, c
        c = f * c + i * g
        h = o * c.tanh()
    carried_h, carried_c, grad_a = h * 0.0, g_c, {}
    for t in _order(x.shape[0], not reverse):
        i, f, g, o = gates[t]
        squashed = (f * cells[t] + i * g).tanh()
        d_h = g_hidden[t] + carried_h
        d_c = carried_c + d_h * o * (1.0 - squashed * squashed)
        slopes = [
            d_c * g * i * (1.0 - i), d_c * cells[t] * f * (1.0 - f), d_c * i * (1.0 - g * g), d_h * squashed * o * (1.0 - o),
        ]  # fmt: skip
        grad_a[t] = concatenate(slopes, axis=-1)
        carried_h, carried_c = grad_a[t] @ w_hh, d_c * f
    grad, states = _in_order(grad_a), _in_order(before)
    bias = grad.sum((0, 1))
    weights = [_weight_gradient(grad, x), _weight_gradient(grad, states)]
    return [grad @ w_ih, carried_h, carried_c, *weights, bias, bias]


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
    x, h, c, w_ih, w_hh = _tensors(x, h, c, w_ih, w_hh)
    g_h, g_c = as_grads("lstm_cell_backward", grad_output, [h.shape, c.shape], h.dtype)
    grad, grad_c, inputs, state, cell = _one_step(g_h, g_c, x, h, c)
    grads = _lstm_gradients(grad, grad_c[0], inputs, state[0], cell[0], w_ih, w_hh, b_ih, b_hh, False)
    return _finished(LSTMGradients, grads, [x, h, c, w_ih, w_hh], _present(needs, b_ih, b_hh))


@fused(_lstm_cell_formula)
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
    given = _Inputs(name, 4, x, states, w_ih, w_hh, biases, False, differentiable_input)
    shape = given.output_shape
    g_h, g_c = as_grads(name, grad_output, [shape, shape], given.x.dtype)
    grads = kernels.lstm_cell_backward(g_h, g_c, *given.arrays, _present(needs, b_ih, b_hh))
    return LSTMGradients(*given.in_their_dtypes(grads))


@differentiable
def lstm_sequence(
    x: ExTensor,
    h: ExTensor,
    c: ExTensor,
    w_ih: ExTensor,
    w_hh: ExTensor,
    b_ih: ExTensor | None = None,
    b_hh: ExTensor | None = None,
    reverse: bool = False,
) -> LSTMSequenceResult:
    """Every step of :func:`lstm_cell` over a sequence.   h_t, c_t = lstm_cell(x_t, h_(t-1), c_(t-1))

    Args:
        x: the inputs of T steps, of shape (T, N, I).
        h, c: hidden state and cell state before the first step, of shape (N, H).
        w_ih, w_hh, b_ih, b_hh: as in :func:`lstm_cell`.
        reverse: walk from the last step to the first.

    Returns:
        The hidden state of every step, of shape (T, N, H), the final one last (in reverse, first); and the cell
        state after the final step.

    Example:
        >>> import extensor as et
        >>> zero, weights = et.zeros((1, 1)), et.zeros((4, 1))
        >>> hidden, c = et.lstm_sequence(et.zeros((3, 1, 1)), zero, et.ones((1, 1)), weights, weights)
        >>> hidden.shape, c.tolist()
        ((3, 1, 1), [[0.125]])
    """
    states, biases = {"h": h, "c": c}, {"b_ih": b_ih, "b_hh": b_hh}
    given = _Inputs("lstm_sequence", 4, x, states, w_ih, w_hh, biases, True)
    return LSTMSequenceResult(
        *kernels.lstm_sequence(*given.arrays, as_bool("lstm_sequence", "reverse", reverse))
    )


def _lstm_sequence_formula(
    grad_output: Any,
    x: Any,
    h: Any,
    c: Any,
    w_ih: Any,
    w_hh: Any,
    hidden: Any,
    b_ih: Any = None,
    b_hh: Any = None,
    reverse: bool = False,
    *,
    needs: tuple[bool, ...] = ALL7,
) -> LSTMGradients:
    # The hidden states are computed again: those of the forward have no history of their own here.
    x, h, c, w_ih, w_hh = _tensors(x, h, c, w_ih, w_hh)
    shapes = [(*x.shape[:2], *h.shape[1:]), c.shape]
    g_hidden, g_c = as_grads("lstm_sequence_backward", grad_output, shapes, h.dtype)
    grads = _lstm_gradients(g_hidden, g_c, x, h, c, w_ih, w_hh, b_ih, b_hh, reverse)
    return _finished(LSTMGradients, grads, [x, h, c, w_ih, w_hh], _present(needs, b_ih, b_hh))


@fused(_lstm_sequence_formula)
def lstm_sequence_backward(
    grad_output: tuple[ExTensor | None, ...] | list[ExTensor | None],
    x: ExTensor,
    h: ExTensor,
    c: ExTensor,
    w_ih: ExTensor,
    w_hh: ExTensor,
    hidden: ExTensor,
    b_ih: ExTensor | None = None,
    b_hh: ExTensor | None = None,
    reverse: bool = False,
    *,
    needs: tuple[bool, ...] = ALL7,
) -> LSTMGradients:
    """Gradient of :func:`lstm_sequence`, from its hidden states: :func:`lstm_cell_backward` at every step, from the end.

    The gradient of a step's states is that of the output plus what the following step hands back.

    Args:
        grad_output: the gradients of the hidden states and of the final cell state; None for one that is not used.
        x, h, c, w_ih, w_hh, b_ih, b_hh, reverse: as given to :func:`lstm_sequence`.
        hidden: the hidden states that :func:`lstm_sequence` returned.
        needs: which of the seven gradients are wanted; the others are None.

    Example:
        >>> import extensor as et
        >>> x, zero, weights = et.zeros((3, 1, 1)), et.zeros((1, 1)), et.zeros((4, 1))
        >>> hidden, c = et.lstm_sequence(x, zero, zero, weights, weights)
        >>> et.lstm_sequence_backward((None, et.ones((1, 1))), x, zero, zero, weights, weights, hidden).grad_c.tolist()
        [[0.125]]
    """
    name = "lstm_sequence_backward"
    check_needs(name, needs, 7)
    states, biases = {"h": h, "c": c}, {"b_ih": b_ih, "b_hh": b_hh}
    given = _Inputs(name, 4, x, states, w_ih, w_hh, biases, True, differentiable_input)
    shapes = [given.output_shape, given.states[1].shape]
    g_hidden, g_c = as_grads(name, grad_output, shapes, given.x.dtype)
    saved = as_floating(name, "hidden", hidden)
    if saved.shape != given.output_shape:
        raise ValueError(
            f"[{name}] hidden has shape {saved.shape} but the forward's result has shape {given.output_shape}"
        )
    grads = kernels.lstm_sequence_backward(
        g_hidden, g_c, *given.arrays, saved, as_bool(name, "reverse", reverse), _present(needs, b_ih, b_hh)
    )
    return LSTMGradients(*given.in_their_dtypes(grads))


# GRU


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
    given = _Inputs("gru_cell", 3, x, {"h": h}, w_ih, w_hh, {"b_ih": b_ih, "b_hh": b_hh}, False)
    return kernels.gru_cell(*given.arrays)


def _gru_gradients(
    g: Any, x: Any, h: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, reverse: bool
) -> list[Any]:
    """Forward and back through all steps."""
    before, saved = {}, {}
    for t in _order(x.shape[0], reverse):
        a_r, a_z, a_n = split(_plus(x[t] @ w_ih.T, b_ih), 3, axis=-1)
        u_r, u_z, u_n = split(_plus(h @ w_hh.T, b_hh), 3, axis=-1)
        r, z = sigmoid(a_r + u_r), sigmoid(a_z + u_z)
        n = (a_n + r * u_n).tanh()
        before[t], saved[t] = h, (r, z, n, u_n)
        h = (1.0 - z) * n + z * h
    carried, grad_a, grad_u = h * 0.0, {}, {}
    for t in _order(x.shape[0], not reverse):
        r, z, n, u_n = saved[t]
        d_h = g[t] + carried
        d_n = d_h * (1.0 - z) * (1.0 - n * n)
        d_r = d_n * u_n * r * (1.0 - r)
        d_z = d_h * (before[t] - n) * z * (1.0 - z)
        grad_a[t] = concatenate([d_r, d_z, d_n], axis=-1)
        grad_u[t] = concatenate([d_r, d_z, d_n * r], axis=-1)
        carried = d_h * z + grad_u[t] @ w_hh
    of_a, of_u, states = _in_order(grad_a), _in_order(grad_u), _in_order(before)
    weights = [_weight_gradient(of_a, x), _weight_gradient(of_u, states)]
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
    g, x, h, w_ih, w_hh = _tensors(g, x, h, w_ih, w_hh)
    grad, inputs, state = _one_step(g, x, h)
    grads = _gru_gradients(grad, inputs, state[0], w_ih, w_hh, b_ih, b_hh, False)
    return _finished(RecurrentGradients, grads, [x, h, w_ih, w_hh], _present(needs, b_ih, b_hh))


@fused(_gru_cell_formula)
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
    given = _Inputs(name, 3, x, {"h": h}, w_ih, w_hh, biases, False, differentiable_input)
    grad = as_grad(name, grad_output, given.output_shape)
    grads = kernels.gru_cell_backward(grad, *given.arrays, _present(needs, b_ih, b_hh))
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
    given = _Inputs(name, 3, x, {"h": h}, w_ih, w_hh, {"b_ih": b_ih, "b_hh": b_hh}, True)
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
    g, x, h, w_ih, w_hh = _tensors(g, x, h, w_ih, w_hh)
    grads = _gru_gradients(g, x, h, w_ih, w_hh, b_ih, b_hh, reverse)
    return _finished(RecurrentGradients, grads, [x, h, w_ih, w_hh], _present(needs, b_ih, b_hh))


@fused(_gru_sequence_formula)
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
    given = _Inputs(name, 3, x, {"h": h}, w_ih, w_hh, biases, True, differentiable_input)
    grad, y = as_grad(name, grad_output, given.output_shape), _as_output(name, output, given.output_shape)
    grads = kernels.gru_sequence_backward(
        grad, *given.arrays, y, as_bool(name, "reverse", reverse), _present(needs, b_ih, b_hh)
    )
    return RecurrentGradients(*given.in_their_dtypes(grads))
