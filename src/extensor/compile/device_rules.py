"""Steps that are more than kernels, as a device takes them: the update rules of optimisers, and the clipping of gradients."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..devices import DeviceArray, kept_there
from ..errors import CompileError
from ..kernels import KERNELS
from ..kernels.elsewhere import compute
from ..ops.dropout import kept_scale
from ..tensor import ExTensor
from .recording import Call, Step

__all__ = ["Moves", "clipped", "is_clip", "is_dropout", "moves_of", "scale_of"]

_NOT_OPTIONS = ("params", "lr", "initial_lr")


@dataclass
class Moves:
    """One step of an optimiser: the parameters it moves, and what their rule needs.

    Learning rates, numbers of steps and states are read in every call; other options are part of what is traced.
    """

    optimizer: Any
    params: list[Any]
    groups: list[
        tuple[dict[str, Any], list[int]]
    ]  # each group with the positions of its parameters in ``params``
    rates: list[float] = field(default_factory=list)
    states: list[dict[str, Any] | None] = field(default_factory=list)

    def now(self) -> Moves:
        """With the rates and states of this moment."""
        for group, _ in self.groups:
            self.optimizer._check_live(group["params"])
        rates = [float(group["lr"]) for group, _ in self.groups]
        for rate in rates:
            if not 0 <= rate < float("inf"):
                raise ValueError(f"[{self.name}] lr must be a finite number that is not negative, got {rate}")
        states = [self.optimizer.state.get(p) for p in self.params]
        return Moves(self.optimizer, self.params, self.groups, rates, states)

    @property
    def name(self) -> str:
        return f"{type(self.optimizer).__name__}.step"

    def static(self) -> tuple[Any, ...]:
        """What is traced: the options but the rate, and which parameters are at the same number of steps."""
        options = tuple(
            tuple(sorted((key, _frozen(value)) for key, value in group.items() if key not in _NOT_OPTIONS))
            for group, _ in self.groups
        )
        counts = self._counts()
        return options, tuple(None if s is None else counts.index(s.get("step")) for s in self.states)

    def _counts(self) -> list[Any]:
        return list(dict.fromkeys(state.get("step") for state in self.states if state is not None))

    def dynamic(self) -> Any:
        """What the function takes in every call."""
        fields = [
            None if state is None else {key: _held(value) for key, value in state.items() if key != "step"}
            for state in self.states
        ]
        return self.rates, [count for count in self._counts() if count is not None], fields

    def traced(
        self, params: list[Any], grads: list[Any], static: Any, now: Any
    ) -> tuple[list[Any], list[Any]]:
        """The new parameters and states; the numbers of steps are counted outside."""
        rates, counts, fields = now
        options, count_of = static
        numbered = self._counts()
        states: list[Any] = []
        for saved, k in zip(fields, count_of):
            counted = {} if saved is None or numbered[k] is None else {"step": counts[k]}
            states.append(None if saved is None else {**counted, **saved})
        new: list[Any] = [None] * len(params)
        after: list[Any] = [None] * len(params)
        for (group, members), rate, chosen in zip(self.groups, rates, options):
            if not members:
                continue
            rule = type(self.optimizer)._rule
            values = {key: group[key] for key, _ in chosen}
            found, kept = rule(
                [params[i] for i in members],
                [grads[i] for i in members],
                [states[i] for i in members],
                lr=rate,
                **values,
            )
            for i, value, state in zip(members, found, kept):
                new[i] = value
                after[i] = {key: _plain(v) for key, v in state.items() if key != "step" and v is not None}
        return new, after

    def keep(self, states: list[dict[str, Any]]) -> None:
        """What the rule remembers after the step."""
        for param, before, after in zip(self.params, self.states, states):
            counted = {} if before is None or "step" not in before else {"step": before["step"] + 1}
            if before is None and "step" in self.optimizer._remembers[0] | self.optimizer._remembers[1]:
                counted = {"step": 1}
            self.optimizer.state[param] = {**counted, **{key: _kept(value) for key, value in after.items()}}


def _plain(value: Any) -> Any:
    return value._data if isinstance(value, ExTensor) else value


def _held(value: Any) -> Any:
    if isinstance(value, ExTensor):
        return value._data.held if type(value._data) is DeviceArray else value._data
    return value


def _kept(value: Any) -> Any:
    return ExTensor(kept_there(value))


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, (list, tuple)) else value


def moves_of(step: Step) -> Moves:
    """The moves of a step of an optimiser, if its rule is all that it does."""
    optimizer, params, *_ = step.moves
    own = [c for c in type(optimizer).__mro__ if "_step_group" in vars(c) or "step" in vars(c)]
    rounds = getattr(optimizer, "rounding", None) is not None  # by numbers drawn here
    if len(own) != 1 or not hasattr(type(optimizer), "_rule") or rounds:
        raise CompileError(
            f"[compile] {type(optimizer).__name__}.step does more than its rule, and cannot run on another device; "
            "use another optimiser, or compile without device="
        )
    position = {id(p): i for i, p in enumerate(params)}
    groups = [
        (group, [position[id(p)] for p in group["params"] if id(p) in position])
        for group in optimizer.param_groups
    ]
    return Moves(optimizer, params, groups)


def is_dropout(call: Call | None) -> bool:
    """Whether a call draws a mask and lays it over a tensor."""
    return call is not None and getattr(call.function, "__name__", "") == "dropout" and call.kind == "op"


def scale_of(call: Call) -> float:
    """By what a dropout multiplies what it keeps."""
    return kept_scale(float(call.kwargs["p"] if "p" in call.kwargs else call.args[1]))


_CLIPS = ("clip_grad_norm", "clip_grad_value")


def is_clip(call: Call | None) -> bool:
    """Whether a call clips gradients, in a way that needs no look at them."""
    if call is None or getattr(call.function, "__name__", "") not in _CLIPS:
        return False
    return (
        call.function.__module__ == "extensor.optim.clipping"
        and not call.kwargs.get("error_if_nonfinite")
        and len(call.args) < 4
    )


def clipped(call: Call, grads: list[Any]) -> list[Any]:
    """The clipped gradients, and for ``clip_grad_norm`` the norm that they had."""
    name = call.function.__name__
    options = dict(
        zip(("grads", "max_norm", "norm_type") if name == "clip_grad_norm" else ("grads", "limit"), call.args)
    )
    options.update(call.kwargs)
    if name == "clip_grad_value":
        return list(compute(KERNELS[name], [grads, float(options["limit"])]))
    found, total = compute(
        KERNELS[name], [grads, float(options["max_norm"]), float(options.get("norm_type", 2.0))]
    )
    dtype = np.result_type(
        np.float32,
        *(np.dtype(g.dtype) for g in grads if np.dtype(g.dtype).kind == "f" and g.dtype.itemsize > 2),
    )
    return [*found, total.astype(dtype)]
