"""A rule on a single parameter: what the functions of :mod:`.functional` share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..checks import as_floating, as_number
from ..errors import describe
from ..tensor import ExTensor, Shape
from ._rules import Rule, State, checked

Step = tuple[ExTensor, State]

_NUMBERS: dict[str, Callable[[float], float]] = {"step": int, "mu_product": float}


def _shape_of(name: str, shape: Shape) -> Shape:
    """The shape of what is remembered of a parameter: its own, but for the sums over rows and columns of Adafactor."""
    if name == "row_var":
        return (*shape[:-1], 1)
    return (*shape[:-2], 1, *shape[-1:]) if name == "col_var" else shape


def pair(function: str, param: Any, grad: Any) -> tuple[ExTensor, ExTensor]:
    """A parameter and its gradient, of the same shape."""
    param, grad = as_floating(function, "param", param), as_floating(function, "grad", grad)
    if grad.shape != param.shape:
        raise ValueError(f"[{function}] grad has shape {grad.shape} but param has shape {param.shape}")
    return param, grad


def check_state(function: str, param: ExTensor, state: Any, place: str = "state") -> State | None:
    """A state that fits the parameter, or None."""
    if state is None:
        return None
    if not isinstance(state, dict):
        raise TypeError(
            f"[{function}] {place} must be None or a dict from an earlier step, got {describe(state)}"
        )
    found: State = {}
    for name, value in state.items():
        if name in _NUMBERS:
            found[name] = _NUMBERS[name](as_number(function, f"{place}[{name!r}]", value))
        else:
            found[name] = as_floating(function, f"{place}[{name!r}]", value)
            wanted = _shape_of(name, param.shape)
            if found[name].shape != wanted:
                raise ValueError(
                    f"[{function}] {place}[{name!r}] has shape {found[name].shape} but the parameter has {param.shape}"
                    + (f", which needs {wanted}" if wanted != param.shape else "")
                )
    return found


def one_step(function: str, rule: Rule, param: Any, grad: Any, state: Any, **options: Any) -> Step:
    """The rule on a single parameter."""
    param, grad = pair(function, param, grad)
    fitting = check_state(function, param, state)
    try:
        params, states = rule([param], [grad], [fitting], **checked(function, options))
    except KeyError as missing:
        raise ValueError(
            f"[{function}] state has no {missing}; it comes from a step with other options; pass state=None"
        ) from None
    return ExTensor(params[0]._array, param.requires_grad), states[0]
