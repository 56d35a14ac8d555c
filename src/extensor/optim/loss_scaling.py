"""Loss scaling: a factor on the loss that lifts small gradients into the range of float16, and is taken out again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..checks import as_bool, as_floating, as_int, as_number
from ..dtypes import HALF, float32
from ..errors import describe
from ..kernels.reference import optim as kernels
from ..tensor import ExTensor
from .clipping import gradients_of
from .optimizer import Optimizer

__all__ = ["LossScaler", "scale_loss", "unscale_gradients"]

# Gradients that overflow at this scale overflow without one: the loss or the weights are at fault.
_SMALLEST = 2.0**-14


def _positive(function: str, name: str, value: Any) -> float:
    number = as_number(function, name, value)
    if not 0 < number < float("inf"):
        raise ValueError(f"[{function}] {name} must be a positive, finite number, got {number}")
    return number


def scale_loss(loss: ExTensor, scale: float) -> ExTensor:
    """The loss times a factor, by which every gradient is larger too.   scale * loss

    A gradient below 6e-8 is zero in float16; a factor of 65536 leaves room for those down to 1e-12. A half-precision loss is
    widened to float32 first, which the product may need.

    Args:
        loss: the loss, usually a scalar.
        scale: the factor; a power of two rounds nothing.

    Example:
        >>> import extensor as et
        >>> w = et.tensor([3.0], requires_grad=True)
        >>> et.optim.scale_loss((w * w).sum(), 1024.0).backward()
        >>> et.optim.unscale_gradients([w.grad], 1024.0)[0][0].tolist()
        [6.0]
    """
    loss = as_floating("scale_loss", "loss", loss)
    wide = loss.astype(float32) if loss.dtype in HALF else loss
    return wide * _positive("scale_loss", "scale", scale)


def unscale_gradients(grads: Any, scale: float) -> tuple[Any, bool]:
    """The gradients without the factor of :func:`scale_loss`, and whether all of them are finite.   grads / scale

    One pass over the gradients does both. Half-precision gradients come back in float32: without the factor they might vanish.

    Args:
        grads: a list, tuple or dict of tensors, or one tensor; entries may be None. They stay as they are.
        scale: the factor that the loss had.

    Returns:
        The gradients in the same structure, and False if an element is infinite or nan: the factor was too large for them, and
        this step must be skipped.

    Example:
        >>> import extensor as et
        >>> grads, finite = et.optim.unscale_gradients({"w": et.tensor([512.0]), "frozen": None}, 1024.0)
        >>> grads["w"].tolist(), grads["frozen"], finite
        ([0.5], None, True)
        >>> et.optim.unscale_gradients([et.tensor([float("inf")])], 1024.0)[1]
        False
    """
    found, put_back = gradients_of("unscale_gradients", grads)
    unscaled, finite = kernels.unscale_gradients(found, _positive("unscale_gradients", "scale", scale))
    return put_back(unscaled), finite


class LossScaler:
    """Finds the factor for :func:`scale_loss` while training: as large as the gradients allow.

    Where gradients overflow, the step is skipped and the factor multiplied by ``backoff_factor``; after ``growth_interval``
    steps without one it is multiplied by ``growth_factor``. A step is ``scale(loss).backward()``, ``step(optimizer)``,
    ``update()``; to clip gradients, call ``unscale(optimizer)`` before.

    Args:
        init_scale: the factor at the beginning.
        growth_factor: at least 1.
        backoff_factor: above 0, at most 1.
        growth_interval: how many steps in a row must be clean before the factor grows.
        dynamic: False keeps ``init_scale``; steps that overflow are still skipped.

    Attributes:
        skipped: the number of steps that were skipped.
        clean_steps: the number of steps since the factor last changed.

    Raises:
        FloatingPointError: in :meth:`update`, gradients overflow however small the factor.

    Example:
        >>> import extensor as et
        >>> layer = et.nn.Linear(2, 1, rng=0)
        >>> optimizer, scaler = et.optim.SGD(layer.parameters(), lr=0.1), et.optim.LossScaler(1024.0)
        >>> with et.autocast(et.float16):
        ...     loss = layer(et.ones((4, 2))).square().mean()
        >>> scaler.scale(loss).backward()
        >>> scaler.step(optimizer)
        True
        >>> scaler.update()
        >>> scaler.get_scale(), scaler.skipped
        (1024.0, 0)
    """

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        *,
        dynamic: bool = True,
    ) -> None:
        self._scale = _positive("LossScaler", "init_scale", init_scale)
        self.growth_factor = _positive("LossScaler", "growth_factor", growth_factor)
        self.backoff_factor = _positive("LossScaler", "backoff_factor", backoff_factor)
        self.growth_interval = as_int("LossScaler", "growth_interval", growth_interval)
        self.dynamic = as_bool("LossScaler", "dynamic", dynamic)
        if self.growth_factor < 1:
            raise ValueError(f"[LossScaler] growth_factor must be at least 1, got {self.growth_factor}")
        if self.backoff_factor > 1:
            raise ValueError(f"[LossScaler] backoff_factor must be at most 1, got {self.backoff_factor}")
        if self.growth_interval < 1:
            raise ValueError(f"[LossScaler] growth_interval must be at least 1, got {self.growth_interval}")
        self.skipped = self.clean_steps = 0
        # Since the last update. An optimiser is held, lest a new one with its identity be taken for it.
        self._finite: dict[Optimizer, bool] = {}

    def get_scale(self) -> float:
        """The factor as it is now."""
        return self._scale

    settings_to_watch = ("_scale",)  # a compiled function that scales by it is recorded again when it changes

    def scale(self, loss: ExTensor) -> ExTensor:
        """The loss times the factor, for ``backward()``."""
        return scale_loss(loss, self._scale)

    def unscale(self, optimizer: Optimizer) -> bool:
        """Take the factor out of the gradients of an optimiser's parameters; returns whether the step can be made."""
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"[LossScaler] optimizer must be an Optimizer, got {describe(optimizer)}")
        if self._finite.get(optimizer) is False:
            return False
        if optimizer in self._finite:
            raise RuntimeError(
                "[LossScaler] the gradients of this optimiser are unscaled already; call update() after its step"
            )
        moving = [p for group in optimizer.param_groups for p in group["params"] if p._grad is not None]
        grads, finite = unscale_gradients([p._grad for p in moving], self._scale)
        for parameter, grad in zip(moving, grads):
            parameter._grad = grad  # of a half-precision parameter in float32, as gradients that add up are
        self._finite[optimizer] = finite
        return finite

    def skip(self, optimizer: Optimizer) -> None:
        """Have the step of an optimiser skipped as one that overflowed: its loss was infinite or nan."""
        self._finite[optimizer] = False

    def step(self, optimizer: Optimizer) -> bool:
        """A step of the optimiser with unscaled gradients, if they are finite; returns whether it was made."""
        finite = self._finite.get(optimizer)
        if finite is None:
            finite = self.unscale(optimizer)
        if finite:
            optimizer.step()
        return finite

    def update(self) -> None:
        """Choose the factor of the next step by what became of this one."""
        if not self._finite:
            raise RuntimeError("[LossScaler.update] there was no step; call step(optimizer) before")
        finite = all(self._finite.values())
        self._finite.clear()
        self.clean_steps += 1
        if not finite:
            self.skipped += 1
            self.clean_steps = 0
        if not self.dynamic:
            return
        if not finite:
            self._scale *= self.backoff_factor
            if self._scale < _SMALLEST:
                raise FloatingPointError(
                    f"[LossScaler] the gradients are infinite or nan even at the scale {self._scale:g}; the loss or the "
                    "weights are at fault: try a smaller learning rate, or bfloat16"
                )
        elif self.clean_steps >= self.growth_interval:
            self.clean_steps = 0
            if self._scale * self.growth_factor < float("inf"):
                self._scale *= self.growth_factor

    def state_dict(self) -> dict[str, Any]:
        """Everything that decides how it goes on."""
        return {
            "scale": self._scale,
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
            "dynamic": self.dynamic,
            "clean_steps": self.clean_steps,
            "skipped": self.skipped,
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over what :meth:`state_dict` gave. Nothing is changed unless everything fits."""
        name = "LossScaler.load_state_dict"
        if not isinstance(state_dict, Mapping) or set(state_dict) != set(self.state_dict()):
            raise TypeError(
                f"[{name}] state_dict must be a dict with {', '.join(self.state_dict())}, got {describe(state_dict)}"
            )
        options = {
            key: state_dict[key] for key in ("growth_factor", "backoff_factor", "growth_interval", "dynamic")
        }
        counts = {key: as_int(name, key, state_dict[key]) for key in ("clean_steps", "skipped")}
        if min(counts.values()) < 0:
            raise ValueError(f"[{name}] counts must not be negative, got {counts}")
        loaded = LossScaler(state_dict["scale"], **options)
        self.__dict__.update({**loaded.__dict__, **counts})

    def __repr__(self) -> str:
        kind = "dynamic" if self.dynamic else "static"
        return f"LossScaler(scale={self._scale:g}, {kind}, skipped={self.skipped})"
