"""Recurrent layers over whole sequences."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np

from .. import init
from ..checks import as_bool
from ..dtypes import float32
from ..errors import describe
from ..ops.creation import zeros
from ..ops.dropout import dropout as drop
from ..ops.embedding import embedding
from ..ops.indexing import take_along_axis
from ..ops.joining import concatenate
from ..ops.linear import linear
from ..ops.recurrent_gru import gru_sequence
from ..ops.recurrent_lstm import lstm_sequence
from ..ops.recurrent_rnn import rnn_sequence
from ..random import Rng
from ..tensor import ExTensor
from ._random import rng_or_default
from ._settings import positive, probability
from .module import Module
from .packing import PackedSequence, pack_padded_sequence, pad_packed_sequence
from .parameter import Parameter

__all__ = ["GRU", "LSTM", "RNN"]

# The weights of x (None where x already is their product) and of h, and their biases.
Weights: TypeAlias = tuple[Any, Parameter, Parameter | None, Parameter | None]


class _Recurrent(Module):
    """What the recurrent layers share: parameters by layer and direction, layouts, and the walk over layers."""

    _gates = 1
    _states = 1

    def _set_up(
        self, input_size: Any, hidden_size: Any, num_layers: Any, bias: Any, batch_first: Any, dropout: Any,
        bidirectional: Any, dtype: Any, rng: Any,
    ) -> None:  # fmt: skip
        name = type(self).__name__
        self.input_size = positive(name, "input_size", input_size)
        self.hidden_size = positive(name, "hidden_size", hidden_size)
        self.num_layers = positive(name, "num_layers", num_layers)
        self.batch_first = as_bool(name, "batch_first", batch_first)
        self.dropout = probability(name, "dropout", dropout)
        self.bidirectional = as_bool(name, "bidirectional", bidirectional)
        self._rng = None if rng is None else rng_or_default(name, rng)
        source = rng_or_default(name, self._rng)
        directions = 2 if self.bidirectional else 1
        rows, bound = self._gates * self.hidden_size, 1 / math.sqrt(self.hidden_size)
        self._names = []
        for layer in range(self.num_layers):
            inputs = self.hidden_size * directions if layer else self.input_size
            for direction in range(directions):
                ending = f"_l{layer}" + ("_reverse" if direction else "")
                shapes: dict[str, tuple[int, ...]] = {
                    "weight_ih": (rows, inputs),
                    "weight_hh": (rows, self.hidden_size),
                    "bias_ih": (rows,),
                    "bias_hh": (rows,),
                }
                for kind, shape in shapes.items():
                    absent = kind.startswith("bias") and not as_bool(name, "bias", bias)
                    start = None if absent else init.uniform(shape, -bound, bound, rng=source, dtype=dtype)
                    setattr(self, kind + ending, start if start is None else Parameter(start))
                self._names.append(tuple(kind + ending for kind in shapes))

    def _sequence(self, x: ExTensor, states: list[ExTensor], weights: Weights, reverse: bool) -> Any:
        """One direction of one layer: all hidden states, and the final states, (1, N, hidden_size)."""
        raise NotImplementedError

    def _start(self, batch: int, dtype: Any, hx: Any) -> list[list[ExTensor]]:
        """The states before the first step of each walk, (N, hidden_size)."""
        name = type(self).__name__
        shape = (len(self._names), batch, self.hidden_size)
        if hx is None:
            return [[zeros(shape[1:], dtype=dtype)] * self._states] * len(self._names)
        given = [hx] if self._states == 1 else list(hx)
        if len(given) != self._states or not all(isinstance(h, ExTensor) for h in given):
            wanted = "a tensor" if self._states == 1 else "a pair of tensors (h, c)"
            raise TypeError(f"[{name}] hx must be {wanted}, got {describe(hx)}")
        for h in given:
            if h.shape not in (shape, (shape[0], shape[2])):
                raise ValueError(
                    f"[{name}] a state has shape {h.shape} but must have (layers * directions, batch, hidden_size) = {shape}"
                )
        given = [h.reshape(shape) for h in given]
        return [[h[i] for h in given] for i in range(len(self._names))]

    def _packed(self, packed: PackedSequence, hx: Any) -> tuple[PackedSequence, Any]:
        """Sequences of different lengths, in the order they are packed in; each has its last step where it ends."""
        x, lengths = pad_packed_sequence(PackedSequence(packed.data, packed.batch_sizes))
        order, back = packed.sorted_indices, packed.unsorted_indices
        if hx is not None and order is not None:
            hx = hx.take(order, 1) if self._states == 1 else tuple(h.take(order, 1) for h in hx)
        y, last = self._layers(x, self._start(x.shape[1], x.dtype, hx), lengths=lengths.numpy())
        if back is not None:
            last = [h.take(back, 1) for h in last]
        found = pack_padded_sequence(y, lengths)
        return PackedSequence(found.data, found.batch_sizes, order, back), last[
            0
        ] if self._states == 1 else tuple(last)

    def _every_state(self, x: ExTensor, states: list[ExTensor], weights: Weights) -> list[ExTensor]:
        """Of one walk forward, the states after every step, each (T, N, hidden_size)."""
        raise NotImplementedError

    def _of_lengths(
        self, x: ExTensor, states: list[ExTensor], weights: Weights, reverse: bool, lengths: np.ndarray
    ) -> Any:
        """:meth:`_sequence` of sequences of different lengths: a walk back starts where a sequence ends."""
        steps = np.arange(x.shape[0])[:, None]
        turned = ExTensor(np.where(steps < lengths, lengths - 1 - steps, steps)[..., None])
        found = self._every_state(take_along_axis(x, turned, 0) if reverse else x, states, weights)
        ends = ExTensor(np.broadcast_to((lengths - 1)[None, :, None], (1, lengths.size, self.hidden_size)))
        last = [take_along_axis(s, ends, 0) for s in found]
        return take_along_axis(found[0], turned, 0) if reverse else found[0], last

    def forward(self, x: Any, hx: Any = None) -> tuple[Any, Any]:
        """All outputs of the last layer, and the final states of all layers.

        Args:
            x: (T, N, input_size), or (N, T, input_size) with ``batch_first``, or (T, input_size); or a
                :class:`PackedSequence`, whose outputs are packed too.
            hx: the states before the first step, (layers * directions, N, hidden_size); 0 without them.
        """
        name = type(self).__name__
        if isinstance(x, PackedSequence):
            return self._packed(x, hx)
        if x.ndim not in (2, 3) or x.shape[-1] != self.input_size:
            raise ValueError(
                f"[{name}] x must have 2 or 3 axes, the last of length {self.input_size}, got shape {x.shape}"
            )
        batched = x.ndim == 3
        if not batched:
            x = x.reshape((x.shape[0], 1, x.shape[1]))
        elif self.batch_first:
            x = x.swapaxes(0, 1)
        x, last = self._layers(x, self._start(x.shape[1], x.dtype, hx))
        if not batched:
            x, last = x[:, 0], [h[:, 0] for h in last]
        elif self.batch_first:
            x = x.swapaxes(0, 1)
        return x, last[0] if self._states == 1 else tuple(last)

    def _layers(
        self,
        x: ExTensor,
        start: list[list[ExTensor]],
        table: ExTensor | None = None,
        lengths: np.ndarray | None = None,
    ) -> tuple[ExTensor, list[ExTensor]]:
        """All outputs of the last layer and the final states, for x (T, N, input_size), or (T, N) of rows of ``table``."""
        name = type(self).__name__
        final: list[list[ExTensor]] = []
        directions = 2 if self.bidirectional else 1
        for layer in range(self.num_layers):
            outputs = []
            for direction in range(directions):
                i = layer * directions + direction
                w_ih, w_hh, b_ih, b_hh = (getattr(self, n) for n in self._names[i])
                if table is not None and layer == 0:
                    inputs, w_ih = embedding(x, linear(table, w_ih)), None
                else:
                    inputs = x
                weights, reverse = (w_ih, w_hh, b_ih, b_hh), direction == 1
                if lengths is None:
                    hidden, states = self._sequence(inputs, start[i], weights, reverse)
                else:
                    hidden, states = self._of_lengths(inputs, start[i], weights, reverse, lengths)
                outputs.append(hidden)
                final.append(states)
            x = outputs[0] if directions == 1 else concatenate(outputs, -1)
            if self.training and self.dropout and layer < self.num_layers - 1:
                x = drop(x, self.dropout, rng_or_default(name, self._rng)).output
        return x, final[0] if len(final) == 1 else [concatenate(states) for states in zip(*final)]

    def extra_repr(self) -> str:
        shown = f"{self.input_size}, {self.hidden_size}"
        if self.num_layers > 1:
            shown += f", num_layers={self.num_layers}"
        if self.bidirectional:
            shown += ", bidirectional=True"
        return shown + (", batch_first=True" if self.batch_first else "")


def _last(reverse: bool) -> slice:
    """Where the last step of a walk stands."""
    return slice(0, 1) if reverse else slice(-1, None)


class RNN(_Recurrent):
    """The plain recurrent layer.   h_t = tanh(w_ih x_t + b_ih + w_hh h_(t-1) + b_hh)

    Args:
        input_size, hidden_size: the lengths of inputs and hidden states.
        num_layers: how many layers stand on each other.
        nonlinearity: ``"tanh"`` or ``"relu"``.
        bias: whether there are biases.
        batch_first: whether sequences are (N, T, input_size) instead of (T, N, input_size).
        dropout: the probability of dropout between layers.
        bidirectional: whether a second walk goes from the end to the beginning.
        dtype: of the parameters.
        rng: where the parameters start from, and the dropout: a seed or a generator; the default generator without it.

    Attributes:
        weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0: the parameters of layer 0, uniform in ±1/sqrt(hidden_size);
            those of the walk back end in ``_reverse``.

    Example:
        >>> import extensor as et
        >>> output, h = et.nn.RNN(3, 4, rng=0)(et.ones((5, 2, 3)))
        >>> output.shape, h.shape
        ((5, 2, 4), (1, 2, 4))
    """

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str = "tanh", bias: bool = True,
        batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False,
        *, dtype: Any = float32, rng: Rng | None = None,
    ) -> None:  # fmt: skip
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"[RNN] nonlinearity must be 'tanh' or 'relu', got {describe(nonlinearity)}")
        self.nonlinearity = nonlinearity
        self._set_up(
            input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, dtype, rng
        )

    def _sequence(self, x: ExTensor, states: list[ExTensor], weights: Weights, reverse: bool) -> Any:
        hidden = rnn_sequence(x, states[0], *weights, self.nonlinearity, reverse)
        return hidden, [hidden[_last(reverse)]]

    def _every_state(self, x: ExTensor, states: list[ExTensor], weights: Weights) -> list[ExTensor]:
        return [rnn_sequence(x, states[0], *weights, self.nonlinearity)]


class GRU(_Recurrent):
    """Gated recurrent units, see :func:`extensor.gru_cell`; arguments as :class:`RNN`.

    Attributes:
        weight_ih_l0, weight_hh_l0: (3 * hidden_size, ...): the gates reset, update and new, one below the other.
        bias_ih_l0, bias_hh_l0: (3 * hidden_size,).

    Example:
        >>> import extensor as et
        >>> output, h = et.nn.GRU(3, 4, num_layers=2, rng=0)(et.ones((5, 2, 3)))
        >>> output.shape, h.shape
        ((5, 2, 4), (2, 2, 4))
    """

    _gates = 3

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
        dropout: float = 0.0, bidirectional: bool = False, *, dtype: Any = float32, rng: Rng | None = None,
    ) -> None:  # fmt: skip
        self._set_up(
            input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, dtype, rng
        )

    def _sequence(self, x: ExTensor, states: list[ExTensor], weights: Weights, reverse: bool) -> Any:
        hidden = gru_sequence(x, states[0], *weights, reverse)
        return hidden, [hidden[_last(reverse)]]

    def _every_state(self, x: ExTensor, states: list[ExTensor], weights: Weights) -> list[ExTensor]:
        return [gru_sequence(x, states[0], *weights)]


class LSTM(_Recurrent):
    """Long short-term memory, see :func:`extensor.lstm_cell`; arguments as :class:`RNN`. The state is a pair (h, c).

    Attributes:
        weight_ih_l0, weight_hh_l0: (4 * hidden_size, ...): the gates input, forget, cell and output, one below the other.
        bias_ih_l0, bias_hh_l0: (4 * hidden_size,).

    Example:
        >>> import extensor as et
        >>> output, (h, c) = et.nn.LSTM(3, 4, batch_first=True, rng=0)(et.ones((2, 5, 3)))
        >>> output.shape, h.shape, c.shape
        ((2, 5, 4), (1, 2, 4), (1, 2, 4))
    """

    _gates = 4
    _states = 2

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
        dropout: float = 0.0, bidirectional: bool = False, *, dtype: Any = float32, rng: Rng | None = None,
    ) -> None:  # fmt: skip
        self._set_up(
            input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, dtype, rng
        )

    def of_rows(self, indices: ExTensor, table: ExTensor, hx: Any = None) -> tuple[ExTensor, Any]:
        """What ``self(embedding(indices, table), hx)`` gives, with less arithmetic where indices repeat.

        Each row of the table meets ``weight_ih_l0`` once, and not each time that it is used; in the gradient too.

        Args:
            indices: the rows, (T, N), or (N, T) with ``batch_first``.
            table: (rows, input_size).
            hx: as in :meth:`forward`.
        """
        if indices.ndim != 2 or table.ndim != 2 or table.shape[1] != self.input_size:
            raise ValueError(
                f"[LSTM] of_rows needs indices with 2 axes and a table of shape (rows, {self.input_size}), "
                f"got {indices.shape} and {table.shape}"
            )
        if self.batch_first:
            indices = indices.swapaxes(0, 1)
        x, last = self._layers(indices, self._start(indices.shape[1], table.dtype, hx), table)
        return x.swapaxes(0, 1) if self.batch_first else x, tuple(last)

    def _sequence(self, x: ExTensor, states: list[ExTensor], weights: Weights, reverse: bool) -> Any:
        hidden, cells, _ = lstm_sequence(x, states[0], states[1], *weights, reverse)
        return hidden, [hidden[_last(reverse)], cells[_last(reverse)]]

    def _every_state(self, x: ExTensor, states: list[ExTensor], weights: Weights) -> list[ExTensor]:
        return list(lstm_sequence(x, states[0], states[1], *weights)[:2])
