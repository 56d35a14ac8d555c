"""The update rules of :mod:`.functional_adaptive` over lists of parameters; see :mod:`._rules`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..kernels.reference import optim_adaptive as kernels
from ..tensor import ExTensor
from ._rules import State, Updated, column, filled, next_steps, rows, started


def nadam(
    params: list[ExTensor], grads: list[ExTensor], states: Sequence[State | None],
    *, lr: float, betas: tuple[float, float], eps: float, weight_decay: float, momentum_decay: float,
    decoupled_weight_decay: bool, maximize: bool,
) -> Updated:  # fmt: skip
    """Adam with Nesterov momentum."""
    before = started(params, states, {"exp_avg": 0.0, "exp_avg_sq": 0.0})
    steps = next_steps(before)
    products = [state.get("mu_product", 1.0) for state in before]
    new, averages, squares, products = kernels.nadam_step(
        params, grads, column(before, "exp_avg"), column(before, "exp_avg_sq"), products, steps, lr, *betas, eps,
        weight_decay, momentum_decay, decoupled_weight_decay, maximize,
    )  # fmt: skip
    return new, rows(steps, mu_product=products, exp_avg=averages, exp_avg_sq=squares)


def radam(
    params: list[ExTensor], grads: list[ExTensor], states: Sequence[State | None],
    *, lr: float, betas: tuple[float, float], eps: float, weight_decay: float, decoupled_weight_decay: bool, maximize: bool,
) -> Updated:  # fmt: skip
    """Rectified Adam."""
    before = started(params, states, {"exp_avg": 0.0, "exp_avg_sq": 0.0})
    steps = next_steps(before)
    new, averages, squares = kernels.radam_step(
        params, grads, column(before, "exp_avg"), column(before, "exp_avg_sq"), steps, lr, *betas, eps, weight_decay,
        decoupled_weight_decay, maximize,
    )  # fmt: skip
    return new, rows(steps, exp_avg=averages, exp_avg_sq=squares)


def adadelta(
    params: list[ExTensor], grads: list[ExTensor], states: Sequence[State | None],
    *, lr: float, rho: float, eps: float, weight_decay: float, maximize: bool,
) -> Updated:  # fmt: skip
    """Adadelta."""
    before = started(params, states, {"square_avg": 0.0, "acc_delta": 0.0})
    new, squares, deltas = kernels.adadelta_step(
        params, grads, column(before, "square_avg"), column(before, "acc_delta"), lr, rho, eps, weight_decay, maximize
    )  # fmt: skip
    return new, rows(next_steps(before), square_avg=squares, acc_delta=deltas)


def adafactor(
    params: list[ExTensor], grads: list[ExTensor], states: Sequence[State | None],
    *, lr: float, beta2_decay: float, eps: tuple[float | None, float], d: float, weight_decay: float, maximize: bool,
) -> Updated:  # fmt: skip
    """Adafactor."""
    before = [state or _factors(p) for p, state in zip(params, states)]
    steps = next_steps(before)
    fields = [[state.get(name) for state in before] for name in ("row_var", "col_var", "variance")]
    new, *after = kernels.adafactor_step(
        params, grads, *fields, steps, lr, beta2_decay, *eps, d, weight_decay, maximize
    )
    names = ("step", "row_var", "col_var", "variance")
    return new, [
        {name: value for name, value in zip(names, row) if value is not None} for row in zip(steps, *after)
    ]


def _factors(param: ExTensor) -> State:
    """What Adafactor remembers before its first step: of a matrix a number per row and per column."""
    zeros = filled(param, 0.0)
    if param.ndim < 2:
        return {"step": 0, "variance": zeros}
    shapes = (*param.shape[:-1], 1), (*param.shape[:-2], 1, param.shape[-1])
    return {
        "step": 0,
        **{n: ExTensor(np.zeros(s, zeros.dtype)) for n, s in zip(("row_var", "col_var"), shapes)},
    }


def muon(
    params: list[ExTensor], grads: list[ExTensor], states: Sequence[State | None],
    *, lr: float, weight_decay: float, momentum: float, nesterov: bool, ns_coefficients: tuple[float, float, float],
    eps: float, ns_steps: int, adjust_lr_fn: str | None, maximize: bool = False,
) -> Updated:  # fmt: skip
    """Muon."""
    for p in params:
        if p.ndim != 2:
            raise ValueError(
                f"[Muon] parameters must be matrices, got shape {p.shape}; give the others to another optimiser"
            )
    buffers = [filled(p, 0.0) if not state else state["momentum_buffer"] for p, state in zip(params, states)]
    new, after = kernels.muon_step(
        params, grads, buffers, lr, momentum, weight_decay, nesterov, ns_coefficients, eps, ns_steps,
        adjust_lr_fn == "match_rms_adamw", maximize,
    )  # fmt: skip
    return new, [{"momentum_buffer": buffer} for buffer in after]
