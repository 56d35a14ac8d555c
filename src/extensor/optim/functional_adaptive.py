"""More optimiser steps as pure functions, in the manner of :mod:`.functional`."""

from __future__ import annotations

from ..tensor import ExTensor
from . import _adaptive_rules as rules
from ._rules import State
from ._single import Step, one_step

__all__ = ["adadelta", "adafactor", "muon", "nadam", "radam"]


def nadam(
    param: ExTensor, grad: ExTensor, state: State | None = None,
    *, lr: float = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0.0,
    momentum_decay: float = 4e-3, decoupled_weight_decay: bool = False, maximize: bool = False,
) -> Step:  # fmt: skip
    """Adam with Nesterov momentum (Dozat, 2016).   param -= lr * ((1 - mu) / (1 - M) * g + mu' / (1 - M mu') * m) / (sqrt(s) + eps)

    ``m`` and ``s`` are Adam's averages (``s`` corrected), ``mu = beta1 (1 - 0.96^(t momentum_decay) / 2)`` the momentum of
    step t, ``mu'`` that of the next, ``M`` the product of all up to t.

    Args:
        param, grad: the parameter and its gradient, of the same shape.
        state: None at first, then what the last step returned (``step``, ``mu_product``, ``exp_avg``, ``exp_avg_sq``).
        lr: the learning rate.
        betas: how much of the two averages is kept.
        eps: keeps the division finite.
        weight_decay: the factor of the penalty on large parameters.
        momentum_decay: how fast the momentum grows towards ``betas[0]``.
        decoupled_weight_decay: let the parameter shrink by itself instead, as AdamW does.
        maximize: go uphill.

    Returns:
        The new parameter (a leaf with the dtype of ``param``) and the new state.

    Example:
        >>> import extensor as et
        >>> w, state = et.optim.functional.nadam(et.tensor([1.0]), et.tensor([2.0]), None, lr=0.5)
        >>> round(w.item(), 4)
        0.4718
    """
    return one_step(
        "nadam", rules.nadam, param, grad, state, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay,
        momentum_decay=momentum_decay, decoupled_weight_decay=decoupled_weight_decay, maximize=maximize,
    )  # fmt: skip


def radam(
    param: ExTensor, grad: ExTensor, state: State | None = None,
    *, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0.0,
    decoupled_weight_decay: bool = False, maximize: bool = False,
) -> Step:  # fmt: skip
    """Rectified Adam (Liu et al., 2020).   param -= lr * r * m / (sqrt(s) + eps), or lr * m while too few squares are known

    ``m`` and ``s`` are Adam's corrected averages. With ``n = 2 / (1 - beta2) - 1`` and
    ``k = n - 2 t beta2^t / (1 - beta2^t)``, ``r = sqrt((k-4)(k-2)n / ((n-4)(n-2)k))`` where k is above 5.

    Args:
        param, grad: the parameter and its gradient, of the same shape.
        state: None at first, then what the last step returned (``step``, ``exp_avg``, ``exp_avg_sq``).
        lr: the learning rate.
        betas: how much of the two averages is kept.
        eps: keeps the division finite.
        weight_decay: the factor of the penalty on large parameters.
        decoupled_weight_decay: let the parameter shrink by itself instead, as AdamW does.
        maximize: go uphill.

    Returns:
        The new parameter (a leaf with the dtype of ``param``) and the new state.

    Example:
        >>> import extensor as et
        >>> w, state = et.optim.functional.radam(et.tensor([1.0]), et.tensor([2.0]), None, lr=0.25)
        >>> round(w.item(), 4)
        0.5
    """
    return one_step(
        "radam", rules.radam, param, grad, state, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay,
        decoupled_weight_decay=decoupled_weight_decay, maximize=maximize,
    )  # fmt: skip


def adadelta(
    param: ExTensor, grad: ExTensor, state: State | None = None,
    *, lr: float = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0.0, maximize: bool = False,
) -> Step:  # fmt: skip
    """Adadelta (Zeiler, 2012).   u = g * sqrt(a + eps) / sqrt(s + eps),  param -= lr * u

    ``s`` and ``a`` are the moving averages of ``g^2`` and of ``u^2`` before this step.

    Args:
        param, grad: the parameter and its gradient, of the same shape.
        state: None at first, then what the last step returned (``step``, ``square_avg``, ``acc_delta``).
        lr: the learning rate.
        rho: how much of the averages is kept.
        eps: keeps the division finite, and the first steps above 0.
        weight_decay: the factor of the penalty on large parameters.
        maximize: go uphill.

    Returns:
        The new parameter (a leaf with the dtype of ``param``) and the new state.

    Example:
        >>> import extensor as et
        >>> w, state = et.optim.functional.adadelta(et.tensor([1.0]), et.tensor([2.0]), None)
        >>> round(w.item(), 4)
        0.9968
    """
    return one_step(
        "adadelta", rules.adadelta, param, grad, state, lr=lr, rho=rho, eps=eps, weight_decay=weight_decay, maximize=maximize
    )  # fmt: skip


def adafactor(
    param: ExTensor, grad: ExTensor, state: State | None = None,
    *, lr: float = 1e-2, beta2_decay: float = -0.8, eps: tuple[float | None, float] = (None, 1e-3), d: float = 1.0,
    weight_decay: float = 0.0, maximize: bool = False,
) -> Step:  # fmt: skip
    """Adafactor (Shazeer and Stern, 2018): Adam's scaling from one number per row and per column of a matrix.

    ``u = g / sqrt(v)``, held at a root mean square of ``d``;  ``param -= max(eps[1], rms(param)) * min(lr, 1 / sqrt(t)) * u``.
    Of a matrix ``v = r c^T / mean(r)`` with the averages r of squared rows and c of squared columns; the averages move by
    ``t^beta2_decay``.

    Args:
        param, grad: the parameter and its gradient, of the same shape.
        state: None at first, then what the last step returned (``step`` and ``row_var``, ``col_var``, or ``variance``).
        lr: the largest relative step.
        beta2_decay: how fast the averages slow down, at most 0.
        eps: the smallest divisor (None: what the dtype resolves) and the smallest scale of a parameter.
        d: the largest root mean square of an update before scaling.
        weight_decay: the share by which a parameter shrinks by itself, times ``lr``.
        maximize: go uphill.

    Returns:
        The new parameter (a leaf with the dtype of ``param``) and the new state.

    Example:
        >>> import extensor as et
        >>> w, state = et.optim.functional.adafactor(et.ones((2, 3)), et.ones((2, 3)), None, lr=0.5)
        >>> w.tolist(), state["row_var"].shape, state["col_var"].shape
        ([[0.5, 0.5, 0.5], [0.5, 0.5, 0.5]], (2, 1), (1, 3))
    """
    return one_step(
        "adafactor", rules.adafactor, param, grad, state, lr=lr, beta2_decay=beta2_decay, eps=eps, d=d,
        weight_decay=weight_decay, maximize=maximize,
    )  # fmt: skip


def muon(
    param: ExTensor, grad: ExTensor, state: State | None = None,
    *, lr: float = 1e-3, weight_decay: float = 0.1, momentum: float = 0.95, nesterov: bool = True,
    ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315), eps: float = 1e-7, ns_steps: int = 5,
    adjust_lr_fn: str | None = None,
) -> Step:  # fmt: skip
    """Muon (Jordan et al., 2024): momentum made nearly orthogonal, for matrices.   param -= lr * scale * orthogonal(v)

    ``v`` is the moving average of the gradient. ``orthogonal`` applies ``a y + (b G + c G^2) y`` with ``G = y y^T`` to
    ``v / |v|``, ``ns_steps`` times, in the dtype of the update (PyTorch rounds to bfloat16 there).

    Args:
        param, grad: the parameter and its gradient, of the same shape, with two axes.
        state: None at first, then what the last step returned (``momentum_buffer``).
        lr: the learning rate.
        weight_decay: the share by which a parameter shrinks by itself, times ``lr``.
        momentum: how much of the average is kept.
        nesterov: step along ``(1 - momentum) * grad + momentum * v``.
        ns_coefficients: a, b and c.
        eps: the smallest norm that is divided by.
        ns_steps: how often the polynomial is applied.
        adjust_lr_fn: the scale: ``sqrt(max(1, rows / columns))`` for None and ``"original"``,
            ``0.2 * sqrt(max(rows, columns))`` for ``"match_rms_adamw"``.

    Returns:
        The new parameter (a leaf with the dtype of ``param``) and the new state.

    Example:
        >>> import extensor as et
        >>> w, state = et.optim.functional.muon(et.zeros((2, 2)), et.eye(2) * 8.0, None, lr=0.5)
        >>> [[round(x, 1) for x in row] for row in w.tolist()]
        [[-0.6, 0.0], [0.0, -0.6]]
    """
    return one_step(
        "muon", rules.muon, param, grad, state, lr=lr, weight_decay=weight_decay, momentum=momentum, nesterov=nesterov,
        ns_coefficients=ns_coefficients, eps=eps, ns_steps=ns_steps, adjust_lr_fn=adjust_lr_fn,
    )  # fmt: skip
