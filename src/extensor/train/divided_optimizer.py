"""The optimiser's work and memory divided between the ranks: each moves its slices of the parameters.

What a rule remembers (averages of gradients, for Adam two numbers per weight) is kept by the rank that needs it alone, so
its memory falls with the number of ranks. A rule that treats every element by itself gives the same bits for a slice as
for the whole; others (LAMB, Adafactor, Muon, and classes of users) are carried out whole on every rank.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from .. import optim
from ..nn import Parameter
from ..ops.creation import copy as copy_of
from ..tensor import ExTensor
from .sharded_gradients import ShardedGradients

__all__ = ["DividedOptimizer", "can_divide"]

_ELEMENTWISE = (
    optim.SGD, optim.Adam, optim.AdamW, optim.RMSprop, optim.Adagrad, optim.Lion, optim.NAdam, optim.RAdam, optim.Adadelta,
)  # fmt: skip


def can_divide(optimizer: optim.Optimizer) -> bool:
    """Whether a slice of a parameter moves as it would within the whole."""
    return (
        type(optimizer) in _ELEMENTWISE and optimizer.rounding is None
    )  # whose chances belong to whole parameters


class DividedOptimizer:
    """An optimiser of which each rank carries out its slice.

    Args:
        optimizer: whose options hold at every step. What it remembers is taken over, and returned by :meth:`gather`.
        gradients: knows the parameters and their places, after its first call.
    """

    def __init__(self, optimizer: optim.Optimizer, gradients: ShardedGradients) -> None:
        self.optimizer, self.gradients = optimizer, gradients
        self._pieces: list[tuple[Parameter, slice, Parameter]] = []
        self._own = optimizer  # replaced by a copy that holds the pieces
        self._made_for: list[Parameter] = []
        self._places: list[tuple[int, int]] = []  # of the pieces: which own slice, and where in it
        self._trained: set[int] = set()

    def _divide(self) -> None:
        """Make the pieces; again where other parameters are trained than before."""
        gradients = self.gradients
        if self._made_for is gradients.parameters:
            return
        if self._made_for:
            self.gather()
        self._made_for = gradients.parameters
        places = {id(p): place for p, place in zip(gradients.parameters, gradients.layout.places)}
        self._own = copy.copy(self.optimizer)
        self._own.state, self._pieces, self._places, groups = {}, [], [], []
        self._trained = {id(p) for group in self.optimizer.param_groups for p in group["params"]}
        for group in self.optimizer.param_groups:
            parts = []
            for p in group["params"]:
                place = places.get(id(p), slice(0, 0))
                for number, mine in enumerate(gradients.exchange.own):
                    inner = slice(max(mine.start - place.start, 0), min(mine.stop, place.stop) - place.start)
                    if inner.stop <= inner.start:
                        continue
                    piece = Parameter.around(p.numpy().reshape(-1)[inner].copy(), True)
                    parts.append(piece)
                    self._pieces.append((p, inner, piece))
                    self._places.append((number, place.start + inner.start - mine.start))
                    if p in self.optimizer.state:
                        self._own.state[piece] = _cut(self.optimizer.state[p], p, inner)
            groups.append({**group, "params": parts})
        self._own.param_groups = groups
        for p in gradients.parameters:
            self.optimizer.state.pop(p, None)

    def step(self) -> None:
        """Move the own slices, and take over the others'."""
        self._divide()
        gradients, exchange = self.gradients, self.gradients.exchange
        for own, group in zip(self._own.param_groups, self.optimizer.param_groups):
            own.update({name: value for name, value in group.items() if name != "params"})
        for p, inner, piece in self._pieces:
            piece._grad = None if p._grad is None else ExTensor(p._grad.numpy().reshape(-1)[inner])
            # a copy: the step may write where nobody else looks, and others may hold the parameter's value
            piece.assign(ExTensor(p.numpy().reshape(-1)[inner].copy()))
        self._own.step()
        moved = [np.zeros(mine.stop - mine.start, gradients.layout.dtype) for mine in exchange.own]
        for (number, start), (_, _, piece) in zip(self._places, self._pieces):
            moved[number][start : start + piece.size] = piece.numpy()
            piece.zero_grad()
        every = copy_of(ExTensor(exchange.gather_slices(moved))).numpy()
        for p, view in zip(gradients.parameters, gradients.layout.views(every)):
            if p._grad is not None and id(p) in self._trained:
                p.assign(ExTensor(view.astype(p.dtype, copy=False)))
            if not gradients.whole:
                p.zero_grad()  # only a slice of it is right

    def gather(self) -> None:
        """Give the optimiser back what it remembers, on every rank; all ranks together."""
        numbers = {id(p): number for number, p in enumerate(self._made_for)}
        own = [
            [numbers[id(p)], inner.start, inner.stop, self._own.state[piece]]
            for p, inner, piece in self._pieces
            if piece in self._own.state
        ]
        parts: dict[int, list[Any]] = {}
        for row in (row for rows in self.gradients.world.gather(own) for row in rows):
            parts.setdefault(row[0], []).append(row[1:])
        for number, found in sorted(parts.items()):
            p = self._made_for[number]
            self.optimizer.state[p] = _joined(p, sorted(found, key=lambda part: part[0]))

    def state_dict(self) -> dict[str, Any]:
        """The state of the whole optimiser, for a checkpoint; all ranks together."""
        self.gather()
        found = self.optimizer.state_dict()
        for p in self._made_for:
            self.optimizer.state.pop(p, None)
        return found

    def close(self) -> None:
        """The optimiser is whole again; all ranks together."""
        if self._made_for:
            self.gather()
            self._made_for, self._pieces = [], []


def _cut(state: dict[str, Any], p: Parameter, inner: slice) -> dict[str, Any]:
    """The part of a state that belongs to a piece."""
    return {
        name: ExTensor(value.numpy().reshape(-1)[inner].copy())
        if isinstance(value, ExTensor) and value.shape == p.shape
        else value
        for name, value in state.items()
    }


def _joined(p: Parameter, parts: list[list[Any]]) -> dict[str, Any]:
    """The state of a parameter from those of its pieces."""
    whole = {}
    for name, first in parts[0][2].items():
        if isinstance(first, ExTensor) and first.shape == (parts[0][1] - parts[0][0],):
            whole[name] = ExTensor(np.concatenate([part[2][name].numpy() for part in parts]).reshape(p.shape))
        else:
            whole[name] = first
    return whole
