"""Recurrent layers; the gates stand in another order in ONNX."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..emit import Emitter, Value, exports

__all__: list[str] = []


def _gates(e: Emitter, value: Any, order: list[int], size: int) -> str:
    """Blocks of rows in another order, with an axis for the direction in front."""
    array = e.stored(value)
    if array is not None:
        parts = np.split(array, len(order))
        return e.derived(value.name, np.concatenate([parts[i] for i in order])[None])
    name = e.use(value)
    if len(order) > 1:
        parts = e.node("Split", name, e.constant([size] * len(order), np.int64), results=len(order), axis=0)
        name = e.node("Concat", *(parts[i] for i in order), axis=0)
    return str(e.node("Unsqueeze", name, e.constant([0], np.int64)))


def _weights(e: Emitter, weights: tuple[Any, ...], order: list[int], size: int) -> tuple[str, str, str]:
    w_ih, w_hh, b_ih, b_hh = weights
    bias = ""
    if b_ih is not None or b_hh is not None:
        zeros = np.zeros(size * len(order))
        parts = [
            _gates(e, b, order, size) if b is not None else e.constant(zeros[None], e.out.dtype)
            for b in (b_ih, b_hh)
        ]
        if all(part in e.initializers for part in parts):
            bias = e.derived(parts[0], np.concatenate([e.initializers[part] for part in parts], 1))
        else:
            bias = e.node("Concat", *parts, axis=1)
    return _gates(e, w_ih, order, size), _gates(e, w_hh, order, size), bias


def _state(e: Emitter, value: Value) -> str:
    return e.reshaped(value, (1, *value.shape))


def _sequence(e: Emitter, name: str) -> str:
    """(time, 1, batch, hidden) without the axis of the direction."""
    time, *rest = e.out.shape
    return e.reshaped(Value(name, (time, 1, *rest), e.out.dtype), e.out.shape)


@exports("rnn_sequence")
def rnn_sequence(
    e: Emitter, x: Value, h: Value, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None, nonlinearity: str = "tanh",
    reverse: bool = False,
) -> str:  # fmt: skip
    """RNN."""
    size = int(h.shape[-1])
    w, r, b = _weights(e, (w_ih, w_hh, b_ih, b_hh), [0], size)
    found = e.node(
        "RNN", e.use(x), w, r, b, "", _state(e, h), hidden_size=size, activations=[nonlinearity.capitalize()],
        direction="reverse" if reverse else None,
    )  # fmt: skip
    return _sequence(e, found)


@exports("gru_sequence")
def gru_sequence(
    e: Emitter,
    x: Value,
    h: Value,
    w_ih: Any,
    w_hh: Any,
    b_ih: Any = None,
    b_hh: Any = None,
    reverse: bool = False,
) -> str:
    """GRU: r z n as z r n."""
    size = int(h.shape[-1])
    w, r, b = _weights(e, (w_ih, w_hh, b_ih, b_hh), [1, 0, 2], size)
    found = e.node(
        "GRU", e.use(x), w, r, b, "", _state(e, h), hidden_size=size, linear_before_reset=1,
        direction="reverse" if reverse else None,
    )  # fmt: skip
    return _sequence(e, found)


@exports("lstm_sequence")
def lstm_sequence(
    e: Emitter,
    x: Value,
    h: Value,
    c: Value,
    w_ih: Any,
    w_hh: Any,
    b_ih: Any = None,
    b_hh: Any = None,
    reverse: bool = False,
) -> Any:
    """LSTM: i f g o as i o f g; of the cell states only the last is there, of the gates nothing."""
    if w_ih is None:
        raise NotImplementedError("[export] lstm_sequence without w_ih belongs to training; call eval()")
    size = int(h.shape[-1])
    w, r, b = _weights(e, (w_ih, w_hh, b_ih, b_hh), [0, 3, 1, 2], size)
    hidden, _, cell = e.node(
        "LSTM", e.use(x), w, r, b, "", _state(e, h), _state(e, c), results=3, hidden_size=size,
        direction="reverse" if reverse else None,
    )  # fmt: skip
    e.outputs[1].last_only = e.outputs[2].last_only = True
    return _sequence(e, hidden), cell + (":reverse" if reverse else ""), ""
