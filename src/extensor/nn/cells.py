"""One step of a recurrent layer, as layers."""

from __future__ import annotations

import math
from typing import Any

from .. import init
from ..checks import as_bool
from ..dtypes import float32
from ..ops.creation import zeros
from ..ops.recurrent_gru import gru_cell
from ..ops.recurrent_lstm import lstm_cell
from ..ops.recurrent_rnn import rnn_cell
from ..random import Rng
from ..tensor import ExTensor
from ._random import rng_or_default
from ._settings import positive
from .module import Module
from .parameter import Parameter

__all__ = ["GRUCell", "LSTMCell", "RNNCell"]


class _Cell(Module):
    """Parameters uniform in ±1/sqrt(hidden_size); single examples as a batch of one."""

    _gates = 1

    def _set_up(self, input_size: Any, hidden_size: Any, bias: Any, dtype: Any, rng: Any) -> None:
        name = type(self).__name__
        self.input_size = positive(name, "input_size", input_size)
        self.hidden_size = positive(name, "hidden_size", hidden_size)
        source = rng_or_default(name, rng)
        rows, bound = self._gates * self.hidden_size, 1 / math.sqrt(self.hidden_size)

        def start(*shape: int) -> Parameter:
            return Parameter(init.uniform(shape, -bound, bound, rng=source, dtype=dtype))

        self.weight_ih = start(rows, self.input_size)
        self.weight_hh = start(rows, self.hidden_size)
        with_bias = as_bool(name, "bias", bias)
        self.bias_ih = start(rows) if with_bias else None
        self.bias_hh = start(rows) if with_bias else None

    def _checked(self, x: ExTensor, states: list[Any]) -> tuple[ExTensor, list[ExTensor], bool]:
        """The input and the states with an axis for the batch; states are 0 where there are none."""
        name = type(self).__name__
        if x.ndim not in (1, 2) or x.shape[-1] != self.input_size:
            raise ValueError(
                f"[{name}] x must be (N, {self.input_size}) or ({self.input_size},), got shape {x.shape}"
            )
        alone = x.ndim == 1
        x = x.reshape((1, *x.shape)) if alone else x
        shape = (x.shape[0], self.hidden_size)
        found = []
        for state in states:
            if state is None:
                found.append(zeros(shape, x.dtype))
            elif state.shape not in (shape, shape[1:] if alone else shape):
                raise ValueError(f"[{name}] a state has shape {state.shape} but must have {shape}")
            else:
                found.append(state.reshape(shape))
        return x, found, alone

    @property
    def _weights(self) -> tuple[Any, ...]:
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias_ih is not None else ", bias=False")


class RNNCell(_Cell):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh), see :func:`extensor.rnn_cell`.

    Args:
        input_size, hidden_size: the lengths of input and state.
        bias: whether there are biases.
        nonlinearity: ``"tanh"`` or ``"relu"``.
        dtype: of the parameters.
        rng: where the parameters start from: a seed or a generator; the default generator without it.

    Example:
        >>> import extensor as et
        >>> et.nn.RNNCell(3, 4, rng=0)(et.ones((2, 3))).shape
        (2, 4)
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", *, dtype: Any = float32,
        rng: Rng | None = None,
    ) -> None:  # fmt: skip
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"[RNNCell] nonlinearity must be 'tanh' or 'relu', got {nonlinearity!r}")
        self.nonlinearity = nonlinearity
        self._set_up(input_size, hidden_size, bias, dtype, rng)

    def forward(self, x: ExTensor, hx: ExTensor | None = None) -> ExTensor:
        x, (h,), alone = self._checked(x, [hx])
        w_ih, w_hh, b_ih, b_hh = self._weights
        y = rnn_cell(x, h, w_ih, w_hh, b_ih, b_hh, self.nonlinearity)
        return y[0] if alone else y


class GRUCell(_Cell):
    """One step of a gated recurrent unit, see :func:`extensor.gru_cell`; arguments as :class:`RNNCell`.

    Example:
        >>> import extensor as et
        >>> et.nn.GRUCell(3, 4, rng=0)(et.ones((2, 3)), et.zeros((2, 4))).shape
        (2, 4)
    """

    _gates = 3

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        *,
        dtype: Any = float32,
        rng: Rng | None = None,
    ) -> None:
        self._set_up(input_size, hidden_size, bias, dtype, rng)

    def forward(self, x: ExTensor, hx: ExTensor | None = None) -> ExTensor:
        x, (h,), alone = self._checked(x, [hx])
        y = gru_cell(x, h, *self._weights)
        return y[0] if alone else y


class LSTMCell(_Cell):
    """One step of a long short-term memory, see :func:`extensor.lstm_cell`; the state is a pair (h, c).

    Example:
        >>> import extensor as et
        >>> h, c = et.nn.LSTMCell(3, 4, rng=0)(et.ones((2, 3)))
        >>> h.shape, c.shape
        ((2, 4), (2, 4))
    """

    _gates = 4

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        *,
        dtype: Any = float32,
        rng: Rng | None = None,
    ) -> None:
        self._set_up(input_size, hidden_size, bias, dtype, rng)

    def forward(self, x: ExTensor, hx: tuple[ExTensor, ExTensor] | None = None) -> tuple[ExTensor, ExTensor]:
        x, (h, c), alone = self._checked(x, [None, None] if hx is None else list(hx))
        h, c = lstm_cell(x, h, c, *self._weights)[:2]
        return (h[0], c[0]) if alone else (h, c)
