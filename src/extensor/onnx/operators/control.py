"""Branches and loops; what they compute is recorded as it runs, so gradients flow through them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import extensor as et

from ...tensor import ExTensor
from ..proto import array_of, as_value
from ..table import operator

__all__: list[str] = []

MOST_TURNS = 1_000_000  # of a loop and all loops inside it: a file must not keep us busy for ever


class _Turns(threading.local):
    """The turns that the outermost loop of this thread has taken, with those inside it; None outside of loops."""

    taken: int | None = None

    @contextmanager
    def counted(self, operator: str) -> Iterator[Callable[[], None]]:
        """What to call at each turn of a loop."""
        outermost = self.taken is None
        if outermost:
            self.taken = 0
        try:
            yield lambda: self._take(operator)
        finally:
            if outermost:
                self.taken = None

    def _take(self, operator: str) -> None:
        assert self.taken is not None
        if self.taken >= MOST_TURNS:
            raise ValueError(
                f"[{operator}] takes more than {MOST_TURNS} turns, with the loops around it; if it is to end at all, raise "
                f"{__name__}.MOST_TURNS"
            )
        self.taken += 1


_TURNS = _Turns()


def _truth(value: Any) -> bool:
    return bool(array_of(value).reshape(-1)[0])


@operator("If", fixed=("condition",))
def if_else(condition: Any, *, then_branch: Callable[..., Any], else_branch: Callable[..., Any]) -> Any:
    """The results of one graph or of the other."""
    return tuple(then_branch() if _truth(condition) else else_branch())


def _stacked(values: list[Any], axis: int = 0) -> Any:
    if not values:
        return et.zeros((0,))
    return et.stack(values, axis) if isinstance(values[0], ExTensor) else np.stack(values, axis)


@operator("Loop")
def loop(
    count: Any = None, condition: Any = None, *initial: Any, body: Callable[..., Any], outputs: int
) -> Any:
    """A graph again and again, up to a count and as long as a condition holds; what it gives at each turn is stacked."""
    most = None if count is None else int(array_of(count).reshape(-1)[0])
    going = condition is None or _truth(condition)
    state: list[Any] = list(initial)
    kept: list[list[Any]] = [[] for _ in range(outputs - len(state))]
    turn = 0
    with _TURNS.counted("Loop") as count_turn:
        while going and (most is None or turn < most):
            count_turn()
            going_on, *results = body(as_value(np.array(turn, np.int64)), as_value(np.array(going)), *state)
            going = _truth(going_on)
            state = results[: len(state)]
            for values, value in zip(kept, results[len(state) :]):
                values.append(value)
            turn += 1
    return (*state, *map(_stacked, kept))


@operator("Scan", since=9)
def scan(
    *inputs: Any, body: Callable[..., Any], num_scan_inputs: int, scan_input_axes: list[int] | None = None,
    scan_input_directions: list[int] | None = None, scan_output_axes: list[int] | None = None,
    scan_output_directions: list[int] | None = None, outputs: int,
) -> Any:  # fmt: skip
    """A graph over the slices of tensors, with a state that it hands on."""
    if not 0 <= num_scan_inputs <= len(inputs):
        raise ValueError(
            f"[Scan] num_scan_inputs is {num_scan_inputs}, but the node has {len(inputs)} inputs"
        )
    first = len(inputs) - num_scan_inputs
    state, sequences = list(inputs[:first]), inputs[first:]
    axes = scan_input_axes or [0] * num_scan_inputs
    backwards = scan_input_directions or [0] * num_scan_inputs
    kept: list[list[Any]] = [[] for _ in range(outputs - first)]
    length = sequences[0].shape[axes[0]] if sequences else 0
    with _TURNS.counted("Scan") as count_turn:
        for step in range(length):
            count_turn()
            slices = [
                et.take(x, length - 1 - step if back else step, axis)
                for x, axis, back in zip(sequences, axes, backwards)
            ]
            results = body(*state, *slices)
            state = results[:first]
            for values, value in zip(kept, results[first:]):
                values.append(value)
    out_axes = scan_output_axes or [0] * len(kept)
    out_back = scan_output_directions or [0] * len(kept)
    stacked = [_stacked(v[::-1] if back else v, axis) for v, axis, back in zip(kept, out_axes, out_back)]
    return (*state, *stacked)


@operator("Scan", since=8)
def scan_of_batches(
    lengths: Any, *inputs: Any, body: Callable[..., Any], num_scan_inputs: int, directions: list[int] | None = None,
    outputs: int,
) -> Any:  # fmt: skip
    """The older form: every tensor has a batch in front, and each sample is scanned by itself."""
    if lengths is not None:
        raise NotImplementedError("[Scan] sequence_lens of operator set 8 is not supported")
    found = [
        scan(
            *(x[i] for x in inputs), body=body, num_scan_inputs=num_scan_inputs, scan_input_directions=directions,
            outputs=outputs,
        )
        for i in range(inputs[0].shape[0])
    ]  # fmt: skip
    return tuple(et.stack(list(values), 0) for values in zip(*found))
