"""Sample inputs and edges of the recurrent cells and sequences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..registry import Case, Domain, Draw, Edge, Pair, ties

INF, NAN = float("inf"), float("nan")
SMALL = Domain(-1.0, 1.0)


def _arguments(
    draw: Draw, gates: int, states: int, batch: tuple[int, ...], steps: tuple[int, ...] = (), biases: int = 2
) -> list[Any]:
    """x, states, weights and biases for 3 inputs and 2 hidden units."""
    bias = [draw.values(gates * 2, SMALL) if i < biases else None for i in range(2)]
    return [
        draw.values((*steps, *batch, 3), SMALL), *(draw.values((*batch, 2), SMALL) for _ in range(states)),
        draw.values((gates * 2, 3), SMALL), draw.values((gates * 2, 2), SMALL), *bias,
    ]  # fmt: skip


def _cells(gates: int, states: int, **options: Any) -> Callable[[Draw], Iterator[Case]]:
    def cases(draw: Draw) -> Iterator[Case]:
        yield Case(*_arguments(draw, gates, states, (4,)), **options)
        yield Case(*_arguments(draw, gates, states, ()), **options)
        yield Case(*_arguments(draw, gates, states, (2,), biases=0), **options)
        yield Case(*_arguments(draw, gates, states, (2,), biases=1), **options)
        yield Case(*_arguments(draw, gates, states, (0,)), **options)

    return cases


def _sequences(gates: int, states: int) -> Callable[[Draw], Iterator[Case]]:
    def cases(draw: Draw) -> Iterator[Case]:
        yield Case(*_arguments(draw, gates, states, (2,), (3,)))
        yield Case(*_arguments(draw, gates, states, (1,), (1,)))
        yield Case(*_arguments(draw, gates, states, (2,), (3,)), reverse=True)
        yield Case(*_arguments(draw, gates, states, (1,), (2,), biases=0))
        yield Case(*_arguments(draw, gates, states, (0,), (2,)))

    return cases


def _lstm_sequences(draw: Draw) -> Iterator[Case]:
    """Also with the product of x in place of x."""
    yield from _sequences(4, 2)(draw)
    for reverse in (False, True):
        _, h, c, _, w_hh, *biases = _arguments(draw, 4, 2, (2,), (3,))
        yield Case(draw.values((3, 2, 8), SMALL), h, c, None, w_hh, *biases, reverse=reverse)


def _relu_cells(draw: Draw) -> Iterator[Case]:
    """tanh, and relu away from its kink."""
    yield from _cells(1, 1)(draw)
    x, h, w_ih, w_hh, *_ = _arguments(draw, 1, 1, (3,))
    bias = np.array([9.0, -9.0])
    yield Case(x, h, w_ih, w_hh, bias, nonlinearity="relu")


def _relu_sequences(draw: Draw) -> Iterator[Case]:
    yield from _sequences(1, 1)(draw)
    x, h, w_ih, w_hh, *_ = _arguments(draw, 1, 1, (2,), (3,))
    yield Case(x, h, 0.1 * w_ih, 0.1 * w_hh, np.array([2.0, -2.0]), nonlinearity="relu")


_ONE, _ZERO = np.ones((1, 1)), np.zeros((1, 1))


def _nan(gates: int, states: int, steps: tuple[int, ...]) -> tuple[Edge, ...]:
    """A nan in x reaches everything: each gradient depends on every gate."""
    x, weight = np.full((*steps, 1, 1), NAN), np.ones((gates, 1))
    return (Edge("a nan in x", Case(x, *[_ONE] * states, weight, weight)),)


PAIRS = [
    Pair(
        "rnn_cell", _relu_cells,
        ties("the kink of relu", Case(_ZERO, _ZERO, _ONE, _ONE, nonlinearity="relu"), _ZERO, _ZERO, _ZERO, _ZERO, [0.0], [0.0])
        + ties("a nan", Case(np.array([[NAN]]), _ZERO, _ONE, _ONE, nonlinearity="relu"), [[NAN]], [[NAN]], [[NAN]], [[NAN]], [NAN], [NAN])
        + ties("a saturated tanh", Case(np.array([[100.0]]), _ONE, _ONE, _ONE), _ZERO, _ZERO, _ZERO, _ZERO, [0.0], [0.0]),
    ),
    Pair(
        "gru_cell", _cells(3, 1),
        ties("an update gate that is shut keeps h", Case(_ONE, _ONE, np.array([[0.0], [200.0], [0.0]]), np.zeros((3, 1))), _ZERO, _ONE, np.zeros((3, 1)), np.zeros((3, 1)), None, None)
        + _nan(3, 1, ()),
    ),
    Pair(
        "lstm_cell", _cells(4, 2),
        ties("gates that are shut", Case(_ONE, _ONE, _ONE, np.full((4, 1), -800.0), np.zeros((4, 1))), _ZERO, _ZERO, _ZERO, np.zeros((4, 1)), np.zeros((4, 1)), None, None)
        + _nan(4, 2, ()),
    ),
    Pair("rnn_sequence", _relu_sequences, _nan(1, 1, (1,))),
    Pair("gru_sequence", _sequences(3, 1), _nan(3, 1, (1,))),
    Pair("lstm_sequence", _lstm_sequences, _nan(4, 2, (1,))),
]  # fmt: skip
