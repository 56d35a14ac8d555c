"""More optimisers: each is a rule of :mod:`extensor.optim.functional` with its options."""

from __future__ import annotations

from typing import Any

from . import _adaptive_rules as rules
from .optimizer import Optimizer

__all__ = ["Adadelta", "Adafactor", "Muon", "NAdam", "RAdam"]


class NAdam(Optimizer):
    """Adam with Nesterov momentum, see :func:`extensor.optim.functional.nadam`.

    Example:
        >>> import extensor as et
        >>> w = et.nn.Parameter([1.0])
        >>> optimizer = et.optim.NAdam([w], lr=0.5)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> round(w.item(), 4)
        0.4718
    """

    _rule = staticmethod(rules.nadam)
    _remembers = frozenset({"exp_avg", "exp_avg_sq", "mu_product"}), frozenset()

    def __init__(
        self, params: Any, lr: float = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0.0, momentum_decay: float = 4e-3, decoupled_weight_decay: bool = False,
        *, maximize: bool = False,
        stochastic_rounding: int | None = None,
    ) -> None:  # fmt: skip
        options = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
        }
        flags = {"maximize": maximize, "decoupled_weight_decay": decoupled_weight_decay}
        super().__init__(params, options | flags, stochastic_rounding)


class RAdam(Optimizer):
    """Rectified Adam, see :func:`extensor.optim.functional.radam`.

    Example:
        >>> import extensor as et
        >>> w = et.nn.Parameter([1.0])
        >>> optimizer = et.optim.RAdam([w], lr=0.25)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> round(w.item(), 4)
        0.5
    """

    _rule = staticmethod(rules.radam)
    _remembers = frozenset({"exp_avg", "exp_avg_sq"}), frozenset()

    def __init__(
        self, params: Any, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0.0, decoupled_weight_decay: bool = False, *, maximize: bool = False,
        stochastic_rounding: int | None = None,
    ) -> None:  # fmt: skip
        options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        flags = {"maximize": maximize, "decoupled_weight_decay": decoupled_weight_decay}
        super().__init__(params, options | flags, stochastic_rounding)


class Adadelta(Optimizer):
    """Adadelta, see :func:`extensor.optim.functional.adadelta`.

    Example:
        >>> import extensor as et
        >>> w = et.nn.Parameter([1.0])
        >>> optimizer = et.optim.Adadelta([w])
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> round(w.item(), 4)
        0.9968
    """

    _rule = staticmethod(rules.adadelta)
    _remembers = frozenset({"square_avg", "acc_delta"}), frozenset()

    def __init__(
        self, params: Any, lr: float = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0.0,
        *, maximize: bool = False,
        stochastic_rounding: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            params,
            {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize},
            stochastic_rounding,
        )


class Adafactor(Optimizer):
    """Adafactor, see :func:`extensor.optim.functional.adafactor`.

    Example:
        >>> import extensor as et
        >>> w = et.nn.Parameter(et.ones((2, 2)))
        >>> optimizer = et.optim.Adafactor([w], lr=0.5)
        >>> w.sum().backward()
        >>> optimizer.step()
        >>> w.tolist()
        [[0.5, 0.5], [0.5, 0.5]]
    """

    _rule = staticmethod(rules.adafactor)
    _remembers = frozenset(), frozenset({"row_var", "col_var", "variance"})

    def __init__(
        self, params: Any, lr: float = 1e-2, beta2_decay: float = -0.8, eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0, weight_decay: float = 0.0, *, maximize: bool = False,
        stochastic_rounding: int | None = None,
    ) -> None:  # fmt: skip
        options = {"lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d, "weight_decay": weight_decay}
        super().__init__(params, options | {"maximize": maximize}, stochastic_rounding)


class Muon(Optimizer):
    """Muon, see :func:`extensor.optim.functional.muon`. For the matrices inside a network; embeddings, biases and the last
    layer are better off with :class:`AdamW`.

    Example:
        >>> import extensor as et
        >>> w = et.nn.Parameter(et.zeros((2, 2)))
        >>> optimizer = et.optim.Muon([w], lr=0.5)
        >>> (w * et.eye(2)).sum().backward()
        >>> optimizer.step()
        >>> [[round(x, 1) for x in row] for row in w.tolist()]
        [[-0.6, 0.0], [0.0, -0.6]]
    """

    _rule = staticmethod(rules.muon)
    _remembers = frozenset({"momentum_buffer"}), frozenset()

    def __init__(
        self, params: Any, lr: float = 1e-3, weight_decay: float = 0.1, momentum: float = 0.95, nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315), eps: float = 1e-7, ns_steps: int = 5,
        adjust_lr_fn: str | None = None, *, stochastic_rounding: int | None = None,
    ) -> None:  # fmt: skip
        options = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "eps": eps,
        }
        shape = {"ns_coefficients": ns_coefficients, "ns_steps": ns_steps, "adjust_lr_fn": adjust_lr_fn}
        super().__init__(params, options | shape, stochastic_rounding)
        for i, p in enumerate(self._params()):
            if p.ndim != 2:
                raise ValueError(
                    f"[Muon] params[{i}] must be a matrix, got shape {p.shape}; give it to another optimiser, e.g. AdamW"
                )
