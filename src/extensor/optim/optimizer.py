"""The base of all optimisers: parameters in groups, what each rule remembers, saving and loading."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

from ..dtypes import HALF, float32
from ..errors import describe
from ..graph import no_grad, set_recording
from ..nn.parameter import Parameter
from ..tensor import ExTensor
from ._rules import Rule, State, checked, not_negative
from .functional import check_state

__all__ = ["Optimizer"]


class Optimizer:
    """What the optimisers have in common.

    Args:
        params: the parameters, or a list of dicts, each a group: ``{"params": [...], "lr": 0.1}``. What a group does not
            say comes from the optimiser's own options.
        defaults: the options of the rule.

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

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        name = type(self).__name__
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
        loss = None
        if closure is not None:
            with set_recording(True):
                loss = closure()
        for group in self.param_groups:
            self._step_group(**group)
        return loss

    def _step_group(self, params: list[Parameter], lr: float, initial_lr: Any = None, **options: Any) -> None:
        moving = [p for p in params if p._grad is not None]
        if not moving:
            return
        rate = not_negative(type(self).__name__, "lr", lr)
        grads: Any = [p.grad for p in moving]
        states = list(map(self.state.get, moving))
        with no_grad():
            new, after = type(self)._rule(list(moving), grads, states, lr=rate, **options)
        for p, value in zip(moving, new):
            p.assign(value)
        self.state.update(zip(moving, after))

    def zero_grad(self) -> None:
        """Forget the gradients of all parameters."""
        for group in self.param_groups:
            for p in group["params"]:
                p.zero_grad()

    def state_dict(self) -> dict[str, Any]:
        """What the optimiser remembers and its options, as plain dicts; parameters are numbered in order."""
        numbers = {id(p): i for i, p in enumerate(self._params())}
        return {
            "name": type(self).__name__,
            "state": {numbers[id(p)]: dict(state) for p, state in self.state.items()},
            "param_groups": [
                {**group, "params": [numbers[id(p)] for p in group["params"]]} for group in self.param_groups
            ],
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over what :meth:`state_dict` gave, its options too. Nothing is changed unless everything fits.

        A state that names another optimiser is refused: its averages would be taken for others.
        """
        name = f"{type(self).__name__}.load_state_dict"
        if not isinstance(state_dict, Mapping) or not {"state", "param_groups"} <= set(state_dict):
            raise TypeError(
                f"[{name}] state_dict must be a dict with 'state' and 'param_groups', got {describe(state_dict)}"
            )
        saved_by = state_dict.get("name", type(self).__name__)  # PyTorch's do not say
        if saved_by != type(self).__name__:
            raise ValueError(
                f"[{name}] state_dict is that of {describe(saved_by)}, not of {type(self).__name__}"
            )
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
            states[p] = _in_dtype_of(p, check_state(name, p, saved, f"state[{number}]"))
        options = []
        for own, saved in zip(self.param_groups, groups):
            found = checked(name, {key: saved.get(key, own[key]) for key in self.defaults})
            if "initial_lr" in saved:
                found["initial_lr"] = not_negative(name, "initial_lr", saved["initial_lr"])
            options.append(found)
        self.state = states
        for own, found in zip(self.param_groups, options):
            own.update(found)

    def _params(self) -> list[Parameter]:
        return [p for group in self.param_groups for p in group["params"]]

    def __repr__(self) -> str:
        groups = [
            f"  {len(g['params'])} parameters: "
            + ", ".join(f"{k}={v}" for k, v in g.items() if k != "params")
            for g in self.param_groups
        ]
        return f"{type(self).__name__}(\n" + "\n".join(groups) + "\n)"


def _in_dtype_of(param: Parameter, state: State | None) -> State:
    """The tensors of a state in the dtype the rule keeps them in."""
    dtype = float32 if param.dtype in HALF else param.dtype
    return {
        name: value.astype(dtype) if isinstance(value, ExTensor) else value
        for name, value in (state or {}).items()
    }
