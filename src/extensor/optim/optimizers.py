"""The optimisers: each is a rule of :mod:`extensor.optim.functional` with its options."""

from __future__ import annotations

from typing import Any

from ..kernels import NATIVE
from . import _rules
from .optimizer import Optimizer

__all__ = ["Adagrad", "Adam", "AdamW", "LAMB", "Lion", "RMSprop", "SGD"]


_SGD, _ADAM = NATIVE.get("sgd_step"), NATIVE.get("adam_step")
_ADAM_LISTS = ("params", "grads", "exp_avg", "exp_avg_sq", None, "step")


class SGD(Optimizer):
    """Gradient descent with momentum, see :func:`extensor.optim.functional.sgd`.

    Example:
        >>> import extensor as et
        >>> w = et.nn.Parameter([1.0])
        >>> optimizer = et.optim.SGD([w], lr=0.25, momentum=0.9)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> optimizer.zero_grad()
        >>> w.tolist(), w.grad
        ([0.5], None)
    """

    _rule = staticmethod(_rules.sgd)
    _remembers = frozenset(), frozenset({"momentum_buffer"})

    def _native_call(self, lr: float, **options: Any) -> Any:
        if type(self)._rule is not _rules.sgd:
            return None
        buffers = "momentum_buffer" if options["momentum"] else "nothing"
        numbers = (
            lr, options["momentum"], options["dampening"], options["weight_decay"], options["nesterov"], options["maximize"],
        )  # fmt: skip
        return ("params", "grads", buffers), _SGD, numbers

    def __init__(
        self, params: Any, lr: float = 1e-3, momentum: float = 0.0, dampening: float = 0.0,
        weight_decay: float = 0.0, nesterov: bool = False, *, maximize: bool = False,
        stochastic_rounding: int | None = None,
    ) -> None:  # fmt: skip
        options = {"lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay}
        super().__init__(params, options | {"nesterov": nesterov, "maximize": maximize}, stochastic_rounding)


class Adam(Optimizer):
    """Adam, see :func:`extensor.optim.functional.adam`; with ``decoupled_weight_decay`` it is :class:`AdamW`.

    Example:
        >>> import extensor as et
        >>> w = et.nn.Parameter([1.0])
        >>> optimizer = et.optim.Adam([w], lr=0.5)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> round(w.item(), 4)
        0.5
    """

    _rule = staticmethod(_rules.adam)
    _remembers = frozenset({"exp_avg", "exp_avg_sq"}), frozenset({"max_exp_avg_sq"})

    def _native_call(self, lr: float, **options: Any) -> Any:
        if options["amsgrad"] or type(self)._rule is not _rules.adam:
            return None
        beta1, beta2 = options["betas"]
        numbers = (
            lr, beta1, beta2, options["eps"], options["weight_decay"], options["decoupled_weight_decay"], options["maximize"],
        )  # fmt: skip
        return _ADAM_LISTS, _ADAM, numbers

    def __init__(
        self, params: Any, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0.0, amsgrad: bool = False, *, maximize: bool = False, decoupled_weight_decay: bool = False,
        stochastic_rounding: int | None = None,
    ) -> None:  # fmt: skip
        options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad}
        flags = {"maximize": maximize, "decoupled_weight_decay": decoupled_weight_decay}
        super().__init__(params, options | flags, stochastic_rounding)


class AdamW(Adam):
    """Adam with decoupled decay, see :func:`extensor.optim.functional.adamw`.

    Example:
        >>> import extensor as et
        >>> w = et.nn.Parameter([1.0])
        >>> optimizer = et.optim.AdamW([w], lr=0.5, weight_decay=0.5)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> round(w.item(), 4)
        0.25
    """

    def __init__(
        self, params: Any, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 1e-2, amsgrad: bool = False, *, maximize: bool = False,
        stochastic_rounding: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            maximize=maximize,
            decoupled_weight_decay=True,
            stochastic_rounding=stochastic_rounding,
        )


class RMSprop(Optimizer):
    """RMSprop, see :func:`extensor.optim.functional.rmsprop`.

    Example:
        >>> import extensor as et
        >>> w = et.nn.Parameter([1.0])
        >>> optimizer = et.optim.RMSprop([w], lr=0.25, alpha=0.75)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w.tolist()
        [0.5]
    """

    _rule = staticmethod(_rules.rmsprop)
    _remembers = frozenset({"square_avg"}), frozenset({"grad_avg", "momentum_buffer"})

    def __init__(
        self, params: Any, lr: float = 1e-2, alpha: float = 0.99, eps: float = 1e-8, weight_decay: float = 0.0,
        momentum: float = 0.0, centered: bool = False, *, maximize: bool = False,
        stochastic_rounding: int | None = None,
    ) -> None:  # fmt: skip
        options = {"lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay, "momentum": momentum}
        super().__init__(params, options | {"centered": centered, "maximize": maximize}, stochastic_rounding)


class Adagrad(Optimizer):
    """Adagrad, see :func:`extensor.optim.functional.adagrad`.

    Example:
        >>> import extensor as et
        >>> w = et.nn.Parameter([1.0])
        >>> optimizer = et.optim.Adagrad([w], lr=0.5)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w.tolist()
        [0.5]
    """

    _rule = staticmethod(_rules.adagrad)
    _remembers = frozenset({"sum"}), frozenset()

    def __init__(
        self, params: Any, lr: float = 1e-2, lr_decay: float = 0.0, weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0, eps: float = 1e-10, *, maximize: bool = False,
        stochastic_rounding: int | None = None,
    ) -> None:  # fmt: skip
        options = {
            "lr": lr,
            "lr_decay": lr_decay,
            "weight_decay": weight_decay,
            "eps": eps,
            "maximize": maximize,
        }
        super().__init__(
            params, options | {"initial_accumulator_value": initial_accumulator_value}, stochastic_rounding
        )


class Lion(Optimizer):
    """Lion, see :func:`extensor.optim.functional.lion`.

    Example:
        >>> import extensor as et
        >>> w = et.nn.Parameter([1.0])
        >>> optimizer = et.optim.Lion([w], lr=0.25)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w.tolist()
        [0.75]
    """

    _rule = staticmethod(_rules.lion)
    _remembers = frozenset({"exp_avg"}), frozenset()

    def __init__(
        self, params: Any, lr: float = 1e-4, betas: tuple[float, float] = (0.9, 0.99), weight_decay: float = 0.0,
        *, maximize: bool = False,
        stochastic_rounding: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            params,
            {"lr": lr, "betas": betas, "weight_decay": weight_decay, "maximize": maximize},
            stochastic_rounding,
        )


class LAMB(Optimizer):
    """LAMB, see :func:`extensor.optim.functional.lamb`.

    Example:
        >>> import extensor as et
        >>> w = et.nn.Parameter([3.0, 4.0])
        >>> optimizer = et.optim.LAMB([w], lr=0.1, weight_decay=0)
        >>> w[0].backward()
        >>> optimizer.step()
        >>> w.tolist()
        [2.5, 4.0]
    """

    _rule = staticmethod(_rules.lamb)
    _remembers = frozenset({"exp_avg", "exp_avg_sq"}), frozenset()

    def __init__(
        self, params: Any, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-6,
        weight_decay: float = 1e-2, *, maximize: bool = False,
        stochastic_rounding: int | None = None,
    ) -> None:  # fmt: skip
        options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
        super().__init__(params, options, stochastic_rounding)
