"""RNN, GRU and LSTM, with every option of the standard.

What :mod:`extensor` has as one function (usual activations, no clipping, no lengths) is computed by it; the rest step by step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import extensor as et

from ..proto import array_of, as_value
from ..table import operator

__all__: list[str] = []

Activation = Callable[[Any], Any]

# name -> (function of x, alpha, beta), and the standard's alpha and beta
_ACTIVATIONS: dict[str, tuple[Callable[[Any, float, float], Any], float, float]] = {
    "relu": (lambda x, a, b: et.relu(x), 0, 0),
    "tanh": (lambda x, a, b: et.tanh(x), 0, 0),
    "sigmoid": (lambda x, a, b: et.sigmoid(x), 0, 0),
    "affine": (lambda x, a, b: x * a + b, 1, 0),
    "leakyrelu": (lambda x, a, b: et.leaky_relu(x, a), 0.01, 0),
    "thresholdedrelu": (lambda x, a, b: et.where(et.greater(x, a), x, et.zeros_like(x)), 1, 0),
    "scaledtanh": (lambda x, a, b: a * et.tanh(x * b), 1, 1),
    "hardsigmoid": (lambda x, a, b: et.clip(x * a + b, 0.0, 1.0), 0.2, 0.5),
    "elu": (lambda x, a, b: et.elu(x, a), 1, 0),
    "softsign": (lambda x, a, b: x / (1 + et.abs(x)), 0, 0),
    "softplus": (lambda x, a, b: et.softplus(x), 0, 0),
}


def _activations(names: list[str], alphas: list[float] | None, betas: list[float] | None) -> list[Activation]:
    """The functions; alphas and betas are given in order to those that take them."""
    left, right = list(alphas or []), list(betas or [])
    found: list[Activation] = []
    for name in names:
        if name.lower() not in _ACTIVATIONS:
            raise NotImplementedError(f"[RNN] the activation {name!r} is not known")
        function, alpha, beta = _ACTIVATIONS[name.lower()]
        if alpha and left:
            alpha = left.pop(0)
        if beta and right:
            beta = right.pop(0)
        found.append(lambda x, f=function, a=alpha, b=beta: f(x, a, b))  # type: ignore[misc]
    return found


def _directions(direction: str) -> list[bool]:
    """For each direction, whether it runs backwards."""
    known = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}
    if direction not in known:
        raise ValueError(f"[RNN] direction must be forward, reverse or bidirectional, got {direction!r}")
    return known[direction]


def _reordered(x: Any, order: list[int]) -> Any:
    """Blocks of rows in another order: the gates of the standard and those of the cells differ."""
    if x is None:
        return None
    parts = et.split(x, len(order), 0)
    return et.concatenate([parts[i] for i in order], 0)


class _Layer:
    """What the three kinds share: layouts, directions, lengths."""

    def __init__(
        self, x: Any, hidden: int, direction: str, lengths: Any, layout: int, first: list[Any]
    ) -> None:
        self.layout, self.hidden = layout, hidden
        self.x = et.swapaxes(x, 0, 1) if layout else x  # (time, batch, features)
        self.backwards = _directions(direction)
        self.lengths = None if lengths is None else array_of(lengths)
        if self.lengths is not None and (self.lengths == self.x.shape[0]).all():
            self.lengths = None
        shape = (len(self.backwards), self.x.shape[1], hidden)
        self.first = [
            et.zeros(shape, x.dtype) if s is None else et.swapaxes(s, 0, 1) if layout else s for s in first
        ]

    def steps(self, direction: int, step: Callable[..., list[Any]]) -> tuple[Any, list[Any]]:
        """Apply ``step(x_t, *state) -> state`` along the time; the first of the state is the output."""
        state = [s[direction] for s in self.first]
        time = range(self.x.shape[0])
        outputs: list[Any] = []
        for t in reversed(time) if self.backwards[direction] else time:
            new = step(self.x[t], *state)
            if self.lengths is not None:
                there = as_value((t < self.lengths)[:, None])
                new = [et.where(there, a, b) for a, b in zip(new, state)]
                outputs.append(et.where(there, new[0], et.zeros_like(new[0])))
            else:
                outputs.append(new[0])
            state = new
        if self.backwards[direction]:
            outputs.reverse()
        return et.stack(outputs, 0), state

    def results(self, found: list[tuple[Any, list[Any]]]) -> tuple[Any, ...]:
        """The outputs (time, directions, batch, hidden) and last states of all directions, in the layout of x."""
        outputs = _together([y for y, _ in found], 1)
        states = [_together(list(s), 0) for s in zip(*(last for _, last in found))]
        if self.layout:
            outputs = et.transpose(outputs, (2, 0, 1, 3))
            states = [et.swapaxes(s, 0, 1) for s in states]
        return (outputs, *states)


def _together(parts: list[Any], axis: int) -> Any:
    return et.expand_dims(parts[0], axis) if len(parts) == 1 else et.stack(parts, axis)


def _last(outputs: Any, backwards: bool) -> Any:
    return outputs[0] if backwards else outputs[-1]


def _clipped(function: Activation, limit: float | None) -> Activation:
    return function if not limit else lambda x: function(et.clip(x, -limit, limit))


def _hidden_size(r: Any, hidden_size: int | None) -> int:
    if hidden_size is not None and hidden_size != r.shape[-1]:
        raise ValueError(f"[RNN] hidden_size {hidden_size} does not fit weights of shape {r.shape}")
    return int(r.shape[-1])


@operator("RNN", fixed=("lengths",))
def rnn(
    x: Any, w: Any, r: Any, b: Any = None, lengths: Any = None, initial_h: Any = None, *,
    activation_alpha: list[float] | None = None, activation_beta: list[float] | None = None,
    activations: list[str] | None = None, clip: float | None = None, direction: str = "forward",
    hidden_size: int | None = None, layout: int = 0, output_sequence: int = 0,
) -> Any:  # fmt: skip
    """h = f(x W^T + h R^T + b)"""
    hidden = _hidden_size(r, hidden_size)
    layer = _Layer(x, hidden, direction, lengths, layout, [initial_h])
    count = len(layer.backwards)
    names = activations or ["Tanh"] * count
    functions = _activations(names, activation_alpha, activation_beta)
    found = []
    for d, back in enumerate(layer.backwards):
        wi, wh = w[d], r[d]
        bi, bh = (None, None) if b is None else (b[d][:hidden], b[d][hidden:])
        kind = names[d].lower()
        if layer.lengths is None and not clip and kind in ("tanh", "relu"):
            outputs = et.rnn_sequence(layer.x, layer.first[0][d], wi, wh, bi, bh, kind, back)
            found.append((outputs, [_last(outputs, back)]))
            continue
        function = _clipped(functions[d], clip)

        def step(
            xt: Any, h: Any, f: Activation = function, at: tuple[Any, ...] = (wi, wh, bi, bh)
        ) -> list[Any]:
            return [f(et.linear(xt, at[0], at[2]) + et.linear(h, at[1], at[3]))]

        found.append(layer.steps(d, step))
    return layer.results(found)


@operator("GRU", fixed=("lengths",))
def gru(
    x: Any, w: Any, r: Any, b: Any = None, lengths: Any = None, initial_h: Any = None, *,
    activation_alpha: list[float] | None = None, activation_beta: list[float] | None = None,
    activations: list[str] | None = None, clip: float | None = None, direction: str = "forward",
    hidden_size: int | None = None, layout: int = 0, linear_before_reset: int = 0, output_sequence: int = 0,
) -> Any:  # fmt: skip
    """Gates z, r and a candidate n:   h = (1 - z) n + z h"""
    hidden = _hidden_size(r, hidden_size)
    layer = _Layer(x, hidden, direction, lengths, layout, [initial_h])
    names = activations or ["Sigmoid", "Tanh"] * len(layer.backwards)
    functions = _activations(names, activation_alpha, activation_beta)
    usual = [n.lower() for n in names] == ["sigmoid", "tanh"] * len(layer.backwards)
    found = []
    for d, back in enumerate(layer.backwards):
        wi, wh = w[d], r[d]
        bi, bh = (None, None) if b is None else (b[d][: 3 * hidden], b[d][3 * hidden :])
        if layer.lengths is None and not clip and usual and linear_before_reset:
            order = [1, 0, 2]  # z r n here, r z n there
            wi, wh, bi, bh = (_reordered(v, order) for v in (wi, wh, bi, bh))
            outputs = et.gru_sequence(layer.x, layer.first[0][d], wi, wh, bi, bh, back)
            found.append((outputs, [_last(outputs, back)]))
            continue
        f, g = (_clipped(functions[2 * d + i], clip) for i in range(2))

        def step(
            xt: Any, h: Any, f: Activation = f, g: Activation = g, at: tuple[Any, ...] = (wi, wh, bi, bh)
        ) -> list[Any]:
            weights_x, weights_h, bias_x, bias_h = at
            xz, xr, xn = et.split(et.linear(xt, weights_x, bias_x), 3, -1)
            wz, wr, wn = et.split(weights_h, 3, 0)
            bz, br, bn = (None,) * 3 if bias_h is None else et.split(bias_h, 3, 0)
            update = f(xz + et.linear(h, wz, bz))
            reset = f(xr + et.linear(h, wr, br))
            if linear_before_reset:
                candidate = g(xn + reset * et.linear(h, wn, bn))
            else:
                candidate = g(xn + et.linear(reset * h, wn, bn))
            return [(1 - update) * candidate + update * h]

        found.append(layer.steps(d, step))
    return layer.results(found)


@operator("LSTM", fixed=("lengths",))
def lstm(
    x: Any, w: Any, r: Any, b: Any = None, lengths: Any = None, initial_h: Any = None, initial_c: Any = None, p: Any = None,
    *, activation_alpha: list[float] | None = None, activation_beta: list[float] | None = None,
    activations: list[str] | None = None, clip: float | None = None, direction: str = "forward",
    hidden_size: int | None = None, input_forget: int = 0, layout: int = 0, output_sequence: int = 0,
) -> Any:  # fmt: skip
    """Gates i, o, f and a candidate g:   c = f c + i g,   h = o tanh(c)"""
    hidden = _hidden_size(r, hidden_size)
    layer = _Layer(x, hidden, direction, lengths, layout, [initial_h, initial_c])
    names = activations or ["Sigmoid", "Tanh", "Tanh"] * len(layer.backwards)
    functions = _activations(names, activation_alpha, activation_beta)
    usual = [n.lower() for n in names] == ["sigmoid", "tanh", "tanh"] * len(layer.backwards)
    found = []
    for d, back in enumerate(layer.backwards):
        wi, wh = w[d], r[d]
        bi, bh = (None, None) if b is None else (b[d][: 4 * hidden], b[d][4 * hidden :])
        if layer.lengths is None and not clip and usual and p is None and not input_forget:
            order = [0, 2, 3, 1]  # i o f g here, i f g o there
            wi, wh, bi, bh = (_reordered(v, order) for v in (wi, wh, bi, bh))
            first = [s[d] for s in layer.first]
            result = et.lstm_sequence(layer.x, first[0], first[1], wi, wh, bi, bh, back)
            found.append((result.hidden, [_last(result.hidden, back), _last(result.cells, back)]))
            continue
        f, g, h_of = (_clipped(functions[3 * d + i], clip if i < 2 else None) for i in range(3))
        peep = (0.0, 0.0, 0.0) if p is None else tuple(et.split(p[d], 3, 0))

        def step(
            xt: Any, h: Any, c: Any, f: Activation = f, g: Activation = g, h_of: Activation = h_of,
            at: tuple[Any, ...] = (wi, wh, bi, bh), peep: tuple[Any, ...] = peep,
        ) -> list[Any]:  # fmt: skip
            i, o, keep, new = et.split(et.linear(xt, at[0], at[2]) + et.linear(h, at[1], at[3]), 4, -1)
            i = f(i + peep[0] * c)
            keep = 1 - i if input_forget else f(keep + peep[2] * c)
            cell = keep * c + i * g(new)
            return [f(o + peep[1] * cell) * h_of(cell), cell]

        found.append(layer.steps(d, step))
    return layer.results(found)
