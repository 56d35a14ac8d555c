"""Optimiser steps as pure functions of parameter, gradient and state.

Each takes ``(param, grad, state)`` and returns ``(param, state)``: new values, nothing is changed in place. The state is
None before the first step, then a dict of what the rule remembers. The classes of :mod:`extensor.optim` apply the same
rules to all parameters of a model at once.
"""

from __future__ import annotations

from typing import Any

from ..kernels.reference import optim as kernels
from ..tensor import ExTensor
from . import _rules
from ._rules import State
from ._single import Step, one_step, pair
from .functional_adaptive import adadelta, adafactor, muon, nadam, radam

__all__ = [
    "adadelta", "adafactor", "adagrad", "adam", "adamw", "lamb", "lion", "muon", "nadam", "radam", "rmsprop", "sgd", "sgd_step",
]  # fmt: skip


def sgd_step(param: ExTensor, grad: ExTensor, lr: Any) -> ExTensor:
    """One step of gradient descent.   y = param - lr * grad

    Args:
        param: the parameter; it stays as it is.
        grad: its gradient, of the same shape.
        lr: the learning rate, not negative.

    Returns:
        The new parameter: a leaf without history, with the dtype and ``requires_grad`` of ``param``.

    Example:
        >>> import extensor as et
        >>> et.sgd_step(et.tensor([1.0, 2.0]), et.tensor([10.0, -10.0]), lr=0.25).tolist()
        [-1.5, 4.5]
    """
    param, grad = pair("sgd_step", param, grad)
    rate = _rules.not_negative("sgd_step", "lr", lr)
    (stepped,), _ = kernels.sgd_step([param], [grad], [None], rate, 0.0, 0.0, 0.0, False, False)
    return ExTensor(stepped._array, param.requires_grad)


def sgd(
    param: ExTensor, grad: ExTensor, state: State | None = None,
    *, lr: float = 1e-3, momentum: float = 0.0, dampening: float = 0.0, weight_decay: float = 0.0,
    nesterov: bool = False, maximize: bool = False,
) -> Step:  # fmt: skip
    """Gradient descent with momentum.   v = momentum * v + (1 - dampening) * g,  param -= lr * v

    ``g`` is ``grad + weight_decay * param``; the first velocity is ``g`` itself.

    Args:
        param, grad: the parameter and its gradient, of the same shape.
        state: None at first, then what the last step returned (``momentum_buffer``).
        lr: the learning rate.
        momentum, dampening: how much velocity is kept, and how much of the gradient is held back.
        weight_decay: the factor of the penalty on large parameters.
        nesterov: step along ``g + momentum * v``.
        maximize: go uphill.

    Returns:
        The new parameter (a leaf with the dtype of ``param``) and the new state.

    Example:
        >>> import extensor as et
        >>> w, state = et.optim.functional.sgd(et.tensor([1.0]), et.tensor([2.0]), None, lr=0.25, momentum=0.5)
        >>> w, state = et.optim.functional.sgd(w, et.tensor([2.0]), state, lr=0.25, momentum=0.5)
        >>> w.tolist(), state["momentum_buffer"].tolist()
        ([-0.25], [3.0])
    """
    return one_step(
        "sgd", _rules.sgd, param, grad, state, lr=lr, momentum=momentum, dampening=dampening,
        weight_decay=weight_decay, nesterov=nesterov, maximize=maximize,
    )  # fmt: skip


def adam(
    param: ExTensor, grad: ExTensor, state: State | None = None,
    *, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0.0,
    amsgrad: bool = False, maximize: bool = False,
) -> Step:  # fmt: skip
    r"""Adam.   m = β1 m + (1 - β1) g,  v = β2 v + (1 - β2) g²,  param -= lr * m̂ / (sqrt(v̂) + eps)

    with ``m̂ = m / (1 - β1^t)``, ``v̂ = v / (1 - β2^t)`` at step t and ``g = grad + weight_decay * param``.

    Args:
        param, grad: the parameter and its gradient, of the same shape.
        state: None at first, then what the last step returned (``step``, ``exp_avg``, ``exp_avg_sq``).
        lr: the learning rate.
        betas: β1 and β2.
        eps: keeps the denominator away from 0.
        weight_decay: the factor of the penalty on large parameters.
        amsgrad: use the largest ``v`` so far.
        maximize: go uphill.

    Returns:
        The new parameter (a leaf with the dtype of ``param``) and the new state.

    Example:
        >>> import extensor as et
        >>> w, state = et.optim.functional.adam(et.tensor([1.0]), et.tensor([4.0]), None, lr=0.5)
        >>> round(w.item(), 4), state["step"]
        (0.5, 1)
    """
    return one_step(
        "adam", _rules.adam, param, grad, state, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay,
        amsgrad=amsgrad, decoupled_weight_decay=False, maximize=maximize,
    )  # fmt: skip


def adamw(
    param: ExTensor, grad: ExTensor, state: State | None = None,
    *, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 1e-2,
    amsgrad: bool = False, maximize: bool = False,
) -> Step:  # fmt: skip
    """Adam with decoupled decay.   param *= 1 - lr * weight_decay, then the step of :func:`adam` without penalty

    Arguments and state as :func:`adam`.

    Example:
        >>> import extensor as et
        >>> w, state = et.optim.functional.adamw(et.tensor([1.0]), et.tensor([0.0]), None, lr=0.5, weight_decay=0.5)
        >>> w.tolist()
        [0.75]
    """
    return one_step(
        "adamw", _rules.adam, param, grad, state, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay,
        amsgrad=amsgrad, decoupled_weight_decay=True, maximize=maximize,
    )  # fmt: skip


def rmsprop(
    param: ExTensor, grad: ExTensor, state: State | None = None,
    *, lr: float = 1e-2, alpha: float = 0.99, eps: float = 1e-8, weight_decay: float = 0.0, momentum: float = 0.0,
    centered: bool = False, maximize: bool = False,
) -> Step:  # fmt: skip
    """RMSprop.   v = alpha * v + (1 - alpha) * g²,  param -= lr * g / (sqrt(v) + eps)

    Args:
        param, grad: the parameter and its gradient, of the same shape.
        state: None at first, then what the last step returned (``square_avg``, …).
        lr: the learning rate.
        alpha: how slowly the average forgets.
        eps: keeps the denominator away from 0.
        weight_decay: the factor of the penalty on large parameters.
        momentum: above 0, steps are added up in a velocity.
        centered: divide by the standard deviation, ``v`` minus the square of the average gradient.
        maximize: go uphill.

    Returns:
        The new parameter (a leaf with the dtype of ``param``) and the new state.

    Example:
        >>> import extensor as et
        >>> w, state = et.optim.functional.rmsprop(et.tensor([1.0]), et.tensor([4.0]), None, lr=0.5, alpha=0.75)
        >>> round(w.item(), 4), state["square_avg"].tolist()
        (0.0, [4.0])
    """
    return one_step(
        "rmsprop", _rules.rmsprop, param, grad, state, lr=lr, alpha=alpha, eps=eps, weight_decay=weight_decay,
        momentum=momentum, centered=centered, maximize=maximize,
    )  # fmt: skip


def adagrad(
    param: ExTensor, grad: ExTensor, state: State | None = None,
    *, lr: float = 1e-2, lr_decay: float = 0.0, weight_decay: float = 0.0, initial_accumulator_value: float = 0.0,
    eps: float = 1e-10, maximize: bool = False,
) -> Step:  # fmt: skip
    """Adagrad.   s += g²,  param -= lr / (1 + (t - 1) * lr_decay) * g / (sqrt(s) + eps) at step t

    Args:
        param, grad: the parameter and its gradient, of the same shape.
        state: None at first, then what the last step returned (``step``, ``sum``).
        lr, lr_decay: the learning rate and how fast it falls.
        weight_decay: the factor of the penalty on large parameters.
        initial_accumulator_value: where the sum starts.
        eps: keeps the denominator away from 0.
        maximize: go uphill.

    Returns:
        The new parameter (a leaf with the dtype of ``param``) and the new state.

    Example:
        >>> import extensor as et
        >>> w, state = et.optim.functional.adagrad(et.tensor([1.0]), et.tensor([4.0]), None, lr=0.5)
        >>> w.tolist(), state["sum"].tolist()
        ([0.5], [16.0])
    """
    return one_step(
        "adagrad", _rules.adagrad, param, grad, state, lr=lr, lr_decay=lr_decay, weight_decay=weight_decay,
        initial_accumulator_value=initial_accumulator_value, eps=eps, maximize=maximize,
    )  # fmt: skip


def lion(
    param: ExTensor, grad: ExTensor, state: State | None = None,
    *, lr: float = 1e-4, betas: tuple[float, float] = (0.9, 0.99), weight_decay: float = 0.0, maximize: bool = False,
) -> Step:  # fmt: skip
    """Lion.   param -= lr * (sign(β1 m + (1 - β1) g) + weight_decay * param),  then m = β2 m + (1 - β2) g

    Args:
        param, grad: the parameter and its gradient, of the same shape.
        state: None at first, then what the last step returned (``exp_avg``).
        lr: the learning rate.
        betas: β1, how much of the direction is remembered, and β2, how slowly the memory fades.
        weight_decay: the decoupled decay.
        maximize: go uphill.

    Returns:
        The new parameter (a leaf with the dtype of ``param``) and the new state.

    Example:
        >>> import extensor as et
        >>> w, state = et.optim.functional.lion(et.tensor([1.0, 1.0]), et.tensor([0.01, -9.0]), None, lr=0.25)
        >>> w.tolist()
        [0.75, 1.25]
    """
    return one_step(
        "lion", _rules.lion, param, grad, state, lr=lr, betas=betas, weight_decay=weight_decay, maximize=maximize
    )  # fmt: skip


def lamb(
    param: ExTensor, grad: ExTensor, state: State | None = None,
    *, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-6, weight_decay: float = 1e-2,
    maximize: bool = False,
) -> Step:  # fmt: skip
    """LAMB.   r = m̂ / (sqrt(v̂) + eps) + weight_decay * param,  param -= lr * |param| / |r| * r

    ``m̂`` and ``v̂`` are those of :func:`adam`; the ratio of the norms is 1 where one of them is 0.

    Args:
        param, grad: the parameter and its gradient, of the same shape.
        state: None at first, then what the last step returned (``step``, ``exp_avg``, ``exp_avg_sq``).
        lr: the learning rate.
        betas: β1 and β2.
        eps: keeps the denominator away from 0.
        weight_decay: the decoupled decay.
        maximize: go uphill.

    Returns:
        The new parameter (a leaf with the dtype of ``param``) and the new state.

    Example:
        >>> import extensor as et
        >>> w, state = et.optim.functional.lamb(et.tensor([3.0, 4.0]), et.tensor([1.0, 0.0]), None, lr=0.1, weight_decay=0)
        >>> w.tolist()
        [2.5, 4.0]
    """
    return one_step(
        "lamb", _rules.lamb, param, grad, state, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay,
        maximize=maximize,
    )  # fmt: skip
