"""The base of all optimisers: parameters in groups, what each rule remembers, saving and loading."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from time import perf_counter_ns
from typing import Any, ClassVar

from ..autograd.scopes import scopes
from ..dtypes import HALF, float32
from ..errors import describe
from ..graph import current_recorder, no_grad, set_recording
from ..nn.parameter import Parameter
from ..tensor import ExTensor, tensor
from ._rules import Rule, State, checked, not_negative
from ._single import check_state
from .stochastic_rounding import StochasticRounding

try:
    from .._native import update_group
except ModuleNotFoundError:
    update_group = None  # type: ignore[assignment]

__all__ = ["Optimizer"]


class Optimizer:
    """What the optimisers have in common.

    Args:
        params: the parameters, or a list of dicts, each a group: ``{"params": [...], "lr": 0.1}``. What a group does not
            say comes from the optimiser's own options.
        defaults: the options of the rule.
        stochastic_rounding: a seed. bfloat16 parameters are rounded up or down by chance after each step, each with the
            probability of its distance: the mean is exact, and steps that are too small to be seen are made now and then
            instead of never. So bfloat16 parameters need no float32 copies. Others are rounded as ever.

    Attributes:
        param_groups: a list of dicts with the parameters and options of each group; schedules change ``"lr"`` there.
        state: for each parameter that was stepped, what the rule remembers.

    Every option is an attribute too, of all groups at once: ``optimizer.lr = 0.1``. A schedule sets ``lr`` itself.

    Example:
        >>> import extensor as et
        >>> w = et.nn.Parameter([1.0, -2.0])
        >>> optimizer = et.optim.SGD([w], lr=0.25)
        >>> isinstance(optimizer, et.optim.Optimizer)
        True
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w.tolist()
        [0.5, -1.0]
    """

    _rule: ClassVar[Rule]
    _remembers: ClassVar[
        tuple[frozenset[str], frozenset[str]]
    ]  # what a state must have, and what it may have

    def __init__(self, params: Any, defaults: dict[str, Any], stochastic_rounding: int | None = None) -> None:
        name = type(self).__name__
        self.rounding = None if stochastic_rounding is None else StochasticRounding(name, stochastic_rounding)
        self.defaults = checked(name, defaults)
        self.state: dict[Parameter, State] = {}
        self.param_groups: list[dict[str, Any]] = []
        if isinstance(params, ExTensor) or not isinstance(params, Iterable):
            raise TypeError(
                f"[{name}] params must be a list of parameters or of groups, got {describe(params)}"
            )
        given = list(params)
        if not given:
            raise ValueError(f"[{name}] params is empty; pass model.parameters()")
        for group in given if isinstance(given[0], dict) else [{"params": given}]:
            self.add_param_group(group)

    def __getattr__(self, name: str) -> Any:
        """An option that all groups have in common; only asked for what is no ordinary attribute."""
        if name not in self.__dict__.get("defaults", ()):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        values = [group[name] for group in self.param_groups]
        if any(value != values[0] for value in values):
            raise AttributeError(
                f"[{type(self).__name__}] {name} differs between the groups: {', '.join(map(str, values))}; "
                f"see optimizer.param_groups[i][{name!r}]"
            )
        return values[0]

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.__dict__.get("defaults", ()):
            super().__setattr__(name, value)
            return
        changed = [
            checked(type(self).__name__, {key: group[key] for key in self.defaults} | {name: value})
            for group in self.param_groups
        ]
        for group, options in zip(self.param_groups, changed):
            group[name] = options[name]

    def add_param_group(self, group: Mapping[str, Any]) -> None:
        """Train more parameters, with options of their own: ``{"params": [...], "lr": 0.1}``."""
        name = type(self).__name__
        if not isinstance(group, Mapping) or "params" not in group:
            raise TypeError(f"[{name}] a group must be a dict with the key 'params', got {describe(group)}")
        params = [group["params"]] if isinstance(group["params"], Parameter) else list(group["params"])
        known = {id(p) for g in self.param_groups for p in g["params"]}
        for i, p in enumerate(params):
            if not isinstance(p, Parameter):
                raise TypeError(
                    f"[{name}] params[{i}] must be an nn.Parameter, got {describe(p)}; wrap it: nn.Parameter(value)"
                )
            if id(p) in known:
                raise ValueError(f"[{name}] params[{i}] (shape {p.shape}) is given twice")
            known.add(id(p))
        unknown = sorted(set(group) - {"params", "initial_lr", *self.defaults})
        if unknown:
            raise ValueError(
                f"[{name}] a group has the options {', '.join(self.defaults)}, not {', '.join(unknown)}"
            )
        options = checked(name, {key: group.get(key, value) for key, value in self.defaults.items()})
        self.param_groups.append({"params": params, **options})

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Move every parameter that has a gradient one step on; one kernel call per group.

        Args:
            closure: computes the loss and its gradients again before the step; its result is returned.
        """
        recorder = current_recorder()
        if recorder is not None and closure is None:
            return recorder.step(
                self, self._params(), self._step_groups, (self._call_of, self._step_group_of)
            )
        loss = None
        if closure is not None:
            with set_recording(True):
                loss = closure()
        self._step_groups()
        return loss

    def _step_groups(self) -> None:
        """One step of all groups. A compiled step makes the same one natively, and asks ``_call_of`` where options changed."""
        for group in self.param_groups:
            if not self._step_natively(group):
                self._step_group_of(group)

    def _native_call(
        self, lr: float, **options: Any
    ) -> tuple[tuple[str | None, ...], Any, tuple[Any, ...]] | None:
        """How the rule calls its kernel, for the native step: the lists it takes, the kernel, and its numbers.

        The lists are named: ``"params"``, ``"grads"``, ``"step"``, fields of the states, ``"nothing"`` for a list of None,
        None for none at all. The kernel returns the new parameters and then the fields in the same order.
        """
        return None

    def _call_of(
        self, group: Mapping[str, Any]
    ) -> tuple[tuple[str | None, ...], Any, tuple[Any, ...]] | None:
        """What :meth:`_native_call` says of a group: it follows from the options in it. None where there is no native step."""
        if update_group is None or self.rounding is not None:
            return None
        options = {key: value for key, value in group.items() if key not in ("params", "lr", "initial_lr")}
        call = self._native_call(not_negative(type(self).__name__, "lr", group["lr"]), **options)
        return None if call is None or call[1] is None else call

    def _step_natively(self, group: Mapping[str, Any]) -> bool:
        """The same step as :meth:`_step_group_of` in one native call; False where it is not of the usual form."""
        if scopes.profile is not None:
            return False
        call = self._call_of(group)
        return call is not None and update_group(group["params"], self.state, *call)

    def _step_group_of(self, group: Mapping[str, Any]) -> None:
        """One step of a group by its rule: the definition."""
        self._check_live(group["params"])
        self._step_group(**group)

    def _check_live(self, params: list[Parameter]) -> None:
        """Notice a parameter that was replaced in its model: no gradient has come since, and none will."""
        for p in params:
            if p._left is not None and (p._grad is None or p._grad is p._left[1]):
                raise RuntimeError(
                    f"[{type(self).__name__}.step] the parameter of shape {p.shape} that was {p._left[0]} is no longer "
                    "part of its model, and what replaced it is not trained; make the optimiser after changing the model"
                )

    def _step_group(self, params: list[Parameter], lr: float, initial_lr: Any = None, **options: Any) -> None:
        moving = [p for p in params if p._grad is not None]
        if not moving:
            return
        profile = scopes.profile
        start = 0 if profile is None else perf_counter_ns()
        rate = not_negative(type(self).__name__, "lr", lr)
        grads: Any = [p._grad for p in moving]  # what adds up in float32 is not rounded on the way
        states = list(map(self.state.get, moving))
        values = list(moving) if self.rounding is None else self.rounding.widened(moving)
        with no_grad():
            new, after = type(self)._rule(values, grads, states, lr=rate, **options)
        if self.rounding is not None:
            new = self.rounding.rounded(new, moving)
        for p, value in zip(moving, new):
            p.assign(value)
        self.state.update(zip(moving, after))
        if profile is not None:
            profile.add_step(f"{type(self).__name__}.step", start, moving)

    def zero_grad(self) -> None:
        """Forget the gradients of all parameters."""
        for group in self.param_groups:
            for p in group["params"]:
                p.zero_grad()

    def state_dict(self) -> dict[str, Any]:
        """What the optimiser remembers and its options, as plain dicts; parameters are numbered in order."""
        numbers = {id(p): i for i, p in enumerate(self._params())}
        rounding = {} if self.rounding is None else {"rounding": self.rounding.state_dict()}
        return {
            "optimizer": self._kind(),
            **rounding,
            "state": {numbers[id(p)]: dict(state) for p, state in self.state.items()},
            "param_groups": [
                {**group, "params": [numbers[id(p)] for p in group["params"]]} for group in self.param_groups
            ],
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over what :meth:`state_dict` gave, options included. Nothing is changed unless everything fits.

        The state of another optimiser is refused. The saved options hold; a learning rate that differs is told of in a
        warning.
        """
        name = f"{type(self).__name__}.load_state_dict"
        if not isinstance(state_dict, Mapping) or not {"state", "param_groups"} <= set(state_dict):
            raise TypeError(
                f"[{name}] state_dict must be a dict with 'state' and 'param_groups', got {describe(state_dict)}"
            )
        self._check_kind(name, state_dict)
        groups = list(state_dict["param_groups"])
        sizes, own_sizes = [len(g["params"]) for g in groups], [len(g["params"]) for g in self.param_groups]
        if sizes != own_sizes:
            raise ValueError(
                f"[{name}] state_dict has groups of {sizes} parameters but the optimiser has groups of {own_sizes}"
            )
        by_number = dict(zip((str(n) for g in groups for n in g["params"]), self._params()))
        states = {}
        for number, saved in state_dict["state"].items():
            if str(number) not in by_number:
                raise ValueError(f"[{name}] state[{number}] belongs to no parameter of the groups")
            p = by_number[str(number)]
            states[p] = self._fitting_state(name, p, saved, f"state[{number}]")
        options = []
        for own, saved in zip(self.param_groups, groups):
            found = checked(name, {key: saved.get(key, own[key]) for key in self.defaults})
            if "initial_lr" in saved:
                found["initial_lr"] = not_negative(name, "initial_lr", saved["initial_lr"])
            options.append(found)
        if self.rounding is not None and "rounding" in state_dict:
            self.rounding.load_state_dict(name, state_dict["rounding"])
        _tell_new_rates(name, self.param_groups, options)
        self.state = states
        for own, found in zip(self.param_groups, options):
            own.update(found)

    @classmethod
    def _kind(cls) -> str:
        """The name of the optimiser, for a user's subclass that of ours it is derived from."""
        return next(c.__name__ for c in cls.__mro__ if c.__module__.startswith("extensor."))

    def _check_kind(self, name: str, state_dict: Mapping[str, Any]) -> None:
        """Refuse the state of another optimiser, by its name or, where it has none (PyTorch's), by its options."""
        known = {"params", "initial_lr", *self.defaults, *_OF_PYTORCH}
        other = state_dict.get("optimizer", self._kind())
        for group in state_dict["param_groups"]:
            strange = sorted(set(group) - known)
            decoupled = group.get("decoupled_weight_decay", False)
            if decoupled != self.defaults.get("decoupled_weight_decay", decoupled):
                strange.append(f"decoupled_weight_decay={decoupled}")
            if strange and other == self._kind():
                other = f"another optimiser (with {', '.join(strange)})"
        if other != self._kind():
            raise ValueError(
                f"[{name}] state_dict is of {other}, not of {self._kind()}; load it into the same optimiser, "
                "or start without it"
            )

    def _fitting_state(self, name: str, param: Parameter, saved: Any, place: str) -> State:
        """What the rule remembers of one parameter, if it has what the rule needs and nothing else."""
        if isinstance(saved, dict):
            saved = {key: value for key, value in saved.items() if value is not None}
        state = check_state(name, param, saved, place) or {}
        needed, possible = self._remembers
        missing, strange = sorted(needed - set(state)), sorted(set(state) - needed - possible - {"step"})
        if missing or strange:
            what = [f"no {', '.join(missing)}"] * bool(missing) + [f"{', '.join(strange)}"] * bool(strange)
            raise ValueError(
                f"[{name}] {place} is of another optimiser: it has {' and '.join(what)}; "
                f"{self._kind()} remembers {', '.join(sorted(needed | possible)) or 'nothing'}"
            )
        return _in_dtype_of(param, state)

    def _params(self) -> list[Parameter]:
        return [p for group in self.param_groups for p in group["params"]]

    def __repr__(self) -> str:
        groups = [
            f"  {len(g['params'])} parameters: "
            + ", ".join(f"{k}={v}" for k, v in g.items() if k != "params")
            for g in self.param_groups
        ]
        return f"{type(self).__name__}(\n" + "\n".join(groups) + "\n)"


# Options of PyTorch's groups that say how it computes, not what.
_OF_PYTORCH = ("capturable", "differentiable", "foreach", "fused")


def _tell_new_rates(name: str, groups: list[dict[str, Any]], found: list[dict[str, Any]]) -> None:
    """Warn of learning rates that a saved state replaces; under a schedule, of the rates it started from."""
    told = []
    for i, (own, saved) in enumerate(zip(groups, found)):
        before, after = own.get("initial_lr", own["lr"]), saved.get("initial_lr", saved["lr"])
        if before != after:
            place = f" of param_groups[{i}]" if len(groups) > 1 else ""
            told.append(f"lr{place} is {after} as saved, not {before}")
    if told:
        warnings.warn(
            f"[{name}] {'; '.join(told)}; set it again after loading to keep yours", UserWarning, stacklevel=3
        )


def _in_dtype_of(param: Parameter, state: State | None) -> State:
    """The tensors of a state in the dtype the rule keeps them in."""
    dtype = float32 if param.dtype in HALF else param.dtype
    return {
        name: tensor(value, dtype)
        if isinstance(value, ExTensor)
        else value  # a copy: it may be the caller's array
        for name, value in (state or {}).items()
    }
