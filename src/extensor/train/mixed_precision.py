"""How a trainer computes: the dtype of its products, and the loss scaler that float16 needs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any, Literal, get_args

from ..errors import describe
from ..graph import autocast
from ..optim import LossScaler, Optimizer
from ..tensor import ExTensor

try:
    from .. import _native
except ImportError:
    _native = None  # type: ignore[assignment]

__all__ = ["PRECISIONS", "MixedPrecision", "Precision", "check_precision"]

Precision = Literal["float32", "bfloat16", "float16", "auto"]
PRECISIONS: tuple[str, ...] = get_args(Precision)

_ROUNDS, _MEASURED = 5, 3  # the first rounds decide plans and warm caches
_WORTH_IT = 0.95  # a gain that is smaller may be chance, and costs digits


def check_precision(function: str, precision: Any) -> str:
    """The name of a precision."""
    if precision not in PRECISIONS:
        raise ValueError(
            f"[{function}] precision must be one of {', '.join(PRECISIONS)}, got {describe(precision)}"
        )
    return str(precision)


def why_it_cannot_pay(precision: str) -> str | None:
    """A sentence where this processor computes no faster in a half type; None where it may."""
    if precision == "bfloat16" and not getattr(_native, "has_bf16_unit", lambda: False)():
        return "this processor (or this build) has no products of bfloat16: they are computed in float32"
    if precision == "float16":
        return "products of float16 are computed in float32 here, and bfloat16 needs no loss scaling"
    return None


class MixedPrecision:
    """The precision that a trainer was asked for, or the one it has chosen.

    Attributes:
        name: ``"float32"``, ``"bfloat16"`` or ``"float16"``; ``"auto"`` until it is chosen.
        scaler: scales the loss, in float16.
        reason: why it was chosen, in a sentence.
    """

    def __init__(self, function: str, precision: str) -> None:
        self.function = function
        self.asked = self.name = check_precision(function, precision)
        self.scaler = LossScaler() if precision == "float16" else None
        self.reason: str | None = None
        cannot_pay = why_it_cannot_pay(precision)
        if cannot_pay is not None:
            warnings.warn(
                f"[{function}] precision={precision!r} will not be faster than float32: {cannot_pay}",
                UserWarning,
                stacklevel=3,
            )

    def block(self) -> autocast:
        """A block in which to compute a step: parameters are cast once in it."""
        return autocast("float32" if self.name == "auto" else self.name)

    @property
    def scale(self) -> float | None:
        """The factor of the loss, if there is one."""
        return None if self.scaler is None else self.scaler.get_scale()

    def scaled(self, loss: ExTensor) -> ExTensor:
        """The loss that the backward pass starts from."""
        return loss if self.scaler is None else self.scaler.scale(loss)

    def refuse(self, optimizer: Optimizer) -> bool:
        """The loss of this step is not finite; whether that only means that the step is skipped."""
        if self.scaler is not None:
            self.scaler.skip(optimizer)
        return self.scaler is not None

    def unscale(self, optimizer: Optimizer) -> bool:
        """Take the scale out of the gradients; whether the step can be made."""
        return self.scaler is None or self.scaler.unscale(optimizer)

    def update(self) -> None:
        """A step is over, made or skipped."""
        if self.scaler is not None:
            self.scaler.update()

    def record(self) -> dict[str, Any]:
        """For the log: the scale and how many steps were skipped, where there is a scale."""
        if self.scaler is None:
            return {}
        return {"loss_scale": self.scaler.get_scale(), "skipped_steps": self.scaler.skipped}

    # The choice

    def choose(self, step: Callable[[], Any]) -> None:
        """Measure ``step`` in float32 and in bfloat16 and take the faster one."""
        times: dict[str, list[float]] = {"float32": [], "bfloat16": []}
        for _ in range(_ROUNDS):
            for name, taken in times.items():
                began = perf_counter()
                with autocast(name):
                    step()
                taken.append(perf_counter() - began)
        wide, half = (min(taken[-_MEASURED:]) for taken in times.values())
        self.name = "bfloat16" if half < _WORTH_IT * wide else "float32"
        seconds = f"{half * 1e3:.3g} ms in bfloat16 and {wide * 1e3:.3g} ms in float32"
        self.reason = f"precision: {self.name}, because a step takes {seconds}"

    # In a checkpoint

    def state_dict(self) -> dict[str, Any]:
        """The precision that was chosen, and the state of the scaler."""
        return {"name": self.name, "scaler": None if self.scaler is None else self.scaler.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any] | None) -> None:
        """Take over what :meth:`state_dict` gave; None is a run from before there was a choice: in float32."""
        name = "float32" if state is None else str(state["name"])
        if name != self.name and not (self.asked == "auto" and name in PRECISIONS and name != "float16"):
            raise ValueError(f"its precision is {name}, the trainer's {self.name}")
        self.name = name
        if self.scaler is not None and state is not None:
            self.scaler.load_state_dict(state["scaler"])
