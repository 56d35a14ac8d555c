"""The update rules over lists of parameters: what the functions and the classes of optimisers share.

A rule is called as ``rule(params, grads, states, **options)`` with lists of equal length and returns the new parameters
and the new states; it calls one kernel. A state is a dict of tensors (and the number of steps), or None before the
first step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from ..checks import as_bool, as_int, as_number
from ..dtypes import HALF, float32
from ..errors import describe
from ..kernels.reference import optim as kernels
from ..tensor import ExTensor

State: TypeAlias = dict[str, Any]
Updated: TypeAlias = tuple[list[ExTensor], list[State]]
Rule: TypeAlias = Callable[..., Updated]


# The options


def not_negative(function: str, name: str, value: Any) -> float:
    """A finite number from 0."""
    number = as_number(function, name, value)
    if not 0 <= number < float("inf"):
        raise ValueError(f"[{function}] {name} must be a finite number that is not negative, got {number}")
    return number


def finite(function: str, name: str, value: Any) -> float:
    """A number that is neither infinite nor nan."""
    number = as_number(function, name, value)
    if not abs(number) < float("inf"):
        raise ValueError(f"[{function}] {name} must be a finite number, got {number}")
    return number


def fraction(function: str, name: str, value: Any) -> float:
    """A number from 0, less than 1."""
    number = as_number(function, name, value)
    if not 0 <= number < 1:
        raise ValueError(f"[{function}] {name} must lie in [0, 1), got {number}")
    return number


def _two_fractions(function: str, name: str, value: Any) -> tuple[float, float]:
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise TypeError(f"[{function}] {name} must be a pair of numbers in [0, 1), got {describe(value)}")
    return fraction(function, f"{name}[0]", value[0]), fraction(function, f"{name}[1]", value[1])


def _number_or_pair(function: str, name: str, value: Any) -> Any:
    """A number that is not negative; of Adafactor two, the first of which may be None."""
    if not function.lower().startswith("adafactor"):
        return not_negative(function, name, value)
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise TypeError(
            f"[{function}] {name} must be a pair of numbers, the first or None, got {describe(value)}"
        )
    first = None if value[0] is None else not_negative(function, f"{name}[0]", value[0])
    return first, not_negative(function, f"{name}[1]", value[1])


def _three_numbers(function: str, name: str, value: Any) -> tuple[float, ...]:
    if not isinstance(value, (tuple, list)) or len(value) != 3:
        raise TypeError(f"[{function}] {name} must be three numbers, got {describe(value)}")
    return tuple(finite(function, f"{name}[{i}]", v) for i, v in enumerate(value))


def _count(function: str, name: str, value: Any) -> int:
    found = as_int(function, name, value)
    if found < 1:
        raise ValueError(f"[{function}] {name} must be at least 1, got {found}")
    return found


def _at_least_one(function: str, name: str, value: Any) -> float:
    number = finite(function, name, value)
    if number < 1:
        raise ValueError(f"[{function}] {name} must be at least 1, got {number}")
    return number


def _decay(function: str, name: str, value: Any) -> float:
    number = finite(function, name, value)
    if number > 0:
        raise ValueError(f"[{function}] {name} must not be above 0, got {number}")
    return number


def _adjustment(function: str, name: str, value: Any) -> str | None:
    if value not in (None, "original", "match_rms_adamw"):
        raise ValueError(
            f"[{function}] {name} must be None, 'original' or 'match_rms_adamw', got {describe(value)}"
        )
    return None if value is None else str(value)


def _count_or_none(function: str, name: str, value: Any) -> int | None:
    return None if value is None else _count(function, name, value)


def _line_search(function: str, name: str, value: Any) -> str | None:
    if value not in (None, "strong_wolfe"):
        raise ValueError(f"[{function}] {name} must be None or 'strong_wolfe', got {describe(value)}")
    return None if value is None else str(value)


_CHECKS: dict[str, Callable[[str, str, Any], Any]] = {
    **dict.fromkeys(["lr", "weight_decay", "momentum", "momentum_decay", "lr_decay", "initial_accumulator_value"], not_negative),
    **dict.fromkeys(["amsgrad", "centered", "decoupled_weight_decay", "maximize", "nesterov"], as_bool),
    "alpha": not_negative,
    "betas": _two_fractions,
    "dampening": finite,
    "eps": _number_or_pair,
    "rho": fraction,
    "beta2_decay": _decay,
    "d": _at_least_one,
    "ns_coefficients": _three_numbers,
    "ns_steps": _count,
    "adjust_lr_fn": _adjustment,
    "max_iter": _count,
    "max_eval": _count_or_none,
    "history_size": _count,
    "tolerance_grad": not_negative,
    "tolerance_change": not_negative,
    "line_search_fn": _line_search,
}  # fmt: skip


def checked(function: str, options: dict[str, Any]) -> dict[str, Any]:
    """The options of a rule, each in its range."""
    found = {name: _CHECKS[name](function, name, value) for name, value in options.items()}
    if found.get("nesterov") and "dampening" in found and (not found["momentum"] or found["dampening"]):
        raise ValueError(
            f"[{function}] nesterov needs a momentum above 0 and a dampening of 0, "
            f"got momentum {found['momentum']} and dampening {found['dampening']}"
        )
    return found


# The states


def started(params: list[ExTensor], states: Sequence[State | None], fields: dict[str, float]) -> list[State]:
    """The states, those of parameters that have none filled with constants."""
    return [
        state if state is not None else {"step": 0, **{name: filled(p, value) for name, value in fields.items()}}
        for p, state in zip(params, states)
    ]  # fmt: skip


def filled(param: ExTensor, value: float) -> ExTensor:
    """A constant of the shape of a parameter, at least float32."""
    dtype = float32 if param.dtype in HALF else param.dtype
    # zeros that are only read, and then replaced, take no memory
    return ExTensor(np.full(param.shape, value, dtype) if value else np.zeros(param.shape, dtype))


def column(states: list[State], name: str, wanted: bool = True) -> list[ExTensor] | None:
    """What the rule remembers under one name, for all parameters."""
    return [state[name] for state in states] if wanted else None


def rows(steps: list[int], **columns: list[ExTensor] | None) -> list[State]:
    """The states after a step."""
    kept = {"step": steps, **{name: column for name, column in columns.items() if column is not None}}
    return [dict(zip(kept, row)) for row in zip(*kept.values())]


def next_steps(states: list[State]) -> list[int]:
    """The numbers of this step."""
    return [state["step"] + 1 for state in states]


# The rules


def sgd(
    params: list[ExTensor], grads: list[ExTensor], states: Sequence[State | None],
    *, lr: float, momentum: float, dampening: float, weight_decay: float, nesterov: bool, maximize: bool,
) -> Updated:  # fmt: skip
    """Gradient descent with momentum."""
    buffers = [None if state is None else state.get("momentum_buffer") for state in states]
    new, velocities = kernels.sgd_step(
        params, grads, buffers, lr, momentum, dampening, weight_decay, nesterov, maximize
    )
    return new, [{"momentum_buffer": velocity} if momentum else {} for velocity in velocities]


def adam(
    params: list[ExTensor], grads: list[ExTensor], states: Sequence[State | None],
    *, lr: float, betas: tuple[float, float], eps: float, weight_decay: float, amsgrad: bool,
    decoupled_weight_decay: bool, maximize: bool,
) -> Updated:  # fmt: skip
    """Adam, AMSGrad and AdamW."""
    fields = {"exp_avg": 0.0, "exp_avg_sq": 0.0} | ({"max_exp_avg_sq": 0.0} if amsgrad else {})
    before = started(params, states, fields)
    steps = next_steps(before)
    new, averages, squares, maxima = kernels.adam_step(
        params, grads, column(before, "exp_avg"), column(before, "exp_avg_sq"),
        column(before, "max_exp_avg_sq", amsgrad), steps, lr, *betas, eps, weight_decay, decoupled_weight_decay, maximize,
    )  # fmt: skip
    return new, rows(steps, exp_avg=averages, exp_avg_sq=squares, max_exp_avg_sq=maxima)


def rmsprop(
    params: list[ExTensor], grads: list[ExTensor], states: Sequence[State | None],
    *, lr: float, alpha: float, eps: float, weight_decay: float, momentum: float, centered: bool, maximize: bool,
) -> Updated:  # fmt: skip
    """RMSprop, plain or centred."""
    fields = {"square_avg": 0.0} | ({"grad_avg": 0.0} if centered else {})
    before = started(params, states, fields | ({"momentum_buffer": 0.0} if momentum else {}))
    new, squares, averages, buffers = kernels.rmsprop_step(
        params, grads, column(before, "square_avg"), column(before, "grad_avg", centered),
        column(before, "momentum_buffer", momentum > 0), lr, alpha, eps, weight_decay, momentum, maximize,
    )  # fmt: skip
    return new, rows(next_steps(before), square_avg=squares, grad_avg=averages, momentum_buffer=buffers)


def adagrad(
    params: list[ExTensor], grads: list[ExTensor], states: Sequence[State | None],
    *, lr: float, lr_decay: float, weight_decay: float, initial_accumulator_value: float, eps: float, maximize: bool,
) -> Updated:  # fmt: skip
    """Adagrad."""
    before = started(params, states, {"sum": initial_accumulator_value})
    steps = next_steps(before)
    new, sums = kernels.adagrad_step(
        params, grads, column(before, "sum"), steps, lr, lr_decay, eps, weight_decay, maximize
    )
    return new, rows(steps, sum=sums)


def lion(
    params: list[ExTensor], grads: list[ExTensor], states: Sequence[State | None],
    *, lr: float, betas: tuple[float, float], weight_decay: float, maximize: bool,
) -> Updated:  # fmt: skip
    """Lion."""
    before = started(params, states, {"exp_avg": 0.0})
    new, averages = kernels.lion_step(
        params, grads, column(before, "exp_avg"), lr, *betas, weight_decay, maximize
    )
    return new, rows(next_steps(before), exp_avg=averages)


def lamb(
    params: list[ExTensor], grads: list[ExTensor], states: Sequence[State | None],
    *, lr: float, betas: tuple[float, float], eps: float, weight_decay: float, maximize: bool,
) -> Updated:  # fmt: skip
    """LAMB."""
    before = started(params, states, {"exp_avg": 0.0, "exp_avg_sq": 0.0})
    steps = next_steps(before)
    new, averages, squares = kernels.lamb_step(
        params, grads, column(before, "exp_avg"), column(before, "exp_avg_sq"), steps,
        lr, *betas, eps, weight_decay, maximize,
    )  # fmt: skip
    return new, rows(steps, exp_avg=averages, exp_avg_sq=squares)
